"""Output with migration equals output without, tuple for tuple.

A few hundred cases here; `spillway reproduce unimico-exact` runs 10,000.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spillway.cluster.migration.handoff import in_order, resume, run
from spillway_lab.workloads.migration_cases import SHAPES, judge, random_case


@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_migration_changes_no_tuple_of_the_output(shape: str, seed: int) -> None:
    case = random_case(np.random.default_rng(seed), shape)
    verdict = judge(case)
    assert verdict.exact
    if case.suppress_at == "destination" and _is_ordered_kind(shape, case):
        assert verdict.ordered


def _is_ordered_kind(shape: str, case) -> bool:  # type: ignore[no-untyped-def]
    """Count-based joins let one input run ahead: their two halves interleave."""
    return not (shape == "join" and case.query.operators[0].window.basis == "tuples")


def test_the_comparison_notices_a_plan_that_starts_one_window_late() -> None:
    noticed = 0
    rng = np.random.default_rng(11)
    for _ in range(40):
        case = random_case(rng, "aggregate")
        verdict = judge(case)
        plan = verdict.migrated.plan
        if plan is None or not verdict.both_sides:
            continue
        window = case.query.operators[0].window
        late = plan.activations[0]
        if window.basis == "time":
            late = replace(late, opens_at=late.opens_at + window.slide)
        else:
            late = replace(late, discard=(late.discard[0] + window.slide,))
        received = resume(
            case.query, case.stream, case.connected_at, replace(plan, activations=(late,))
        )
        wrong = in_order((*verdict.migrated.origin, *received))
        noticed += wrong != in_order(run(case.query, case.stream))
    assert noticed > 20
