"""The gates in front of a flow's queries, as Spark reads them."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructField, StructType

from spillway.classes.turns import batches_in_flight
from spillway.errors import SpillwayError
from spillway.estimates.flow import gate_options
from spillway.flow.flow import Flow, Query
from spillway.flow.reading import columns_read
from spillway.flow.types import spark_type
from spillway.gate.combination import Combination
from spillway.hosts.spark.driver.executors import live_cores
from spillway.hosts.spark.files import Folder
from spillway.hosts.spark.session.pools import task_slots
from spillway.hosts.spark.worker.rows import ARRIVAL, HEARTBEAT, OURS, WEIGHT, own_columns
from spillway.logs.catalog import MADE_UP
from spillway.model import parse_duration_s

SHORT_TASKS = 4  # per core and batch, where a high class waits for the tasks of a low one


class Gates:
    """Makes the frames that the queries' SQL reads from."""

    def __init__(
        self,
        flow: Flow,
        spark: SparkSession,
        folder: Folder,
        streams: Mapping[str, Sequence[str]],
        channel: str,
    ) -> None:
        self._flow, self._spark, self._folder = flow, spark, folder
        self._streams, self._channel = streams, channel
        self.leased = False  # the queries may be taken over by others
        self.follows: Callable[[str, str], str | None] = lambda query, stream: None
        self.schemas: dict[
            str, Mapping[str, str]
        ] = {}  # of what the queries write into folders, by query

    def use(self, flow: Flow) -> None:
        """Queries have come or gone."""
        self._flow = flow

    def read(
        self, name: str, stream_name: str, combination: Combination | None = None
    ) -> DataFrame:
        """A query's view of one of its streams: its tuples, or partial rows."""
        options = self.options(name, self._flow.queries[name], stream_name)
        columns = self._columns(name, stream_name)
        if columns is not None:
            options["schema"] = ", ".join(f"`{c}` {t}" for c, t in columns.items())
        if combination is not None:
            options["combine"] = combination.text()
        return self.frame(stream_name, options)

    def tuples(self, name: str, stream_name: str) -> StructType:
        """The columns of a query's view that SQL may name: the stream's, and those of the gate.

        A file is not opened for it: it would be read here, and in the workers once more.
        """
        options = self.options(name, self._flow.queries[name], stream_name)
        columns = self._columns(name, stream_name)
        if columns is None and self._flow.streams[stream_name].source not in MADE_UP:
            raise SpillwayError(f"stream '{stream_name}' declares no columns")
        if columns is None:
            theirs = list(own_columns(options).fields)
        else:
            theirs = [StructField(c, spark_type(t)) for c, t in columns.items()]
        ours = [ARRIVAL] + [WEIGHT] * (options.get("weight") == "true")
        return StructType([*theirs, *(StructField(column, OURS[column]) for column in ours)])

    def _columns(self, name: str, stream_name: str) -> Mapping[str, str] | None:
        """Those that a log is asked for, with their types; None: its own."""
        if stream_name in self.schemas:
            return self.schemas[stream_name]
        return columns_read(self._flow, name, stream_name)

    def frame(self, stream_name: str, options: Mapping[str, str]) -> DataFrame:
        """Rows as these options say, with the stream's watermark."""
        stream = self._flow.streams[stream_name]
        frame = self._spark.readStream.format("spillway").options(**options).load()
        if stream.event_time is None:
            return frame
        return with_watermark(frame, stream.event_time, _interval(stream.watermark))

    def options(self, name: str, query: Query, stream_name: str) -> dict[str, str]:
        options = gate_options(self._flow, name, stream_name) | {
            "checkpoint": str(self._folder.checkpoint(name)),
            "ledger": str(self._folder.ledger(name, stream_name)),
            "channel": self._channel,
        }
        if self.leased:
            options["leased"] = "true"
        if (followed := self.follows(name, stream_name)) is not None:
            options["follows"] = followed
        if query.template is not None:
            options["instances"] = str(self._folder.instances(name))
        if len(self._streams[name]) > 1:
            options["joint"] = name
        if "record" in options:
            options["record"] += f".{name}"  # queries over one stream have each their own
        return options

    def dead_letters(self) -> dict[str, Path]:
        """Under which root each gate's dead letters are."""
        roots = {}
        for query, streams in self._streams.items():
            for stream in streams:
                given = self._flow.streams[stream].options.get("dead_letter")
                root = Path(str(given)) if given else self._folder.dead_letters(query, stream)
                roots[f"{query}/{stream}"] = root
        return roots

    def tasks_of_a_batch(self) -> int:
        """On the cores that there are now."""
        context = self._spark.sparkContext
        cores, room = live_cores(context), task_slots(context.master or "")
        priorities = [c.priority for c in self._flow.classes.values()]
        in_flight = batches_in_flight(cores, priorities)
        waits = len(priorities) > 1 and (room is None or room < cores * in_flight)
        return cores * SHORT_TASKS if waits else cores


def with_watermark(frame: DataFrame, event_time: str, lateness: str) -> DataFrame:
    """`frame.withWatermark(event_time, lateness)`, with heartbeats counted and then left out.

    Spark pushes filters below the watermark, its own and the user's, and a heartbeat that is
    dropped there is never counted. It moves no filter past one that is not deterministic, so the
    one that drops heartbeats is made to look so; no tuple pays for it, because the first half of
    the condition already holds.
    """
    marked = frame.withWatermark(event_time, lateness)
    if HEARTBEAT not in frame.columns:
        return marked
    return marked.where(~F.col(HEARTBEAT) | (F.uuid() == "")).drop(HEARTBEAT)


def columns_of(frame: DataFrame, without: str) -> dict[str, str]:
    """Their types by name."""
    return {f.name: f.dataType.simpleString() for f in frame.schema.fields if f.name != without}


def _interval(duration: str) -> str:
    """A duration as Spark's interval text."""
    return f"{round(parse_duration_s(duration) * 1e6)} microseconds"
