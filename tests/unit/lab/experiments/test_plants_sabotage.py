"""Verdicts must turn when the plant, its model or what stands before it is another."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pytest

from spillway.load import laws
from spillway.model import Decision, KeepFraction, Measurement
from spillway_lab.engine.networks import Setting, make_setting
from spillway_lab.experiments import pool
from spillway_lab.experiments.ctrl import curve_runs, identification
from spillway_lab.experiments.dissp import setting as dissp
from spillway_lab.experiments.dissp.uncontrolled import growth
from spillway_lab.experiments.outcomes import Floats, Outcome
from spillway_lab.experiments.pham import cost, priority
from spillway_lab.experiments.registry import EXPERIMENTS
from spillway_lab.experiments.report import Setup

Patch = pytest.MonkeyPatch
LENGTH: dict[str, dict[str, float]] = {  # shortened where the verdicts stay the same
    "ctrl-identification": {},
    "dissp-uncontrolled": {"duration_s": 80.0},
    "pham-cost": {"level_s": 1.0},
    "pham-priority": {},
}


@pytest.fixture(autouse=True)
def one_process(monkeypatch: Patch) -> None:
    monkeypatch.setattr(pool, "WORKERS", 1)


def verdicts(name: str) -> Mapping[str, bool]:
    found = EXPERIMENTS.find(name).run(Setup(seed=3), **LENGTH[name]).as_json()
    return {check["name"]: check["holds"] for check in found["checks"]}


def with_engine(change: Callable[[Setting], Setting]) -> Callable[[Patch], None]:
    def sabotage(monkeypatch: Patch) -> None:
        for module in (curve_runs, dissp, cost, priority):
            monkeypatch.setattr(module, "make_setting", lambda name: change(make_setting(name)))

    return sabotage


def slow(setting: Setting) -> Setting:
    return replace(setting, engine=replace(setting.engine, headroom=setting.engine.headroom / 4.0))


def without_price_of_a_batch(setting: Setting) -> Setting:
    return replace(setting, engine=replace(setting.engine, activation_s=0.0))


def keeping(fraction: float) -> Callable[[Patch], None]:
    """The same share whatever is measured, by every law."""

    def decide(law: object, measurement: Measurement) -> Decision:
        return Decision(action=KeepFraction(fraction=fraction), reason="constant")

    def sabotage(monkeypatch: Patch) -> None:
        for law in laws.LAWS.values():
            monkeypatch.setattr(law, "decide", decide)

    return sabotage


def constant_model(monkeypatch: Patch) -> None:
    """The mean delay, whatever the queue."""

    def model(outcome: Outcome, headroom: float) -> Floats:
        return np.full_like(outcome.cost_s, np.nanmean(outcome.delay_by_arrival_s) / headroom)

    monkeypatch.setattr(identification, "model_delay_s", model)


def flipped_model(monkeypatch: Patch) -> None:
    """The longer the queue, the shorter the delay."""
    model = identification.model_delay_s
    monkeypatch.setattr(identification, "model_delay_s", lambda o, h: -model(o, h))


def fair_turns(monkeypatch: Patch) -> None:
    monkeypatch.setattr(priority, "FAVOURED", 1.000001)


@dataclass(frozen=True, kw_only=True)
class Case:
    experiment: str
    sabotage: Callable[[Patch], None]
    turned: tuple[str, ...]


CASES = {
    "identification, slow": Case(
        experiment="ctrl-identification",
        sabotage=with_engine(slow),
        turned=("below 190 tuples/s the delay is constant", "best headroom, step input"),
    ),
    "identification, constant law": Case(
        experiment="ctrl-identification",
        sabotage=keeping(0.5),
        turned=("above it the delay grows at a stable rate (an integrator)",),
    ),
    "identification, constant model": Case(
        experiment="ctrl-identification",
        sabotage=constant_model,
        turned=("sine input: small, periodic model errors",),
    ),
    "identification, flipped model": Case(
        experiment="ctrl-identification",
        sabotage=flipped_model,
        turned=("best headroom, step input", "sine input: small, periodic model errors"),
    ),
    "uncontrolled, slow": Case(
        experiment="dissp-uncontrolled",
        sabotage=with_engine(slow),
        turned=("up to 80 queries the latency stays low",),
    ),
    "uncontrolled, constant law": Case(
        experiment="dissp-uncontrolled",
        sabotage=keeping(0.4),
        turned=("from 100 queries on it grows without end",),
    ),
    "cost, slow": Case(
        experiment="pham-cost",
        sabotage=with_engine(slow),
        turned=(
            "response time of a lone tuple",
            "the system endures far more than one tuple per lone response time",
            "on each level below 35,000 tuples/s the response time is higher but constant",
        ),
    ),
    "cost, no price of a batch": Case(
        experiment="pham-cost",
        sabotage=with_engine(without_price_of_a_batch),
        turned=("cost per tuple falls as the rate rises",),
    ),
    "cost, constant law": Case(
        experiment="pham-cost",
        sabotage=keeping(0.5),
        turned=("above it the response time grows without end",),
    ),
    "priority, idle": Case(
        experiment="pham-priority",
        sabotage=keeping(1.0),
        turned=(
            "under SEaMLeSS the low-priority queries violate the target, under ALoMa less",
            "ALoMa holds the worst-case response time at the target",
            "the high-priority queries never violate it",
        ),
    ),
    "priority, next to nothing kept": Case(
        experiment="pham-priority",
        sabotage=keeping(0.05),
        turned=("ALoMa holds the worst-case response time at the target",),
    ),
    "priority, fair turns": Case(
        experiment="pham-priority",
        sabotage=fair_turns,
        turned=("under SEaMLeSS the low-priority queries violate the target, under ALoMa less",),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LENGTH)
def test_every_verdict_is_turned_by_one_sabotage(name: str) -> None:
    found = verdicts(name)
    assert all(found.values()), found
    turned = {check for case in CASES.values() if case.experiment == name for check in case.turned}
    assert turned == set(found)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_a_sabotage_turns_its_verdicts(case: str, monkeypatch: Patch) -> None:
    CASES[case].sabotage(monkeypatch)
    found = verdicts(CASES[case].experiment)
    assert not any(found[check] for check in CASES[case].turned), found


def test_a_delay_that_stays_where_it_jumped_to_does_not_grow() -> None:
    jumped, growing = np.full(800, 9.0), np.linspace(0.0, 200.0, 800)
    jumped[:100] = 0.1
    assert growth(jumped) == 0.0
    assert growth(growing) == pytest.approx(1.0, rel=0.01)
