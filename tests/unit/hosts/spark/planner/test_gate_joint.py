"""The gates of one query decide as one, however long each of them takes."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from spillway.clock import ManualClock
from spillway.gate.offsets import SENTINEL, Offset, decode
from spillway.gate.options import GateOptions
from spillway.gate.rules import Stretch
from spillway.handover import ALL, Owned, Positions
from spillway.hosts.spark.planner.around import Around
from spillway.hosts.spark.planner.joint import Joint
from spillway.hosts.spark.planner.planner import Planner
from spillway.logs import catalog
from spillway.model import Order, Report, Target
from spillway.testing import ToyLog, ToySpark


@dataclass
class JoinedQuery:
    """Two streams of one query, asked in a fixed order with gaps in between."""

    clock: ManualClock
    gates: dict[str, ToySpark]
    reports: list[Report]
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(7))
    largest_gap_s: float = 0.0
    kept_s: float = 1e-4
    fixed_s: float = 0.2
    refuse: bool = False  # the driver gives no turn
    silent: bool = False  # the driver does not answer
    until: Positions | None = None  # as far as batches may go
    owned: Owned | None = None
    target: Target = Target(delay_s=2.0)  # noqa: RUF009

    def trigger(self) -> dict[str, Offset]:
        """One batch: all are asked, then it runs."""
        starts = {n: s.logged[-1] if s.logged else dict(SENTINEL) for n, s in self.gates.items()}
        ends = {}
        for name, gate in self.gates.items():
            ends[name] = gate.planner.latest(starts[name])
            self.clock.advance(float(self.rng.uniform(0.0, self.largest_gap_s)))
        for name, gate in self.gates.items():
            if ends[name] != starts[name]:
                if gate.logged:
                    gate.planner.completed(starts[name])
                gate.planner.shown(starts[name], ends[name])
                gate.logged.append(ends[name])
        new = {name: decode(end) for name, end in ends.items() if end != starts[name]}
        kept = sum(offset.kept_tuples() for offset in new.values())
        self.clock.advance(self.fixed_s + self.kept_s * kept)
        return new


@pytest.fixture
def logs(monkeypatch: pytest.MonkeyPatch) -> dict[str, ToyLog]:
    found = {"left": ToyLog(), "right": ToyLog()}
    monkeypatch.setattr(catalog, "open_log", lambda options, schema=None: found[options["path"]])
    monkeypatch.setattr(catalog, "pinned", lambda options, now_s: dict(options))
    return found


def joined(
    logs: dict[str, ToyLog], folder: Path, manager: str = "predictive", lease_s: float | None = None
) -> JoinedQuery:
    query = JoinedQuery(clock=ManualClock(1000.0), gates={}, reports=[])
    clock = query.clock

    def ask(report: Report) -> Order | None:
        query.reports.append(report)
        until_s = None if lease_s is None else clock.now_s() + lease_s
        told = {"until": query.until, "owned": query.owned, "plan_until_s": until_s}
        order = Order(target=query.target, may_start=not query.refuse, **told)  # type: ignore[arg-type]
        return None if query.silent else order

    for name in logs:
        given = {"source": "toy", "path": name, "joint": "query", "manager": manager}
        given["gate"] = f"query/{name}"
        given |= {} if lease_s is None else {"leased": "true"}
        joint = Joint(
            "query",
            given,
            open_log=lambda options: logs[options["path"]],
            folder=folder,
            member=name,
            elapsed=clock.now_s,
        )
        around = Around(clock=clock, elapsed=clock.now_s, sleep=clock.advance, ask=ask, joint=joint)
        planner = Planner(given, GateOptions.parse(given), around=around)
        query.gates[name] = ToySpark(planner, clock)
        clock.advance(0.001)  # the one that is made first leads
    return query


def test_no_gate_waits_while_another_has_tuples(logs: dict[str, ToyLog], tmp_path: Path) -> None:
    query = joined(logs, tmp_path)
    logs["left"].limit = 0
    query.trigger()
    before_s = query.clock.now_s()
    new = query.trigger()
    assert list(new) == ["right"]
    assert query.clock.now_s() - before_s < 0.5  # the silent side did not wait for its poll


@pytest.mark.parametrize("manager", ["predictive", "ctrl", "dissp"])
@pytest.mark.parametrize("largest_gap_s", [0.0, 0.06, 0.3])
def test_they_share_one_fraction_and_hold_the_target(
    logs: dict[str, ToyLog], tmp_path: Path, largest_gap_s: float, manager: str
) -> None:
    query = joined(logs, tmp_path, manager)
    query.largest_gap_s = largest_gap_s
    logs["left"].rate_per_s, logs["right"].rate_per_s = 40_000.0, 10_000.0
    delays_s, kept = [], []
    for number in range(90):
        new = query.trigger()
        if number > 50:
            shares = [offset.rule.keep_ppm for offset in new.values()]
            assert len(shares) == 2
            assert shares[0] == pytest.approx(shares[1], rel=0.02)
            for offset in new.values():
                assert offset.arrived is not None
                delays_s.append(query.clock.now_s() - offset.arrived.mean_us / 1e6)
                kept.append(offset.kept_tuples())
    assert np.average(delays_s, weights=kept) == pytest.approx(2.0, rel=0.12)


def test_a_query_that_gets_no_turn_starts_none_of_its_gates(
    logs: dict[str, ToyLog], tmp_path: Path
) -> None:
    query = joined(logs, tmp_path)
    query.trigger()
    query.refuse = True
    assert query.trigger() == {}
    query.refuse = False
    assert set(query.trigger()) == {"left", "right"}


def test_a_batch_is_counted_once(logs: dict[str, ToyLog], tmp_path: Path) -> None:
    """Time, fixed price, tuples and delays belong to the query, not to each of its gates."""
    query = joined(logs, tmp_path)
    query.largest_gap_s = 0.1
    taken_s, kept = 0.0, 0
    query.trigger()
    for _ in range(20):
        before_s, new = query.clock.now_s(), {}
        new = query.trigger()
        taken_s += query.clock.now_s() - before_s
        kept += sum(offset.kept_tuples() for offset in new.values())
    ended = [batch for report in query.reports for batch in report.ended]
    last = query.reports[-1]
    assert len(ended) == 19  # the last one is told of in the next report
    assert {report.query for report in query.reports} == {"query"}
    assert sum(b.record.kept_tuples for b in ended) == last.completed_tuples
    assert last.admitted_tuples == kept - sum(o.kept_tuples() for o in new.values())
    assert sum(b.record.duration_s for b in ended) < taken_s
    assert all(len(batch.delays) == 2 for batch in ended)


def test_the_side_that_is_silent_for_a_while_is_read_again(
    logs: dict[str, ToyLog], tmp_path: Path
) -> None:
    query = joined(logs, tmp_path)
    logs["left"].limit = 0
    for _ in range(10):
        query.trigger()
    logs["left"].limit = 2**60
    new = [query.trigger() for _ in range(5)]
    assert all("left" in batch for batch in new[1:])
    assert decode(query.gates["left"].logged[-1]).totals.shed == 0


def test_they_go_through_a_backlog_in_step(logs: dict[str, ToyLog], tmp_path: Path) -> None:
    """What the leader leaves for later stays at the other gates too, however little waits there."""
    query = joined(logs, tmp_path)
    query.trigger()
    logs["left"].rate_per_s, logs["right"].rate_per_s = 100_000.0, 1_000.0
    query.clock.advance(60.0)
    for _ in range(5):
        new, now_s = query.trigger(), query.clock.now_s()
        reached_s = {n: 1000.0 + new[n].stretches[0].stop / logs[n].rate_per_s for n in logs}
        assert reached_s["left"] < now_s - 20.0
        assert reached_s["right"] == pytest.approx(reached_s["left"], abs=1.0)


def test_all_of_them_are_probed_at_once(logs: dict[str, ToyLog], tmp_path: Path) -> None:
    """Half of what waits, at each of them: what the batch takes tells what a tuple costs."""
    query = joined(logs, tmp_path)
    query.kept_s = 1e-5
    for log in logs.values():
        log.rate_per_s = 5_000.0
    found = [query.trigger() for _ in range(40)]
    kept = {n: [batch[n].kept_tuples() for batch in found if n in batch] for n in logs}
    probed = [number for number, new in enumerate(found) if "probing" in new["left"].rule.reason]
    assert len(probed) > 2
    for number in probed:
        for name in logs:
            assert kept[name][number] < 0.7 * kept[name][number - 1]


def test_a_gate_that_is_gone_is_forgotten(tmp_path: Path) -> None:
    (tmp_path / "999999999.json").write_text('{"options": {}, "first_s": 0, "stops": {}}')
    joint = Joint("query", {}, folder=tmp_path)
    stretch = Stretch(partition=0, start=0, read=0, stop=0)
    joint.enter(Offset(gate="g", began_us=0, seq=0, planned_us=0, stretches=(stretch,)))
    assert joint.company(0.0).pending == []
    assert joint.lead() is None
    assert not (tmp_path / "999999999.json").exists()


def test_the_counts_of_a_quiet_join_never_fall_and_never_jump(
    logs: dict[str, ToyLog], tmp_path: Path
) -> None:
    """A report of the leader alone, between two of all gates, would look like a burst."""
    query = joined(logs, tmp_path)
    for number in range(30):
        for log in logs.values():  # a few tuples, then nothing for a while
            log.limit = 200 * (number // 3)
        query.trigger()
        query.clock.advance(0.3)
    offered = [report.offered_tuples for report in query.reports]
    assert offered == sorted(offered)
    assert max(np.diff(offered)) <= 1000


def test_after_a_restart_a_gates_earlier_life_is_no_arrival(
    logs: dict[str, ToyLog], tmp_path: Path
) -> None:
    query = joined(logs, tmp_path, "ctrl")
    for _ in range(40):
        query.trigger()
    (tmp_path / "again").mkdir()
    again = joined(logs, tmp_path / "again", "ctrl")
    again.clock.set(query.clock.now_s())
    for name, gate in again.gates.items():
        gate.logged = query.gates[name].logged[-1:]
    for _ in range(20):
        again.trigger()
    offered = [report.offered_tuples for report in again.reports]
    assert max(np.diff(offered)) < 5_000  # some seconds at 2,000/s, not 40 batches of them
    measured = [d.measurement for report in again.reports for d in report.decided]
    assert max(m.offered_tuples for m in measured) < 5_000


def test_a_new_target_reaches_all_gates_of_a_query(logs: dict[str, ToyLog], tmp_path: Path) -> None:
    """Followers hear no driver: what they keep is the leader's share, whatever they think."""
    query = joined(logs, tmp_path)
    logs["left"].rate_per_s, logs["right"].rate_per_s = 10_000.0, 40_000.0
    query.target = Target(delay_s=8.0)
    for number in range(60):
        new = query.trigger()
        if number > 40:
            shares = [offset.rule.keep_ppm for offset in new.values()]
            assert shares[0] == pytest.approx(shares[1], rel=0.02)


def test_the_lease_of_the_gate_that_leads_is_that_of_all(
    logs: dict[str, ToyLog], tmp_path: Path
) -> None:
    query = joined(logs, tmp_path, lease_s=10.0)
    for _ in range(5):
        new = query.trigger()
    assert set(new) == {"left", "right"}
    query.silent = True
    assert set(query.trigger()) == {"left", "right"}  # alone, within its lease
    query.clock.advance(11.0)
    assert [query.trigger() for _ in range(5)] == [{}] * 5
    query.silent = False
    assert set(query.trigger()) == {"left", "right"}


def test_no_gate_of_a_query_that_is_cut_goes_beyond_its_own_bound(
    logs: dict[str, ToyLog], tmp_path: Path
) -> None:
    query = joined(logs, tmp_path, lease_s=1000.0)
    for _ in range(5):
        query.trigger()
    stood = {name: decode(gate.logged[-1]).stretches[0].stop for name, gate in query.gates.items()}
    bounds = {"left": stood["left"] + 300, "right": stood["right"] + 900}
    query.until = {name: {0: bound} for name, bound in bounds.items()}
    for _ in range(30):
        query.trigger()
    stands = {name: decode(gate.logged[-1]).stretches[0].stop for name, gate in query.gates.items()}
    assert stands == bounds
    query.until, query.owned = None, ALL
    for _ in range(5):
        new = query.trigger()
    assert {name: offset.owned for name, offset in new.items()} == {"left": ALL, "right": ALL}
