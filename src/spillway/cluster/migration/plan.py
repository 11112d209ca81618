"""The hand-off plan: what the origin still does, where each destination operator starts.

Computed at the origin from what its operators have seen and from the first timestamps that the
destination has completely. Pure; `None` means: not decidable yet, ask again after the next tuple
(tuple-based windows wait for the first tuple that both nodes can count).

From the inputs upwards, every stream inside the query has a timestamp from which on the destination
reproduces it tuple for tuple. Labelled by start, an operator passes that timestamp on; labelled by
end, its results are whole only one window length later. The thesis takes the first tuple that
arrives at the controlling window instead, and then loses the pairs of a join whose earlier tuple
the destination never saw.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from spillway.cluster.migration.timestamps import (
    activation_ts,
    migration_start,
    time_migration_ts,
    tuples_to_discard,
)
from spillway.cluster.migration.windows import Aggregate, Join, Operator, Query, Window
from spillway.errors import require

Side = Literal["origin", "destination"]
Seen = tuple[Sequence[int], ...]  # per input of an operator: timestamps in order of arrival
ANY = -(2**62)  # below every timestamp


@dataclass(frozen=True, kw_only=True, slots=True)
class Activation:
    """How one destination operator starts.

    `opens_at`: first window start (time-based). `discard`: first tuples to ignore, per input
    (tuple-based). `silent_before`: pairs whose later tuple (timestamp, or index after the
    discarded ones) is below this are not put out. `label_from`: results labelled earlier are not
    put out.
    """

    opens_at: int = ANY
    discard: tuple[int, ...] = ()
    silent_before: int = ANY
    label_from: int = ANY


@dataclass(frozen=True, kw_only=True, slots=True)
class HandOff:
    """`migration` is the start of the origin's last window: a timestamp, or a tuple's index.

    The origin stops once its controlling window has consumed everything below `origin_end`, and
    puts out nothing that belongs to `suppress_from` and later.
    """

    migration: int
    migration_ts: int | None  # definition 12; None when that window starts before the stream
    origin_end: int
    suppress_from: int | None  # origin: drop pairs that lie in the overlap as a whole
    source_from: tuple[int, ...]  # destination: its sources discard what is earlier
    activations: tuple[Activation, ...]


def plan_handoff(
    query: Query,
    seen: Sequence[Seen],
    start_ts: tuple[int, ...],
    suppress_at: Side = "destination",
    began: HandOff | None = None,
) -> HandOff | None:
    """The hand-off of `query`, given what each operator has seen and the destination's starts.

    `seen[k]` belongs to operator k; a stateless query has one entry, its inputs. `start_ts[i]` is
    the first timestamp of input i of which the destination has every tuple. `began`: how the origin
    itself took over; it hands over nothing that was not its own.
    """
    require(len(start_ts) == query.inputs, "start timestamps", start_ts, f"{query.inputs} of them")
    if began is not None:
        start_ts = tuple(max(pair) for pair in zip(start_ts, began.source_from, strict=True))
    if query.stateless:
        return _stateless(seen[0], start_ts)
    upstream = _upstream(query, seen, start_ts, began)
    if upstream is None:
        return None
    activations, complete_from = upstream
    cut = _Cut(
        query=query,
        seen=seen[-1],
        complete_from=complete_from,
        upstream=activations,
        start_ts=start_ts,
        suppress_at=suppress_at,
        began=began,
    )
    if query.operators[-1].window.basis == "tuples":
        return _tuples(cut)
    return _filter_early(query, seen, _time(cut), began)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Cut:
    """What the controlling window decides on."""

    query: Query
    seen: Seen  # by the controlling window
    complete_from: tuple[int, ...]
    upstream: tuple[Activation, ...]
    start_ts: tuple[int, ...]
    suppress_at: Side
    began: HandOff | None

    @property
    def last(self) -> Operator:
        return self.query.operators[-1]

    @property
    def quiet_before(self) -> int:
        """Pairs that the node before the origin puts out; it may still be at it."""
        return self.began.activations[-1].silent_before if self.began else ANY

    @property
    def newest(self) -> int | None:
        """The latest timestamp; later than the watermark by what the query allows."""
        late_by = self.query.late_by
        return max((max(ts) if late_by else ts[-1] for ts in self.seen if ts), default=None)


def skips(began: HandOff | None, stage: int, inputs: int) -> tuple[int, ...]:
    """First tuples of each input that a window which counts does not count."""
    return (began.activations[stage].discard if began else ()) or (0,) * inputs


def _stateless(seen: Seen, start_ts: tuple[int, ...]) -> HandOff:
    """A stateless query changes hands between two ticks: origin below, destination from there."""
    processed = max((max(ts) for ts in seen if ts), default=ANY)
    cut = max(*start_ts, processed + 1)
    return HandOff(
        migration=cut - 1,
        migration_ts=cut - 1,
        origin_end=cut,
        suppress_from=None,
        source_from=(cut,) * len(start_ts),
        activations=(),
    )


def _upstream(
    query: Query, seen: Sequence[Seen], start_ts: tuple[int, ...], began: HandOff | None
) -> tuple[tuple[Activation, ...], tuple[int, ...]] | None:
    """Activations below the controlling window, and from when its inputs are reproduced."""
    activations: list[Activation] = []
    complete_from = start_ts
    for stage, (operator, own) in enumerate(zip(query.operators[:-1], seen, strict=False)):
        if operator.window.basis == "time":
            activation: Activation | None = _start_time(operator, complete_from)
        else:
            (skip,) = skips(began, stage, 1)
            activation = _start_tuples(operator, own[0], complete_from[0], skip)
        if activation is None:
            return None
        if began is not None:  # the origin has no earlier results either
            label_from = max(activation.label_from, began.activations[stage].label_from)
            activation = replace(activation, label_from=label_from)
        activations.append(activation)
        complete_from = (activation.label_from,)
    return tuple(activations), complete_from


def _start_time(operator: Operator, complete_from: tuple[int, ...]) -> Activation:
    """An aggregate needs whole windows; a join reproduces every pair of which it has both."""
    window, start = operator.window, max(complete_from)
    opens_at = start if isinstance(operator, Join) else window.start_at_or_after(start)
    label_from = opens_at if operator.label == "start" else opens_at + window.length
    return Activation(opens_at=opens_at, label_from=label_from)


def _start_tuples(
    operator: Operator, seen: Sequence[int], complete_from: int, skip: int
) -> Activation | None:
    """Results are reproduced once labelled later than the last window that is not."""
    window = operator.window
    first = bisect_left(seen, complete_from) - skip
    if first + skip == len(seen):
        return None
    opens = window.start_at_or_after(first)
    partial = opens - window.slide
    if partial < 0:
        return Activation(discard=(opens - first,), label_from=complete_from)
    labelled_by = partial if operator.label == "start" else partial + window.length - 1
    if labelled_by + skip >= len(seen):
        return None
    return Activation(discard=(opens - first,), label_from=seen[labelled_by + skip] + 1)


def _time(cut: _Cut) -> HandOff:
    last, window = cut.last, cut.last.window
    migration_ts = time_migration_ts(cut.complete_from, _last_window_ts(cut), window.slide)
    opens_at = activation_ts(migration_ts, window.slide)
    end = migration_ts + window.length
    eager = isinstance(last, Join) and last.eager
    at_origin = eager and cut.suppress_at == "origin"
    quiet = max(end if eager and not at_origin else ANY, cut.quiet_before)
    return HandOff(
        migration=migration_ts,
        migration_ts=migration_ts,
        origin_end=end,
        suppress_from=opens_at if at_origin else None,
        source_from=cut.start_ts,
        activations=(*cut.upstream, Activation(opens_at=opens_at, silent_before=quiet)),
    )


def _last_window_ts(cut: _Cut) -> int:
    """The most recent window the origin is bound to.

    One that has closed; for an eager join one that has opened, because its pairs are already out.
    At least the one before its own first: that belongs to the node before it.
    """
    last, window = cut.last, cut.last.window
    eager = isinstance(last, Join) and last.eager
    if cut.newest is None:
        bound = window.start_at_or_before(max(cut.complete_from) - 1)
    elif eager:
        bound = window.start_at_or_before(cut.newest)
    else:
        late_by = cut.query.late_by if len(cut.query.operators) == 1 else 0
        bound = window.start_at_or_before(cut.newest - late_by - window.length)
    if cut.began is None:
        return bound
    return max(bound, window.start_at_or_after(cut.began.activations[-1].opens_at) - window.slide)


def _tuples(cut: _Cut) -> HandOff | None:
    window, joins = cut.last.window, isinstance(cut.last, Join)
    skipped = skips(cut.began, len(cut.upstream), len(cut.seen))
    if cut.newest is None or cut.newest < max(cut.complete_from):
        return None  # a tuple that both nodes count may still come
    firsts = [
        bisect_left(ts, start) - skip
        for ts, start, skip in zip(cut.seen, cut.complete_from, skipped, strict=True)
    ]
    counted = [len(ts) - skip for ts, skip in zip(cut.seen, skipped, strict=True)]
    bound = _last_window_index(cut.last, counted)
    if cut.began is not None:  # the window before its own first is not its own
        bound = max(bound, -window.slide)
    migration = migration_start(max(firsts), bound, window.slide)
    at_origin = joins and cut.suppress_at == "origin"
    own = window.length - window.slide if joins and not at_origin else ANY
    before = cut.quiet_before - migration - window.slide if cut.quiet_before > ANY else ANY
    quiet = max(own, before)
    discard = _discard(firsts, migration, bound, window)
    known = [
        ts[migration + skip]
        for ts, skip in zip(cut.seen, skipped, strict=True)
        if 0 <= migration + skip < len(ts)
    ]
    return HandOff(
        migration=migration,
        migration_ts=min(known, default=None),
        origin_end=migration + window.length,
        suppress_from=migration + window.slide if at_origin else None,
        source_from=cut.start_ts,
        activations=(*cut.upstream, Activation(discard=discard, silent_before=quiet)),
    )


def _last_window_index(last: Operator, counted: list[int]) -> int:
    """Start index of the last window that has closed (aggregate) or opened (join)."""
    if isinstance(last, Aggregate):
        return last.window.start_at_or_before(counted[0] - last.window.length)
    return last.window.start_at_or_before(max(counted) - 1)


def _discard(firsts: list[int], migration: int, bound: int, window: Window) -> tuple[int, ...]:
    """Eq. 7.2's s - delta where it is defined; counted from the next start where it is not.

    The thesis defines delta only for a destination that starts after the last window.
    """
    if max(firsts) > bound:
        return tuples_to_discard([first - bound - 1 for first in firsts], window.slide)
    return tuple(migration + window.slide - first for first in firsts)


def _filter_early(
    query: Query, seen: Sequence[Seen], plan: HandOff, began: HandOff | None
) -> HandOff:
    """Sources may discard everything before the activation timestamp (7.2.5.2).

    Only when all windows are time-based and labelled by start below the controlling one: then no
    later result needs an earlier tuple.
    """
    below = query.operators[:-1]
    if any(op.window.basis == "tuples" or op.label == "end" for op in below):
        return plan
    opens_at = plan.activations[-1].opens_at
    starts = (opens_at,) * query.inputs
    upstream = _upstream(query, seen, starts, began)
    assert upstream is not None  # time-based windows never wait
    return replace(plan, source_from=starts, activations=(*upstream[0], plan.activations[-1]))
