"""Probes between a gate's batches: stopped time, what they read, what follows from them."""

import itertools
import json
import time
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest

from spillway.gate.offsets import Arrived, Offset, encode
from spillway.gate.rules import Rule, Stretch
from spillway.gate.sampling import PPM, count_kept
from spillway.hosts.spark.driver.progress import BatchProgress
from spillway.load.oracle import uniform_length_s
from spillway.model import Target
from spillway_lab.benchmarks.calibration import Calibration
from spillway_lab.benchmarks.overload_run import Sample
from spillway_lab.benchmarks.probed_gate import LIKE, StoppableClock, probed
from spillway_lab.benchmarks.probed_run import (
    ProbedSample,
    Turn,
    fitted_probes,
    probes_for,
    read_turns,
)

TARGET = Target(delay_s=2.0)
MACHINE = Calibration(fixed_s=0.1, kept_s=1e-6, scanned_s=1e-8)
RATE_PER_S = 5e6
BEST = round(MACHINE.best_kept_per_s(RATE_PER_S, TARGET) * uniform_length_s(TARGET))
KINDS = probes_for(BEST).split(",")
SCANNED = round(RATE_PER_S * uniform_length_s(TARGET))


def test_a_stopped_clock_stands_and_then_goes_on_from_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wall = itertools.count(100.0)
    now_s = next(wall)
    monkeypatch.setattr(time, "time", lambda: 1e9 + now_s)
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    clock = StoppableClock()
    clock.stop()
    now_s = 107.0
    assert (clock.now_s(), clock.elapsed()) == (1e9 + 100.0, 100.0)
    clock.stop()  # stopping twice is stopping once
    now_s = 110.0
    clock.go_on()
    now_s = 112.0
    assert (clock.now_s(), clock.elapsed()) == (1e9 + 102.0, 102.0)
    assert clock.lost_s == 10.0


def offset(seq: int, start: int, stop: int, *, keep_ppm: int = 250_000) -> Offset:
    at_us = seq * 1_000_000
    return Offset(
        gate="g",
        began_us=0,
        seq=seq,
        planned_us=at_us,
        stretches=(Stretch(partition=0, start=start, read=start, stop=stop),),
        rule=Rule(keep_ppm=keep_ppm, seed=3),
        arrived=Arrived(mean_us=at_us, p05_us=at_us, p01_us=at_us, first_us=at_us),
    )


def test_a_probe_reads_what_the_gate_has_passed() -> None:
    batch = encode(offset(1, 10_000, 50_000))
    lower, upper, rule = probed(batch, "20000")
    assert (lower, upper, rule.keep_ppm) == (30_000, 50_000, PPM)
    assert probed(batch, "90000")[:2] == (0, 50_000)
    lower, upper, rule = probed(batch, LIKE)
    assert (lower, upper, rule.keep_ppm, rule.seed) == (10_000, 50_000, 250_000, 3)


def batch(slowness: float, share: float) -> Turn:
    """A gate that knows the machine's speed, and keeps this share of what is possible."""
    machine, length_s = MACHINE.slower(slowness), uniform_length_s(TARGET)
    kept = machine.best_kept_per_s(RATE_PER_S, TARGET) * length_s
    return Turn(probe=None, kept=round(share * kept), scanned=SCANNED, took_s=length_s)


def probe(kind: str, slowness: float) -> Turn:
    scanned = SCANNED if kind == LIKE else int(kind)
    kept = BEST if kind == LIKE else scanned
    took_s = slowness * MACHINE.batch_s(kept, scanned)
    return Turn(probe=kind, kept=kept, scanned=scanned, took_s=took_s)


def sampled(slowness: Iterable[float], *, share: float = 1.0) -> ProbedSample:
    """One round for every speed of the machine."""
    rounds = tuple(
        tuple(t for kind in KINDS for t in (batch(slow, share), probe(kind, slow)))
        for slow in slowness
    )
    return ProbedSample(sample=Sample(batches=[], length_s=1.0), rounds=rounds)


def test_probes_find_what_a_batch_costs() -> None:
    found = fitted_probes(sampled([1.0] * 3).rounds, MACHINE.scan_share)
    assert found.fixed_s == pytest.approx(MACHINE.fixed_s)
    assert found.kept_s == pytest.approx(MACHINE.kept_s)
    assert found.scanned_s == pytest.approx(MACHINE.scanned_s)


def test_an_ideal_gate_on_a_machine_that_drifts_has_an_efficiency_of_one() -> None:
    """Half as fast again within the run: no calibration before and after would tell."""
    row = sampled([1.0] * 6 + [1.5] * 6).efficiency(RATE_PER_S, TARGET, MACHINE.scan_share, seed=1)
    assert row["efficiency"] == pytest.approx(1.0, rel=1e-3)
    assert 1.0 < 1.0 / row["bound_ratio"] < 1.1


def test_what_a_gate_loses_shows_and_has_an_interval() -> None:
    noise = np.random.default_rng(5).lognormal(0.0, 0.1, 20)
    row = sampled(noise, share=0.9).efficiency(RATE_PER_S, TARGET, MACHINE.scan_share, seed=1)
    assert row["efficiency"] == pytest.approx(0.9, abs=0.005)
    assert row["efficiency_low"] <= row["efficiency"] <= row["efficiency_high"]


def test_a_gate_that_is_dearer_than_the_bare_source_is_seen_in_its_batch_times() -> None:
    rounds = sampled([1.0] * 4).rounds
    slower = [
        tuple(replace(t, took_s=t.took_s * 1.1) if not t.probe else t for t in r) for r in rounds
    ]
    row = ProbedSample(sample=Sample(batches=[], length_s=1.0), rounds=tuple(slower)).efficiency(
        RATE_PER_S, TARGET, MACHINE.scan_share, seed=1
    )
    assert row["batch_time_of_bare"] == pytest.approx(1.1, rel=1e-3)
    assert row["efficiency"] == pytest.approx(1.0 / 1.1, rel=1e-3)


def progress(
    number: int, gate: Offset, *, probe: bool, turn: int, stopped_s: float
) -> BatchProgress:
    def shown(asked_s: float) -> str:
        return json.dumps(
            {
                "gate": json.dumps(encode(gate)),
                "turn": turn,
                "probe": probe,
                "asked_us": round(asked_s * 1e6),
                "stopped_us": round(stopped_s * 1e6),
            }
        )

    before = json.loads(shown(0.0)) | {"gate": json.dumps(encode(offset(0, 0, 0)))}
    return BatchProgress(
        query="q",
        run_id="r",
        batch_id=number,
        started_s=float(number),
        duration_s=1.0,
        input_rows=0,
        phases_s={},
        sources=({"startOffset": json.dumps(before), "endOffset": shown(float(number))},),
    )


def test_batches_are_told_apart_and_delays_leave_out_the_probes() -> None:
    first, second = offset(1, 0, 40_000), offset(2, 40_000, 80_000)
    seen = read_turns(
        [
            progress(1, first, probe=False, turn=1, stopped_s=0.0),
            progress(2, first, probe=True, turn=1, stopped_s=0.0),
            progress(3, second, probe=False, turn=2, stopped_s=1.0),
            progress(4, second, probe=True, turn=2, stopped_s=1.0),
            progress(5, second, probe=False, turn=3, stopped_s=2.0),
        ],
        [LIKE],
    )
    [pair] = seen.rounds  # from the first probe on
    assert [turn.probe for turn in pair] == [None, LIKE]
    assert {turn.kept for turn in pair} == {second.kept_tuples()}
    assert second.kept_tuples() == count_kept(40_000, 80_000, second.rule.sampling)
    assert seen.sample.length_s == 1.0
    [batch] = seen.sample.batches
    assert batch.ended_s == 3.0  # the batch ended at 4 s, and time had stood still for one
    assert batch.mean_delay_s == pytest.approx(1.0)
