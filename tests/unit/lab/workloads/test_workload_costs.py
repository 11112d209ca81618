import numpy as np
import pytest

from spillway_lab.workloads import costs


def test_the_cost_trace_has_peak_jump_and_terrace_where_the_paper_has_them() -> None:
    curve = costs.ctrl_cost_curve()
    before, after = curve.at(np.array([124.9, 125.1]))
    assert after > 2.0 * before
    small, terrace, dropped = curve.at(np.array([50.0, 300.0, 350.1]))
    assert 1.0 < small < after
    assert terrace > 1.5
    assert dropped == 1.0


def test_the_noise_of_the_cost_trace_is_seeded_and_has_mean_one() -> None:
    noise = np.concatenate([costs.ctrl_cost_factors(seed)[:40] for seed in range(50)])
    assert noise.mean() == pytest.approx(1.0, abs=0.03)
    assert np.array_equal(costs.ctrl_cost_factors(3), costs.ctrl_cost_factors(3))
