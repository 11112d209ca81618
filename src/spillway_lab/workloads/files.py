"""Replay: arrival times from a file. The only workload that reads anything."""

from pathlib import Path

import numpy as np

from spillway.errors import SpillwayError, require
from spillway.workloads.curves import Seconds

UNITS_S = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


def replay(
    path: Path, *, column: str = "time_s", unit: str = "s", compression: float = 1.0
) -> Seconds:
    """Arrival times of a CSV (also .gz), Parquet or .npy file, from zero, in seconds.

    `compression` k makes the file run k times as fast: k times the rate in 1/k of the time.
    """
    require(compression > 0.0, "time compression", compression, "above zero; 2 doubles the rate")
    if unit not in UNITS_S:
        raise SpillwayError(f"time unit is '{unit}': it must be {', '.join(UNITS_S)}")
    times = _read(path, column)
    if len(times) == 0:
        raise SpillwayError(f"{path} is empty: a workload needs at least one arrival time")
    broken = ~np.isfinite(times)
    if broken.any():
        raise SpillwayError(
            f"{path} has no time in row {int(np.argmax(broken))}: it must be finite"
        )
    back = np.flatnonzero(np.diff(times) < 0.0)
    if len(back):
        row = int(back[0]) + 1
        raise SpillwayError(
            f"{path} has decreasing times: row {row} is {times[row]:.10g} after"
            f" {times[row - 1]:.10g}; sort the file by arrival time"
        )
    arrivals: Seconds = (times - times[0]) * (UNITS_S[unit] / compression)
    return arrivals


def _read(path: Path, column: str) -> Seconds:
    if not path.is_file():
        raise SpillwayError(f"trace file {path} does not exist")
    try:
        if path.suffix == ".npy":
            return np.asarray(np.load(path), dtype=np.float64).ravel()
        if path.suffix == ".parquet":
            return _parquet_column(path, column)
        if path.suffix == ".csv" or path.name.endswith(".csv.gz"):
            return _csv_column(path, column)
    except (ValueError, OSError, EOFError) as error:
        raise SpillwayError(f"{path} cannot be read: {str(error).splitlines()[0]}") from error
    raise SpillwayError(f"{path} is of an unknown kind: it must be .csv, .csv.gz, .parquet or .npy")


def _parquet_column(path: Path, column: str) -> Seconds:
    import pyarrow.parquet as pq

    _require_column(path, column, pq.read_schema(path).names)
    values: Seconds = pq.read_table(path, columns=[column])[column].to_numpy().astype(np.float64)
    return values


def _csv_column(path: Path, column: str) -> Seconds:
    import pandas as pd

    try:
        names = list(pd.read_csv(path, nrows=0).columns)
    except pd.errors.EmptyDataError:
        return np.empty(0)
    _require_column(path, column, names)
    return pd.read_csv(path, usecols=[column])[column].to_numpy(dtype=np.float64)


def _require_column(path: Path, column: str, names: list[str]) -> None:
    if column not in names:
        raise SpillwayError(f"{path} has no column '{column}': it has {', '.join(names)}")
