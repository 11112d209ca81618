"""How often a gate looks at its log: seldom while nothing comes, at once when something does."""

from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest

from spillway.clock import ManualClock
from spillway.gate.offsets import Offset
from spillway.gate.options import GateOptions
from spillway.hosts.spark.planner.around import Around
from spillway.hosts.spark.planner.joint import Joint
from spillway.hosts.spark.planner.planner import Planner
from spillway.logs import catalog
from spillway.ports import Span
from spillway.testing import ToyLog, ToySpark, toy_planner


@dataclass
class WatchedLog(ToyLog):
    """Notes when it is asked; nothing comes before `opens_s`, and then `rate_per_s` again."""

    opens_s: float = float("inf")
    asked_s: list[float] = field(default_factory=list)

    def extent(self, now_s: float) -> tuple[Span, ...]:
        self.asked_s.append(now_s)
        self.limit = 0 if now_s < self.opens_s else 2**60
        return super().extent(now_s)

    def asked_between(self, first_s: float, last_s: float) -> int:
        return sum(first_s <= at_s < last_s for at_s in self.asked_s)

    def longest_gap_s(self, first_s: float) -> float:
        asked = [at_s for at_s in self.asked_s if at_s >= first_s]
        return max(b - a for a, b in pairwise(asked))


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> WatchedLog:
    found = WatchedLog()
    monkeypatch.setattr(catalog, "open_log", lambda options, schema=None: found)
    monkeypatch.setattr(catalog, "pinned", lambda options, now_s: dict(options))
    return found


def idle(spark: ToySpark, clock: ManualClock, until_s: float) -> None:
    """Spark asks again ten milliseconds after an answer without a batch."""
    while clock.now_s() < until_s:
        spark.batch()
        clock.advance(0.01)


@pytest.mark.parametrize(("delay", "most"), [("500ms", 25), ("2s", 14), ("10s", 8)])
def test_an_idle_gate_asks_its_log_a_few_times_a_second(
    log: WatchedLog, clock: ManualClock, delay: str, most: int
) -> None:
    spark = ToySpark(toy_planner(clock, delay=delay), clock)
    idle(spark, clock, until_s=1060.0)
    assert 60.0 <= log.asked_between(1030.0, 1040.0) <= 10.0 * most
    assert log.longest_gap_s(1001.0) <= 0.2 + 0.02


@pytest.mark.parametrize(("delay", "within_s"), [("500ms", 0.05), ("2s", 0.1), ("10s", 0.2)])
@pytest.mark.parametrize("opens_s", [1030.0, 1030.17, 1033.333])
def test_the_first_tuple_after_a_silence_waits_for_no_more_than_one_nap(
    log: WatchedLog, clock: ManualClock, delay: str, within_s: float, opens_s: float
) -> None:
    log.opens_s = opens_s
    spark = ToySpark(toy_planner(clock, delay=delay, startingOffsets="earliest"), clock)
    first: Offset | None = None
    while first is None or first.offered_tuples == 0:
        first = spark.plan()
        clock.advance(0.01)
    assert opens_s <= first.planned_us / 1e6 <= opens_s + within_s + 0.011


def test_a_busy_gate_naps_as_briefly_as_ever(log: WatchedLog, clock: ManualClock) -> None:
    log.opens_s, log.rate_per_s = 0.0, 4.0  # a tuple every 250 ms, between batches of 10
    spark = ToySpark(toy_planner(clock), clock, fixed_s=0.01)
    idle(spark, clock, until_s=1010.0)
    assert log.longest_gap_s(1002.0) <= 0.021


def test_gates_of_one_query_are_idle_together_and_wake_together(
    monkeypatch: pytest.MonkeyPatch, clock: ManualClock, tmp_path: Path
) -> None:
    """The silent side does not slow the other down: what waits at either breaks the silence."""
    logs = {"left": WatchedLog(), "right": WatchedLog(opens_s=1030.0, rate_per_s=100.0)}
    monkeypatch.setattr(catalog, "open_log", lambda options, schema=None: logs[options["path"]])
    monkeypatch.setattr(catalog, "pinned", lambda options, now_s: dict(options))
    gates = {}
    for name in logs:
        given = {"source": "toy", "path": name, "joint": "q"}
        joint = Joint(
            "q",
            given,
            open_log=lambda options: logs[options["path"]],
            folder=tmp_path,
            member=name,
            elapsed=clock.now_s,
        )
        around = Around(clock=clock, elapsed=clock.now_s, sleep=clock.advance, joint=joint)
        planner = Planner(given, GateOptions.parse(given), around=around)
        gates[name] = ToySpark(planner, clock, fixed_s=0.01)
        clock.advance(0.001)
    woke_s = None
    while clock.now_s() < 1040.0:
        plans = {name: gate.plan() for name, gate in gates.items()}
        if woke_s is None and (right := plans["right"]) is not None and right.offered_tuples:
            woke_s = clock.now_s()
        clock.advance(0.01)
    assert all(log.asked_between(1020.0, 1030.0) <= 280 for log in logs.values())
    assert woke_s is not None
    assert woke_s <= 1030.0 + 0.13
    assert logs["right"].longest_gap_s(1031.0) <= 0.05, "while tuples come on one side"
