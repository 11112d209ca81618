"""The gate before a split: masks travel in the offset and follow the load that must go."""

import json

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StructField, StructType, TimestampType

from spillway.clock import ManualClock
from spillway.errors import SpillwayError
from spillway.gate.masks import masks_of, text_of
from spillway.gate.offsets import Offset, decode, encode
from spillway.gate.options import GateOptions
from spillway.gate.rules import seen_tuples
from spillway.gate.sampling import PPM
from spillway.hosts.spark.worker.rows import Rows
from spillway.hosts.spark.worker.slices import slices
from spillway.testing import ToyLog, ToySpark, toy_planner

COST_S = {"shared": 1e-5, "alerts": 1e-5, "scores": 8e-5}
SPLIT = "shared:1,alerts:1:10,scores:8:1"
UNIFORM = "alerts:1000000,scores:1000000"


def run(log: ToyLog, clock: ManualClock, count: int, **options: str) -> list[Offset]:
    """Batches of a fused plan: each query costs what it sees."""
    spark = ToySpark(toy_planner(clock, **options), clock, kept_s=COST_S["shared"])
    found = []
    for _ in range(count):
        if (batch := spark.batch()) is not None:
            seen = seen_tuples(batch.stretches, batch.rule)
            clock.advance(sum(COST_S[name] * tuples for name, tuples in seen.items()))
            found.append(batch)
    return found


def duration_s(batch: Offset) -> float:
    seen = seen_tuples(batch.stretches, batch.rule)
    own_s = sum(COST_S[name] * tuples for name, tuples in seen.items())
    return 0.2 + COST_S["shared"] * batch.kept_tuples() + own_s


def shares(batches: list[Offset]) -> dict[str, float]:
    offered = sum(batch.offered_tuples for batch in batches)
    counts = [seen_tuples(batch.stretches, batch.rule) for batch in batches]
    return {name: sum(c[name] for c in counts) / offered for name in ("alerts", "scores")}


def test_overload_is_taken_from_the_query_that_is_worth_least_and_the_target_holds(
    log: ToyLog, clock: ManualClock
) -> None:
    log.rate_per_s = 17_000.0  # twice what whole tuples of 1e-4 s allow in batches of 4/3 s
    settled = run(log, clock, 60, split=SPLIT, delay="2s")[30:]
    kept = shares(settled)
    assert kept["alerts"] > 0.99
    assert kept["scores"] == pytest.approx(0.375, abs=0.05)
    assert np.mean([duration_s(b) for b in settled]) == pytest.approx(4.0 / 3.0, rel=0.05)


def test_the_same_load_without_a_split_takes_half_of_everything(
    log: ToyLog, clock: ManualClock
) -> None:
    log.rate_per_s = 17_000.0
    settled = run(log, clock, 60, masks=UNIFORM, delay="2s")[30:]
    kept = shares(settled)
    assert kept["alerts"] == kept["scores"] == pytest.approx(0.5, abs=0.05)
    assert np.mean([duration_s(b) for b in settled]) == pytest.approx(4.0 / 3.0, rel=0.05)


def test_without_overload_every_query_sees_everything(log: ToyLog, clock: ManualClock) -> None:
    log.rate_per_s = 2_000.0
    assert shares(run(log, clock, 40, split=SPLIT)[1:]) == {"alerts": 1.0, "scores": 1.0}


def test_the_reason_says_what_each_query_gets(log: ToyLog, clock: ManualClock) -> None:
    log.rate_per_s = 17_000.0
    assert "; alerts 100 %, scores" in run(log, clock, 40, split=SPLIT)[-1].rule.reason


def test_shares_are_written_into_the_offset(log: ToyLog, clock: ManualClock) -> None:
    batch = run(log, clock, 5, masks="alerts:1000000,scores:250000")[-1]
    logged = json.loads(json.dumps(encode(batch)))
    assert logged["rule"]["shares"] == "alerts:1000000,scores:250000"
    assert decode(logged) == batch


def test_a_dry_run_hides_nothing_from_any_query(log: ToyLog, clock: ManualClock) -> None:
    log.rate_per_s = 17_000.0
    for batch in run(log, clock, 10, split=SPLIT, dry_run="true"):
        assert (batch.rule.keep_ppm, batch.rule.shares) == (PPM, ())


@pytest.mark.parametrize("option", [{"split": SPLIT}, {"masks": "alerts:1000000,scores:1000"}])
def test_available_now_hides_nothing_from_any_query(
    log: ToyLog, clock: ManualClock, option: dict[str, str]
) -> None:
    planner = toy_planner(clock, startingoffsets="earliest", **option)
    planner.freeze()
    clock.advance(5.0)
    _, batch = ToySpark(planner, clock).batches(3)
    assert (batch.kept_tuples(), text_of(batch.rule.shares)) == (5000, "")


def test_rows_carry_the_mask_of_their_position(log: ToyLog, clock: ManualClock) -> None:
    log.rate_per_s = 17_000.0
    batch = run(log, clock, 40, split=SPLIT)[-1]
    schema = StructType(
        [
            StructField("position", LongType()),
            StructField("_arrival", TimestampType()),
            StructField("_queries", LongType()),
        ]
    )
    read = [part for s in slices(batch, 2) for part in Rows(schema).of(s, log)]
    rows = pa.Table.from_batches(read).sort_by("position").to_pydict()
    [stretch] = batch.stretches
    masks = masks_of(stretch.read, stretch.stop, batch.rule.sampling, batch.rule.shares)
    kept = np.flatnonzero(masks)
    assert rows["position"] == (stretch.read + kept).tolist()
    assert rows["_queries"] == masks[kept].tolist()
    assert len(rows["position"]) == batch.kept_tuples()


@pytest.mark.parametrize(
    "options",
    [
        {"split": SPLIT, "masks": UNIFORM},
        {"split": SPLIT, "policy": "fresh"},
        {"split": SPLIT, "weight": "true"},
        {"masks": UNIFORM, "weight": "true"},
    ],
)
def test_options_that_contradict_each_other_are_refused(options: dict[str, str]) -> None:
    with pytest.raises(SpillwayError, match="exclude"):
        GateOptions.parse(options)
