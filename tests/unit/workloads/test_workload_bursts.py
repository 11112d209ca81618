import numpy as np
import pytest

from spillway.workloads import bursts


def test_web_load_has_the_hurst_parameter_it_states() -> None:
    found = [bursts.hurst(bursts.web(seed, 3000.0, 318.0)) for seed in (1, 2, 3)]
    assert np.mean(found) == pytest.approx(bursts.WEB_HURST, abs=0.05)


@pytest.mark.parametrize("scale_s", [0.1, 1.0])
def test_web_load_has_the_dispersion_it_states(scale_s: float) -> None:
    found = [bursts.index_of_dispersion(bursts.web(s, 3000.0, 318.0), scale_s) for s in (1, 2, 3)]
    assert np.mean(found) == pytest.approx(bursts.web_dispersion(318.0, scale_s), rel=0.15)


def test_a_poisson_stream_has_neither_memory_nor_excess_dispersion() -> None:
    times_s = np.sort(np.random.default_rng(1).random(300_000) * 1000.0)
    assert bursts.hurst(times_s) == pytest.approx(0.5, abs=0.05)
    assert bursts.index_of_dispersion(times_s, 1.0) == pytest.approx(1.0, abs=0.2)


def test_a_smaller_bias_factor_is_burstier_at_the_same_mean_rate() -> None:
    spreads = []
    for bias in (0.1, 0.25, 0.5, 1.0, 1.25, 1.5):
        times_s = bursts.pareto(1, 400.0, 200.0, bias)
        per_s = np.histogram(times_s, bins=400, range=(0.0, 400.0))[0]
        assert per_s.mean() == pytest.approx(200.0, rel=0.01)
        assert per_s.max() <= bursts.PARETO_PEAK * 200.0 + 1
        spreads.append(per_s.std())
    assert spreads == sorted(spreads, reverse=True)
