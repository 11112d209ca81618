"""A bare Python source: the same generated rows as the synthetic log, and none of the gate's logic.

It is what a gate is compared with. With `batch` every micro-batch has that many rows, however old
they are; without it a batch takes everything that has arrived, as plain Spark does.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import StructField, StructType, TimestampType

from spillway.gate.sampling import PPM, UniformRule, kept_positions, positions_at_once
from spillway.logs.synthetic import SyntheticLog
from spillway.ports import Span

TASKS = 2


class PlainRows(DataSource):
    """Options: those of the synthetic log, and `batch`, `keep_ppm` (of the rows scanned).

    Both may be lists: then batches go through them in turn.
    """

    @classmethod
    def name(cls) -> str:
        return "spillway_plain"

    def schema(self) -> StructType:
        columns = from_arrow_schema(SyntheticLog(self.options, None).columns())
        return StructType([*columns.fields, StructField("_arrival", TimestampType())])

    def streamReader(self, schema: StructType) -> "PlainReader":  # noqa: N802
        return PlainReader(dict(self.options), schema)


class Range(InputPartition):
    def __init__(self, start: int, stop: int, rule: UniformRule) -> None:
        self.start = start
        self.stop = stop
        self.rule = rule


def ranges(start: int, stop: int, rule: UniformRule) -> list[InputPartition]:
    edges = np.linspace(start, stop, TASKS + 1).astype(int)
    return [Range(int(a), int(b), rule) for a, b in pairwise(edges) if b > a]


def read_range(
    options: Mapping[str, str], schema: pa.Schema, part: Range
) -> Iterator[pa.RecordBatch]:
    log = SyntheticLog(options, None)
    length = positions_at_once(part.rule)
    for start in range(part.start, part.stop, length):
        stop = min(start + length, part.stop)
        whole = part.rule.keep_ppm == PPM
        wanted = None if whole else kept_positions(start, stop, part.rule)
        for batch in log.read(Span(partition=0, start=start, stop=stop), wanted):
            arrays = [batch.column(f.name).cast(f.type) for f in schema]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)


class PlainReader(DataSourceStreamReader):
    def __init__(self, options: dict[str, str], schema: StructType) -> None:
        self._options = options
        self._schema: pa.Schema = to_arrow_schema(schema, timezone="UTC")
        self._batches = [int(size) for size in options.get("batch", "").split(",") if size]
        self._keeps_ppm = [int(share) for share in options.get("keep_ppm", str(PPM)).split(",")]

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return {"position": 0, "batch": 0}

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        if self._batches:
            size = self._batches[start["batch"] % len(self._batches)]
            stop = start["position"] + size
        else:
            stop = SyntheticLog(self._options, None).extent(time.time())[0].stop
        return {"position": stop, "batch": start["batch"] + 1}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        keep_ppm = self._keeps_ppm[start["batch"] % len(self._keeps_ppm)]
        return ranges(start["position"], end["position"], UniformRule(keep_ppm=keep_ppm))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Range)
        return read_range(self._options, self._schema, partition)
