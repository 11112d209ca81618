"""format("spillway_instances"): a template's instances as a table that every batch reads anew.

The table shows all instances that ever were, with the versions between which each is active; which
of them a row meets is decided by the version that the gate has stamped on it.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from spillway.errors import SpillwayError
from spillway.templates.instance_store import Frame, Identity, InstanceStore

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from spillway.templates.templates import Template

_ARROW = {
    "BIGINT": pa.int64(),
    "DOUBLE": pa.float64(),
    "STRING": pa.string(),
    "BOOLEAN": pa.bool_(),
}
_tables: dict[str, tuple[Identity, pa.RecordBatch]] = {}  # of this worker, by path


class Instances(DataSource):
    """Option `path`: the file of the store."""

    @classmethod
    def name(cls) -> str:
        return "spillway_instances"

    def schema(self) -> str:
        frame = _frame(InstanceStore(Path(self.options["path"])))
        values = (f"_p_{name} {kind}" for name, kind in frame.types.items())
        fixed = ("query_id BIGINT", "_added BIGINT", "_removed BIGINT", "_shape INT")
        return ", ".join([*fixed, *values])

    def reader(self, schema: StructType) -> "InstancesReader":
        return InstancesReader(self.options["path"])


class InstancesReader(DataSourceReader):
    def __init__(self, path: str) -> None:
        self._path = path

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        store = InstanceStore(Path(self._path))
        identity = store.identity()
        if self._path not in _tables or _tables[self._path][0] != identity:
            _tables[self._path] = identity, table_of(store)
        yield _tables[self._path][1]


def table_of(store: InstanceStore) -> pa.RecordBatch:
    """All instances of a store, one row each."""
    frame, rows = _frame(store), store.instances()
    literals = list(frame.shapes[0])
    places = {json.dumps(shape): place for place, shape in enumerate(frame.shapes)}
    shapes = [json.dumps({name: str(row.values[name]) for name in literals}) for row in rows]
    columns: dict[str, pa.Array] = {
        "query_id": pa.array([row.query_id for row in rows], pa.int64()),
        "_added": pa.array([row.added for row in rows], pa.int64()),
        "_removed": pa.array([row.removed for row in rows], pa.int64()),
        "_shape": pa.array([places[shape] for shape in shapes], pa.int32()),
    }
    for name, kind in frame.types.items():
        values = [row.values[name] for row in rows]
        if kind == "STRING":  # of texts, or of texts and numbers
            values = [value if value is None else str(value) for value in values]
        columns[f"_p_{name}"] = pa.array(values, _ARROW[kind])
    return pa.RecordBatch.from_pydict(columns)


def fused_frame(spark: "SparkSession", template: "Template", store: InstanceStore) -> "DataFrame":
    """All instances of a template as one plan; its streams are views with column `_version`."""
    from spillway.templates.templates import is_carried  # workers never need it

    spark.dataSource.register(Instances)
    table = f"_instances_of_{template.name}"
    rows = spark.read.format(Instances.name()).option("path", str(store.path)).load()
    rows.createOrReplaceTempView(table)
    result = spark.sql(template.fused(table, _frame(store).shapes))
    return result.drop(*filter(is_carried, result.columns))


def _frame(store: InstanceStore) -> Frame:
    frame = store.frame()
    if frame is None:
        raise SpillwayError(f"{store.path} holds no instances of a template")
    return frame
