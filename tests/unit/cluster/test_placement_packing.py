"""Subset sum and first fit decreasing."""

from itertools import combinations

import numpy as np
import pytest

from spillway.cluster.placement import (
    Bin,
    bin_of,
    first_fit_decreasing,
    neighbours_of,
    operators_to_move,
)
from spillway.cluster.views import HostView, OperatorView, Resources

CORE = Resources(cpu_cores=1.0, memory_mb=1000.0, network_mb_per_s=100.0)


def operator(name: str, cpu: float, memory_mb: float = 0.0, **more: object) -> OperatorView:
    use = Resources(cpu_cores=cpu, memory_mb=memory_mb)
    return OperatorView(name=name, queries=("q",), use=use, **more)  # type: ignore[arg-type]


def host(*operators: OperatorView, name: str = "h") -> HostView:
    return HostView(name=name, capacity=CORE, operators=operators)


def test_what_leaves_is_the_least_that_brings_the_host_down_to_the_target() -> None:
    crowded = host(operator("a", 0.5), operator("b", 0.25), operator("c", 0.2))
    leaving = operators_to_move(crowded, 0.7)
    assert [op.name for op in leaving] == ["b"]


@pytest.mark.parametrize("seed", range(20))
def test_the_choice_is_as_good_as_trying_all_subsets(seed: int) -> None:
    rng = np.random.default_rng(seed)
    loads = rng.integers(10, 300, size=9) / 1000.0
    crowded = host(*(operator(f"o{i}", load) for i, load in enumerate(loads)))
    target = 0.6
    leaving = operators_to_move(crowded, target)
    stays = loads.sum() - sum(op.use.cpu_cores for op in leaving)
    best = max(
        sum(kept)
        for size in range(len(loads) + 1)
        for kept in combinations(loads, size)
        if sum(kept) <= target + 1e-9
    )
    assert stays == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_loads_off_the_grid_lose_nothing_either(seed: int) -> None:
    rng = np.random.default_rng(seed)
    loads = rng.uniform(0.01, 0.3, size=9)
    crowded = host(*(operator(f"o{i}", load) for i, load in enumerate(loads)))
    stays = loads.sum() - sum(op.use.cpu_cores for op in operators_to_move(crowded, 0.6))
    subsets = (sum(kept) for size in range(len(loads) + 1) for kept in combinations(loads, size))
    assert stays <= 0.6 + 1e-9
    assert stays == pytest.approx(max(s for s in subsets if s <= 0.6), abs=1e-5)


def test_operators_on_the_move_stay_and_the_others_make_up_for_them() -> None:
    crowded = host(operator("moving", 0.5), operator("b", 0.3), operator("c", 0.1))
    leaving = operators_to_move(crowded, 0.6, fixed=frozenset({"moving"}))
    assert {op.name for op in leaving} == {"b"}


def test_of_equal_choices_the_one_with_less_state_leaves() -> None:
    crowded = host(operator("heavy", 0.5, state_mb=80.0), operator("light", 0.5, state_mb=1.0))
    assert [op.name for op in operators_to_move(crowded, 0.5)] == ["light"]


def test_a_host_that_can_keep_nothing_gives_everything() -> None:
    crowded = host(operator("a", 0.9))
    assert [op.name for op in operators_to_move(crowded, 0.5)] == ["a"]


def test_heaviest_first_onto_the_first_host_with_room() -> None:
    bins = [Bin(name="x", free=Resources(cpu_cores=0.5)), Bin(name="y", free=CORE)]
    placed = first_fit_decreasing([operator("small", 0.2), operator("big", 0.4)], bins, {})
    assert placed.assigned == {"big": "x", "small": "y"}


def test_the_host_of_a_neighbour_is_preferred() -> None:
    feed, eat = operator("feed", 0.1), operator("eat", 0.2, upstream=("feed",))
    bins = [bin_of(host(name="x"), 0.6), bin_of(host(feed, name="y"), 0.6)]
    placed = first_fit_decreasing([eat], bins, neighbours_of([feed, eat]))
    assert placed.assigned == {"eat": "y"}


def test_memory_and_network_count_too() -> None:
    bins = [bin_of(host(operator("old", 0.1, memory_mb=900.0), name="x"), 0.6)]
    placed = first_fit_decreasing([operator("hungry", 0.1, memory_mb=200.0)], bins, {})
    assert [op.name for op in placed.unplaced] == ["hungry"]


def test_hosts_are_filled_only_up_to_the_given_share_of_cpu() -> None:
    bins = [bin_of(host(operator("old", 0.5), name="x"), 0.6)]
    placed = first_fit_decreasing([operator("a", 0.2), operator("b", 0.1)], bins, {})
    assert placed.assigned == {"b": "x"}
