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


@dataclass(frozen=True, kw_only=True, slots=True)
class Move:
    """The origin learns after `asked_at` tuples of the merged input that the query shall move.

    `connected_at[i]`: the destination reads input i from this position of the merged input on.
    """

    asked_at: int
    connected_at: Sequence[int]
    suppress_at: Side = "destination"
    strictly_increasing: bool = False


@dataclass(frozen=True, kw_only=True)
class Served:
    """What came out of one node, and how it handed over. `plan` is None when it did not."""

    made: tuple[Produced, ...]
    late: int  # tuples dropped because they came later than the query allows
    plan: HandOff | None = None
    planned_at: int | None = None  # position in the merged input
    stopped_at: int | None = None


@dataclass(frozen=True, kw_only=True)
class Migrated:
    """What came out where. `plan` is None when the input ended before it could be decided.

    `late`: tuples that came too late, by side. Without any, the output is that without the move.
    """

    plan: HandOff | None
    planned_at: int | None = None  # position in the merged input
    stopped_at: int | None = None
    origin: tuple[Produced, ...] = ()
    destination: tuple[Produced, ...] = field(default=())
    late: tuple[int, int] = (0, 0)

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
    return relay(query, stream, ())[0].made


def migrate(
    query: Query,
    stream: Stream,
    asked_at: int,
    connected_at: Sequence[int],
    suppress_at: Side = "destination",
    strictly_increasing: bool = False,
) -> Migrated:
    """The output of one move."""
    move = Move(
        asked_at=asked_at,
        connected_at=connected_at,
        suppress_at=suppress_at,
        strictly_increasing=strictly_increasing,
    )
    origin, *rest = relay(query, stream, (move,))
    return Migrated(
        plan=origin.plan,
        planned_at=origin.planned_at,
        stopped_at=origin.stopped_at,
        origin=origin.made,
        destination=rest[0].made if rest else (),
        late=(origin.late, rest[0].late if rest else 0),
    )


def relay(query: Query, stream: Stream, moves: Sequence[Move]) -> tuple[Served, ...]:
    """A query that moves on and on: what each node put out. A move may overlap the one before."""
    served: list[Served] = []
    plan: HandOff | None = None
    connected_at: Sequence[int] = (0,) * query.inputs
    for move in (*moves, None):
        served.append(_serve(query, stream, connected_at, plan, move))
        plan = served[-1].plan
        if plan is None or move is None:
            break
        connected_at = move.connected_at
    return tuple(served)


def _serve(
    query: Query,
    stream: Stream,
    connected_at: Sequence[int],
    began: HandOff | None,
    move: Move | None,
) -> Served:
    """One node: it has the inputs from where it connected, and hands over when asked."""
    executor, made = Executor(query, start=began), list[Produced]()
    starts = first_timestamps(query, stream, move) if move else None
    plan, planned_at = None, None
    for position, (source, row) in enumerate(stream):
        if move and starts and plan is None and position >= move.asked_at:
            plan = plan_handoff(query, executor.seen, starts, move.suppress_at, began)
            if plan is not None:
                planned_at = position
                executor.end_at(plan)
        if executor.finished:
            return Served(
                made=tuple(made),
                late=executor.late,
                plan=plan,
                planned_at=planned_at,
                stopped_at=position,
            )
        if position >= connected_at[source]:
            results = executor.push(row, source)
            made += [Produced(row=out, position=position) for out in results]
    return Served(made=tuple(made), late=executor.late, plan=plan, planned_at=planned_at)


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


def first_timestamps(query: Query, stream: Stream, move: Move) -> tuple[int, ...] | None:
    """From when on the destination has everything, per input; None if the stream ends before.

    A tuple of another input says as much as one's own, because the merged input is in order: it is
    the heartbeat of an input that is silent.
    """
    starts = []
    for source, connected in enumerate(move.connected_at):
        if connected >= len(stream):
            return None
        first_source, first = stream[connected]
        strictly = move.strictly_increasing and first_source == source
        starts.append(complete_from_ts(first.ts, strictly, query.late_by))
    return tuple(starts)


def resume(
    query: Query, stream: Stream, connected_at: Sequence[int], plan: HandOff
) -> tuple[Produced, ...]:
    """The destination: it has the inputs from where it connected, and the plan."""
    return _serve(query, stream, connected_at, plan, None).made
