"""Verdicts of experiments must turn when the laws that they judge do nothing."""

from collections.abc import Mapping
from typing import Any

import pytest
from test_experiments_shape import SHORT

from spillway.load import laws
from spillway.model import Decision, KeepFraction, Measurement
from spillway_lab.experiments import pool
from spillway_lab.experiments.registry import EXPERIMENTS
from spillway_lab.experiments.report import Setup

# What holds of the laws, and cannot hold of ones that keep everything.
TURNS = {
    "ctrl-openloop": "growing rate: AURORA's delay grows all the time, CTRL's does not",
    "ctrl-headroom": "tuning AURORA's headroom trades loss for delay and never fits both traces",
    "ctrl-burstiness": "overshoot changes less with burstiness under CTRL than under AURORA",
    "ctrl-period": "violations rise steeply beyond 4 s",
    "pham-headroom": "AURORA: a lower headroom loses more data",
    "pham-period": "with P = 1 it adjusts many times and the response time fluctuates more",
    "pham-worst": "ALoMa drops more than necessary when the job leaves: response time near 0",
    "pham-long": "AURORA drops more than necessary: it sheds while the delay is far below target",
}


# Shortened, their verdicts say nothing yet; their figures must be the laws' own.
FOLLOW = (
    "ctrl-longterm",
    "ctrl-transient",
    "ctrl-target",
    "dissp-cdf",
    "pham-ideal",
    "pham-environment",
)


def keep_all(law: object, measurement: Measurement) -> Decision:
    return Decision(action=KeepFraction(fraction=1.0), reason="broken: keeps everything")


@pytest.fixture(autouse=True)
def one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "WORKERS", 1)


def found(name: str) -> dict[str, Any]:
    return EXPERIMENTS.find(name).run(Setup(seed=3), **SHORT[name]).as_json()


def verdicts(name: str) -> Mapping[str, bool]:
    return {check["name"]: check["holds"] for check in found(name)["checks"]}


def break_laws(monkeypatch: pytest.MonkeyPatch) -> None:
    for law in laws.LAWS.values():
        monkeypatch.setattr(law, "decide", keep_all)


@pytest.mark.parametrize("name", TURNS)
def test_a_verdict_turns_when_no_law_sheds(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert verdicts(name)[TURNS[name]] is True
    break_laws(monkeypatch)
    assert verdicts(name)[TURNS[name]] is False


@pytest.mark.parametrize("name", FOLLOW)
def test_figures_follow_from_the_laws(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = found(name)["results"]
    assert found(name)["results"] == before, "from seed and laws alone"
    break_laws(monkeypatch)
    assert found(name)["results"] != before
