"""The names of all options of format("spillway") and what they mean. Spark ignores their case."""

from collections.abc import Mapping
from difflib import get_close_matches

from spillway.errors import SpillwayError
from spillway.gate.shedders.catalog import meanings, names
from spillway.logs import catalog

MEANINGS: Mapping[str, str] = {
    "delay": "delay target with an optional statistic: '2s' (mean), 'p95 2s', 'p99 300ms'",
    "manager": "load manager: predictive (default), none, fixed, aloma, ...",
    "manager.NAME": "a number that the load manager takes, such as manager.keep_fraction",
    "period": "control period of the period laws; default 1s",
    "policy": "which tuples go: uniform (default) or fresh",
    "shedder": f"how tuples are chosen: one of {', '.join(names())}; default uniform",
    **meanings(),
    "min_keep": "never keep less than this fraction of what a batch consumes; 0 to 1, default 0",
    "dry_run": "decide and record, drop nothing; default false",
    "weight": "add column _weight, 1 / the chance that the tuple was kept; default false",
    "place": "add column _place, the tuple's number among all that were consumed; default false",
    "kept_from": "shedder windows: add column _kept_from, since when all stayed; default false",
    "masks": "query:ppm,... of a fused plan; adds _queries, bit k set where query k sees the row",
    "split": "shared:cost,query:cost:weight,...; adds _queries, masks by what is cheapest to drop",
    "instances": "file with a template's instances; adds column _version, set by `spillway run`",
    "heartbeat": "event-time column; adds _heartbeat and rows that move the watermark when quiet",
    "quiet": "how long a stream must be silent before a heartbeat; default the delay target",
    "parallelism": "input partitions of a batch; default the number of cores",
    "first_batch": "tuples of the first batch, before any cost is known; default 10000",
    "max_batch": "most tuples that a batch keeps, whatever the load manager says; default none",
    "poll": "how long one trigger waits for tuples at most; default 1s",
    "startingoffsets": "first start: latest (default), earliest, or JSON {topic: {partition: n}}",
    "failondataloss": "stop when the log dropped unread tuples, else count them; default false",
    "seed": "seed of the sampling; default 0",
    "ledger": "file to which finished batches are archived; default in `checkpoint`, else none",
    "checkpoint": "Spark's checkpoint folder of this query, when it is on a local disk",
    "trigger": "interval of a processing-time trigger; needs `checkpoint`",
    "joint": "a name shared by the gates of one query, so that they decide together",
    "channel": "socket of the control loop; set by `spillway run`",
    "class": "service class of the query; default 'default'",
    "gate": "name of this gate in the journal; default a random one",
    "query": "name of the query in the journal; set by `spillway run`",
    "schema": "columns as DDL, for logs without a schema of their own (in place of .schema())",
}

_PREFIXES = ("manager.", "kafka.")
# What they are called in Spark's own Kafka source.
_SPARKS_NAMES: Mapping[str, str] = {
    "subscribe": "topic",
    "includeheaders": "headers",
    "maxoffsetspertrigger": "max_batch",
    "groupidprefix": "group",
}


def require_known(options: Mapping[str, str]) -> None:
    """Raise for an option that nobody reads: a slip would silently mean the default."""
    given = lowered(options)
    source = catalog.source_of(given)
    known = {"source", *MEANINGS, *map(str.lower, catalog.options_of(source))}
    for name in given:
        if name not in known and not name.startswith(_PREFIXES):
            raise SpillwayError(_unknown(name, source, known))


def _unknown(name: str, source: str, known: set[str]) -> str:
    if name in _SPARKS_NAMES:
        hint = f"Spark's name for '{_SPARKS_NAMES[name]}'"
    else:
        near = get_close_matches(name, sorted(known), n=1)
        hint = f"did you mean '{near[0]}'?" if near else "leave it out"
    return (
        f"option '{name}' is not known to the gate nor to log '{source}' ({hint}):"
        " docs/gate.md and docs/logs.md list them"
    )


def lowered(options: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in options.items()}
