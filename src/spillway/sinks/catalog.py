"""Where a query's results go, every sink by name. A sink's module is imported when it is asked for.

Memory, noop and Parquet are Spark's own sinks. The others get every batch whole, by
`foreachBatch`: a batch that is run again after a crash has the same id and, because its offsets
are the same, the same rows. What each sink makes of that is its GUARANTEE.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from importlib import import_module
from typing import TYPE_CHECKING, Any

from spillway.errors import SpillwayError, unknown_name
from spillway.flow.flow import Flow, Query, Sink
from spillway.options import Option, parsed
from spillway.sinks.fence import Fence

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

# One line a sink. Each module has OPTIONS, GUARANTEE and `open_sink(query, given)`; where a sink
# cannot go on from a checkpoint, also RECOVERS = False; where it can compare epochs with those who
# wrote before, also `open_fenced_sink(query, given, fence)`; where it can replace what it holds,
# also `open_repair(query, given)`.
MODULES: Mapping[str, str] = {
    "console": "spillway.sinks.console",
    "memory": "spillway.sinks.memory",
    "noop": "spillway.sinks.noop",
    "parquet": "spillway.sinks.parquet",
    "kafka": "spillway.sinks.kafka",
    "jdbc": "spillway.sinks.postgres",
    "python": "spillway.sinks.python",
}
RESULTS = "spillway_results"  # the name under which Spark counts rows on their way to the sink
Aim = Callable[[Any], Any]  # gives a stream writer its sink
Part = Callable[["DataFrame", int], "DataFrame"]
Repair = Callable[[Any, str | None, Sequence[datetime]], None]  # rows, the windows they replace


class BatchWise:
    """A stream writer that hands on what `part` leaves of every batch."""

    def __init__(self, writer: Any, part: Part) -> None:
        self._writer, self._part = writer, part

    def foreachBatch(self, write: Callable[[DataFrame, int], None]) -> Any:  # noqa: N802
        part = self._part
        return self._writer.foreachBatch(lambda rows, batch: write(part(rows, batch), batch))


def start(
    frame: DataFrame,
    name: str,
    query: Query,
    checkpoint: str,
    fence: Fence | None = None,
    part: Part | None = None,
) -> StreamingQuery:
    """Start the query; its batches run until it is stopped. With a fence only the last node that
    was given the query writes, as far as the sink can tell; and rows are counted on their way,
    because other nodes need to know how much it sends on. `part`: what of a batch is written, by
    sinks that get batches."""
    if fence is not None:
        from pyspark.sql import functions as F  # noqa: N812

        frame = frame.observe(RESULTS, F.count(F.lit(1)).alias(RESULTS))
    writer = frame.writeStream.queryName(name).outputMode(query.mode)
    if getattr(_module(query.sink.type), "RECOVERS", True):
        writer = writer.option("checkpointLocation", checkpoint)
    aim = _opened(name, query.sink, fence)
    started: StreamingQuery = aim(writer if part is None else BatchWise(writer, part)).start()
    return started


def require_ready(flow: Flow) -> None:
    """Raise for functions and client libraries that are not there, before Spark starts."""
    for name, query in flow.queries.items():
        _opened(name, query.sink)


def aimed(writer: Any, name: str, sink: Sink) -> Any:
    """The stream writer with its sink, not started."""
    return _opened(name, sink)(writer)


def repair_of(name: str, sink: Sink) -> Repair | None:
    """Writes rows instead of what the sink has of these windows; None: this sink cannot."""
    opened = getattr(_module(sink.type), "open_repair", None)
    return None if opened is None else opened(name, given_to(name, sink))


def given_to(name: str, sink: Sink) -> dict[str, Any]:
    """What a query gives its sink, checked; raises with the place in the flow."""
    if sink.type not in MODULES:
        raise SpillwayError(f"queries.{name}.sink.type: {unknown_name('sink', sink.type, MODULES)}")
    what = f"queries.{name}.sink.{{}}"
    return parsed(options_of(sink.type), sink.options, f"sink '{sink.type}'", what)


def require_client(sink: Sink) -> None:
    """Raise where the client library of a sink is not installed. Runs nothing of the user's."""
    if (client := getattr(_module(sink.type), "client", None)) is not None:
        client()


def options_of(sink: str) -> tuple[Option, ...]:
    """The options of a sink, apart from its type."""
    declared: tuple[Option, ...] = _module(sink).OPTIONS
    return declared


def meaning_of(sink: str) -> str:
    """What a sink does: the first paragraph of its file."""
    return " ".join((_module(sink).__doc__ or "").partition("\n\n")[0].split())


def guarantee_of(sink: str) -> str:
    """What a reader of the sink sees after a crash."""
    return str(_module(sink).GUARANTEE)


def _opened(name: str, sink: Sink, fence: Fence | None = None) -> Aim:
    given, module = given_to(name, sink), _module(sink.type)
    fenced = getattr(module, "open_fenced_sink", None)
    if fence is not None and fenced is not None:
        aim: Aim = fenced(name, given, fence)
    else:
        aim = module.open_sink(name, given)
    return aim


def _module(sink: str) -> Any:
    return import_module(MODULES[sink])
