"""A hand-off between two executors, step by step as in the thesis's algorithms 2 and 3.

The destination connects to every input at a moment of its own and reports the first timestamps
that it has completely. The origin, wherever it is in its input by then (it may lag far behind, or
be ahead of a destination that reads an older part of the log), computes the plan, tells it, and
finishes its last window. Nothing but the plan travels.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from spillway.cluster.migration.plan import HandOff, Side, plan_handoff
from spillway.cluster.migration.reference import Executor, Row
from spillway.cluster.migration.timestamps import complete_from_ts
from spillway.cluster.migration.windows import Query

Stream = Sequence[tuple[int, Row]]  # (input, tuple) in order of arrival


@dataclass(frozen=True, kw_only=True)
class Produced:
    """One result, and the position of the tuple in the merged input that brought it out."""

    row: Row
    position: int


@dataclass(frozen=True, kw_only=True)
class Migrated:
    """What came out where. `plan` is None when the input ended before it could be decided."""

    plan: HandOff | None
    planned_at: int | None = None  # position in the merged input
    stopped_at: int | None = None
    origin: tuple[Produced, ...] = ()
    destination: tuple[Produced, ...] = field(default=())

    @property
    def rows(self) -> list[Row]:
        """Everything that came out, the origin's results first."""
        return [p.row for p in (*self.origin, *self.destination)]

    @property
    def rows_by_arrival(self) -> list[Row]:
        """Everything in the order of the tuples that brought it out, then by content."""
        return in_order((*self.origin, *self.destination))


def in_order(results: Sequence[Produced]) -> list[Row]:
    """Results by the tuple that brought them out, then by content."""
    return [p.row for p in sorted(results, key=lambda p: (p.position, p.row))]


def run(query: Query, stream: Stream) -> tuple[Produced, ...]:
    """The output without migration."""
    executor = Executor(query)
    return tuple(
        Produced(row=out, position=position)
        for position, (source, row) in enumerate(stream)
        for out in executor.push(row, source)
    )


def migrate(
    query: Query,
    stream: Stream,
    asked_at: int,
    connected_at: Sequence[int],
    suppress_at: Side = "destination",
    strictly_increasing: bool = False,
) -> Migrated:
    """The output when the origin learns after `asked_at` tuples that the query shall move.

    `connected_at[i]`: the destination reads input i from this position of the merged input on.
    """
    starts = first_timestamps(stream, connected_at, strictly_increasing)
    origin, made, plan = Executor(query), list[Produced](), None
    planned_at = stopped_at = None
    for position, (source, row) in enumerate(stream):
        if plan is None and starts is not None and position >= asked_at:
            plan = plan_handoff(query, origin.seen, starts, suppress_at)
            if plan is not None:
                planned_at = position
                origin.end_at(plan)
        if origin.finished:
            stopped_at = position
            break
        made += [Produced(row=out, position=position) for out in origin.push(row, source)]
    if plan is None:
        return Migrated(plan=None, origin=tuple(made))
    return Migrated(
        plan=plan,
        planned_at=planned_at,
        stopped_at=stopped_at,
        origin=tuple(made),
        destination=resume(query, stream, connected_at, plan),
    )


def carry_out(
    query: Query, stream: Stream, planned_at: int, connected_at: Sequence[int], plan: HandOff
) -> Migrated:
    """The output under any plan, right or wrong, that takes effect at a position."""
    origin, made = Executor(query), list[Produced]()
    for position, (source, row) in enumerate(stream):
        if position == planned_at:
            origin.end_at(plan)
        made += [Produced(row=out, position=position) for out in origin.push(row, source)]
    received = resume(query, stream, connected_at, plan)
    return Migrated(plan=plan, planned_at=planned_at, origin=tuple(made), destination=received)


def first_timestamps(
    stream: Stream, connected_at: Sequence[int], strictly_increasing: bool
) -> tuple[int, ...] | None:
    """From when on the destination has everything, per input; None if an input ends before."""
    starts = []
    for source, connected in enumerate(connected_at):
        read = (row.ts for s, row in stream[connected:] if s == source)
        first = next(read, None)
        if first is None:
            return None
        starts.append(complete_from_ts(first, strictly_increasing))
    return tuple(starts)


def resume(
    query: Query, stream: Stream, connected_at: Sequence[int], plan: HandOff
) -> tuple[Produced, ...]:
    """The destination: it has the inputs from where it connected, and the plan."""
    executor = Executor(query, start=plan)
    return tuple(
        Produced(row=out, position=position)
        for position, (source, row) in enumerate(stream)
        if position >= connected_at[source]
        for out in executor.push(row, source)
    )
