"""What a flow's queries compute: frames over their gates, started into their sinks."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from spillway.errors import SpillwayError
from spillway.estimates.flow import answer_sql
from spillway.flow.combining import Combined, combined, require_one_stream
from spillway.flow.derived import ARRIVAL
from spillway.flow.frames import function_of
from spillway.gate.combination import Combination
from spillway.hosts.spark.driver.cuts import Cut, part_of, told_apart
from spillway.hosts.spark.driver.gates import columns_of
from spillway.hosts.spark.session.partitions import partitions_of_state
from spillway.hosts.spark.worker.instances import fused_frame
from spillway.sinks import catalog as sinks
from spillway.templates.instance_store import InstanceStore
from spillway.templates.instances import open_store

if TYPE_CHECKING:
    from spillway.hosts.spark.driver.application import Application

Read = Callable[[str, str, Combination | None], DataFrame]  # of a query, a stream


class Answers:
    """Of the queries that an application has at the moment."""

    def __init__(self, application: "Application") -> None:
        self._application = application

    def frame(self, name: str, read: Read | None = None) -> DataFrame:
        """What a query computes from what `read` gives for its streams, by default its gates."""
        application, spark = self._application, self._application.spark
        flow, gates = application.flow, application.gates
        query, store = flow.queries[name], self._open_instances(name)
        combined = self.combined(name)
        given = None if combined is None else combined.combination
        frames = {s: (read or gates.read)(name, s, given) for s in application.streams_of(name)}
        for stream, rows in frames.items():
            rows.createOrReplaceTempView(stream)
        frame: DataFrame
        if query.python is not None:
            frame = function_of(name, query.python)(**frames)
        elif store is None:
            frame = spark.sql(self._sql(name) if combined is None else combined.sql)
        else:
            frame = fused_frame(spark, application.templates[name].template, store)
        gates.schemas[name] = columns_of(frame, without=ARRIVAL)
        return frame

    def start(self, name: str) -> StreamingQuery:
        application = self._application
        query, frame = application.flow.queries[name], self.frame(name)
        spark, checkpoint = application.spark, application.folder.checkpoint(name)
        self._begin(name)
        spark.sparkContext.setLocalProperty("spark.scheduler.pool", query.class_name)
        part = part_of(self._cut(name), query, checkpoint)
        fence = application.fence_of(name)
        with partitions_of_state(spark, query.partitions):
            return sinks.start(frame, name, query, str(checkpoint), fence, part)

    def combined(self, name: str) -> Combined | None:
        """The query over partial rows, where its checkpoint was begun so or is still to begin."""
        application, folder = self._application, self._application.folder
        query, [stream, *_] = application.flow.queries[name], application.streams_of(name)
        begun = _has_begun(folder.checkpoint(name))
        if not (folder.combination(name).exists() if begun else query.combine):
            return None
        with suppress(SpillwayError):
            require_one_stream(name, query, application.flow)
            sql, columns = self._sql(name), application.gates.tuples(name, stream)
            return combined(name, sql, application.flow, columns)
        return None

    def _begin(self, name: str) -> None:
        """What a checkpoint is begun over, its state is made for."""
        folder = self._application.folder
        marker = folder.combination(name)
        if _has_begun(folder.checkpoint(name)):
            return
        if self.combined(name) is None:
            marker.unlink(missing_ok=True)
        else:
            marker.parent.mkdir(parents=True, exist_ok=True)
            marker.touch()

    def _sql(self, name: str) -> str:
        cut, flow = self._cut(name), self._application.flow
        return cut.sql if cut else answer_sql(name, flow.queries[name], flow)

    def _cut(self, name: str) -> Cut | None:
        """None: its results are all its own, always."""
        application = self._application
        if not application.moves:
            return None
        return told_apart(name, application.flow.queries[name], application.flow)

    def _open_instances(self, name: str) -> InstanceStore | None:
        application = self._application
        if name not in application.templates:
            return None
        given = application.templates[name]
        return open_store(application.folder.instances(name), given.template, given.rows)


def _has_begun(checkpoint: Path) -> bool:
    """Whether a batch was planned."""
    return any((checkpoint / "offsets").glob("[0-9]*"))
