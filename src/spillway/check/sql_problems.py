"""The SQL of a flow against the columns of its streams, and what else has to be one of them."""

from collections.abc import Iterator
from dataclasses import dataclass

from pyarrow import ArrowException
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructField, StructType, TimestampNTZType, TimestampType
from sqlglot import exp

from spillway.check.analysis import UNNAMED, Analysis, analysed
from spillway.check.columns import Columns, columns_of
from spillway.check.document import Location
from spillway.errors import SpillwayError, unknown_name
from spillway.flow.derived import ARRIVAL
from spillway.flow.flow import Flow, Query, Stream
from spillway.flow.shedders import selection_of
from spillway.flow.sql import parse, streams_of
from spillway.gate.shedders.expressions import evaluate

_TIMES = (TimestampType, TimestampNTZType)


@dataclass(frozen=True, kw_only=True)
class Problem:
    place: Location  # in the document; () where it is not known
    text: str
    line: int | None = None  # of a text that has several


def sql_problems(flow: Flow) -> Iterator[Problem]:
    found: list[Problem] = []
    streams = _Streams(flow, found)
    for name, stream in flow.streams.items():
        columns = streams.columns(name)
        if columns is not None:
            found += _column_problems(name, stream, columns)
    for name, query in flow.queries.items():
        if query.python is not None:
            continue  # what its code makes of the streams, Spark alone can say
        key = "sql" if query.template is None else "template"
        known = {stream: streams.columns(stream) for stream in streams_of(name, query.text, flow)}
        result = analysed(name, query.text, known)
        found += _told(("queries", name, key), result)
        found += _key_problems(name, query, result.columns)
        found += _mode_problems(name, query, flow)
    yield from found


class _Streams:
    """The columns of each stream, a derived one's by the SQL that makes it."""

    def __init__(self, flow: Flow, found: list[Problem]) -> None:
        self._flow, self._found = flow, found
        self._known: dict[str, Columns | None] = {}

    def columns(self, name: str) -> Columns | None:
        if name not in self._known:
            self._known[name] = self._look(name, self._flow.streams[name])
        return self._known[name]

    def _look(self, name: str, stream: Stream) -> Columns | None:
        if stream.from_sql is None:
            try:
                return columns_of(name, stream)
            except SpillwayError as error:
                self._found.append(_of_stream(name, stream, str(error)))
                return None
        [read] = streams_of(name, stream.from_sql, self._flow)
        result = analysed(name, stream.from_sql, {read: self.columns(read)})
        self._found += _told(("streams", name, "from_sql"), result)
        return None if result.columns is None else {**result.columns, ARRIVAL: TimestampType()}


def _of_stream(name: str, stream: Stream, said: str) -> Problem:
    """A type stands at its column; other things concern an option, or the columns."""
    prefix = f"streams.{name}.columns."
    if said.startswith(prefix):
        column = said.removeprefix(prefix).partition(":")[0]
        return Problem(place=("streams", name, "columns", column), text=said)
    place: Location = ("streams", name)
    for option in stream.options:
        if f"option '{option.lower()}'" in said.lower():
            place = ("streams", name, "options", option)
    return Problem(place=place, text=f"streams.{name}: {said}")


def _told(place: Location, result: Analysis) -> Iterator[Problem]:
    name = ".".join(map(str, place))
    for problem in result.problems:
        yield Problem(
            place=place, line=problem.line, text=f"{name}, line {problem.line}: {problem.text}"
        )


def _column_problems(name: str, stream: Stream, columns: Columns) -> Iterator[Problem]:
    by_name = {column.lower(): kind for column, kind in columns.items()} | {ARRIVAL: None}
    time = stream.event_time
    if time is not None:
        place, where = ("streams", name, "event_time"), f"streams.{name}.event_time"
        kind = by_name.get(time.lower())
        if time.lower() not in by_name:
            yield Problem(place=place, text=f"{where}: {unknown_name('column', time, columns)}")
        elif kind is not None and not isinstance(kind, _TIMES):
            said = f"is '{time}', which is {kind.simpleString()}: an event time is a timestamp"
            yield Problem(place=place, text=f"{where} {said}")
    yield from _shedder_problems(name, stream, columns)


def _shedder_problems(name: str, stream: Stream, columns: Columns) -> Iterator[Problem]:
    """It looks at some columns, and computes with them."""
    selection = selection_of(stream)
    if selection is None:
        return
    place = ("streams", name, "utility" if stream.shedder == "utility" else "key")
    for column in selection.columns:
        if column not in columns and column != ARRIVAL:
            said = unknown_name(f"column of shedder '{stream.shedder}'", column, columns)
            yield Problem(place=place, text=f"streams.{name}: {said}")
            return
    kinds = [(column, columns.get(column)) for column in selection.columns if column != ARRIVAL]
    if stream.utility is not None and all(kind is not None for _, kind in kinds):
        fields = [StructField(column, kind) for column, kind in kinds if kind is not None]
        try:
            evaluate(stream.utility, to_arrow_schema(StructType(fields)).empty_table())
        except (SpillwayError, ArrowException, KeyError) as error:
            yield Problem(place=place, text=f"streams.{name}: {error}")


def _mode_problems(name: str, query: Query, flow: Flow) -> Iterator[Problem]:
    tree = parse(name, query.text)
    aggregates = any(select.args.get("group") for select in tree.find_all(exp.Select))
    timed = any(flow.streams[s].event_time for s in streams_of(name, query.text, flow))
    said = None
    ordered = next(
        (s.args["order"] for s in tree.find_all(exp.Select) if s.args.get("order")), None
    )
    if ordered is not None and query.mode != "complete":
        key = "sql" if query.template is None else "template"
        line = next((n.meta["line"] for n in ordered.walk() if "line" in n.meta), 1)
        text = f"queries.{name}.{key}, line {line}: ORDER BY: a stream has no end to sort by"
        yield Problem(place=("queries", name, key), text=f"{text}; leave it out", line=line)
    if query.mode == "append" and aggregates and not timed:
        said = (
            "append: an aggregate is only complete behind a watermark, so give a stream's"
            " event_time, or use mode update"
        )
    elif query.mode == "complete" and not tree.find(exp.AggFunc, exp.Group):
        said = "complete: there is no aggregate that could be shown as a whole; use mode append"
    elif query.mode != "append" and query.sink.type == "parquet":
        said = f"{query.mode}: sink parquet can only append"
    if said is not None:
        yield Problem(place=("queries", name, "mode"), text=f"queries.{name}.mode is {said}")


def _key_problems(name: str, query: Query, columns: Columns | None) -> Iterator[Problem]:
    """The columns that a sink asks for. A window becomes two: period_start and period_end."""
    asked = query.sink.options.get("key")
    if asked is None or columns is None or query.template is not None or query.estimate:
        return
    if any(column.startswith(UNNAMED) for column in columns):
        return
    for key in asked if isinstance(asked, list) else str(asked).split(","):
        column = str(key).strip().lower()
        flat = any(column.startswith(f"{one}_") for one in columns)
        if column not in columns and not flat and not column.startswith("_"):
            said = unknown_name("column of the result", str(key).strip(), columns)
            yield Problem(
                place=("queries", name, "sink", "key"), text=f"queries.{name}.sink: {said}"
            )
