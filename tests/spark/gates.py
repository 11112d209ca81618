"""What the gate tests share: a gate, a sink folder, and the account of both."""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spillway.gate.ledger import Audit
from spillway.gate.offsets import Offset
from spillway.hosts.spark.files import audits, chains


def wait_until(condition: Callable[[], bool], timeout_s: float = 180.0) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline_s, "it did not happen in time"
        time.sleep(0.02)


@dataclass(frozen=True, kw_only=True)
class Place:
    """A query's folders."""

    root: Path

    @property
    def checkpoint(self) -> Path:
        return self.root / "checkpoint"

    @property
    def sink(self) -> Path:
        return self.root / "sink"

    @property
    def ledger(self) -> Path:
        return self.root / "ledger.jsonl"

    def audit(self) -> Audit:
        [result] = audits(self.ledger, self.checkpoint)
        return result

    def chain(self) -> list[Offset]:
        [chain] = chains(self.ledger, self.checkpoint).values()
        return chain

    def require_exact(self) -> Audit:
        """The sink holds exactly the tuples that the ledger calls admitted, each once."""
        result = self.audit()
        assert result.exact, (result.problems, result.missing)
        delivered = np.sort(np.concatenate([np.empty(0, np.int64), *self._ids()]))
        chain = self.chain()
        partitions = len(chain[0].stretches)
        kept = [
            stretch.kept_positions(offset.rule) * partitions + stretch.partition
            for offset in chain
            for stretch in offset.stretches
        ]
        admitted = np.sort(np.concatenate([np.empty(0, np.int64), *kept]))
        assert np.array_equal(delivered, admitted), difference(delivered, admitted)
        assert len(admitted) == result.totals.admitted
        return result

    def _ids(self) -> Iterator[np.ndarray]:
        for path in committed_files(self.sink):
            yield pq.read_table(path, columns=["id"])["id"].to_numpy()


def difference(delivered: np.ndarray, admitted: np.ndarray) -> str:
    doubles = sum(count - 1 for count in Counter(delivered.tolist()).values())
    missing = len(np.setdiff1d(admitted, delivered))
    extra = len(np.setdiff1d(delivered, admitted))
    return f"{doubles} delivered twice, {missing} missing, {extra} not admitted"


def committed_files(sink: Path) -> list[Path]:
    """The files that Spark's file sink has committed, from its own metadata log."""
    log = sink / "_spark_metadata"
    names = (
        [f.name for f in log.iterdir() if f.name.split(".")[0].isdigit()] if log.exists() else []
    )
    compact = max((int(n.split(".")[0]) for n in names if n.endswith(".compact")), default=-1)
    found: list[Path] = []
    for name in names:
        number = int(name.split(".")[0])
        if number > compact or name == f"{compact}.compact":
            lines = (log / name).read_text().splitlines()[1:]
            found += [Path(json.loads(line)["path"].removeprefix("file://")) for line in lines]
    return found


THIRD = {"manager": "fixed", "manager.keep_fraction": "0.3"}  # shed from the first batch on


def gate(spark: SparkSession, place: Place, **options: str) -> DataFrame:
    given = {"source": "synthetic", "ledger": str(place.ledger), "delay": "2s", **options}
    if given["source"] == "synthetic":
        given.setdefault("rate", "20000")
    return spark.readStream.format("spillway").options(**given).load()


def to_files(frame: DataFrame, place: Place) -> StreamingQuery:
    return (
        frame.writeStream.format("parquet")
        .option("path", str(place.sink))
        .option("checkpointLocation", str(place.checkpoint))
        .start()
    )


def batches_done(query: StreamingQuery) -> int:
    progress = query.lastProgress
    return -1 if progress is None else int(progress["batchId"])


def wait_for_batches(query: StreamingQuery, number: int) -> None:
    wait_until(lambda: batches_done(query) >= number)
