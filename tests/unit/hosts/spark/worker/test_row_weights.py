"""Weights tell how much arrived, second by second: a kept row speaks for its own time only."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import DoubleType, StructType, TimestampType

from spillway.clock import ManualClock
from spillway.gate.masks import parse_shares, query_rules
from spillway.gate.offsets import SENTINEL, Offset
from spillway.gate.options import GateOptions
from spillway.gate.rules import Rule, Stretch
from spillway.gate.sampling import PPM, UniformRule
from spillway.hosts.spark.planner.around import Around
from spillway.hosts.spark.planner.planner import Planner
from spillway.hosts.spark.worker.rows import Rows
from spillway.hosts.spark.worker.slices import slices
from spillway.logs import catalog
from spillway.ports import Log
from spillway.testing import ToyLog, ToySpark, toy_planner

START_S = 1_000.0


def rows_of(offset: Offset, log: Log, parallelism: int = 2) -> pa.Table | None:
    schema = StructType([*from_arrow_schema(log.columns()).fields])
    schema = schema.add("_arrival", TimestampType()).add("_weight", DoubleType())
    rows = Rows(schema.add("_gap_until", TimestampType()))
    parts = slices(offset, parallelism)
    found = [batch for part in parts for batch in rows.of(part, log)]
    return pa.Table.from_batches(found) if found else None


def by_second(batches: Iterable[Offset], log: Log) -> dict[int, float]:
    """The weights of what arrived in each second."""
    found: Counter[int] = Counter()
    for batch in batches:
        rows = rows_of(batch, log)
        if rows is not None:
            seconds = rows["_arrival"].cast(pa.int64()).to_numpy() // 1_000_000
            for second, weight in zip(seconds.tolist(), rows["_weight"].to_pylist(), strict=True):
                found[second] += weight
    return found


def pause(clock: ManualClock, log: ToyLog, **options: str) -> list[Offset]:
    """Two minutes in overload, with nothing planned for 30 s in the middle."""
    log.rate_per_s = 20_000.0
    planner = toy_planner(clock, delay="2s", first_batch="500", **options)
    spark = ToySpark(planner=planner, clock=clock, kept_s=2e-4)
    before = spark.batches(30)
    clock.advance(30.0)
    return [*before, *spark.batches(60)]


LAWS = ("predictive", "aloma", "ctrl", "pid", "seamless")


@pytest.mark.parametrize("manager", LAWS)
def test_after_a_pause_every_second_has_its_own_weight(
    clock: ManualClock, log: ToyLog, manager: str
) -> None:
    batches = pause(clock, log, manager=manager, weight="true")
    assert sum(batch.unread_tuples for batch in batches) == 0
    found = by_second(batches, log)
    last = batches[-1].stretches[0].stop / log.rate_per_s + log.start_s
    whole = [found[second] for second in range(int(log.start_s), int(last))]
    assert len(whole) > 40
    assert batches[-1].totals.shed > 100_000
    assert whole == pytest.approx(np.full(len(whole), log.rate_per_s), rel=0.25)
    assert np.mean(whole) == pytest.approx(log.rate_per_s, rel=0.01)


def test_what_a_policy_cuts_is_a_gap_and_nobody_s_weight(clock: ManualClock, log: ToyLog) -> None:
    batches = pause(clock, log, weight="true", policy="fresh")
    cut = [batch for batch in batches if batch.unread_tuples]
    assert len(cut) > 10
    for batch in cut:
        rows = rows_of(batch, log)
        assert rows is not None
        [stretch], gap = batch.stretches, batch.gap
        assert gap is not None
        arrived = [log.start_s + at / log.rate_per_s for at in (stretch.start, stretch.read)]
        assert [gap.from_us / 1e6, gap.until_us / 1e6] == pytest.approx(arrived, abs=1e-3)
        assert set(rows["_weight"].to_pylist()) == {PPM / batch.rule.keep_ppm}
        assert set(rows["_gap_until"].cast(pa.int64()).to_pylist()) == {gap.until_us}


def test_a_gap_stays_on_record_until_the_next_one(clock: ManualClock, log: ToyLog) -> None:
    planner = toy_planner(clock, manager="none", weight="true", failOnDataLoss="false")
    spark = ToySpark(planner=planner, clock=clock, kept_s=1e-6)
    before = spark.batches(10)
    assert before[-1].gap is None
    clock.advance(30.0)
    log.first = before[-1].stretches[0].stop + 20_000  # the log drops 20 s of them
    [lossy, *after] = spark.batches(10)
    assert lossy.unread_tuples == lossy.totals.lost == 20_000
    assert lossy.gap is not None
    lost_s = [log.start_s + at / log.rate_per_s for at in (lossy.stretches[0].start, log.first)]
    assert lossy.gap.from_us / 1e6 <= lost_s[0]
    assert lossy.gap.from_us / 1e6 > lost_s[0] - 2.0
    assert lossy.gap.until_us / 1e6 == pytest.approx(lost_s[1], abs=1e-3)
    assert {batch.gap for batch in after} == {lossy.gap}
    rows = rows_of(lossy, log)
    assert rows is not None
    assert set(rows["_weight"].to_pylist()) == {1.0}


def test_a_partition_that_is_lost_to_its_end_has_a_gap_up_to_now(
    clock: ManualClock, log: ToyLog
) -> None:
    planner = toy_planner(clock, weight="true", failOnDataLoss="false")
    spark = ToySpark(planner=planner, clock=clock, kept_s=1e-6)
    before = spark.batches(5)
    clock.advance(5.0)
    log.first = log.count(clock.now_s() - log.start_s)
    lossy = spark.batch()
    assert lossy is not None
    assert lossy.unread_tuples > 4_000
    assert lossy.gap is not None
    assert lossy.gap.until_us >= lossy.planned_us
    assert lossy.gap.from_us <= before[-1].planned_us


# -- one shedder at a time, over many seeds

LOG = {
    "source": "synthetic",
    "rate": "2000",
    "columns": "id position, key key(50, 1.0), value double(0, 1), event_time time",
    "start": str(START_S),
    "startingoffsets": "earliest",
}
GATE = {
    "manager": "fixed",
    "heartbeat": "event_time",
    "weight": "true",
    "first_batch": "100000",
}
SHEDDERS = {
    "uniform": {"shedder": "uniform"},
    "key": {"shedder": "key", "key": "key", "epoch": "2s"},
    "windows": {"shedder": "windows", "window": "250ms"},
    "strata": {"shedder": "strata", "key": "key"},
}


class Moment:
    def __init__(self) -> None:
        self.at_s = START_S

    def now_s(self) -> float:
        return self.at_s


def batches(options: dict[str, str], every_s: float, until_s: float) -> Iterator[Offset]:
    """A run with a batch every so often, from the beginning of the log."""
    clock, seconds = Moment(), iter(range(10**6))
    around = Around(clock=clock, elapsed=lambda: float(next(seconds)) * 0.01, sleep=lambda s: None)
    planner = Planner(options, GateOptions.parse(options), around=around)
    start: dict[str, Any] = dict(SENTINEL)
    while clock.at_s < START_S + until_s:
        end = planner.latest(start)
        if start != end and start["seq"] >= 0:
            planner.completed(start)
        shown = planner.shown(start, end)
        if shown is not None:
            yield shown
        start, clock.at_s = end, clock.at_s + every_s


def mean_by_second(
    options: dict[str, str], every_s: float, *, runs: int, seconds: int
) -> tuple[np.ndarray, np.ndarray]:
    """(mean, its standard error) of each second's weights over as many seeds."""
    log = catalog.open_log(options, None)
    found = np.zeros((runs, seconds))
    for run in range(runs):
        seeded = {**options, "seed": str(run)}
        sums = by_second(batches(seeded, every_s, seconds + 1.0), log)
        found[run] = [sums.get(int(START_S) + second, 0.0) for second in range(seconds)]
    return found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(runs)


@pytest.mark.parametrize("keep", [0.3, 0.7])
@pytest.mark.parametrize("shedder", SHEDDERS)
def test_every_second_is_worth_what_arrived_in_it(shedder: str, keep: float) -> None:
    options = {**LOG, **GATE, **SHEDDERS[shedder], "manager.keep_fraction": str(keep)}
    mean, error = mean_by_second(options, 0.4, runs=60, seconds=3)
    assert np.abs(mean - 2000.0).max() <= (4.5 * error).max() + 20.0
    assert error.max() < 300.0


@pytest.mark.parametrize("shedder", ["uniform", "strata"])
def test_batches_of_less_than_one_kept_tuple_weigh_as_much_as_all_others(shedder: str) -> None:
    options = {**LOG, **GATE, **SHEDDERS[shedder], "manager.keep_fraction": "0.01"}
    mean, error = mean_by_second(options, 0.02, runs=12, seconds=2)
    assert mean.mean() == pytest.approx(2000.0, abs=4.0 * float(error.max()) + 50.0)
    assert error.max() < 200.0


def test_above_its_threshold_utility_is_complete() -> None:
    options = {**LOG, **GATE, "shedder": "utility", "utility": "value > 0.5"}
    options["manager.keep_fraction"] = "0.3"
    mean, error = mean_by_second(options, 0.4, runs=20, seconds=3)
    assert mean == pytest.approx(np.full(3, 1000.0), abs=4.0 * float(error.max()) + 60.0)


def test_each_query_of_a_fused_plan_has_the_weight_of_its_own_share() -> None:
    """Its rows carry none: `split` and `masks` exclude it. One over its share is what it is."""
    log, shares = ToyLog(), parse_shares("a:1000000,b:250000")
    rule = Rule(keep_ppm=400_000, shares=shares)
    stretch = Stretch(partition=0, start=300, read=300, stop=60_300)
    offset = Offset(gate="g", began_us=1, seq=1, planned_us=1, stretches=(stretch,), rule=rule)
    schema = StructType([*from_arrow_schema(log.columns()).fields])
    rows = Rows(schema.add("_arrival", TimestampType()).add("_queries", "long"))
    table = pa.Table.from_batches([b for p in slices(offset, 3) for b in rows.of(p, log)])
    seconds = table["_arrival"].cast(pa.int64()).to_numpy() // 1_000_000
    gate = UniformRule(keep_ppm=400_000)
    for bit, own in enumerate(query_rules(gate, shares)):
        seen = table["_queries"].to_numpy() >> bit & 1 == 1
        per_second = np.bincount(seconds[seen] - int(log.start_s)) * PPM / own.keep_ppm
        inner = per_second[1:-1]
        assert len(inner) > 50
        assert inner.mean() == pytest.approx(log.rate_per_s, rel=0.01)
        assert inner.std() < 0.1 * log.rate_per_s


def test_gates_that_decide_together_skip_nothing_and_weigh_alike(
    clock: ManualClock, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    logs = {"left": ToyLog(rate_per_s=8e3), "right": ToyLog()}
    query = _joined(logs, clock, monkeypatch, tmp_path)
    found: dict[str, list[Offset]] = {"left": [], "right": []}
    for trigger in range(60):
        if trigger == 20:
            clock.advance(30.0)
        for name, offset in query().items():
            found[name].append(offset)
    for name, log in logs.items():
        assert sum(offset.unread_tuples for offset in found[name]) == 0
        sums = by_second(found[name], log)
        until = int(found[name][-1].stretches[0].stop / log.rate_per_s)
        whole = [sums.get(int(log.start_s) + s, 0.0) for s in range(1, until)]
        assert len(whole) > 30
        assert np.mean(whole) == pytest.approx(log.rate_per_s, rel=0.03)


def _joined(
    logs: dict[str, ToyLog], clock: ManualClock, monkeypatch: pytest.MonkeyPatch, folder: Any
) -> Callable[[], dict[str, Offset]]:
    from spillway.hosts.spark.planner.joint import Joint

    monkeypatch.setattr(catalog, "open_log", lambda options, schema=None: logs[options["path"]])
    monkeypatch.setattr(catalog, "pinned", lambda options, now_s: dict(options))
    gates: dict[str, ToySpark] = {}
    for name in logs:
        given = {"source": "toy", "path": name, "joint": "query", "weight": "true"}
        joint = Joint(
            "query",
            given,
            open_log=lambda options: logs[options["path"]],
            folder=folder,
            member=name,
            elapsed=clock.now_s,
        )
        around = Around(clock=clock, elapsed=clock.now_s, sleep=clock.advance, joint=joint)
        gates[name] = ToySpark(Planner(given, GateOptions.parse(given), around=around), clock)
        clock.advance(0.001)

    def trigger() -> dict[str, Offset]:
        planned = {name: spark.plan() for name, spark in gates.items()}
        new = {name: offset for name, offset in planned.items() if offset is not None}
        clock.advance(0.2 + 4e-4 * sum(offset.kept_tuples() for offset in new.values()))
        return new

    return trigger
