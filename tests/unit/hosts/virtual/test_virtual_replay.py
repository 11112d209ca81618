"""A journal of one law, decided again by another."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from spillway.classes.control import ClassTerms
from spillway.cli.app import app
from spillway.errors import SpillwayError
from spillway.gate.options import GateOptions
from spillway.hosts.virtual.host import VirtualHost, VirtualQuery
from spillway.hosts.virtual.machine import BatchCost
from spillway.hosts.virtual.replay import QueryReplay, replayed
from spillway.hosts.virtual.trace import CurveLog, TraceLog
from spillway.journal.files import FileJournal
from spillway.model import Decided
from spillway.ports import Span

STARTED = {"cores": 1, "classes": {"gold": {"priority": 3, "lend": 1.0}}}


def recorded(manager: str, rate_per_s: float = 2500.0) -> list[Decided]:
    options = replace(GateOptions.parse({"manager": manager}), class_name="gold")
    times_s = np.sort(np.random.default_rng(1).uniform(0.0, 80.0, int(80 * rate_per_s)))
    cost = BatchCost(fixed_s=0.2, kept_s=1e-3, scanned_s=1e-5)
    query = VirtualQuery(name="q", log=TraceLog(times_s), options=options, cost=cost)
    host = VirtualHost([query], {"gold": ClassTerms(priority=1, target=options.target)})
    host.advance(80.0)
    return [
        replace(d, measurement=replace(d.measurement, time_s=d.measurement.time_s + 1.7e9))
        for d in host.decided
    ]


def under(manager: str, entries: list[Decided]) -> QueryReplay:
    [found] = replayed(entries, manager, {}, STARTED)
    return found


def test_the_same_law_does_again_what_it_did() -> None:
    found = under("ctrl", recorded("ctrl"))
    assert found.kept_ratio == pytest.approx(found.recorded_kept_ratio, rel=0.1)
    assert found.delay_s == pytest.approx(found.recorded_delay_s, rel=0.15)


def test_another_law_does_otherwise_on_the_same_load() -> None:
    entries = recorded("predictive")
    none, fixed = under("none", entries), under("fixed", entries)
    assert none.kept_ratio == 1.0
    assert none.delay_s is not None
    assert none.delay_s > 5.0
    assert fixed.kept_ratio == pytest.approx(0.5, abs=0.02)
    assert none.offered_tuples == fixed.offered_tuples


def test_a_journal_without_decisions_is_refused() -> None:
    with pytest.raises(SpillwayError, match="holds no query with decisions"):
        replayed([], "ctrl", {}, {})


def test_the_command_shows_both(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal = FileJournal(path)
    journal.event(1.7e9, "started", **STARTED)
    for decided in recorded("ctrl"):
        journal.record(decided.measurement, decided.decision)
    said = CliRunner().invoke(app, ["replay", str(path), "--manager", "baseline", "--json"])
    assert said.exit_code == 0
    assert '"recorded_delay_s"' in said.stdout
    refused = CliRunner().invoke(app, ["replay", str(path), "--manager", "ctlr"])
    assert isinstance(refused.exception, SpillwayError)


def test_a_curve_counts_arrivals_between_its_knots() -> None:
    log = CurveLog(np.array([0.0, 10.0, 20.0]), np.array([0.0, 100.0, 1100.0]))
    assert log.extent(5.0)[0].stop == 50
    assert log.extent(15.0)[0].stop == 600
    curve = log.arrivals(Span(partition=0, start=50, stop=600))
    assert list(curve.positions) == [50, 100, 600]
    assert list(curve.times_s) == [5.0, 10.0, 15.0]
    assert log.next_arrival_s(100) == pytest.approx(10.01)
    assert log.next_arrival_s(1100) is None


def test_a_recording_with_idle_times_is_replayed_to_its_end() -> None:
    """Between knots a whole tuple may lie a rounding error behind its own moment."""
    rng = np.random.default_rng(4)
    times_s = np.cumsum(rng.uniform(0.1, 3.0, 200))
    counts = np.cumsum(rng.integers(0, 3, 200)).astype(float)
    log = CurveLog(np.concatenate(([0.0], times_s)), np.concatenate(([0.0], counts)))
    options = GateOptions.parse({})
    query = VirtualQuery(name="q", log=log, options=options, cost=BatchCost(fixed_s=0.05))
    host = VirtualHost([query], {"default": ClassTerms(priority=1, target=options.target)})
    host.advance(float(times_s[-1]) + 10.0)
    assert host.lanes["q"].at.totals.admitted == int(counts[-1])
