"""From what waits in the log to the next offset. Pure: positions and times in, an offset out."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from spillway.gate.arrivals import Arrivals
from spillway.gate.masks import QueryShare
from spillway.gate.offsets import Arrived, Gap, Offset, Totals
from spillway.gate.options import GateOptions
from spillway.gate.pacing import Cut
from spillway.gate.rules import Policy, Rule, Stretch, kept_tuples, share_ppm
from spillway.gate.sampling import PPM
from spillway.gate.split import Split
from spillway.model import Prices
from spillway.ports import ArrivalCurve, Span

_US = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """Everything in the log that no batch has consumed, lost ranges included."""

    stretches: tuple[Stretch, ...]
    arrivals: Arrivals
    lost_tuples: int

    @property
    def tuples(self) -> int:
        return self.lost_tuples + self.arrivals.tuples


def survey(
    previous: Offset,
    extent: Iterable[Span],
    arrivals_of: Callable[[Span], ArrivalCurve],
    bound: Mapping[int, int] | None = None,
) -> Waiting:
    """What the log holds beyond the previous batch.

    A partition that is new starts at its first position. One that ends below our offset (a clock
    that jumped back, a lagging replica) has nothing to offer for now. Positions below the log's
    first one are lost: consumed without being read. A partition without a bound, where there are
    some, has come since: it is not for this checkpoint yet, or no more.
    """
    done = {s.partition: s.stop for s in previous.stretches}
    stretches = []
    for span in extent:
        if bound is not None and span.partition not in done.keys() | bound.keys():
            continue
        start = done.pop(span.partition, span.start)
        end = span.stop if bound is None else min(span.stop, bound.get(span.partition, 0))
        stop = max(start, end)
        read = min(stop, max(start, span.start))
        stretches.append(Stretch(partition=span.partition, start=start, read=read, stop=stop))
    for partition, stop in done.items():
        stretches.append(Stretch(partition=partition, start=stop, read=stop, stop=stop))
    readable = [s for s in map(_readable, stretches) if s.tuples > 0]
    return Waiting(
        stretches=tuple(sorted(stretches, key=lambda s: s.partition)),
        arrivals=Arrivals.pool([(span, arrivals_of(span)) for span in readable]),
        lost_tuples=sum(s.read - s.start for s in stretches),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """What stays the same over a run."""

    seed: int
    policy: Policy = "uniform"
    dry_run: bool = False
    shares: tuple[QueryShare, ...] = ()
    split: Split | None = None

    @classmethod
    def of(cls, options: GateOptions) -> "Settings":
        return cls(
            seed=options.seed,
            policy=options.policy,
            dry_run=options.dry_run,
            shares=options.masks,
            split=options.split,
        )


def next_offset(
    previous: Offset,
    waiting: Waiting,
    cut: Cut,
    settings: Settings,
    *,
    now_s: float,
    prices: Prices | None,
) -> Offset:
    """The batch that the cut describes, with the running totals after it."""
    rule = _rule(cut, waiting, settings)
    stretches = _cut_stretches(waiting, cut.reach_tuples, cut.skip_tuples)
    consumed = sum(s.tuples for s in stretches)
    kept = kept_tuples(stretches, rule)
    totals, ends = previous.totals, _ends(previous, waiting)
    beyond = sum(ends[s.partition] - s.start for s in waiting.stretches)
    return Offset(
        gate=previous.gate,
        began_us=previous.began_us,
        seq=previous.seq + 1,
        planned_us=round(now_s * _US),
        stretches=stretches,
        rule=rule,
        totals=Totals(
            offered=totals.offered + max(0, beyond - totals.pending),
            admitted=totals.admitted + kept,
            shed=totals.shed + consumed - kept,
            lost=totals.lost + waiting.lost_tuples,
        ),
        prices=prices,
        arrived=_arrived(waiting.arrivals.within(map(_readable, stretches))) if kept else None,
        gap=_gap(previous, waiting, stretches, now_s),
        pinned=previous.pinned,
        ends=ends if beyond >= totals.pending else {},
        owned=previous.owned,
    )


def _ends(previous: Offset, waiting: Waiting) -> dict[int, int]:
    """How far each partition has ever been offered.

    What was offered once stays so: where the end falls back (a clock that stepped back, a replica
    that lags) its tuples stay pending, whatever came to the other partitions meanwhile. An offset
    of 0.1.0 knows one number for all of them; until as much waits again, it goes on with that.
    """
    known = previous.ends
    return {s.partition: max(s.stop, known.get(s.partition, 0)) for s in waiting.stretches}


def _rule(cut: Cut, waiting: Waiting, settings: Settings) -> Rule:
    fraction, notes, shares = cut.fraction, [cut.reason], settings.shares
    if waiting.lost_tuples > 0:
        notes.append(f"the log dropped {waiting.lost_tuples} tuples unread")
    if settings.split is not None:
        spending = settings.split.spend(fraction)
        fraction, shares = spending.keep_fraction, spending.shares
        notes.append(spending.reason)
    would_ppm = share_ppm(fraction * PPM, PPM)
    return Rule(
        keep_ppm=PPM if settings.dry_run else would_ppm,
        seed=settings.seed,
        policy=settings.policy,
        reason="; ".join(notes),
        would_keep_ppm=would_ppm,
        shares=() if settings.dry_run else shares,
    )


def beats(previous: Offset, idle_s: float, quiet_s: float, *, rows: bool) -> bool:
    """Whether a batch without tuples is due.

    One after the last with tuples lets its watermark take effect. With heartbeat rows the
    watermark itself moves, so they go on for as long as it is quiet.
    """
    if not rows and (previous.heartbeat or previous.seq == 0):
        return False
    return idle_s >= quiet_s


def heartbeat(previous: Offset, now_s: float) -> Offset:
    """A batch without tuples: the query runs once, so that its watermark takes effect."""
    rule, selection = previous.rule, previous.rule.selection
    return replace(
        previous,
        seq=previous.seq + 1,
        planned_us=round(now_s * _US),
        stretches=previous.at_rest(),
        rule=Rule(
            seed=rule.seed,
            policy=rule.policy,
            reason="heartbeat",
            selection=None if selection is None else selection.at_rest(),
        ),
        arrived=None,
        heartbeat=True,
    )


def _cut_stretches(waiting: Waiting, reach: int, skip: int) -> tuple[Stretch, ...]:
    arrivals = waiting.arrivals
    stops, reads = {}, {}
    if reach < arrivals.tuples:
        stops = arrivals.oldest(reach)
    if skip > 0:
        reads = arrivals.oldest(skip)
    cut = []
    for s in waiting.stretches:
        stop = min(s.stop, max(s.read, stops.get(s.partition, s.stop)))
        read = min(stop, max(s.read, reads.get(s.partition, s.read)))
        cut.append(replace(s, read=read, stop=stop))
    return tuple(cut)


def _gap(
    previous: Offset, waiting: Waiting, stretches: tuple[Stretch, ...], now_s: float
) -> Gap | None:
    """When the tuples arrived that this batch takes unread. Where it takes none, the gap that the
    batches before have left stays on record: a window may still have a part in it.
    """
    unread = [s for s in stretches if s.read > s.start]
    if not unread:
        return previous.gap
    first = {s.partition: s.read for s in waiting.stretches}  # of what the log still has
    curves = waiting.arrivals.curves
    from_us, until_us = [], []
    for s in unread:
        lost, curve = s.start < first[s.partition], curves.get(s.partition)
        from_us.append(
            _reached_us(previous) if lost or curve is None else round(curve.times_s[0] * _US)
        )
        at_s = now_s if curve is None else np.interp(s.read, curve.positions, curve.times_s)
        until_us.append(math.ceil(float(at_s) * _US))
    return Gap(from_us=min(from_us), until_us=max(until_us))


def _reached_us(previous: Offset) -> int:
    """No tuple that the batch left waiting had arrived before that."""
    if previous.arrived is not None:
        return previous.arrived.first_us
    return previous.planned_us if previous.seq > 0 and previous.totals.pending == 0 else 0


def _readable(stretch: Stretch) -> Span:
    return Span(partition=stretch.partition, start=stretch.read, stop=stretch.stop)


def _arrived(arrivals: Arrivals) -> Arrived:
    def at_us(share: float) -> int:
        return round(arrivals.arrival_of_count_s(share * arrivals.tuples) * _US)

    return Arrived(
        mean_us=round(arrivals.mean_arrival_s() * _US),
        p05_us=at_us(0.05),
        p01_us=at_us(0.01),
        first_us=at_us(0.0),
    )
