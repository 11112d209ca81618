"""The roadmap's greedy order is the optimum of the linear programme, for every amount of load."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from spillway.gate.roadmap import Inflow, Part, roadmap

SIZES = st.floats(0.0, 10.0).map(lambda x: round(x, 3))


@st.composite
def parts(draw: st.DrawFn, depth: int = 3, prefix: str = "p") -> Part:
    below = draw(st.integers(0, 3)) if depth else 0
    return Part(
        name=prefix,
        cost_s=draw(SIZES),
        selectivity=draw(st.floats(0.1, 2.0).map(lambda x: round(x, 3))),
        weight=draw(SIZES),
        readers=tuple(draw(parts(depth=depth - 1, prefix=f"{prefix}.{i}")) for i in range(below)),
    )


@st.composite
def networks(draw: st.DrawFn) -> list[Inflow]:
    streams = draw(st.integers(1, 3))
    return [
        Inflow(rate_per_s=draw(st.floats(0.1, 10.0)), part=draw(parts(prefix=f"s{i}")))
        for i in range(streams)
    ]


def least_loss_per_s(inflows: list[Inflow], shed_load: float) -> float:
    """The programme as it is written down: y is kept of each part's input, never growing below."""
    gains: list[float] = []
    losses: list[float] = []
    feeds: list[tuple[int, int]] = []

    def add(part: Part, rate_per_s: float, fed_by: int | None) -> None:
        own = len(gains)
        gains.append(rate_per_s * part.cost_s)
        losses.append(rate_per_s * part.selectivity * part.weight)
        if fed_by is not None:
            feeds.append((fed_by, own))
        for reader in part.readers:
            add(reader, rate_per_s * part.selectivity, own)

    for inflow in inflows:
        add(inflow.part, inflow.rate_per_s, None)
    size = len(gains)
    order = np.zeros((len(feeds), size))
    for row, (above, below) in enumerate(feeds):
        order[row, below], order[row, above] = 1.0, -1.0
    limits = np.vstack([gains, order])
    bounds = np.append(sum(gains) - shed_load, np.zeros(len(feeds)))
    found = linprog(-np.array(losses), A_ub=limits, b_ub=bounds, bounds=[(0.0, 1.0)] * size)
    assert found.success, found.message
    assert found.fun is not None
    return float(sum(losses) + found.fun)


@given(inflows=networks(), share=st.floats(0.0, 1.0))
def test_no_set_of_drops_loses_less_for_the_same_load(inflows: list[Inflow], share: float) -> None:
    plan = roadmap(inflows)
    shed_load = share * plan.load
    drops = plan.drops(shed_load)
    scale = 1.0 + plan.worth_per_s
    assert abs(drops.loss_per_s - least_loss_per_s(inflows, shed_load)) <= 1e-6 * scale


@given(inflows=networks(), share=st.floats(0.0, 1.0))
def test_a_plan_sheds_what_was_asked_and_never_loses_more_than_uniform_dropping(
    inflows: list[Inflow], share: float
) -> None:
    plan = roadmap(inflows)
    shed_load = share * plan.load
    drops, uniform = plan.drops(shed_load), plan.uniform(shed_load)
    assert abs(drops.shed_load - shed_load) <= 1e-9 * (1.0 + plan.load)
    assert drops.loss_per_s <= uniform.loss_per_s + 1e-9 * (1.0 + plan.worth_per_s)


@given(inflows=networks(), share=st.floats(0.0, 1.0))
def test_nothing_is_kept_below_a_place_that_dropped_it(inflows: list[Inflow], share: float) -> None:
    plan = roadmap(inflows)
    drops = plan.drops(share * plan.load)
    for name, fed_by in plan.above.items():
        assert fed_by is None or drops.keep[name] <= drops.keep[fed_by] + 1e-12
        assert -1e-12 <= drops.drop[name] <= 1.0


@given(inflows=networks())
def test_ratios_ascend_along_the_roadmap(inflows: list[Inflow]) -> None:
    ratios = [step.ratio for step in roadmap(inflows).steps]
    assert ratios == sorted(ratios)
