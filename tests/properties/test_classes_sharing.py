"""Claim 1 of the thesis, and the class scheduler under random work."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from spillway.classes.scheduler import ClassScheduler
from spillway.load.laws import make
from spillway.model import Decision, Measurement, Target
from spillway_lab.engine.classes import ClassPlant, ServiceClass
from spillway_lab.engine.network import Network, Operator, Stream
from spillway_lab.engine.run import Run, simulate_classes
from spillway_lab.engine.settings import Engine

DURATION_S = 20.0
PERIOD_S = 0.15


class LongestQueue:
    """A journal that watches the queue behind the shared segment."""

    def __init__(self, plant: ClassPlant) -> None:
        self._node = plant.nodes[plant.network.index["low"]]
        self.tuples = 0

    def record(self, measurement: Measurement, decision: Decision) -> None:
        self.tuples = max(self.tuples, len(self._node.queue))


def shared_run(
    law: str, low_cost_s: float, rate_per_s: float, target_s: float, queue_tuples: int
) -> tuple[dict[str, Run], int]:
    """High feeds low through a shared operator; low cannot keep up."""
    network = Network(
        operators=(
            Operator(name="shared", cost_s=1e-4, class_name="high"),
            Operator(name="high", cost_s=1e-4, inputs=("shared",), class_name="high"),
            Operator(name="low", cost_s=low_cost_s, inputs=("shared",), class_name="low"),
        ),
        streams=(Stream(class_name="high"),),
    )
    plant = ClassPlant(
        network,
        {"input": np.arange(0.0, DURATION_S, 1.0 / rate_per_s)},
        {
            "high": ServiceClass(priority=6, target=Target(delay_s=0.3)),
            "low": ServiceClass(priority=1, target=Target(delay_s=target_s)),
        },
        engine=Engine(queue_tuples=queue_tuples, batch_tuples=1),
        delay="output",
    )
    watch = LongestQueue(plant)
    managers = {"high": make("none"), "low": make(law)}
    return simulate_classes(plant, managers, DURATION_S, PERIOD_S, journal=watch), watch.tuples


@settings(max_examples=15, deadline=None, derandomize=True)
@given(
    low_cost_s=st.floats(5e-3, 2e-2),
    overload=st.floats(1.2, 3.0),
    target_s=st.floats(0.4, 1.0),
)
def test_the_shared_queue_is_no_longer_than_the_delay_over_the_cost(
    low_cost_s: float, overload: float, target_s: float
) -> None:
    """Claim 1: S tuples that wait take S c, so with a delay of at most d there are at most d / c.

    The delay is a mean, so the claim is checked with the longest delay that was measured; the
    load manager keeps that within reach of the target.
    """
    rate_per_s = overload / low_cost_s
    runs, longest = shared_run("predictive", low_cost_s, rate_per_s, target_s, 10_000)
    low = runs["low"]
    assert longest <= low.delays.max_delay_s / low_cost_s + PERIOD_S * rate_per_s
    assert low.mean_delay_s <= 1.1 * target_s
    assert longest <= 2.0 * target_s / low_cost_s
    assert runs["high"].loss_ratio == 0.0
    assert runs["high"].mean_delay_s < 0.1


@settings(max_examples=8, deadline=None, derandomize=True)
@given(low_cost_s=st.floats(5e-3, 2e-2), overload=st.floats(1.5, 3.0))
def test_without_a_load_manager_the_low_class_fills_the_queue_and_blocks_the_high_one(
    low_cost_s: float, overload: float
) -> None:
    runs, longest = shared_run("none", low_cost_s, overload / low_cost_s, 0.5, 60)
    assert longest >= 59  # full, but for the tuple that has just been taken
    assert runs["high"].mean_delay_s > 1.0


@given(
    quotas=st.lists(st.floats(0.01, 1.0), min_size=1, max_size=5),
    costs=st.lists(st.floats(1e-6, 0.5), min_size=1, max_size=60),
    ready=st.lists(st.integers(1, 31), min_size=1, max_size=60),
)
def test_somebody_who_is_ready_always_runs(
    quotas: list[float], costs: list[float], ready: list[int]
) -> None:
    """Also where rounding leaves an account at exactly zero."""
    names = [str(i) for i in range(len(quotas))]
    scheduler = ClassScheduler(dict(zip(names, quotas, strict=True)), round_s=0.02)
    for cost_s, bits in zip(costs, ready, strict=False):
        able = [name for i, name in enumerate(names) if bits >> i & 1]
        chosen = scheduler.next(able)
        assert (chosen in able) if able else chosen is None
        if chosen is not None:
            scheduler.charge(chosen, cost_s)
