"""Bursty loads: Pareto levels with a bias factor, and self-similar web-like load."""

import numpy as np

from spillway.errors import require
from spillway.workloads.curves import Seconds, arrivals_of, levels

PARETO_PEAK = 4.0  # no level above four times the mean
PARETO_MEAN_HOLD_S = 5.0  # ctrl paper: most bursts last longer than 4 to 5 s

WEB_HURST = 0.83  # of the Bellcore Ethernet trace BC-pAug89
WEB_BIN_S = 0.1
WEB_CV2 = 0.283  # squared coefficient of variation of the rate at 0.1 s


def pareto(seed: int, duration_s: float, rate_per_s: float, bias: float = 1.0) -> Seconds:
    """Rates that follow a Pareto law of shape `bias`, held for about 5 s each.

    Level = min(x_m * U^(-1/bias), 4 * mean), with x_m solved so that the mean is `rate_per_s`.
    The smaller the bias factor, the burstier (ctrl paper fig. 13, 17): at 1.5 the rate mostly
    stays a little below its mean, at 0.1 it is nearly nothing or the peak. The paper gives neither
    peak nor hold time; a Pareto law with a shape of 1 or less has no mean without a peak.
    """
    require(bias > 0.0, "bias factor", bias, "above zero (the paper uses 0.1 to 1.5)")
    rng = np.random.default_rng(seed)
    holds = 1 + rng.poisson(PARETO_MEAN_HOLD_S - 1.0, int(np.ceil(duration_s)))
    drawn = rng.random(len(holds)) ** (-1.0 / bias)
    per_second = np.repeat(drawn, holds)[: int(np.ceil(duration_s))]
    rates = np.minimum(_scale(per_second) * per_second, PARETO_PEAK) * rate_per_s
    return arrivals_of(levels(rates, 1.0), duration_s, seed)


def _scale(per_second: Seconds) -> float:
    """With which their mean, cut at the peak, is 1: solved on this very sample, so that every seed
    offers the same total load."""
    low, high = -200.0, 2.0
    for _ in range(100):  # down to the last bit
        middle = 0.5 * (low + high)
        too_small = np.minimum(np.exp(middle) * per_second, PARETO_PEAK).mean() < 1.0
        low, high = (middle, high) if too_small else (low, middle)
    return float(np.exp(high))


def web(seed: int, duration_s: float, rate_per_s: float) -> Seconds:
    """Self-similar load like that of a busy link: a log-normal rate with long memory.

    The rate of a bin of 0.1 s has the mean `rate_per_s`, a coefficient of variation of 0.53 and
    the correlation of fractional Gaussian noise with Hurst parameter H = 0.83; inside a bin
    arrivals are Poisson. The index of dispersion of the counts is `web_dispersion(rate, scale)`:
    10, 42, 190 at 0.1, 1, 10 s and 318 tuples/s. The Bellcore trace has H 0.83 and 10, 41, 201.
    """
    require(rate_per_s > 0.0, "rate of a workload", rate_per_s, "above zero")
    rng = np.random.default_rng(seed)
    bins = int(np.ceil(duration_s / WEB_BIN_S))
    log_rates = gaussian_with(_log_covariance(bins), rng)
    rates = np.exp(log_rates)
    counts = rng.poisson(rates * (rate_per_s * WEB_BIN_S / rates.mean()))
    starts_s = np.repeat(np.arange(bins) * WEB_BIN_S, counts)
    times_s = np.sort(starts_s + rng.random(len(starts_s)) * WEB_BIN_S)
    return times_s[times_s < duration_s]


def web_dispersion(rate_per_s: float, scale_s: float) -> float:
    """Variance over mean of the counts in windows of `scale_s`: 1 + mean * CV^2."""
    cv2: float = WEB_CV2 * (scale_s / WEB_BIN_S) ** (2.0 * WEB_HURST - 2.0)
    return 1.0 + rate_per_s * scale_s * cv2


def _log_covariance(count: int) -> Seconds:
    """Covariance of the log-rate that gives the rate itself the wanted one (log-normal law)."""
    wanted: Seconds = np.log1p(WEB_CV2 * fractional_correlation(count, WEB_HURST))
    return wanted


def fractional_correlation(count: int, hurst: float) -> Seconds:
    """Correlation of fractional Gaussian noise at lags 0 .. count."""
    lags = np.arange(count + 1, dtype=np.float64)
    power = 2.0 * hurst
    correlation: Seconds = (
        np.abs(lags + 1) ** power - 2 * lags**power + np.abs(lags - 1) ** power
    ) / 2.0
    return correlation


def gaussian_with(covariance: Seconds, rng: np.random.Generator) -> Seconds:
    """Gaussian noise of this covariance at lags 0 .. count (circulant embedding, Davies-Harte)."""
    ring = np.concatenate((covariance, covariance[-2:0:-1]))
    eigenvalues = np.fft.fft(ring).real.clip(min=0.0)
    white = rng.standard_normal(len(ring)) + 1j * rng.standard_normal(len(ring))
    noise: Seconds = np.fft.fft(np.sqrt(eigenvalues / len(ring)) * white).real
    return noise[: len(covariance) - 1]


def counts_in(times_s: Seconds, scale_s: float) -> Seconds:
    """Arrivals in consecutive windows of `scale_s`; the last, unfinished one is left out."""
    windows = int(times_s[-1] / scale_s) if len(times_s) else 0
    found = np.bincount((times_s / scale_s).astype(np.int64), minlength=windows)[:windows]
    return found.astype(np.float64)


def index_of_dispersion(times_s: Seconds, scale_s: float) -> float:
    """Variance over mean of the counts: 1 for a Poisson stream, more for bursts."""
    counts = counts_in(times_s, scale_s)
    return float(counts.var() / counts.mean())


def hurst(times_s: Seconds, shortest_s: float = 0.5, longest_s: float = 20.0) -> float:
    """The Hurst parameter by the variance-time plot: var of the mean rate ~ scale^(2H - 2).

    Scales that fit fewer than ten times into the trace say nothing about a variance.
    """
    longest_s = max(2.0 * shortest_s, min(longest_s, float(times_s[-1]) / 10.0))
    scales_s = np.geomspace(shortest_s, longest_s, 10)
    variances = [(counts_in(times_s, scale) / scale).var() for scale in scales_s]
    slope = np.polyfit(np.log(scales_s), np.log(variances), 1)[0]
    return float(1.0 + slope / 2.0)
