"""format("spillway"): the gate as a Python streaming data source.

Instances are made on the driver and in workers and travel pickled: making one has no side effects.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from spillway.clock import WallClock
from spillway.errors import SpillwayError
from spillway.gate.offsets import SENTINEL
from spillway.gate.options import GateOptions
from spillway.hosts.spark.worker.partial_rows import Combiner, partial_schema, tuples_schema
from spillway.hosts.spark.worker.rows import HEARTBEAT, Rows, asked_columns, spark_schema
from spillway.hosts.spark.worker.slices import Slice, heartbeat_slice, slices
from spillway.logs import catalog
from spillway.logs.dead_letters import default_root, place_of
from spillway.logs.stream_options import own_options, require_delay

if TYPE_CHECKING:
    from spillway.hosts.spark.planner.adopting import Adopting
    from spillway.hosts.spark.planner.planner import Planner


class Spillway(DataSource):
    """`spark.readStream.format("spillway").option("source", ...).option("delay", "2s")`."""

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(own_options(options))
        require_delay(self.options)
        self._gate = GateOptions.parse(self.options)  # at load(), also where a schema is given

    @classmethod
    def name(cls) -> str:
        return "spillway"

    def schema(self) -> StructType | str:
        catalog.require_there(self.options)
        if self._gate.combine is not None:
            return partial_schema(self._gate.combine, self._gate.heartbeat_column is not None)
        return spark_schema(self.options, self._gate)

    def reader(self, schema: StructType) -> DataSourceReader:
        raise SpillwayError(
            "format 'spillway' reads streams, with spark.readStream: a batch has no delay to keep;"
            " use Spark's own source, such as format 'kafka', for spark.read"
        )

    def streamReader(self, schema: StructType) -> "Gate":  # noqa: N802
        return Gate(dict(self.options), schema)


class Gate(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Spark's calls, handed to the planner on the driver and to the log in workers."""

    def __init__(self, options: dict[str, str], schema: StructType) -> None:
        self._options = options
        gate = GateOptions.parse(options)
        rows = gate.heartbeat_column is not None and HEARTBEAT in schema.names
        self._gate = replace(gate, heartbeat_rows=rows)
        self._schema = schema
        combine = gate.combine
        self._tuples = schema if combine is None else tuples_schema(combine)
        self._asked = asked_columns(self._tuples, options)
        self._made: Planner | None = None
        self._adopting: Adopting | None = None

    @property
    def _planner(self) -> "Planner":
        if self._made is None:
            from spillway.hosts.spark.planner.planner import Planner  # workers never need it

            self._made = Planner(self._options, self._gate, self._asked)
        return self._made

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return dict(SENTINEL)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._planner.freeze()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        end = self._planner.latest(own := self._own(start))
        return start if end == own else end

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        return self._planner.report()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        batch = self._planner.shown(self._own(start), self._own(end, start))
        if batch is None:
            return []
        root = self._options.get("dead_letter") or default_root(self._gate.ledger)
        place = place_of(root, batch.gate, batch.began_us)
        batch = replace(batch, pinned={**batch.pinned, "dead_letter": place})
        if batch.heartbeat and self._gate.heartbeat_rows:
            return [heartbeat_slice(batch)]
        return slices(batch, self._planner.cores.tasks)

    def commit(self, end: dict[str, Any]) -> None:
        self._planner.completed(self._own(end))

    def _own(self, logged: dict[str, Any], start: dict[str, Any] | None = None) -> dict[str, Any]:
        """As a gate has it: Spark's own Kafka source may have logged it before a gate came."""
        if "seq" in logged:
            return logged
        if self._adopting is None:
            from spillway.hosts.spark.planner.adopting import Adopting

            self._adopting = Adopting(self._options, self._gate, self._asked, WallClock().now_s())
        if start is None or "seq" in start or start == logged:
            return self._adopting.at(logged)
        return self._adopting.between(start, logged)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Slice)
        options = {**self._options, **partition.pinned}
        rows = Rows(self._schema, self._gate.heartbeat_column)
        if partition.beats_us is not None:
            look = catalog.without_consequences(options)
            return rows.beat(partition, catalog.open_log(look, self._asked))
        log = catalog.open_log(options, self._asked)
        if self._gate.combine is None:
            return rows.of(partition, log)
        tuples = Rows(self._tuples).of(partition, log)
        return Combiner(self._gate.combine, rows.schema).partial_rows(tuples)
