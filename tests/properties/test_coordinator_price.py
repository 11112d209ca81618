"""What a coordinator costs, over random load histories, beside nodes that never change."""

import os

import numpy as np
import pytest

from spillway_lab.experiments.armadilos.histories import Cost, draw_history, judge

MEAN, WORST = 1.2, 2.0


def costs(seeds: range) -> list[Cost]:
    return [judge(draw_history(np.random.default_rng(seed))) for seed in seeds]


def check(found: list[Cost]) -> None:
    ratios = np.array([cost.ratio for cost in found])
    assert ratios.mean() <= MEAN
    assert ratios.max() <= WORST


def test_shedding_and_nodes_cost_little_more_than_the_best_fixed_choice() -> None:
    check(costs(range(6)))


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_the_price_holds_over_many_histories() -> None:
    """SPILLWAY_HISTORIES=1000 takes a quarter of an hour and more."""
    check(costs(range(int(os.environ.get("SPILLWAY_HISTORIES", "40")))))
