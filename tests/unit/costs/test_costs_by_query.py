"""Costs of the queries of a fused plan, told apart by what each of them saw."""

import numpy as np
import pytest

from spillway.costs.by_query import QueryCosts, SeenBatch, fit_query_costs
from spillway.errors import SpillwayError
from spillway.gate.roadmap import load_of
from spillway.gate.split import Split

TRUE = QueryCosts(fixed_s=0.2, shared_s=1e-6, query_s={"alerts": 1e-6, "scores": 8e-6})


def batch(kept: int, alerts: int, scores: int, factor: float = 1.0) -> SeenBatch:
    seen = {"alerts": alerts, "scores": scores}
    own_s = sum(TRUE.query_s[name] * count for name, count in seen.items())
    return SeenBatch(
        duration_s=factor * (TRUE.fixed_s + TRUE.shared_s * kept + own_s),
        kept_tuples=kept,
        seen_tuples=seen,
    )


def design(factors: np.ndarray) -> list[SeenBatch]:
    sizes = np.tile([50_000, 100_000, 200_000], factors.size // 9)
    cases = [case for n in sizes for case in ((n, n, 0), (n, 0, n), (n, n, n))]
    return [
        batch(int(kept), int(alerts), int(scores), factor)
        for (kept, alerts, scores), factor in zip(cases, factors, strict=True)
    ]


def test_costs_come_back_exactly_without_noise() -> None:
    found = fit_query_costs(design(np.ones(9)))
    assert found.fixed_s == pytest.approx(TRUE.fixed_s)
    assert found.shared_s == pytest.approx(TRUE.shared_s)
    assert found.query_s == pytest.approx(TRUE.query_s)


def test_costs_come_back_through_five_percent_of_noise() -> None:
    rng = np.random.default_rng(7)
    found = fit_query_costs(design(1.0 + 0.05 * rng.standard_normal(180)))
    assert found.query_s["scores"] == pytest.approx(8e-6, rel=0.1)
    assert found.fixed_s == pytest.approx(0.2, rel=0.15)


def test_no_cost_is_below_zero() -> None:
    rng = np.random.default_rng(3)
    found = fit_query_costs(design(1.0 + 0.5 * rng.random(9)))
    assert min(found.fixed_s, found.shared_s, *found.query_s.values()) >= 0.0


def test_queries_that_always_see_the_same_rows_cannot_be_told_apart() -> None:
    alike = [batch(n, n, n) for n in (1000, 2000, 3000, 4000)]
    with pytest.raises(SpillwayError, match="cannot tell the costs of alerts, scores apart"):
        fit_query_costs(alike)


def test_the_network_of_the_costs_has_their_load() -> None:
    inflow = TRUE.inflow(1000.0, {"alerts": 10.0, "scores": 1.0})
    assert load_of([inflow]) == pytest.approx(1000.0 * 10e-6)
    assert inflow.part.worth_coefficient == pytest.approx(11.0)


def test_measured_costs_become_the_gates_option() -> None:
    split = Split.parse(TRUE.split({"alerts": 10.0, "scores": 1.0}).text)
    assert (split.shared_cost, split.costs) == (TRUE.shared_s, TRUE.query_s)
