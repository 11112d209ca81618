from pathlib import Path

import pytest
from toy import ToyLog, ToySpark

from spillway.clock import ManualClock
from spillway.gate.offsets import SENTINEL, Offset, decode
from spillway.gate.options import GateOptions
from spillway.gate.rules import Stretch
from spillway.hosts.spark.planner import planner as planner_module
from spillway.hosts.spark.planner.joint import Joint
from spillway.hosts.spark.planner.planner import Planner
from spillway.logs import catalog


@pytest.fixture
def logs(monkeypatch: pytest.MonkeyPatch) -> dict[str, ToyLog]:
    found = {"left": ToyLog(), "right": ToyLog()}
    monkeypatch.setattr(catalog, "open_log", lambda options, schema=None: found[options["path"]])
    monkeypatch.setattr(catalog, "pinned", lambda options, now_s: dict(options))
    return found


@pytest.fixture
def gates(
    logs: dict[str, ToyLog], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[ManualClock, dict[str, ToySpark]]:
    clock, made = ManualClock(1000.0), {}
    for name in logs:

        def joint(group: str, options: dict[str, str], member: str = name) -> Joint:
            return Joint(group, options, open_log=catalog.open_log, folder=tmp_path, member=member)

        monkeypatch.setattr(planner_module, "Joint", joint)
        given = {"source": "toy", "path": name, "joint": "query"}
        gate = GateOptions.parse(given)
        made[name] = ToySpark(
            Planner(given, gate, clock=clock, elapsed=clock.now_s, sleep=clock.advance), clock
        )
    return clock, made


def trigger(clock: ManualClock, gates: dict[str, ToySpark], kept_s: float) -> dict[str, Offset]:
    """One batch of a query with two sources: both are asked, then it runs."""
    starts = {n: s.logged[-1] if s.logged else dict(SENTINEL) for n, s in gates.items()}
    ends = {name: gate.planner.latest(starts[name]) for name, gate in gates.items()}
    for name, gate in gates.items():
        if ends[name] != starts[name]:
            if gate.logged:
                gate.planner.completed(starts[name])
            gate.planner.shown(starts[name], ends[name])
            gate.logged.append(ends[name])
    new = {name: decode(end) for name, end in ends.items() if end != starts[name]}
    clock.advance(0.2 + kept_s * sum(offset.kept_tuples() for offset in new.values()))
    return new


def test_no_gate_waits_while_another_has_tuples(
    logs: dict[str, ToyLog], gates: tuple[ManualClock, dict[str, ToySpark]]
) -> None:
    clock, made = gates
    logs["left"].limit = 0
    trigger(clock, made, 1e-4)
    before_s = clock.now_s()
    new = trigger(clock, made, 1e-4)
    assert list(new) == ["right"]
    assert clock.now_s() - before_s < 0.5  # the silent side did not wait for its poll of a second


def test_gates_of_one_query_share_one_fraction_and_hold_the_target(
    logs: dict[str, ToyLog], gates: tuple[ManualClock, dict[str, ToySpark]]
) -> None:
    clock, made = gates
    logs["left"].rate_per_s, logs["right"].rate_per_s = 40_000.0, 10_000.0
    lengths_s = []
    for number in range(60):
        before_s = clock.now_s()
        new = trigger(clock, made, 1e-4)
        if number > 30:
            lengths_s.append(clock.now_s() - before_s)
            shares = [offset.rule.keep_ppm for offset in new.values()]
            assert shares[0] == pytest.approx(shares[1], rel=0.01)
    assert sum(lengths_s) / len(lengths_s) == pytest.approx(4.0 / 3.0, rel=0.1)


def test_a_gate_that_is_gone_is_forgotten(tmp_path: Path) -> None:
    (tmp_path / "999999999.json").write_text('{"options": {}, "plans": [], "stops": {}}')
    joint = Joint("query", {}, folder=tmp_path)
    stretch = Stretch(partition=0, start=0, read=0, stop=0)
    joint.enter(Offset(gate="g", began_us=0, seq=0, planned_us=0, stretches=(stretch,)))
    assert joint.pending(0.0) == []
    assert not (tmp_path / "999999999.json").exists()
