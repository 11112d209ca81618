"""The three queries of thesis section 7.3.2, and its own rule for the third.

STREAM's windows slide by one tuple: a range of 10 s is then every span of 10 s, which is a slide of
one tick here.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from spillway.cluster.migration.handoff import (
    Move,
    Stream,
    carry_out,
    first_timestamps,
    in_order,
    run,
)
from spillway.cluster.migration.plan import Activation, Side, plan_handoff
from spillway.cluster.migration.reference import Executor
from spillway.cluster.migration.windows import Aggregate, Join, Query, Window

TICKS_PER_S = 1_000_000
JOIN = Join(window=Window(basis="time", length=10 * TICKS_PER_S))
SUM = Aggregate(window=Window(basis="tuples", length=5), label="end")


@dataclass(frozen=True, kw_only=True)
class PaperQuery:
    """A query of the thesis with the mean response times that it printed."""

    name: str
    text: str
    query: Query
    figures: tuple[int, int]
    without_ms: float
    with_ms: float
    suppress_at: Side = "destination"


QUERIES = (
    PaperQuery(
        name="unimico-q1",
        text="a join over 10 s",
        query=Query(operators=(JOIN,), inputs=2),
        figures=(37, 38),
        without_ms=3.751,
        with_ms=3.750,
        suppress_at="origin",  # as the thesis does
    ),
    PaperQuery(
        name="unimico-q2",
        text="a sum over 5 tuples",
        query=Query(operators=(SUM,)),
        figures=(39, 40),
        without_ms=3.155,
        with_ms=3.101,
    ),
    PaperQuery(
        name="unimico-q3",
        text="a sum over 5 tuples of a join over 10 s",
        query=Query(operators=(JOIN, SUM), inputs=2),
        figures=(41, 42),
        without_ms=6.568,
        with_ms=6.658,
    ),
)


def thesis_rule(
    paper: PaperQuery, stream: Stream, asked_at: int, connected_at: Sequence[int]
) -> int | None:
    """Result rows that go wrong when the start is the first tuple at the controlling window.

    Only for a query with a window below the controlling one; None for the others.
    """
    move = Move(asked_at=asked_at, connected_at=connected_at)
    starts = first_timestamps(paper.query, stream, move)
    if len(paper.query.operators) < 2 or starts is None:
        return None
    join, above = paper.query.operators
    start = max(starts)
    pairs = run(Query(operators=(join,), inputs=2), stream[asked_at:])
    first_pair = pairs[0]
    planned_at = asked_at + first_pair.position + 1
    origin = Executor(paper.query)
    for source, row in stream[:planned_at]:
        origin.push(row, source)
    plan = plan_handoff(Query(operators=(above,)), origin.seen[1:], (first_pair.row.ts,))
    if plan is None:
        return None
    below = Activation(opens_at=start, label_from=first_pair.row.ts)
    literal = replace(plan, source_from=starts, activations=(below, *plan.activations))
    got = carry_out(paper.query, stream, planned_at, connected_at, literal).rows_by_arrival
    want = in_order(run(paper.query, stream))
    return len(set(got) ^ set(want))
