"""The experiments with service classes, in short runs."""

import json

import numpy as np
import pytest

from spillway_lab.experiments.dilos.congestion import SHARED, congestion
from spillway_lab.experiments.dilos.real import lend_cap
from spillway_lab.experiments.dilos.setting import (
    CLASS_3_PER_S,
    MODES,
    Spec,
    arrivals_of,
    bounded_pareto,
    network_of,
    rates_of,
    run,
)
from spillway_lab.experiments.registry import EXPERIMENTS
from spillway_lab.experiments.report import Setup

NAMES = ("dilos-advantages", "dilos-pareto", "dilos-real", "dilos-cycle", "dilos-congestion")


@pytest.mark.parametrize("name", NAMES)
def test_the_experiments_are_registered(name: str) -> None:
    assert EXPERIMENTS.find(name).plants[0] == "sim"


def test_dilos_sheds_only_from_class_3_and_less_than_separate_managers_do() -> None:
    loss = {}
    for mode in ("separate", "dilos"):
        found = run(Spec(mode=mode, duration_s=4.5)).classes
        loss[mode] = [outcome.loss_ratio for outcome in found.values()]
    assert loss["separate"][:2] == loss["dilos"][:2] == [0.0, 0.0]
    assert loss["dilos"][2] < 0.8 * loss["separate"][2]  # the first cycle of 1.5 s is the same


def test_a_run_follows_from_its_seed() -> None:
    spec = Spec(mode="dilos-sharing", duration_s=1.0)
    assert run(spec).summary() == run(spec).summary()


def test_a_report_is_json_and_draws_its_picture() -> None:
    report = congestion(Setup(seed=2), duration_s=1.0)
    assert set(report.results) == {"none", "separate"}
    json.dumps(report.as_json())
    for draw in report.pictures.values():
        assert draw().axes


def test_every_mode_has_the_thesis_names() -> None:
    assert list(MODES) == ["none", "common", "separate", "dilos", "dilos-sharing"]


def test_rates_of_a_class_stay_in_their_range_and_are_mostly_low() -> None:
    rates = bounded_pareto(np.random.default_rng(1), np.tile(CLASS_3_PER_S, (10_000, 1)))
    low, high = CLASS_3_PER_S
    assert low <= rates.min()
    assert rates.max() <= high
    mean = low * high / (high - low) * np.log(high / low)  # of a Pareto law of shape 1, cut
    assert rates.mean() == pytest.approx(mean, rel=0.01)


def test_what_class_3_can_share_arrives_at_class_3s_rate_in_both_networks() -> None:
    for mode in ("dilos", "dilos-sharing"):
        spec = Spec(mode=mode, arrivals="sd-p", duration_s=6.0)
        network = network_of(spec).network
        times = arrivals_of(spec, network)
        wanted = rates_of(spec)["3"]
        for kind in SHARED:
            count = len(times[f"1.{kind}.in-1"])
            assert count == pytest.approx(
                float(np.mean(wanted.at(np.arange(0.01, 6, 0.01)))) * 6, rel=0.02
            )


def test_a_class_caps_its_lending_at_what_its_busiest_cycle_leaves() -> None:
    cap = lend_cap(Spec(mode="dilos", arrivals="sd-r", duration_s=12.0))
    assert 0.0 <= cap < 1.0
