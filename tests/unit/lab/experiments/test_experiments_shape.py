"""Every paper experiment, shortened: the JSON has its shape, tables and pictures can be made."""

import json
from typing import Any

import pytest

from spillway.load import laws
from spillway.workloads import named
from spillway_lab.experiments import managers, pool
from spillway_lab.experiments.ctrl import longterm
from spillway_lab.experiments.registry import EXPERIMENTS
from spillway_lab.experiments.report import Report, Setup

SHORT: dict[str, dict[str, float]] = {
    "ctrl-identification": {"duration_s": 20.0},
    "ctrl-openloop": {"duration_s": 20.0},
    "ctrl-longterm": {"duration_s": 30.0},
    "ctrl-transient": {"duration_s": 30.0},
    "ctrl-headroom": {"duration_s": 20.0},
    "ctrl-burstiness": {"duration_s": 20.0},
    "ctrl-target": {"duration_s": 30.0},
    "ctrl-period": {"duration_s": 16.0},
    "dissp-uncontrolled": {"duration_s": 12.0},
    "dissp-cdf": {"duration_s": 12.0},
    "pham-headroom": {"duration_s": 20.0},
    "pham-ideal": {"duration_s": 20.0},
    "pham-cost": {"level_s": 0.4},
    "pham-environment": {"duration_s": 40.0},
    "pham-period": {"duration_s": 30.0},
    "pham-priority": {"duration_s": 12.0},
    "pham-worst": {"duration_s": 60.0},
    "pham-long": {"duration_s": 6.0},
}


@pytest.fixture(autouse=True)
def one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "WORKERS", 1)


@pytest.mark.parametrize("name", SHORT)
def test_a_shortened_experiment_gives_json_tables_and_pictures(name: str) -> None:
    report = EXPERIMENTS.find(name).run(Setup(seed=3), **SHORT[name])
    assert report.experiment == name
    assert_whole(report)


def test_a_small_part_of_all_managers_gives_the_same_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    few = {"web": named.WORKLOADS["web"]}
    monkeypatch.setattr(named, "WORKLOADS", few)
    report = managers.all_managers(Setup(seed=3), duration_s=15.0)
    assert set(report.results["micro-batch"]["web"]) == set(laws.LAWS)
    assert_whole(report)


def assert_whole(report: Report) -> None:
    found: dict[str, Any] = json.loads(json.dumps(report.as_json(), allow_nan=False))
    assert set(found) == {"experiment", "plant", "seed", "results", "checks"}
    assert found["seed"] == 3
    assert found["checks"]
    for check in found["checks"]:
        assert {"name", "paper", "here", "holds"} <= set(check)
        assert isinstance(check["holds"], bool)
    for table in report.tables:
        assert all(len(row) == len(table.columns) for row in table.rows)
    for draw in report.pictures.values():
        figure = draw()
        assert figure.axes
        for axis in figure.axes:
            assert axis.get_ylabel()


def test_longterm_is_keyed_by_trace_then_load_manager() -> None:
    results = longterm.longterm(Setup(seed=2), duration_s=20.0).results
    for trace in ("web", "pareto"):
        for law in ("ctrl", "baseline", "aurora"):
            assert {
                "accumulated_violation_s",
                "delayed_tuples",
                "max_overshoot_s",
                "loss_ratio",
            } <= set(results[trace][law])
        assert results["inputs"][trace]["origin"]
