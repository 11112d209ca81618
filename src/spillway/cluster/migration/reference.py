"""A tiny executor of windowed queries: the yardstick for migrations, exact and slow.

Tuples arrive in timestamp order (equal ones: first input first), or late by what the query allows.
Windows close when the watermark, the newest timestamp less that, reaches their end. An executor may
start at a hand-off (destination), end at one (origin), or both: a query moves on.
"""

from collections import deque
from collections.abc import Iterator
from heapq import heappop, heappush
from typing import NamedTuple, Protocol

from spillway.cluster.migration.plan import ANY, Activation, HandOff, Seen, skips
from spillway.cluster.migration.windows import Aggregate, Join, Operator, Query
from spillway.errors import SpillwayError

FOREVER = 2**62


class Row(NamedTuple):
    ts: int
    key: int
    values: tuple[int, ...]


class _Running(Protocol):
    """`time`: the watermark; nothing earlier comes any more."""

    def push(self, row: Row, source: int, time: int) -> list[Row]: ...

    def end_at(self, plan: HandOff) -> None: ...


class _TimeAggregate:
    def __init__(self, spec: Aggregate, start: Activation) -> None:
        self._window, self._label, self._opens_at = spec.window, spec.label, start.opens_at
        self._last_start = FOREVER
        self._open: dict[int, list[int]] = {}  # window start -> values

    def end_at(self, plan: HandOff) -> None:
        self._last_start = plan.migration

    def push(self, row: Row, source: int, time: int) -> list[Row]:
        closed = sorted(s for s in self._open if s + self._window.length <= time)
        results = [self._result(s, self._open.pop(s)) for s in closed if s <= self._last_start]
        first = self._window.start_at_or_after(row.ts - self._window.length + 1)
        for start in range(max(first, self._opens_at), row.ts + 1, self._window.slide):
            self._open.setdefault(start, []).append(row.values[0])
        return results

    def _result(self, start: int, values: list[int]) -> Row:
        ts = start if self._label == "start" else start + self._window.length
        return Row(ts, 0, (sum(values), len(values)))


class _TupleAggregate:
    def __init__(self, spec: Aggregate, start: Activation) -> None:
        self._window, self._label = spec.window, spec.label
        self._index = -(start.discard[0] if start.discard else 0)
        self._last_start = FOREVER
        self._open: deque[tuple[int, list[Row]]] = deque()

    def end_at(self, plan: HandOff) -> None:
        self._last_start = plan.migration

    def push(self, row: Row, source: int, time: int) -> list[Row]:
        index, self._index = self._index, self._index + 1
        if index >= 0 and index % self._window.slide == 0:
            self._open.append((index, []))
        for _, rows in self._open:
            rows.append(row)
        if not self._open or len(self._open[0][1]) < self._window.length:
            return []
        start, rows = self._open.popleft()
        ts = rows[0].ts if self._label == "start" else rows[-1].ts
        result = Row(ts, 0, (sum(r.values[0] for r in rows), len(rows)))
        return [result] if start <= self._last_start else []


class _Join:
    """Two tuples share a window if the later lies in the last window that holds the earlier."""

    def __init__(self, spec: Join, start: Activation) -> None:
        self._window, self._eager = spec.window, spec.eager
        self._by_time = spec.window.basis == "time"
        self._opens_at = start.opens_at if self._by_time else 0
        self._silent_before = start.silent_before
        self._count = [-d for d in start.discard] or [0, 0]
        self._kept: tuple[dict[int, deque[tuple[int, Row]]], ...] = ({}, {})
        self._held: list[tuple[int, int, tuple[int, ...], int]] = []
        self._suppress_from, self._end = FOREVER, FOREVER

    def end_at(self, plan: HandOff) -> None:
        self._end = plan.origin_end
        self._suppress_from = FOREVER if plan.suppress_from is None else plan.suppress_from
        if not self._eager:  # pairs of later windows are the destination's
            self._suppress_from = plan.migration + self._window.slide

    def push(self, row: Row, source: int, time: int) -> list[Row]:
        at = row.ts if self._by_time else self._count[source]
        self._count[source] += 1
        released = list(self._release(time))
        if at < self._opens_at:
            return released
        for other_at, other in self._partners(row, source, at, time if self._by_time else at):
            left, right = (row, other) if source == 0 else (other, row)
            if self._owns(min(at, other_at), max(at, other_at)):
                values = left.values + right.values
                heappush(self._held, (min(at, other_at), row.ts, values, row.key))
        self._kept[source].setdefault(row.key, deque()).append((at, row))
        return released if not self._eager else self._flush()

    def _partners(self, row: Row, source: int, at: int, passed: int) -> list[tuple[int, Row]]:
        waiting = self._kept[1 - source].get(row.key, deque())
        while waiting and self._reach(waiting[0][0]) <= passed:
            waiting.popleft()
        return [(c, r) for c, r in waiting if max(c, at) < self._reach(min(c, at))]

    def _reach(self, coordinate: int) -> int:
        """End of the last window that holds a tuple."""
        return self._window.start_at_or_before(coordinate) + self._window.length

    def _owns(self, earlier: int, later: int) -> bool:
        return self._silent_before <= later < self._end and earlier < self._suppress_from

    def _release(self, now_ts: int) -> Iterator[Row]:
        while not self._eager and self._held and self._reach(self._held[0][0]) <= now_ts:
            earlier, _, values, key = heappop(self._held)
            if earlier < self._suppress_from:  # it may have been held before the plan came
                yield Row(earlier, key, values)

    def _flush(self) -> list[Row]:
        pairs, self._held = sorted(self._held), []
        return [Row(later_ts, key, values) for _, later_ts, values, key in pairs]


def _running(spec: Operator, start: Activation) -> _Running:
    if isinstance(spec, Join):
        return _Join(spec, start)
    by_time = spec.window.basis == "time"
    return _TimeAggregate(spec, start) if by_time else _TupleAggregate(spec, start)


class Executor:
    """Runs one query. `seen`: what a hand-off plan is computed from; `late`: what was dropped."""

    def __init__(self, query: Query, start: HandOff | None = None) -> None:
        activations = start.activations if start else (Activation(),) * len(query.operators)
        self.began = start
        self.late = 0
        self._source_from = start.source_from if start else (ANY,) * query.inputs
        self._label_from = [a.label_from for a in activations]
        self._operators = [
            _running(*pair) for pair in zip(query.operators, activations, strict=True)
        ]
        self._query = query
        self._newest = ANY
        self._end: HandOff | None = None
        stages = max(1, len(query.operators))
        inputs = [query.inputs] + [1] * (stages - 1)
        self._seen: list[tuple[list[int], ...]] = [tuple([] for _ in range(n)) for n in inputs]

    @property
    def seen(self) -> list[Seen]:
        return [tuple(stage) for stage in self._seen]

    @property
    def _watermark(self) -> int:
        return self._newest - self._query.late_by

    def push(self, row: Row, source: int = 0) -> list[Row]:
        """The results that this tuple brings out."""
        if self.finished:
            return []
        if row.ts < self._watermark:
            self.late += 1
            return []
        self._newest = max(self._newest, row.ts)
        if row.ts < self._source_from[source]:
            return []
        self._seen[0][source].append(row.ts)
        if self._query.stateless:
            return [row] if self._end is None or row.ts < self._end.origin_end else []
        rows = self._operators[0].push(row, source, self._watermark)
        for stage in range(1, len(self._operators)):
            rows = self._through(stage, rows)
        return rows

    def _through(self, stage: int, rows: list[Row]) -> list[Row]:
        results = []
        for row in rows:
            if row.ts >= self._label_from[stage - 1]:
                self._seen[stage][0].append(row.ts)
                results += self._operators[stage].push(row, 0, row.ts)
        return results

    def end_at(self, plan: HandOff) -> None:
        """From now on this is the origin of a hand-off: finish the last window, then stop."""
        if self._end is not None:
            raise SpillwayError(
                "the query is being handed over already: move it on from its destination"
            )
        self._end = plan
        if self._operators:
            self._operators[-1].end_at(plan)

    @property
    def finished(self) -> bool:
        """The controlling window has consumed its last window: all operators may go."""
        if self._end is None:
            return False
        end, last = self._end.origin_end, self._seen[-1]
        if len(self._seen) == 1 and not self._counts:
            return self._watermark >= end
        if not self._counts:
            return any(ts and ts[-1] >= end for ts in last)
        skipped = skips(self.began, len(self._seen) - 1, len(last))
        return all(len(ts) - skip >= end for ts, skip in zip(last, skipped, strict=True))

    @property
    def _counts(self) -> bool:
        """Whether the controlling window counts tuples."""
        last = self._query.operators[-1:]
        return bool(last) and last[0].window.basis == "tuples"
