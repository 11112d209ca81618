"""What a gate was told gives the same offsets when it is told again, byte for byte."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from spillway.classes.control import ClassTerms
from spillway.cli.app import app
from spillway.clock import ManualClock
from spillway.gate import cutting
from spillway.gate.company import Led
from spillway.gate.offsets import Offset
from spillway.gate.options import GateOptions
from spillway.gate.pacing import Cut
from spillway.gate.planning import survey
from spillway.gate.rules import Stretch
from spillway.gate.told import TellingGate, told_again
from spillway.hosts.virtual.host import VirtualHost, VirtualQuery
from spillway.hosts.virtual.machine import BatchCost
from spillway.hosts.virtual.trace import TraceLog
from spillway.load.laws import LAWS
from spillway.testing import ToyLog, ToySpark

Told = list[dict[str, Any]]


def recorded_by_spark(log: ToyLog, folder: Path, manager: str) -> Told:
    log.rate_per_s, log.partitions = 30_000.0, 3
    path = folder / "told.jsonl"
    spark = ToySpark.over(log, ManualClock(1000.0), manager=manager, record=str(path))
    spark.batches(40)
    return [json.loads(line) for line in path.read_text().splitlines()]


def recorded_by_virtual_host(manager: str) -> Told:
    told: Told = []
    options = GateOptions.parse({"manager": manager})
    times_s = np.sort(np.random.default_rng(1).uniform(0.0, 60.0, 120_000))
    query = VirtualQuery(name="q", log=TraceLog(times_s), options=options, cost=BatchCost())
    host = VirtualHost([query], {"default": ClassTerms(priority=1, target=options.target)})
    lane = host.lanes["q"]
    lane.gate = TellingGate(options, lambda line: told.append(json.loads(json.dumps(line))))
    lane.gate.resume(lane.at)
    host.advance(60.0)
    return told


def differing(told: Told, manager: str | None = None) -> int:
    options = GateOptions.parse({"manager": manager}) if manager else None
    pairs = list(told_again(told, options))
    assert len(pairs) > 5
    return sum(json.dumps(then) != json.dumps(now) for then, now in pairs)


@pytest.mark.parametrize("manager", LAWS)
def test_a_run_of_the_spark_planner_told_again(log: ToyLog, tmp_path: Path, manager: str) -> None:
    assert differing(recorded_by_spark(log, tmp_path, manager)) == 0


@pytest.mark.parametrize("manager", LAWS)
def test_a_run_of_the_virtual_host_told_again(manager: str) -> None:
    assert differing(recorded_by_virtual_host(manager), manager) == 0


@pytest.mark.parametrize("manager", ["ctrl", "aloma"])
def test_a_silence_between_two_overloads_is_told_as_well(
    log: ToyLog, clock: ManualClock, tmp_path: Path, manager: str
) -> None:
    log.rate_per_s, path = 30_000.0, tmp_path / "told.jsonl"
    spark = ToySpark.over(log, clock, manager=manager, record=str(path))
    spark.batches(40)
    log.limit = log.extent(clock.now_s())[0].stop
    spark.batches(60)
    log.start_s, log.limit = clock.now_s() - log.limit / log.rate_per_s, 2**60
    spark.batches(40)
    told = [json.loads(line) for line in path.read_text().splitlines()]
    assert any(line["call"] == "rest" for line in told)
    assert differing(told) == 0


def test_what_another_gate_of_the_query_has_decided_is_told_as_well() -> None:
    told: Told = []
    options = GateOptions.parse({"joint": "q", "first_batch": "100000"})
    gate = TellingGate(options, lambda line: told.append(json.loads(json.dumps(line))))
    stretch = Stretch(partition=0, start=0, read=0, stop=0)
    at = Offset(gate="q", began_us=0, seq=0, planned_us=0, stretches=(stretch,))
    log = TraceLog(np.linspace(0.0, 9.0, 1000))
    gate.resume(at)
    for share, reach in ((1.0, 0.1), (0.5, 0.3), (1.0, 1.0)):
        waiting = survey(at, log.extent(10.0), log.arrivals)
        at = gate.follow(at, waiting, Led(share=share, reach=reach), 10.0)
        assert at.offered_tuples == pytest.approx(reach * waiting.tuples, abs=1.0)
    assert [then == now for then, now in told_again(told, options)] == [True] * 3


def test_another_law_answers_otherwise(log: ToyLog, tmp_path: Path) -> None:
    told = recorded_by_spark(log, tmp_path, "predictive")
    assert differing(told, "fixed") > 10


def test_a_gate_that_is_broken_is_broken_on_both_hosts(
    log: ToyLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They run the same object: what changes the one changes the other."""
    told = recorded_by_spark(log, tmp_path, "predictive"), recorded_by_virtual_host("predictive")
    cut = cutting.cut

    def one_less(*given: Any) -> Cut:
        found = cut(*given)
        return replace(found, fraction=0.99 * found.fraction)

    monkeypatch.setattr(cutting, "cut", one_less)
    assert all(differing(lines, "predictive") > 10 for lines in told)


def test_a_record_holds_no_option_of_the_log(log: ToyLog, tmp_path: Path) -> None:
    path = tmp_path / "told.jsonl"
    secret = {"kafka.sasl.password": "hush", "topic": "orders"}
    ToySpark.over(log, ManualClock(1000.0), record=str(path), **secret).batches(2)
    first = json.loads(path.read_text().splitlines()[0])
    assert first["options"] == {"record": str(path)}


def test_the_command_tells_a_record_again(log: ToyLog, tmp_path: Path) -> None:
    recorded_by_spark(log, tmp_path, "ctrl")
    path = tmp_path / "told.jsonl"
    said = CliRunner().invoke(app, ["replay", str(path)])
    assert (said.exit_code, "all the same" in said.stdout) == (0, True)
    path.write_text(path.read_text().replace('"keep_ppm":1000000', '"keep_ppm":999999'))
    said = CliRunner().invoke(app, ["replay", str(path), "--json"])
    assert said.exit_code == 1
    refused = CliRunner().invoke(app, ["replay", str(tmp_path)])
    assert refused.exit_code != 0
