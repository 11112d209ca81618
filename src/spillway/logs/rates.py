"""How fast a synthetic log grows: a constant, a profile of steps, or a named workload."""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from spillway.errors import SpillwayError, require, shown, unknown_name
from spillway.logs.timetable import (
    Timetable,
    known_start_us,
    timetable_of_arrivals,
    timetable_of_rates,
)
from spillway.options import Option, read

_MOST_PER_S = 1e8
_WORKLOAD_KNOTS = 1_000_000  # arrivals drawn for one round; higher rates spread copies between them


def known_workload(name: str) -> None:
    """Raises where there is none of this name."""
    from spillway.workloads.named import WORKLOADS  # brings SciPy: only who asks for it pays

    if name not in WORKLOADS:
        raise unknown_name("workload", name, WORKLOADS)


def timetable_of_options(given: Mapping[str, Any]) -> Timetable:
    """From the options of a generated log, as read."""
    start_us = known_start_us(given["start"])
    if given.get("workload") is None:
        times_s, rates = parse_rates(given["rate"])
        return timetable_of_rates(start_us, times_s, rates, given["partitions"])
    rate_per_s = read([_MEAN_RATE], given)["rate"]
    table = _workload(given["workload"], start_us, rate_per_s, given["duration"], given["seed"])
    return replace(table, strides=given["partitions"])


@lru_cache(maxsize=4)
def _workload(
    name: str, start_us: int, rate_per_s: float, duration_s: float, seed: int
) -> Timetable:
    """The workload's own arrivals; above a million of them, each stands for several tuples that
    are spread evenly since the one before, so that any rate has the workload's shape."""
    from spillway.workloads.named import make

    drawn_per_s = min(rate_per_s, _WORKLOAD_KNOTS / duration_s)
    arrivals_s = make(name, seed=seed, duration_s=duration_s, rate_per_s=drawn_per_s)
    require(
        len(arrivals_s) > 0, f"arrivals of workload '{name}'", 0, "some: raise rate or duration"
    )
    return timetable_of_arrivals(start_us, arrivals_s, duration_s, rate_per_s / drawn_per_s)


def parse_rates(text: str) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """'1000' or '0:1000,30:5000': from second 30 on 5,000 tuples per second, for ever."""
    pairs = [part.split(":") for part in text.split(",")] if ":" in text else [["0", text]]
    try:
        points = np.array([(float(at), float(rate)) for at, rate in pairs])
        if not np.isfinite(points).all():
            raise ValueError
    except ValueError:
        raise SpillwayError(
            f"option 'rate' is '{shown(text)}': it must be tuples per second or a profile"
            " 'second:rate,...', for example 0:1000,30:5000"
        ) from None
    times_s, rates = points[:, 0], points[:, 1]
    require(times_s[0] == 0.0, "first second of option 'rate'", float(times_s[0]), "0")
    require(bool((np.diff(times_s) > 0).all()), "option 'rate'", text, "in order of time")
    in_range = bool((rates >= 0.0).all() and (rates <= _MOST_PER_S).all())
    require(in_range, "option 'rate'", text, "0 to 1e8 tuples per second")
    require(bool(rates.any()), "option 'rate'", text, "above zero somewhere")
    return times_s, rates


RATE = Option(
    "rate",
    "text",
    "tuples per second, or a profile `second:rate,...`",
    default=1000,
    check=parse_rates,
)
_MEAN_RATE = replace(RATE, kind="number", above=0.0, at_most=_MOST_PER_S, check=None)
