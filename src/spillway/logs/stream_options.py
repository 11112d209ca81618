"""The options of a stream: its gate and its log share one mapping and read what is theirs."""

from collections.abc import Iterable, Mapping

from spillway.errors import SpillwayError
from spillway.gate.options import OPTIONS as GATE
from spillway.logs import catalog
from spillway.options import Option, lowered, nearest, read, unknown

# What they are called in Spark's own Kafka source.
_SPARKS_NAMES: Mapping[str, str] = {
    "subscribe": "topic",
    "includeheaders": "headers",
    "maxoffsetspertrigger": "max_batch",
    "groupidprefix": "group",
}


def stream_options(source: str) -> tuple[Option, ...]:
    """All that a stream over this log may be given."""
    return (*GATE, *catalog.options_of(source))


def require_delay(options: Mapping[str, str]) -> None:
    """A target that nobody chose would shed what somebody may need."""
    if "delay" not in lowered(options):
        raise SpillwayError(
            "option 'delay' is missing: give the target that the gate keeps, for example '2s'"
            " (a mean) or 'p99 2s'"
        )


def require_known(options: Mapping[str, str]) -> None:
    """Raise for an option that nobody reads: a slip would silently mean the default."""
    given = lowered(options)
    source = catalog.source_of(given)
    known = stream_options(source)
    for name in unknown(known, [name for name in given if name != "source"]):
        raise SpillwayError(
            f"option '{name}' is not known to the gate nor to log '{source}'"
            f" ({_hint(known, name)}): docs/gate.md and docs/logs.md list them"
        )


def require_valid(source: str, options: Mapping[str, object]) -> None:
    """Raise for an unknown option, a bad value and one that is missing; opens nothing."""
    require_known({"source": source, **dict.fromkeys(options, "")})
    read(stream_options(source), options)


def _hint(known: Iterable[Option], name: str) -> str:
    if name in _SPARKS_NAMES:
        return f"Spark's name for '{_SPARKS_NAMES[name]}'"
    near = nearest(known, name)
    return f"did you mean '{near}'?" if near else "leave it out"
