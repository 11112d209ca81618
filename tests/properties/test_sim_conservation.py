"""Tuples are conserved, to the tuple, at every instant, whatever the decisions are."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from random_networks import random_case
from spillway.gate.rules import Policy
from spillway.hosts.virtual.machine import BatchCost
from spillway.load.laws import LAWS, make
from spillway.model import Action, Decision, KeepFraction, KeepOfBacklog, Target
from spillway_lab.engine.engine import NetworkPlant
from spillway_lab.engine.microbatch import MicroBatchPlant, Query
from spillway_lab.engine.run import SimulatedPlant

ACTIONS = st.one_of(
    st.floats(0.0, 1.5).map(lambda f: KeepFraction(fraction=f)),
    st.integers(0, 500).map(lambda n: KeepOfBacklog(tuples=n)),
)
STEPS = st.lists(st.tuples(st.floats(0.001, 0.4), ACTIONS), min_size=1, max_size=12)


def _walk(plant: SimulatedPlant, steps: list[tuple[float, Action]]) -> None:
    time_s, before = 0.0, {name: plant.totals(name) for name in plant.classes}
    for step_s, action in steps:
        time_s += step_s
        plant.advance(time_s)
        _decide(plant, action)
        for name in plant.classes:
            totals = plant.totals(name)
            assert totals.balanced, totals
            assert totals.offered_tuples >= before[name].offered_tuples
            assert totals.shed_tuples >= before[name].shed_tuples
            assert totals.admitted_tuples >= before[name].admitted_tuples
            assert totals.completed_tuples >= before[name].completed_tuples
            before[name] = totals


def _decide(plant: SimulatedPlant, action: Action) -> None:
    for measurement in plant.observe():
        assert measurement.offered_tuples >= 0
        assert measurement.queued_load_s >= 0.0
        plant.act(measurement, Decision(action=action, reason="test"))


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000), steps=STEPS, buffered=st.booleans())
def test_networks_conserve_tuples(
    seed: int, steps: list[tuple[float, Action]], buffered: bool
) -> None:
    case = random_case(seed, class_names=("default", "other"))
    plant = NetworkPlant(
        case.network, case.arrivals, target=Target(delay_s=0.5), engine=case.engine, seed=seed
    )
    plant.begin(0.25, {"default": make("dissp" if buffered else "none"), "other": make("none")})
    _walk(plant, steps)
    arrived = sum((times <= sum(s for s, _ in steps)).sum() for times in case.arrivals.values())
    assert plant.totals("default").offered_tuples == arrived


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    steps=STEPS,
    cores=st.integers(1, 3),
    law=st.sampled_from(sorted(LAWS)),
    policy=st.sampled_from(["uniform", "fresh"]),
)
def test_micro_batches_conserve_tuples(
    seed: int, steps: list[tuple[float, Action]], cores: int, law: str, policy: Policy
) -> None:
    rng = np.random.default_rng(seed)
    cost = BatchCost(fixed_s=0.05, kept_s=1e-3, noise=0.3, pause_s=0.1, pauses_per_s=1.0)
    queries = [
        Query(name=f"q{i}", class_name=f"c{i % 2}", cost=cost, policy=policy) for i in range(3)
    ]
    arrivals = {q.name: np.sort(rng.uniform(0.0, 3.0, rng.integers(0, 3000))) for q in queries}
    plant = MicroBatchPlant(queries, arrivals, target=Target(delay_s=0.5), cores=cores, seed=seed)
    plant.begin(0.25, {"c0": make(law), "c1": make("predictive")})
    _walk(plant, steps)
