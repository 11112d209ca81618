"""What is kept goes on: checkpoints and ledgers of an earlier release, and recorded runs."""

import json
import shutil
from pathlib import Path

import pytest
from gates import Place, batches_done, gate, to_files, wait_until
from pyspark.sql import SparkSession

from spillway.gate.offsets import decode, encode
from spillway.gate.told import told_again
from spillway.hosts.spark.files import audits

pytestmark = pytest.mark.spark

STORED = Path(__file__).parent / "stored"  # written by 0.1.0, stopped in the middle of a batch
TUPLES = 12_000  # 1,000 a second for twelve seconds, then none


def test_a_checkpoint_and_its_ledger_go_on_exactly(spark: SparkSession, tmp_path: Path) -> None:
    shutil.copytree(STORED, tmp_path / "kept")
    checkpoint, ledger = tmp_path / "kept" / "checkpoint", tmp_path / "kept" / "ledger.jsonl"
    before = len(ledger.read_text().splitlines())
    options = {"source": "synthetic", "rate": "0:1000,12:0", "delay": "2s", "seed": "7"}
    rows = spark.readStream.format("spillway").options(**options, ledger=str(ledger)).load()
    writer = rows.selectExpr("key", "value").writeStream.format("noop")
    query = writer.option("checkpointLocation", str(checkpoint)).start()
    wait_until(lambda: batches_done(query) >= 3 and json.loads(last(ledger))["seq"] > before + 1)
    query.stop()
    [result] = audits(ledger, checkpoint)
    assert result.exact
    assert result.gate == "stored"
    assert result.totals.offered == TUPLES
    assert [json.loads(line)["seq"] for line in ledger.read_text().splitlines()] == list(
        range(len(ledger.read_text().splitlines()))
    )


def last(ledger: Path) -> str:
    return ledger.read_text().splitlines()[-1]


def test_stored_offsets_are_read_and_written_byte_for_byte() -> None:
    for line in (STORED / "ledger.jsonl").read_text().splitlines():
        assert json.dumps(encode(decode(json.loads(line))), separators=(",", ":")) == line


@pytest.mark.parametrize("manager", ["predictive", "ctrl"])
def test_a_run_on_spark_told_again_gives_the_same_offsets(
    spark: SparkSession, tmp_path: Path, manager: str
) -> None:
    place, record = Place(root=tmp_path), tmp_path / "told.jsonl"
    options = {"rate": "400000", "delay": "500ms", "manager": manager}
    query = to_files(gate(spark, place, record=str(record), **options), place)
    wait_until(lambda: batches_done(query) >= 15)
    query.stop()
    lines = [json.loads(line) for line in record.read_text().splitlines()]
    pairs = list(told_again(lines))
    assert len(pairs) >= 15
    assert [json.dumps(now) for _, now in pairs] == [json.dumps(then) for then, _ in pairs]
    logged = {(offset.seq, offset.planned_us) for offset in place.chain()}
    assert logged <= {(then["seq"], then["planned_us"]) for then, _ in pairs} | {
        (offset.seq, offset.planned_us) for offset in place.chain() if offset.seq == 0
    }
