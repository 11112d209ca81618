"""What a flow's queries compute: frames over their gates, started into their sinks."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from spillway.estimates.flow import answer_sql
from spillway.flow.derived import ARRIVAL
from spillway.flow.frames import function_of
from spillway.hosts.spark.driver.cuts import Cut, part_of, told_apart
from spillway.hosts.spark.driver.gates import schema_text
from spillway.hosts.spark.session.partitions import partitions_of_state
from spillway.hosts.spark.worker.instances import fused_frame
from spillway.sinks import catalog as sinks
from spillway.templates.instance_store import InstanceStore
from spillway.templates.instances import open_store

if TYPE_CHECKING:
    from spillway.hosts.spark.driver.application import Application

Read = Callable[[str, str], DataFrame]  # of a query, a stream


class Answers:
    """Of the queries that an application has at the moment."""

    def __init__(self, application: "Application") -> None:
        self._application = application

    def frame(self, name: str, read: Read | None = None) -> DataFrame:
        """What a query computes from what `read` gives for its streams, by default its gates."""
        application, spark = self._application, self._application.spark
        flow, gates = application.flow, application.gates
        query, store = flow.queries[name], self._open_instances(name)
        frames = {s: (read or gates.read)(name, s) for s in application.streams_of(name)}
        for stream, rows in frames.items():
            rows.createOrReplaceTempView(stream)
        frame: DataFrame
        if query.python is not None:
            frame = function_of(name, query.python)(**frames)
        elif store is None:
            cut = self._cut(name)
            frame = spark.sql(cut.sql if cut else answer_sql(name, query, flow))
        else:
            frame = fused_frame(spark, application.templates[name].template, store)
        gates.schemas[name] = schema_text(frame, without=ARRIVAL)
        return frame

    def start(self, name: str) -> StreamingQuery:
        application = self._application
        query, frame = application.flow.queries[name], self.frame(name)
        spark, checkpoint = application.spark, application.folder.checkpoint(name)
        spark.sparkContext.setLocalProperty("spark.scheduler.pool", query.class_name)
        part = part_of(self._cut(name), query, checkpoint)
        fence = application.fence_of(name)
        with partitions_of_state(spark, query.partitions):
            return sinks.start(frame, name, query, str(checkpoint), fence, part)

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
