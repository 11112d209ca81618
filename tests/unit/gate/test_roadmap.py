"""Where to drop: coefficients, ratios and the order of drops on networks small enough to check."""

import pytest

from spillway.errors import SpillwayError
from spillway.gate.roadmap import Inflow, Part, load_of, locations, roadmap

IMPORTANT = Part(name="important", cost_s=1e-3, weight=10.0)
EXPENSIVE = Part(name="expensive", cost_s=8e-3, selectivity=0.5, weight=1.0)


def split(*readers: Part, shared_cost_s: float = 1e-3, selectivity: float = 1.0) -> Inflow:
    shared = Part(name="gate", cost_s=shared_cost_s, selectivity=selectivity, readers=readers)
    return Inflow(rate_per_s=100.0, part=shared)


def test_load_coefficients_add_up_over_the_branches_of_a_shared_part() -> None:
    inflow = split(IMPORTANT, EXPENSIVE, selectivity=0.5)
    assert inflow.part.load_coefficient_s == pytest.approx(1e-3 + 0.5 * (1e-3 + 8e-3))
    assert inflow.part.worth_coefficient == pytest.approx(0.5 * (10.0 + 0.5))
    assert load_of([inflow]) == pytest.approx(0.55)


def test_locations_are_the_gate_and_the_readers_of_a_split() -> None:
    chain = Part(name="last", cost_s=1e-3, weight=1.0)
    branch = Part(name="first", cost_s=1e-3, readers=(chain,))
    found = {place.name: place for place in locations([split(IMPORTANT, branch)])}
    assert set(found) == {"gate", "important", "first"}
    assert found["important"].ratio == pytest.approx(10.0 / 1e-3)
    assert found["gate"].ratio == pytest.approx(11.0 / 4e-3)
    assert found["first"].gain == pytest.approx(0.2)


def test_the_expensive_unimportant_query_goes_first_and_the_gate_last() -> None:
    steps = roadmap([split(IMPORTANT, EXPENSIVE)]).steps
    assert [step.location for step in steps] == ["expensive", "gate"]
    assert steps[1].parts == ("gate", "important")
    assert steps[0].ratio == pytest.approx(0.5 / 8e-3)
    assert steps[1].ratio == pytest.approx(10.0 / 2e-3)


def test_a_small_amount_is_taken_from_one_query_alone() -> None:
    drops = roadmap([split(IMPORTANT, EXPENSIVE)]).drops(0.2)
    assert drops.keep == pytest.approx({"gate": 1.0, "important": 1.0, "expensive": 0.75})
    assert drops.drop == pytest.approx({"gate": 0.0, "important": 0.0, "expensive": 0.25})
    assert drops.loss_per_s == pytest.approx(12.5)


def test_what_one_query_cannot_give_is_dropped_at_the_gate() -> None:
    drops = roadmap([split(IMPORTANT, EXPENSIVE)]).drops(0.9)
    assert drops.keep == pytest.approx({"gate": 0.5, "important": 0.5, "expensive": 0.0})
    assert drops.drop == pytest.approx({"gate": 0.5, "important": 0.0, "expensive": 1.0})


def test_more_than_there_is_drops_everything_and_says_how_much_it_was() -> None:
    drops = roadmap([split(IMPORTANT, EXPENSIVE)]).drops(7.0)
    assert set(drops.keep.values()) == {0.0}
    assert drops.shed_load == pytest.approx(1.0)


def test_a_costly_shared_part_makes_the_gate_the_only_place() -> None:
    steps = roadmap([split(IMPORTANT, EXPENSIVE, shared_cost_s=1.0)]).steps
    assert [set(step.parts) for step in steps] == [{"gate", "important", "expensive"}]


def test_queries_that_are_alike_are_dropped_together_at_the_gate() -> None:
    twins = (Part(name="a", cost_s=1e-3, weight=1.0), Part(name="b", cost_s=1e-3, weight=1.0))
    assert [step.location for step in roadmap([split(*twins)]).steps] == ["gate"]


def test_streams_compete_by_what_their_tuples_are_worth() -> None:
    cheap = Inflow(rate_per_s=10.0, part=Part(name="cheap", cost_s=0.01, weight=1.0))
    dear = Inflow(rate_per_s=10.0, part=Part(name="dear", cost_s=0.05, weight=1.0))
    drops = roadmap([cheap, dear]).drops(0.25)
    assert drops.keep == pytest.approx({"cheap": 1.0, "dear": 0.5})


def test_dropping_nothing_keeps_everything() -> None:
    drops = roadmap([split(IMPORTANT, EXPENSIVE)]).drops(0.0)
    assert set(drops.keep.values()) == {1.0}
    assert drops.loss_per_s == 0.0


def test_uniform_dropping_takes_the_same_fraction_of_every_query() -> None:
    drops = roadmap([split(IMPORTANT, EXPENSIVE)]).uniform(0.2)
    assert set(drops.keep.values()) == {0.8}
    assert drops.loss_per_s == pytest.approx(0.2 * 1050.0)


def test_a_silent_stream_changes_nothing() -> None:
    silent = Inflow(rate_per_s=0.0, part=split(IMPORTANT, EXPENSIVE).part)
    drops = roadmap([silent]).drops(1.0)
    assert drops.shed_load == 0.0


@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf")])
def test_costs_that_cannot_be_are_refused(value: float) -> None:
    with pytest.raises(SpillwayError, match="cost_s of 'x'"):
        Part(name="x", cost_s=value)


def test_a_name_used_twice_is_refused() -> None:
    with pytest.raises(SpillwayError, match="'important'"):
        roadmap([split(IMPORTANT, IMPORTANT)])
