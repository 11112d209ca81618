"""The audit: offered = admitted + shed + pending, per batch and in total, to the tuple.

Works on offsets alone. What a batch kept is computed again from its stretches and its rule, and
must agree with the running totals that the gate wrote down.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from spillway.gate.offsets import Offset, Totals

Life = tuple[str, int]  # a gate's name and when it began


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


@dataclass(frozen=True, kw_only=True)
class Audit:
    """One gate, from its first batch in the ledger to its last."""

    gate: str
    began_us: int
    batches: tuple[BatchAudit, ...]
    totals: Totals
    missing: tuple[int, ...]
    problems: tuple[str, ...]

    @property
    def exact(self) -> bool:
        return not self.problems and not self.missing


def lives(offsets: Iterable[Offset]) -> Mapping[Life, list[Offset]]:
    """Offsets by gate and beginning, each in the order of its batches, doubles removed."""
    found: dict[Life, dict[int, Offset]] = defaultdict(dict)
    for offset in offsets:
        found[offset.gate, offset.began_us].setdefault(offset.seq, offset)
    return {life: [by_seq[s] for s in sorted(by_seq)] for life, by_seq in found.items()}


def audit(chain: Sequence[Offset]) -> Audit:
    """`chain`: the offsets of one life, ascending."""
    first, last = chain[0], chain[-1]
    seen = {offset.seq for offset in chain}
    missing = tuple(seq for seq in range(last.seq + 1) if seq not in seen)
    problems = [problem for offset in chain for problem in _own_problems(offset)]
    for before, after in pairwise(chain):
        if after.seq == before.seq + 1:
            problems += _joint_problems(before, after)
    return Audit(
        gate=first.gate,
        began_us=first.began_us,
        batches=tuple(map(_batch, chain)),
        totals=last.totals,
        missing=missing,
        problems=tuple(problems),
    )


def disagreements(chain: Iterable[Offset], logged: Iterable[Offset]) -> tuple[str, ...]:
    """Batches whose ledger line is not the offset that Spark logged."""
    by_seq = {offset.seq: offset for offset in chain}
    return tuple(
        f"batch {offset.seq}: the ledger and Spark's offset log differ"
        for offset in logged
        if offset.seq in by_seq and by_seq[offset.seq] != offset
    )


def shed_positions(offset: Offset) -> Iterator[tuple[int, npt.NDArray[np.int64]]]:
    """For each partition the positions that the batch dropped, ascending."""
    for stretch in offset.stretches:
        yield stretch.partition, stretch.shed_positions(offset.rule)


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
    )


def _own_problems(offset: Offset) -> Iterator[str]:
    totals = offset.totals
    if totals.pending < 0:
        yield (
            f"batch {offset.seq}: offered {totals.offered} is less than admitted"
            f" {totals.admitted} and shed {totals.shed}"
        )
    if offset.seq == 0 and (totals.admitted or totals.shed):
        yield "batch 0: consumes tuples, but a stream begins with an empty batch"


def _joint_problems(before: Offset, after: Offset) -> Iterator[str]:
    kept = after.kept_tuples()
    admitted = after.totals.admitted - before.totals.admitted
    shed = after.totals.shed - before.totals.shed
    if admitted != kept:
        yield f"batch {after.seq}: admitted {admitted}, but its rule keeps {kept}"
    if shed != after.offered_tuples - kept:
        yield f"batch {after.seq}: shed {shed}, but its rule sheds {after.offered_tuples - kept}"
    for what in ("offered", "lost"):
        earlier, later = getattr(before.totals, what), getattr(after.totals, what)
        if later < earlier:
            yield f"batch {after.seq}: {what} falls from {earlier} to {later}"
    ends = {stretch.partition: stretch.stop for stretch in before.stretches}
    for stretch in after.stretches:
        end = ends.pop(stretch.partition, stretch.start)
        if stretch.start != end:
            yield (
                f"batch {after.seq}: partition {stretch.partition} starts at {stretch.start},"
                f" but the batch before ended at {end}"
            )
    for partition in ends:
        yield f"batch {after.seq}: partition {partition} of the batch before is missing"
