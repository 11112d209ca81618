"""Hand-offs between two executors, and the thesis's rules where they lose or repeat tuples."""

from dataclasses import replace

import pytest

from spillway.cluster.migration.handoff import Stream, carry_out, in_order, migrate, resume, run
from spillway.cluster.migration.plan import Activation, HandOff, plan_handoff
from spillway.cluster.migration.reference import Row
from spillway.cluster.migration.windows import Aggregate, Join, Query, Window
from spillway.errors import SpillwayError


def one_input(*timestamps: int) -> Stream:
    return [(0, Row(ts, 0, (ts * 10 + i,))) for i, ts in enumerate(timestamps)]


def two_inputs(left: list[tuple[int, int]], right: list[tuple[int, int]]) -> Stream:
    """(timestamp, key) of each side, merged."""
    rows = [(ts, 0, key) for ts, key in left] + [(ts, 1, key) for ts, key in right]
    return [(side, Row(ts, key, (ts * 10 + side,))) for ts, side, key in sorted(rows)]


def outputs(query: Query, stream: Stream) -> list[Row]:
    return [p.row for p in run(query, stream)]


FIG_34 = Query(operators=(Aggregate(window=Window(basis="time", length=4, slide=2, anchor=1)),))


def test_figure_34_runs_as_drawn() -> None:
    stream = one_input(*range(1, 13))
    moved = migrate(FIG_34, stream, asked_at=5, connected_at=[3], strictly_increasing=True)
    assert moved.plan is not None
    assert moved.plan.migration_ts == 3
    assert moved.plan.source_from == (5,)
    assert [p.row.ts for p in moved.origin] == [-1, 1, 3]  # the first holds tuples 1 and 2 only
    assert [p.row.ts for p in moved.destination] == [5, 7]
    assert moved.rows == outputs(FIG_34, stream)


# Figure 35: join windows of 4 s every 2 s, then 3 tuples every 2 tuples. The join's results carry
# the timestamps 1, 2, 3, 4, 7, ...: three lie between w21's start (1) and ts_start (5).
FIG_35 = Query(
    operators=(
        Join(window=Window(basis="time", length=4, slide=2, anchor=1), label="start"),
        Aggregate(window=Window(basis="tuples", length=3, slide=2)),
    ),
    inputs=2,
)
FIG_35_STREAM = two_inputs(
    [(1, 1), (2, 2), (3, 3), (4, 4), (7, 1), (9, 5), (13, 6), (20, 9), (25, 9), (30, 9)],
    [(2, 1), (4, 2), (4, 3), (5, 4), (8, 1), (9, 5), (14, 6), (20, 9), (25, 9), (30, 9)],
)


def test_figure_35_migrates_at_3_and_starts_with_t() -> None:
    moved = migrate(FIG_35, FIG_35_STREAM, 9, connected_at=[4, 7], strictly_increasing=True)
    assert moved.plan is not None
    assert moved.plan.migration_ts == 3
    assert [p.row.ts for p in moved.origin] == [1, 3]
    assert moved.destination[0].row.ts == 7
    assert moved.rows == outputs(FIG_35, FIG_35_STREAM)


def test_a_hand_off_where_the_text_of_figure_35_puts_it_differs() -> None:
    query = Query(operators=(FIG_35.operators[1],))
    stream = one_input(1, 2, 3, 4, 7, 8, 9, 10, 11)
    seen = [([1, 2, 3, 4, 7],)]
    plan = plan_handoff(query, seen, (5,))
    assert plan is not None
    assert plan.migration_ts == 3  # the second tuple before t = 7; the text says 4
    last = plan.activations[-1]
    text = replace(plan, migration=3, origin_end=6, activations=(replace(last, discard=(1,)),))
    assert carry_out(query, stream, 5, [4], plan).rows == outputs(query, stream)
    assert carry_out(query, stream, 5, [4], text).rows != outputs(query, stream)


def test_a_start_before_the_last_window_discards_one_slide_less_one_after_it() -> None:
    # Eq. 7.2 leaves delta undefined here; s - delta would misalign every later window.
    query = Query(operators=(Aggregate(window=Window(basis="tuples", length=3, slide=3)),))
    stream = one_input(*range(1, 20))
    moved = migrate(query, stream, asked_at=9, connected_at=[2], strictly_increasing=True)
    assert moved.plan is not None
    assert moved.plan.migration_ts == 7
    assert moved.plan.activations[-1].discard == (7,)  # tuples 3 to 9, and 10 starts the next
    assert moved.rows == outputs(query, stream)


EAGER = Join(window=Window(basis="time", length=6, slide=2))
PAIRS = two_inputs([(t, t % 2) for t in range(0, 40)], [(t, t % 2) for t in range(0, 40)])


@pytest.mark.parametrize("suppress_at", ["origin", "destination"])
def test_a_controlling_join_puts_every_pair_out_once(suppress_at: str) -> None:
    query = Query(operators=(EAGER,), inputs=2)
    moved = migrate(query, PAIRS, 30, [25, 34], suppress_at)  # type: ignore[arg-type]
    assert moved.origin
    assert moved.destination
    assert moved.rows_by_arrival == in_order(run(query, PAIRS))


def test_only_suppression_at_the_destination_keeps_the_order_of_the_output() -> None:
    query = Query(operators=(EAGER,), inputs=2)
    assert migrate(query, PAIRS, 30, [25, 34], "destination").rows == outputs(query, PAIRS)
    assert migrate(query, PAIRS, 30, [25, 34], "origin").rows != outputs(query, PAIRS)


def test_without_suppression_the_pairs_of_the_overlap_come_out_twice() -> None:
    query = Query(operators=(EAGER,), inputs=2)
    plan = migrate(query, PAIRS, 30, [25, 34]).plan
    assert plan is not None
    loud = replace(plan, activations=(Activation(opens_at=plan.activations[0].opens_at),))
    twice = resume(query, PAIRS, [25, 34], loud)
    once = resume(query, PAIRS, [25, 34], plan)
    extra = [p.row for p in twice if p not in once]
    assert extra
    assert all(row.ts < plan.origin_end for row in extra)


def test_a_join_is_bound_to_its_last_opened_window_because_its_pairs_are_out() -> None:
    # Read as "the last window that closed", eq. 7.1 hands pairs over that the origin has put out.
    query = Query(operators=(EAGER,), inputs=2)
    plan = migrate(query, PAIRS, 30, [0, 0]).plan
    processed_ts = PAIRS[29][1].ts
    assert plan is not None
    assert plan.migration_ts == processed_ts - processed_ts % 2
    closed = plan.migration_ts - 6
    early = HandOff(
        migration=closed,
        migration_ts=closed,
        origin_end=closed + 6,
        suppress_from=None,
        source_from=(closed + 2,) * 2,
        activations=(Activation(opens_at=closed + 2, silent_before=closed + 6),),
    )
    repeated = carry_out(query, PAIRS, 30, [0, 0], early).rows
    assert len(repeated) > len(outputs(query, PAIRS))


def test_a_join_below_another_window_is_not_suppressed() -> None:
    above = Aggregate(window=Window(basis="tuples", length=4))
    query = Query(operators=(EAGER, above), inputs=2)
    moved = migrate(query, PAIRS, 30, [25, 34])
    assert moved.plan is not None
    assert moved.plan.suppress_from is None
    assert moved.rows == outputs(query, PAIRS)


def test_the_first_result_at_the_controlling_window_is_too_early_a_start() -> None:
    # The thesis measures the start there when results are labelled by their end. A later pair may
    # still need a tuple that passed before the destination connected.
    below = Join(window=Window(basis="time", length=20))
    above = Aggregate(window=Window(basis="tuples", length=2))
    query = Query(operators=(below, above), inputs=2)
    stream = two_inputs(
        [(1, 7), (10, 1), (30, 2), (40, 3), (41, 3), (50, 3)],
        [(2, 7), (11, 1), (15, 7), (31, 2), (40, 3), (41, 3), (51, 3)],
    )
    connected_at = [2, 2]  # from timestamp 10 on: never sees the left tuple of key 7
    expected = outputs(query, stream)
    right = migrate(query, stream, 3, connected_at, strictly_increasing=True)
    assert right.rows == expected
    edge = [([2, 11],)]  # what the origin's aggregate saw when the first pair (11) came out
    above_only = plan_handoff(Query(operators=(above,)), edge, (11,))
    assert above_only is not None
    thesis = replace(
        above_only,
        source_from=(10, 11),
        activations=(Activation(opens_at=10, label_from=11), *above_only.activations),
    )
    assert carry_out(query, stream, 4, connected_at, thesis).rows != expected


def test_equal_timestamps_that_passed_before_connecting_are_not_lost() -> None:
    stream = one_input(1, 2, 3, 5, 5, 5, 6, 7, 8, 9, 10, 11, 12, 13)
    kept = migrate(FIG_34, stream, asked_at=4, connected_at=[5])
    assert kept.rows == outputs(FIG_34, stream)
    lost = migrate(FIG_34, stream, asked_at=4, connected_at=[5], strictly_increasing=True)
    assert lost.rows != outputs(FIG_34, stream)


def test_a_stateless_query_changes_hands_between_two_ticks() -> None:
    stream = one_input(1, 2, 2, 2, 3, 4)
    moved = migrate(Query(), stream, asked_at=2, connected_at=[1])
    assert moved.plan is not None
    assert moved.plan.origin_end == 3
    assert moved.rows == outputs(Query(), stream)


def test_the_plan_waits_until_a_tuple_comes_that_both_nodes_can_count() -> None:
    query = Query(operators=(Aggregate(window=Window(basis="tuples", length=3, slide=2)),))
    assert plan_handoff(query, [([1, 2, 3],)], (5,)) is None
    assert plan_handoff(query, [([1, 2, 3, 7],)], (5,)) is not None


def test_the_origin_stops_as_soon_as_its_last_window_is_consumed() -> None:
    stream = one_input(*range(1, 30))
    moved = migrate(FIG_34, stream, asked_at=5, connected_at=[3], strictly_increasing=True)
    assert moved.plan is not None
    assert moved.stopped_at is not None
    assert stream[moved.stopped_at - 1][1].ts == moved.plan.origin_end == 7


def test_a_join_in_the_middle_is_refused() -> None:
    aggregate = Aggregate(window=Window(basis="time", length=2))
    with pytest.raises(SpillwayError, match="only the first one can be a join"):
        Query(operators=(aggregate, EAGER), inputs=2)


def test_a_tuple_based_join_below_another_window_is_refused() -> None:
    join = Join(window=Window(basis="tuples", length=2))
    with pytest.raises(SpillwayError, match="must be the last window operator"):
        Query(operators=(join, Aggregate(window=Window(basis="time", length=2))), inputs=2)
