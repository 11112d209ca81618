"""Market days: ticks per minute and sector, recorded or generated with the recorded day's shape.

The recording is one day of the Frankfurt exchange in minute bars (../shared/traces, or the folder
named by SPILLWAY_SHARED). Symbols are dealt out to 12 sectors by a checksum of their name. A day
of 510 minutes is played in one hour.
"""

from functools import cache
from pathlib import Path
from zlib import crc32

import numpy as np
import numpy.typing as npt

from spillway.workloads.bursts import fractional_correlation, gaussian_with
from spillway_lab.experiments.traces import shared_folder
from spillway_lab.simulated_cluster.workload import ClusterWorkload, sector_queries

SECTORS = 12
MINUTES = 510
SYMBOLS = 1357
TICKS_A_DAY = 395_000.0
BARS = "xetra_20170728_minute_bars.csv.gz"

QUERIES = 35
DURATION_S = 3600.0
STEP_S = 1.0
MEAN_CORES = 2.5  # of up to 10 hosts with one core: the paper ends up with about five
TICK_FACTOR = 200.0  # the recorded 110 ticks/s of the played day become 22,000/s

Floats = npt.NDArray[np.float64]

NERVOUSNESS = {"day1": 1.0, "day2": 1.3, "day3": 0.8}  # spread of generated days' bursts
DAYS = tuple(NERVOUSNESS)


def market_workload(day: str, seed: int, mean_cores: float = MEAN_CORES) -> ClusterWorkload:
    """35 queries of random sector and window on one day; the seed draws queries and ticks."""
    rng = np.random.default_rng((seed, DAYS.index(day)))
    bars = day_bars(day, rng)
    steps = int(DURATION_S / STEP_S)
    minute = np.arange(steps) * len(bars) // steps
    ticks: Floats = rng.poisson(bars[minute] * (len(bars) / steps)).astype(np.float64)
    return sector_queries(
        ticks * (TICK_FACTOR / STEP_S),
        step_s=STEP_S,
        queries=QUERIES,
        mean_cores=mean_cores,
        rng=rng,
    )


def day_bars(day: str, rng: np.random.Generator) -> Floats:
    """(minutes, sectors): ticks. The first day is the recorded one where there is a recording."""
    path = recording()
    if day == "day1" and path is not None:
        return recorded_bars(path)
    return generated_bars(rng, NERVOUSNESS[day])


def recording() -> Path | None:
    folder = shared_folder()
    path = None if folder is None else folder / "traces" / BARS
    return path if path is not None and path.is_file() else None


@cache
def recorded_bars(path: Path) -> Floats:
    import pandas as pd

    bars = pd.read_csv(path, usecols=["time", "symbol", "trades"])
    bars["sector"] = [crc32(symbol.encode()) % SECTORS for symbol in bars["symbol"]]
    table = bars.pivot_table(index="time", columns="sector", values="trades", aggfunc="sum")
    counted: Floats = table.fillna(0.0).to_numpy(dtype=np.float64)[:MINUTES]
    return counted


def generated_bars(rng: np.random.Generator, nervousness: float = 1.0) -> Floats:
    """A day like the recorded one: busy opening, quiet noon, busy afternoon; log-normal bursts
    with long memory (H = 0.75), in part common to all sectors and in part their own; symbols'
    popularity falls as rank^-0.98."""
    minute = np.arange(MINUTES)
    course = 0.7 + 1.4 * np.exp(-minute / 30.0) + 0.6 / (1.0 + np.exp((370 - minute) / 25.0))
    common = _noise(rng, 0.36 * nervousness)
    own = np.column_stack([_noise(rng, 0.33 * nervousness) for _ in range(SECTORS)])
    popularity = np.arange(1, SYMBOLS + 1) ** -0.98
    weights = np.bincount(rng.integers(SECTORS, size=SYMBOLS), popularity, minlength=SECTORS)
    shape: Floats = (course * np.exp(common))[:, None] * np.exp(own) * weights
    bars: Floats = rng.poisson(shape * (TICKS_A_DAY / shape.sum())).astype(np.float64)
    return bars


def _noise(rng: np.random.Generator, spread: float) -> Floats:
    noise: Floats = gaussian_with(spread**2 * fractional_correlation(MINUTES, 0.75), rng)
    return noise[:MINUTES]
