"""The instrument of the benchmarks: probes between the batches of a gate."""

import itertools
import json
import math
import time
from pathlib import Path

import pytest
from gates import wait_until
from pyspark.sql import SparkSession

from spillway.gate.offsets import decode
from spillway.hosts.spark.driver.progress import BatchProgress, ProgressMonitor
from spillway_lab.benchmarks.probed_gate import LIKE, ProbedRows
from spillway_lab.benchmarks.probed_run import read_turns

pytestmark = pytest.mark.spark

PROBES = ["5000", LIKE]


def test_every_second_batch_is_a_probe_and_the_gate_never_notices(
    spark: SparkSession, tmp_path: Path
) -> None:
    spark.dataSource.register(ProbedRows)
    seen: list[BatchProgress] = []
    monitor = ProgressMonitor(spark, seen.append)
    rows = (
        spark.readStream.format("spillway_probed")
        .options(source="synthetic", rate="20000", start=repr(time.time()), delay="2s")
        .options(**{"manager": "fixed", "manager.keep_fraction": "0.25"})
        .options(probes=",".join(PROBES))
        .load()
    )
    query = rows.writeStream.format("noop").option("checkpointLocation", str(tmp_path)).start()
    wait_until(lambda: len(seen) > 10)
    query.stop()
    monitor.close()

    batches = [batch for batch in seen if batch.batch_id > 0]
    ends = [batch.sources[0]["endOffset"] for batch in batches]
    assert [end["probe"] for end in ends[:8]] == [False, True] * 4
    gates = [decode(json.loads(end["gate"])) for end in ends if not end["probe"]]
    for before, after in itertools.pairwise(gates):
        assert after.stretches[0].start == before.stretches[0].stop  # nothing is missing
    for pair in read_turns(batches, PROBES).rounds:
        own, small, again, like = pair
        assert small.kept == 5000
        assert (like.kept, like.scanned) == (again.kept, again.scanned)
        noise = math.sqrt(0.25 * 0.75 * own.scanned)  # of a sample of so many
        assert own.kept == pytest.approx(0.25 * own.scanned, abs=5.0 * noise)
    counted = [end for end in ends if end["probe"] and end["turn"] % 2 == 0]
    assert counted
    for batch, end in zip(batches, ends, strict=True):
        if end["probe"] and end["turn"] % 2 == 0 and batch.batch_id > 4:
            assert batch.input_rows == 5000
    # Time stood still: the gate was offered what arrived in its own time, not in the probes'.
    offered = gates[-1].totals.offered - gates[0].totals.offered
    own_s = (gates[-1].planned_us - gates[0].planned_us) / 1e6
    stopped_s = ends[-1]["stopped_us"] / 1e6
    assert stopped_s > 0.0
    # The log is looked at somewhat before a batch is planned: a busy machine makes that longer.
    assert offered == pytest.approx(20_000 * own_s, abs=20_000 * max(0.05, 0.25 * stopped_s))
