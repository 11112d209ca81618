"""The audit: offered = admitted + shed + pending, per batch and in total, to the tuple.

Works on offsets alone. What a batch kept is computed again from its stretches and its rule, and
must agree with the running totals that the gate wrote down; what is pending must lie between where
the batch ends and how far each partition had been offered. Where a shedder counted in the data, the
offset holds the count itself: that it adds up is all that can be said here, and the audit says so
(`measured`); shedders/recount.py looks at the log again.

One line is looked at at a time. Of a life stay eight bytes a batch, which tell a repeated line from
one that contradicts it, the two offsets beside every interruption, so that lines may come in any
order, and the last gaps.
"""

from array import array
from bisect import bisect_right, insort
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spillway.gate.joints import joint_problems, own_problems
from spillway.gate.offsets import Gap, Offset, Totals, digest
from spillway.gate.shedders.recount import is_measured

Life = tuple[str, int]  # a gate's name and when it began

_MOST_RUNS = 1000  # of batches without an interruption
MOST_NAMED = 1000  # missing batches, and problems
_MOST_GAPS = 10  # that are kept
LEDGER_TWICE = "its lines in the ledger differ: two drivers have written them"


@dataclass(frozen=True, kw_only=True)
class BatchAudit:
    """One finished batch. `pending` is what waited when it had been planned."""

    seq: int
    planned_us: int
    offered: int
    admitted: int
    shed: int
    pending: int
    keep_ppm: int
    reason: str
    measured: bool  # admitted was counted in the data
    unread: int  # of the shed: cut by the gate or lost by the log, for which no tuple speaks
    gap: Gap | None  # when those arrived


@dataclass(frozen=True, kw_only=True)
class Audit:
    """One gate, from its first batch in the ledger to its last."""

    gate: str
    began_us: int
    batches: tuple[BatchAudit, ...]  # the last ones, where not all were to be kept
    batch_count: int
    measured_batches: int
    gaps: tuple[BatchAudit, ...]  # the last batches that left tuples unread
    gap_count: int
    unread_tuples: int  # of all of them
    totals: Totals
    pinned: Mapping[str, str]  # options, as the last batch has them
    missing: tuple[int, ...]  # the first of them
    missing_count: int
    problems: tuple[str, ...]

    @property
    def exact(self) -> bool:
        return not self.problems and self.missing_count == 0


@dataclass(slots=True)
class _Run:
    """Batches without an interruption, each by its digest; the offsets of the first and last."""

    head: Offset
    tail: Offset
    digests: "array[int]"

    @property
    def stop(self) -> int:
        return self.head.seq + len(self.digests)


class LifeAudit:
    """One life of a gate, batch by batch, in whatever order its lines come."""

    def __init__(self, shown: int | None = None) -> None:
        self._runs: list[_Run] = []  # ascending
        self._shown: deque[BatchAudit] = deque(maxlen=shown)
        self._measured = 0
        self._gaps: list[BatchAudit] = []  # ascending, the last ones
        self._gap_count = self._unread = 0
        self._problems: list[str] = []
        self._unnamed = 0  # problems beyond those
        self._is_scattered = False

    def add(self, offset: Offset, if_other: str = LEDGER_TWICE) -> BatchAudit | None:
        """The batch, if this is the first line of it; `if_other` is wrong where an earlier one
        says something else."""
        found, number = digest(offset), bisect_right(self._runs, offset.seq, key=_first)
        if number > 0 and offset.seq < self._runs[number - 1].stop:
            run = self._runs[number - 1]
            if run.digests[offset.seq - run.head.seq] != found:
                self._note(f"batch {offset.seq}: {if_other}")
            return None
        batch = _batch(offset)
        if not self._place(offset, found, number, batch.admitted):
            return None
        for problem in own_problems(offset, batch.admitted):
            self._note(problem)
        self._shown.append(batch)
        self._measured += batch.measured
        if batch.unread > 0:
            self._gap_count, self._unread = self._gap_count + 1, self._unread + batch.unread
            insort(self._gaps, batch, key=_seq)
            del self._gaps[:-_MOST_GAPS]
        return batch

    def result(self) -> Audit:
        first, last = self._runs[0].head, self._runs[-1].tail
        counts = [len(run.digests) for run in self._runs]
        problems = list(self._problems)
        if self._unnamed > 0:
            problems.append(f"{self._unnamed} more problems")
        return Audit(
            gate=first.gate,
            began_us=first.began_us,
            batches=tuple(sorted(self._shown, key=_seq)),
            batch_count=sum(counts),
            measured_batches=self._measured,
            gaps=tuple(self._gaps),
            gap_count=self._gap_count,
            unread_tuples=self._unread,
            totals=last.totals,
            pinned=last.pinned,
            missing=tuple(self._missing()),
            missing_count=last.seq + 1 - sum(counts),
            problems=tuple(problems),
        )

    def _place(self, offset: Offset, found: int, number: int, kept: int) -> bool:
        """Into the run that it continues, or a new one before run `number`."""
        runs, before = self._runs, self._runs[number - 1] if number > 0 else None
        if before is not None and before.stop == offset.seq:
            self._join(before.tail, offset, kept)
            before.digests.append(found)
            before.tail = offset
            number -= 1
        elif len(runs) < _MOST_RUNS:
            runs.insert(number, _Run(offset, offset, array("Q", [found])))
        else:
            if not self._is_scattered:
                self._note(f"more than {_MOST_RUNS} interruptions: not all is looked at")
            self._is_scattered = True
            return False
        self._close(number, offset)
        return True

    def _close(self, number: int, offset: Offset) -> None:
        """Run `number` has grown by `offset`: it may now reach the next one. A short run is put
        at the end of a longer one; the other way round it would cost its length every time."""
        runs = self._runs
        run = runs[number]
        if number + 1 < len(runs) and run.stop == runs[number + 1].head.seq:
            following = runs[number + 1].head
            self._join(offset, following, following.kept_tuples())
        while number + 1 < len(runs) and run.stop == runs[number + 1].head.seq:
            shorter = runs[number + 1]
            if len(shorter.digests) > len(run.digests):
                break
            run.digests.extend(shorter.digests)
            run.tail = shorter.tail
            del runs[number + 1]

    def _join(self, before: Offset, after: Offset, kept: int) -> None:
        for problem in joint_problems(before, after, kept):
            self._note(problem)

    def _note(self, problem: str) -> None:
        if len(self._problems) < MOST_NAMED:
            self._problems.append(problem)
        else:
            self._unnamed += 1

    def _missing(self) -> Iterator[int]:
        stop, left = 0, MOST_NAMED
        for run in self._runs:
            named = range(stop, min(run.head.seq, stop + left))
            yield from named
            stop, left = run.stop, left - len(named)


def audit(chain: Sequence[Offset]) -> Audit:
    """The offsets of one life, with all of its batches."""
    life = LifeAudit()
    for offset in chain:
        life.add(offset)
    return life.result()


def lives(offsets: Iterable[Offset]) -> Mapping[Life, list[Offset]]:
    """Offsets by gate and beginning, each in the order of its batches, doubles removed."""
    found: dict[Life, dict[int, Offset]] = defaultdict(dict)
    for offset in offsets:
        found[offset.gate, offset.began_us].setdefault(offset.seq, offset)
    return {life: [by_seq[s] for s in sorted(by_seq)] for life, by_seq in found.items()}


def shed_positions(offset: Offset) -> Iterator[tuple[int, npt.NDArray[np.int64]]]:
    """For each partition the positions that the batch dropped, ascending."""
    for stretch in offset.stretches:
        yield stretch.partition, stretch.shed_positions(offset.rule)


def _first(run: _Run) -> int:
    return run.head.seq


def _seq(batch: BatchAudit) -> int:
    return batch.seq


def _batch(offset: Offset) -> BatchAudit:
    kept = offset.kept_tuples()
    return BatchAudit(
        seq=offset.seq,
        planned_us=offset.planned_us,
        offered=offset.offered_tuples,
        admitted=kept,
        shed=offset.offered_tuples - kept,
        pending=offset.totals.pending,
        keep_ppm=offset.rule.keep_ppm,
        reason=offset.rule.reason,
        measured=is_measured(offset),
        unread=offset.unread_tuples,
        gap=offset.gap if offset.unread_tuples else None,
    )
