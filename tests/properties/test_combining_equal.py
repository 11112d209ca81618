"""Partial rows give what tuples give: in every window, whatever comes late, however it is cut.

Spark's windowed aggregate is small enough to be written down here: a batch drops the rows of
windows that ended before the watermark that it began with, and moves it to the latest event time
seen less the lateness. It is run over tuples, and over the partial rows of the same batches.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from spillway.gate.combination import MATCHES, Combination, Condition, Partial
from spillway.hosts.spark.worker.partial_rows import MOST_ROWS, Combiner, partial_schema

TUPLES = StructType(
    [
        StructField("at", TimestampType()),
        StructField("key", StringType()),
        StructField("x", DoubleType()),
        StructField("n", LongType()),
        StructField("_weight", DoubleType()),
    ]
)
ARROW = to_arrow_schema(TUPLES, timezone="UTC")
PARTIALS = (
    Partial(name="_count", function="count", column=None),
    Partial(name="_count_x", function="count", column="x"),
    Partial(name="_sum_n", function="sum", column="n"),
    Partial(name="_total_x", function="total", column="x"),
    Partial(name="_sum__weight", function="sum", column="_weight"),
    Partial(name="_weighted_x", function="weighted", column="x"),
    Partial(name="_min_x", function="min", column="x"),
    Partial(name="_max_x", function="max", column="x"),
    Partial(name="_max_key", function="max", column="key"),
)
Row = dict[str, Any]
Window = tuple[int, int, int]  # length, slide, start in microseconds

START = 1_000
LARGE = (1 << 63) - 1, -(1 << 63), 1 << 62


def random_rows(rng: np.random.Generator, now: int, most: int) -> list[Row]:
    """Event times about `now`, with nulls, NaN and numbers whose sum overflows now and then."""

    def one() -> Row:
        rare = rng.random(4) < (0.05, 0.1, 0.1, 0.02)
        x = math.nan if rng.random() < 0.02 else float(rng.integers(-40, 40))
        n = LARGE[rng.integers(3)] if rare[3] else int(rng.integers(-9, 9))
        return {
            "at": None if rare[0] else now + int(rng.integers(-60, 20)),
            "key": (None, "a", "ä")[rng.integers(3)],
            "x": None if rare[1] else x,
            "n": None if rare[2] else n,
            "_weight": float(2 ** rng.integers(3)),
        }

    return [one() for _ in range(rng.integers(0, most))]


def random_window(rng: np.random.Generator) -> Window:
    length = int(rng.integers(2, 40))
    slide = int(rng.integers(1, length + 1)) if rng.random() < 0.5 else length
    return length, slide, int(rng.integers(0, 8))


class Spark:
    """A windowed aggregate in mode append, with what it has put out."""

    def __init__(self, window: Window, lateness: int) -> None:
        self._window, self._lateness = window, lateness
        self.watermark = 0
        self.state: dict[tuple[int, str | None], Row] = {}
        self.out: dict[tuple[int, str | None], Row] = {}

    def batch(self, rows: Sequence[Row], merge: Any) -> None:
        late_before = self.watermark
        for row in rows:
            for start in self._starts(row["at"]):
                if start + self._window[0] > late_before:
                    state = self.state.setdefault((start, row["key"]), {})
                    merge(state, row)
        times = [row["at"] for row in rows if row["at"] is not None]
        self.watermark = max([self.watermark, *(at - self._lateness for at in times)])
        for start, key in [*self.state]:
            if start + self._window[0] <= self.watermark:
                self.out[start, key] = self.state.pop((start, key))

    def _starts(self, at: int | None) -> Iterable[int]:
        length, slide, begin = self._window
        if at is None:
            return ()
        last = (at - begin) // slide * slide + begin
        return range(last, at - length, -slide)


def add_tuple(state: Row, row: Row) -> None:
    add(state, "_count", 1, sum)
    add(state, "_count_x", int(row["x"] is not None), sum)
    add(state, "_sum_n", row["n"], sum)
    add(state, "_total_x", row["x"], sum)
    add(state, "_sum__weight", row["_weight"], sum)
    add(state, "_weighted_x", None if row["x"] is None else row["x"] * row["_weight"], sum)
    add(state, "_min_x", row["x"], least)
    add(state, "_max_x", row["x"], greatest)
    add(state, "_max_key", row["key"], max)


def add_partial(state: Row, row: Row) -> None:
    for partial in PARTIALS:
        how = {"min": least, "max": greatest}.get(partial.function, sum)
        add(state, partial.name, row[partial.name], max if partial.column == "key" else how)


def add(state: Row, name: str, value: Any, how: Any) -> None:
    known = [one for one in (state.get(name), value) if one is not None]
    state[name] = how(known) if known else None


def greatest(values: Sequence[float]) -> float:
    """NaN is greater than every number, as Spark has it."""
    return math.nan if any(map(math.isnan, values)) else max(values)


def least(values: Sequence[float]) -> float:
    numbers = [value for value in values if not math.isnan(value)]
    return min(numbers) if numbers else math.nan


def combination(window: Window, conditions: tuple[Condition, ...] = ()) -> Combination:
    length, slide, start = window
    return Combination(
        time="at",
        pane_us=math.gcd(length, slide),
        start_us=start,
        keys=("key",),
        partials=PARTIALS,
        conditions=conditions,
        rows=TUPLES.json(),
    )


def partial_rows(rows: Sequence[Row], asked: Combination) -> list[Row]:
    """As a reader makes them of a slice, which comes in several Arrow batches."""
    schema = to_arrow_schema(partial_schema(asked, heartbeats=False), timezone="UTC")
    pieces = [rows[i : i + 3] for i in range(0, len(rows), 3)]
    batches = [pa.RecordBatch.from_pylist(piece, schema=ARROW) for piece in pieces]
    made = pa.Table.from_batches(Combiner(asked, schema).partial_rows(batches), schema=schema)
    at = made.schema.get_field_index("at")
    found: list[Row] = made.set_column(at, "at", made["at"].cast(pa.int64())).to_pylist()
    return found


def same(a: Any, b: Any) -> bool:
    """NaN is NaN; the doubles here are whole numbers, whose sums do not depend on their order."""
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (math.isnan(a) and math.isnan(b))
    return bool(a == b)


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_every_window_has_the_same_result_and_closes_with_the_same_batch(seed: int) -> None:
    rng = np.random.default_rng(seed)
    window, lateness = random_window(rng), int(rng.integers(0, 40))
    asked, by_tuple, by_partial = combination(window), *(Spark(window, lateness) for _ in "ab")
    for turn in range(5):
        slices = [random_rows(rng, START + 25 * turn, 20) for _ in range(2)]
        by_tuple.batch([row for rows in slices for row in rows], add_tuple)
        by_partial.batch([p for rows in slices for p in partial_rows(rows, asked)], add_partial)
        assert by_tuple.watermark == by_partial.watermark
        assert by_tuple.state.keys() == by_partial.state.keys()
    assert by_tuple.out.keys() == by_partial.out.keys()
    for key, found in {**by_tuple.out, **by_tuple.state}.items():
        assert same({**by_partial.out, **by_partial.state}[key], found), (key, found)


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_a_batch_that_is_run_again_in_other_slices_gives_the_same(seed: int) -> None:
    rng = np.random.default_rng(seed)
    window, rows, cut = random_window(rng), random_rows(rng, START, 40), int(rng.integers(0, 40))
    asked, whole, again = combination(window), *(Spark(window, 0) for _ in "ab")
    whole.batch(partial_rows(rows, asked), add_partial)
    parts = [p for part in (rows[:cut], rows[cut:]) for p in partial_rows(part, asked)]
    again.batch(parts, add_partial)
    assert same({**whole.out, **whole.state}, {**again.out, **again.state})
    assert whole.watermark == again.watermark


MEETS: Mapping[str, Callable[[float, float], bool]] = {
    "=": lambda x, y: x == y,
    "<>": lambda x, y: x != y,
    "<": lambda x, y: x < y,
    "<=": lambda x, y: x <= y,
    ">": lambda x, y: x > y or math.isnan(x),
    ">=": lambda x, y: x >= y or math.isnan(x),
}


@pytest.mark.parametrize("operator", sorted(MEETS))
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_what_does_not_meet_the_conditions_moves_the_watermark_and_nothing_else(
    operator: Any, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    window, rows, value = (
        random_window(rng),
        random_rows(rng, START, 30),
        float(rng.integers(-20, 20)),
    )
    asked = combination(window, (Condition(column="x", operator=operator, value=value),))
    found = partial_rows(rows, asked)
    met = [row for row in rows if row["x"] is not None and MEETS[operator](row["x"], value)]
    timed = [row["at"] for row in rows if row["at"] is not None]
    assert max((row["at"] for row in found), default=None) == max(timed, default=None)
    by_tuple, by_partial = Spark(window, 2 * START), Spark(window, 2 * START)
    by_tuple.batch(met, add_tuple)
    by_partial.batch([row for row in found if row[MATCHES]], add_partial)
    assert same(by_tuple.state, by_partial.state)
    assert all(row["_count"] is None for row in found if not row[MATCHES])


def test_far_more_keys_than_are_held_back_are_all_there() -> None:
    keys = [f"key {i % 30_000}" for i in range(90_000)]
    asked = combination((10, 10, 0))
    schema = to_arrow_schema(partial_schema(asked, heartbeats=False), timezone="UTC")
    nothing = {"x": 1.0, "n": 1, "_weight": 1.0}
    rows = [{"at": 3, "key": key, **nothing} for key in keys]
    batches = pa.Table.from_pylist(rows, schema=ARROW).to_batches(max_chunksize=9_000)
    made = list(Combiner(asked, schema).partial_rows(batches))
    assert max(batch.num_rows for batch in made) <= MOST_ROWS + 9_000
    counts: Counter[str] = Counter()
    for batch in made:
        counts.update(dict(zip(*(batch[c].to_pylist() for c in ("key", "_count")), strict=True)))
    assert counts == Counter(keys)
