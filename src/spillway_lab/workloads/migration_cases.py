"""Random hand-offs: queries, streams and moments, all from one seeded generator."""

from dataclasses import dataclass

import numpy as np

from spillway.cluster.migration.handoff import Migrated, Stream, in_order, migrate, run
from spillway.cluster.migration.plan import Side
from spillway.cluster.migration.reference import Row
from spillway.cluster.migration.windows import Aggregate, Basis, Join, Label, Query, Window

SHAPES = ("stateless", "aggregate", "join", "join-aggregate", "aggregate-aggregate", "three")
Shape = str


@dataclass(frozen=True, kw_only=True)
class Case:
    """One hand-off to try."""

    shape: Shape
    query: Query
    stream: Stream
    asked_at: int
    connected_at: tuple[int, ...]
    suppress_at: Side


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """`exact`: the same tuples. `ordered`: origin's then destination's is even the same list."""

    migrated: Migrated
    expected_rows: int
    exact: bool
    ordered: bool

    @property
    def handed_over(self) -> bool:
        return self.migrated.plan is not None

    @property
    def both_sides(self) -> bool:
        return bool(self.migrated.origin) and bool(self.migrated.destination)


def random_case(rng: np.random.Generator, shape: Shape | None = None) -> Case:
    shape = shape if shape is not None else str(rng.choice(SHAPES))
    query = random_query(rng, shape)
    stream = random_stream(rng, query.inputs, 30 * max(1, len(query.operators)))
    tuples = len(stream)
    asked_at = int(rng.integers(0, tuples * 2 // 3))
    spread = tuples // 3  # a lagging origin, a destination that reads back, and all between
    around = asked_at + rng.integers(-spread, spread, size=query.inputs)
    return Case(
        shape=shape,
        query=query,
        stream=stream,
        asked_at=asked_at,
        connected_at=tuple(int(p) for p in np.clip(around, 0, tuples - 1)),
        suppress_at="origin" if rng.random() < 0.5 else "destination",
    )


def judge(case: Case) -> Verdict:
    """Run a case with and without migration and compare, tuple for tuple."""
    expected = run(case.query, case.stream)
    migrated = migrate(case.query, case.stream, case.asked_at, case.connected_at, case.suppress_at)
    return Verdict(
        migrated=migrated,
        expected_rows=len(expected),
        exact=migrated.rows_by_arrival == in_order(expected),
        ordered=migrated.rows == [p.row for p in expected],
    )


def random_query(rng: np.random.Generator, shape: Shape) -> Query:
    aggregates = {"aggregate": 1, "join-aggregate": 1, "aggregate-aggregate": 2, "three": 2}
    above = tuple(
        Aggregate(window=_window(rng, _basis(rng)), label=_label(rng))
        for _ in range(aggregates.get(shape, 0))
    )
    if shape == "stateless":
        return Query(inputs=int(rng.integers(1, 4)))
    if shape in ("aggregate", "aggregate-aggregate"):
        return Query(operators=above)
    return Query(operators=(_join(rng, controlling=shape == "join"), *above), inputs=2)


def random_stream(rng: np.random.Generator, inputs: int, fewest: int) -> Stream:
    """Bursty or even, with or without equal timestamps, inputs of unlike rate."""
    rows: list[tuple[int, int, Row]] = []
    keys = int(rng.integers(1, 4))
    for source in range(inputs):
        tuples = int(rng.integers(fewest, 2 * fewest))
        gaps = rng.geometric(1.0 / rng.uniform(1.0, 4.0), size=tuples)
        if rng.random() < 0.5:
            gaps = gaps - 1  # equal timestamps
        if rng.random() < 0.2:
            gaps[rng.integers(0, tuples)] += 40  # silence
        for ts in np.cumsum(gaps):
            row = Row(int(ts), int(rng.integers(keys)), (int(rng.integers(1000)),))
            rows.append((int(ts), source, row))
    return [(source, row) for _, source, row in sorted(rows, key=lambda r: r[:2])]


def _join(rng: np.random.Generator, controlling: bool) -> Join:
    if controlling and rng.random() < 0.35:
        return Join(window=_window(rng, "tuples"))
    return Join(window=_window(rng, "time"), label=_label(rng))


def _window(rng: np.random.Generator, basis: Basis) -> Window:
    """Sliding, tumbling, and with gaps between windows (slide above length)."""
    length = int(rng.integers(1, 13))
    slide = int(rng.integers(1, length + 1)) if rng.random() < 0.85 else length + 2
    anchor = int(rng.integers(-5, 6)) if basis == "time" else 0
    return Window(basis=basis, length=length, slide=slide, anchor=anchor)


def _basis(rng: np.random.Generator) -> Basis:
    return "time" if rng.random() < 0.5 else "tuples"


def _label(rng: np.random.Generator) -> Label:
    return "start" if rng.random() < 0.5 else "end"
