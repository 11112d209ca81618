"""A query that moves on and on puts out what it would have put out where it was."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spillway.cluster.migration.handoff import Move, Stream, in_order, relay, run
from spillway.cluster.migration.reference import Row
from spillway.cluster.migration.windows import Aggregate, Join, Query, Window
from spillway_lab.workloads.migration_cases import SHAPES, random_query, random_stream


def random_moves(rng: np.random.Generator, query: Query, tuples: int) -> list[Move]:
    """Two to four, in any order and overlapping: asked before the one before has ended."""
    moves = []
    for _ in range(int(rng.integers(2, 5))):
        asked_at = int(rng.integers(0, tuples * 3 // 4))
        around = asked_at + rng.integers(-tuples // 4, tuples // 4, size=query.inputs)
        moves.append(
            Move(
                asked_at=asked_at,
                connected_at=[int(p) for p in np.clip(around, 0, tuples - 1)],
                suppress_at="origin" if rng.random() < 0.5 else "destination",
            )
        )
    return sorted(moves, key=lambda m: m.asked_at) if rng.random() < 0.7 else moves


@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_a_sequence_of_moves_changes_no_tuple_of_the_output(shape: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    query = random_query(rng, shape)
    stream = random_stream(rng, query.inputs, 25)
    served = relay(query, stream, random_moves(rng, query, len(stream)))
    made = [one for node in served for one in node.made]
    assert in_order(made) == in_order(run(query, stream))


def late_stream(rng: np.random.Generator, stream: Stream, by: int) -> Stream:
    """Tuples arrive up to `by` ticks behind newer ones."""
    delays = rng.integers(0, by + 1, size=len(stream))
    order = sorted(range(len(stream)), key=lambda i: (stream[i][1].ts + delays[i], i))
    return [stream[i] for i in order]


def late_query(rng: np.random.Generator, late_by: int) -> Query:
    length = int(rng.integers(2, 12))
    window = Window(basis="time", length=length, slide=int(rng.integers(1, length + 1)))
    kind = rng.integers(5)
    if kind == 0:
        return Query(late_by=late_by)
    if kind == 1:
        return Query(operators=(Aggregate(window=window),), late_by=late_by)
    above = Aggregate(window=Window(basis="time" if kind == 4 else "tuples", length=3, slide=2))
    if kind == 2:
        return Query(operators=(Join(window=window),), inputs=2, late_by=late_by)
    return Query(operators=(Join(window=window, label="start"), above), inputs=2, late_by=late_by)


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_tuples_within_the_watermarks_delay_change_nothing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    late_by = int(rng.integers(1, 8))
    query = late_query(rng, late_by)
    stream = late_stream(rng, random_stream(rng, query.inputs, 25), late_by)
    served = relay(query, stream, random_moves(rng, query, len(stream)))
    made = [one for node in served for one in node.made]
    assert all(node.late == 0 for node in served)
    assert in_order(made) == in_order(run(query, stream))


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_later_tuples_are_never_silent(seed: int) -> None:
    rng = np.random.default_rng(seed)
    query = late_query(rng, 2)
    stream = late_stream(rng, random_stream(rng, query.inputs, 25), 9)
    served = relay(query, stream, random_moves(rng, query, len(stream)))
    made = [one for node in served for one in node.made]
    if in_order(made) != in_order(run(query, stream)):
        assert any(node.late for node in served)


def test_a_silent_input_of_a_join_holds_no_move_up() -> None:
    for basis in ("time", "tuples"):
        query = Query(operators=(Join(window=Window(basis=basis, length=6, slide=2)),), inputs=2)
        silent = [(0, Row(t, 0, (t,))) for t in range(60)]
        stream = sorted([*silent, (1, Row(3, 0, (1,)))], key=lambda r: (r[1].ts, r[0]))
        origin, destination = relay(query, stream, [Move(asked_at=20, connected_at=[22, 22])])
        assert origin.plan is not None
        made = in_order((*origin.made, *destination.made))
        assert made == in_order(run(query, stream))
