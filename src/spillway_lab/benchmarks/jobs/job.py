"""What a typical job is: its streams, its plain DataFrame code, and what must come out of it.

Every query hands out rows of three whole numbers, (a, b, n): (a, b) names a result, n is its value.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from pyspark.sql import DataFrame

from spillway_lab.benchmarks.jobs.records import KEYS, Ids, Records

Results = dict[tuple[int, int], int]


@dataclass(frozen=True, kw_only=True)
class Expected:
    """By brute force from what was produced; results with a later `a` are not judged."""

    rows: Results
    until: int | None = None


@dataclass(frozen=True, kw_only=True)
class Job:
    name: str
    title: str
    streams: tuple[Records, ...]
    queries: Callable[[Sequence[DataFrame]], Sequence[DataFrame]]
    expected: Callable[[Sequence[Records], int], Expected]  # of each query; begin in microseconds
    mode: str = "append"
    settings: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)  # of the gate
    trigger_s: float | None = None
    names_trigger: bool = False  # and its checkpoint, to the gate
    stops: tuple[float, float] | None = None  # at which second, for how long


@dataclass(frozen=True, kw_only=True)
class Judged:
    wrong: int = 0  # missing, unexpected, or of another value
    doubled: int = 0


def judge(found: Sequence[tuple[int, int, int]], expected: Expected) -> Judged:
    until = expected.until
    seen = [row for row in found if until is None or row[0] <= until]
    values = {(a, b): n for a, b, n in seen}
    differing = {name for name, n in expected.rows.items() if values.get(name) != n}
    unexpected = values.keys() - expected.rows.keys()
    return Judged(wrong=len(differing) + len(unexpected), doubled=len(seen) - len(values))


def counted(a: Ids, b: Ids) -> Results:
    """How often each pair occurs."""
    pairs, counts = np.unique(np.stack([a, b]), axis=1, return_counts=True)
    return {(int(x), int(y)): int(n) for x, y, n in zip(*pairs, counts, strict=True)}


def of_ids(ids: Ids) -> Results:
    """One result for each id, whose value is its key."""
    return {(i, 0): i % KEYS for i in ids.tolist()}


def as_rows(frame: DataFrame, a: Any, b: Any, n: Any) -> DataFrame:
    return frame.select(
        a.cast("long").alias("a"), b.cast("long").alias("b"), n.cast("long").alias("n")
    )
