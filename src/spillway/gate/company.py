"""The gates of one query: what each has in a batch, and what waits at the others."""

from collections.abc import Sequence
from dataclasses import dataclass

from spillway.gate.arrivals import Arrivals
from spillway.gate.delays import delays_of
from spillway.gate.offsets import Arrived, Offset
from spillway.gate.rules import seen_tuples
from spillway.gate.sampling import PPM
from spillway.gate.split import Split
from spillway.model import BatchRecord, Delays
from spillway.ports import ArrivalCurve, Span


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """What one gate has in a batch."""

    kept_tuples: int = 0  # as the load manager counts them: whole tuples before a split
    scanned_tuples: int = 0
    delivered_tuples: int = 0  # as they are
    planned_us: int = 0
    arrived: Arrived | None = None  # None: no tuples
    whole: bool = True  # nothing was to be left out: what a log has lost is nobody's decision

    @classmethod
    def of(cls, batch: Offset, split: Split | None) -> "Part":
        """As the load manager counts it: a tuple that goes to some readers only costs a part."""
        kept = batch.kept_tuples()
        if split is not None:
            kept = split.whole_tuples(kept, seen_tuples(batch.stretches, batch.rule))
        return cls(
            kept_tuples=kept,
            scanned_tuples=batch.scanned_tuples,
            delivered_tuples=batch.kept_tuples(),
            planned_us=batch.planned_us,
            arrived=batch.arrived,
            whole=batch.rule.keep_ppm == PPM and batch.unread_tuples == 0,
        )

    def delays(self, ended_s: float) -> Delays:
        assert self.arrived is not None
        return delays_of(self.arrived, self.delivered_tuples, self.planned_us, ended_s)


NOTHING = Part()


def record_of(parts: Sequence[Part], duration_s: float, ended_s: float) -> BatchRecord:
    """Of a batch with these parts in it."""
    return BatchRecord(
        kept_tuples=sum(part.kept_tuples for part in parts),
        scanned_tuples=sum(part.scanned_tuples for part in parts),
        duration_s=duration_s,
        ended_s=ended_s,
        whole=all(part.whole for part in parts),
    )


@dataclass(frozen=True, kw_only=True)
class Company:
    """The other gates of a query, as the one that decides for all of them sees them."""

    pending: Sequence[tuple[Span, ArrivalCurve]] = ()  # partitions numbered apart from its own
    admitted_tuples: int = 0  # since the first start
    shed_tuples: int = 0

    def beside(self, own: Arrivals) -> Arrivals:
        """Everything that waits for the query."""
        return own.beside(self.pending) if self.pending else own


ALONE = Company()


@dataclass(frozen=True, kw_only=True, slots=True)
class Led:
    """What the gate that leads has decided for all gates of its query."""

    share: float = 1.0  # kept, of what the batch consumes
    reach: float = 1.0  # consumed, of what waits
