"""The options of a stream: its gate and its log share one mapping and read what is theirs."""

from collections.abc import Iterable, Mapping
from typing import Any

from spillway.errors import SpillwayError
from spillway.gate.options import OPTIONS as GATE
from spillway.logs import catalog
from spillway.logs.saying import say_once
from spillway.logs.topics import CHOICES, choice
from spillway.options import Option, by_own_names, lowered, nearest, read, unknown

KAFKA = "kafka"
_KAFKAS = {name.lower() for option in CHOICES for name in (option.name, *option.also)}

# Of Spark's Kafka source: taken, so that a job need not change, and of no use to a gate.
_WITHOUT_EFFECT: Mapping[str, str] = {
    "kafkaconsumer.polltimeoutms": "option 'outage_timeout' says how long brokers are waited for",
    "fetchoffset.numretries": "option 'outage_timeout' says how long brokers are waited for",
    "fetchoffset.retryintervalms": "option 'outage_timeout' says how long brokers are waited for",
    "minoffsetspertrigger": "the delay target says when a batch begins",
    "maxtriggerdelay": "the delay target says when a batch begins",
    "maxrecordsperpartition": "option 'minPartitions' says how many tasks a batch has",
}


def stream_options(source: str) -> tuple[Option, ...]:
    """All that a stream over this log may be given."""
    return (*GATE, *catalog.options_of(source))


def own_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """A stream's options under the names under which they are declared, in lower case.

    Options of Spark's Kafka source mean that log. Raises for an option that nobody reads: a slip
    would silently mean the default.
    """
    named = lowered(given)
    if "source" not in named and _KAFKAS & set(named):
        named["source"] = KAFKA
    source = catalog.source_of(named)
    known = stream_options(source)
    for name in unknown(known, [name for name in named if name != "source"]):
        if source != KAFKA or name not in _WITHOUT_EFFECT:
            raise SpillwayError(
                f"option '{name}' is not known to the gate nor to log '{source}'"
                f" ({_hint(known, name)}): docs/gate.md and docs/logs.md list them"
            )
        say_once(f"option '{name}' has no effect: {_WITHOUT_EFFECT[name]}")
        del named[name]
    return by_own_names(known, named)


def require_delay(options: Mapping[str, str]) -> None:
    """A target that nobody chose would shed what somebody may need."""
    if "delay" not in options:
        raise SpillwayError(
            "option 'delay' is missing: give the target that the gate keeps, for example '2s'"
            " (a mean) or 'p99 2s'"
        )


def require_valid(source: str, options: Mapping[str, object]) -> None:
    """Raise for an unknown option, a bad value and one that is missing; opens nothing."""
    own = own_options({"source": source, **options})
    read(stream_options(source), own)
    catalog.require(source, own)


def named_topics(options: Mapping[str, Any]) -> tuple[str, ...] | None:
    """The topics that the options name; None where they name a pattern."""
    if options.get("source") != KAFKA:
        return ()
    return choice(options).names or None


def _hint(known: Iterable[Option], name: str) -> str:
    near = nearest(known, name)
    return f"did you mean '{near}'?" if near else "leave it out"
