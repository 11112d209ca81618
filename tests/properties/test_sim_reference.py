"""The engine gives what the slow, obvious reference gives, tuple by tuple."""

import numpy as np
import pytest

from random_networks import Case, random_case
from reference_sim import ReferenceSim
from spillway.model import Decision, KeepFraction, Target
from spillway_lab.engine.engine import NetworkPlant
from spillway_lab.engine.steps import Disturbances


def _plant(case: Case) -> NetworkPlant:
    return NetworkPlant(
        case.network,
        case.arrivals,
        target=Target(delay_s=0.5),
        engine=case.engine,
        delay="oldest-input" if case.oldest else "output",
        disturbances=Disturbances(cost_factor=case.cost_trace, background=case.background),
        seed=7,
    )


def _run(case: Case) -> NetworkPlant:
    plant = _plant(case)
    plant.begin(0.25, {})
    for k in range(1, 12):
        plant.advance(0.25 * k)
        list(plant.observe())
        fraction = case.decisions[k - 1][1]
        plant.actuate("default", Decision(action=KeepFraction(fraction=fraction), reason="test"))
    plant.advance(case.duration_s)
    list(plant.observe())
    return plant


def _reference(case: Case) -> ReferenceSim:
    return ReferenceSim(
        case.network,
        case.arrivals,
        case.engine,
        decisions=case.decisions,
        oldest=case.oldest,
        cost_trace=case.cost_trace,
        background=case.background,
        seed=7,
    )


@pytest.mark.parametrize("seed", range(40))
def test_every_tuple_leaves_when_the_reference_says(seed: int) -> None:
    case = random_case(seed)
    plant, slow = _run(case), _reference(case)
    reference = slow.until(case.duration_s)
    state = plant.classes["default"]
    assert plant.executions == reference.executions
    assert state.finished == len(reference.departed_s)
    assert state.outputs == len(reference.outputs)
    assert plant.totals("default").shed_tuples == slow.shed_until(case.duration_s)
    expected = np.array(list(reference.departed_s.values()))
    found = plant.log.departed_s[list(reference.departed_s)]
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-9)
    delays = [time_s - plant.log.arrived_s[i] for i, time_s in reference.outputs]
    assert state.delays.total_s == pytest.approx(sum(delays))
    assert state.delays.max_delay_s == pytest.approx(max(delays, default=0.0))
