"""A gate whose every second batch is a probe: bare rows of a known size, read in stopped time.

A shared machine is a tenth faster or slower from one minute to the next, so what a batch ought to
cost has to be measured while the gate runs, not before it and after it. Between any two batches of
the gate the same query reads one batch through the bare source. The gate's clock stands still
meanwhile: no tuple arrives and none grows older, so the gate decides as if the probe never was.
"""

import json
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import StructType

from spillway.gate.offsets import SENTINEL, decode, is_sentinel
from spillway.gate.sampling import PPM, UniformRule
from spillway.hosts.spark.planner.around import Around
from spillway.hosts.spark.planner.planner import Planner
from spillway.hosts.spark.source import Gate, Spillway
from spillway_lab.benchmarks.plain_source import Range, ranges, read_range

LIKE = "like"  # a probe with the positions and the rule of the gate's last batch
OURS = ("probes", "settle")
_US = 1_000_000


class StoppableClock:
    """The wall clock and the monotonic one, less the time for which they were stopped."""

    def __init__(self) -> None:
        self._lost_s = 0.0
        self._since_s: float | None = None

    def now_s(self) -> float:
        return time.time() - self.lost_s

    def elapsed(self) -> float:
        return time.monotonic() - self.lost_s

    @property
    def lost_s(self) -> float:
        return self._lost_s + (0.0 if self._since_s is None else time.monotonic() - self._since_s)

    def stop(self) -> None:
        if self._since_s is None:
            self._since_s = time.monotonic()

    def go_on(self) -> None:
        self._lost_s, self._since_s = self.lost_s, None


class ProbedRows(DataSource):
    """Options: those of the gate; `probes` are sizes or `like`, taken in turn, from `settle`
    seconds after the start on."""

    @classmethod
    def name(cls) -> str:
        return "spillway_probed"

    def schema(self) -> StructType | str:
        return Spillway(self._of_gate()).schema()

    def streamReader(self, schema: StructType) -> "ProbedGate":  # noqa: N802
        probes = self.options["probes"].split(",")
        return ProbedGate(self._of_gate(), schema, probes, float(self.options.get("settle", "0")))

    def _of_gate(self) -> dict[str, str]:
        return {key: value for key, value in self.options.items() if key not in OURS}


class ProbedGate(Gate):
    """Offsets hold the gate's own one as text, who the batch is for, and when it was asked for."""

    def __init__(
        self, options: dict[str, str], schema: StructType, probes: list[str], settle_s: float
    ) -> None:
        super().__init__(options, schema)
        self._probes = probes
        self._settle_s = settle_s
        self._clock = StoppableClock()
        self._begun_s = time.monotonic()

    @property
    def _planner(self) -> Planner:
        if self._made is None:
            clock = self._clock
            around = Around(clock=clock, elapsed=clock.elapsed)
            self._made = Planner(self._options, self._gate, self._asked, around)
        return self._made

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return self._offset(SENTINEL, -1)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        asked_us = round(time.time() * _US)
        before = json.loads(start["gate"])
        settled = time.monotonic() - self._begun_s > self._settle_s
        if settled and not start["probe"] and not is_sentinel(before) and before["seq"] > 0:
            self._clock.stop()
            return self._offset(before, start["turn"], probe=True, asked_us=asked_us)
        self._clock.go_on()
        after = self._planner.latest(before)
        if after == before:
            return start
        return self._offset(after, start["turn"] + 1, asked_us=asked_us)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        batch = json.loads(end["gate"])
        if not end["probe"]:
            return super().partitions(json.loads(start["gate"]), batch)
        return ranges(*probed(batch, self._probes[end["turn"] % len(self._probes)]))

    def commit(self, end: dict[str, Any]) -> None:
        super().commit(json.loads(end["gate"]))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, Range):
            columns = to_arrow_schema(self._schema, timezone="UTC")
            return read_range(self._options, columns, partition)
        return super().read(partition)

    def _offset(
        self, gate: dict[str, Any], turn: int, *, probe: bool = False, asked_us: int = 0
    ) -> dict[str, Any]:
        return {
            "gate": json.dumps(gate),
            "turn": turn,
            "probe": probe,
            "asked_us": asked_us,
            "stopped_us": round(self._clock.lost_s * _US),
        }


def probed(gate: dict[str, Any], probe: str) -> tuple[int, int, UniformRule]:
    """Where a probe reads: the last rows that the gate has passed, so none is late."""
    batch = decode(gate)
    [stretch] = batch.stretches
    if probe == LIKE:
        return stretch.read, stretch.stop, batch.rule.sampling
    return max(0, stretch.stop - int(probe)), stretch.stop, UniformRule(keep_ppm=PPM)
