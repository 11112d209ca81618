"""From a load manager's decision to the batch: how far it reaches and what of it is kept."""

import math
from dataclasses import dataclass, replace

from spillway.gate.arrivals import Arrivals
from spillway.gate.entry import EntryShare
from spillway.gate.options import GateOptions
from spillway.gate.pacing import Cut, Pace, cut, freshest
from spillway.gate.staleness import is_stale, newest_within_target
from spillway.load.shares import LEAST_KEPT
from spillway.model import Decision, KeepFraction, Prices, Target

_NO_LONGER = "no longer than the target"
_NARROWING = 20  # steps towards a reach that keeps to the bounds


@dataclass(frozen=True, kw_only=True)
class Given:
    """A batch as it was cut, and what that means for the rest."""

    cut: Cut
    share: float  # of everything that waited, for all gates of the query
    bounded: bool  # less than was wanted, because a batch of that size has not been tried yet


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What one batch is cut under."""

    options: GateOptions
    target: Target
    prices: Prices | None
    pace: Pace
    entry: EntryShare | None  # the shares under which tuples came; None: the law decides now
    adapts: bool  # the law answers to the load
    decides_now: bool  # from what waits at this very moment
    left_behind: bool  # the batch before was bounded
    restrained: bool = False  # nothing has to go: batches as large as have been tried
    most_tuples: int | None = None  # that can be worked off; the oldest beyond them go
    least_share: float = 0.0  # of what waits, that must be kept
    now_s: float

    def cut(self, decision: Decision, everything: Arrivals, own: Arrivals) -> Given:
        """`own` is what waits at this gate, `everything` at all gates of the query."""
        if self._is_too_much(everything):
            return self._within_reach(decision, own)
        kept, least = self._wanted(decision, everything)
        thinned = self._thins(everything)
        if thinned is not None:
            kept, least = min(kept, thinned), self._min_keep
        pending = max(1, everything.tuples)
        share = min(1.0, kept / pending)
        bounded = self.pace.bounds(share * own.tuples, own.tuples)
        if self._cuts_oldest(kept, everything):
            newest = self._newest(decision, everything)
            share = min(1.0, (newest.reach_tuples - newest.skip_tuples) / pending)
            return Given(cut=newest, share=share, bounded=bounded)
        given = cut(share * own.tuples, least, own.tuples, self.bounds, decision.reason)
        if self.entry is not None and given.reach_tuples < own.tuples and thinned is None:
            given = self._as_it_came(given, self.entry, own)
        if self.options.joint is not None:
            share = _kept_share(given) if own.tuples > 0 else share  # bounds are for all gates
        elif self.options.policy == "fresh":
            given = freshest(given)
        return Given(cut=given, share=share, bounded=bounded)

    def _is_too_much(self, everything: Arrivals) -> bool:
        most = self.most_tuples
        return most is not None and self._may_cut and everything.tuples > most

    def _within_reach(self, decision: Decision, own: Arrivals) -> Given:
        """The oldest go; what can be worked off is taken up in order."""
        most = self.most_tuples or 0
        skip, kept = own.tuples - most, min(most, self.bounds.kept_tuples)
        reason = f"{decision.reason}; {skip} cannot be worked off in time and are cut"
        given = Cut(reach_tuples=skip + kept, skip_tuples=skip, fraction=1.0, reason=reason)
        return Given(cut=given, share=1.0, bounded=True)

    def _as_it_came(self, given: Cut, entry: EntryShare, own: Arrivals) -> Cut:
        """The oldest came under shares of their own: kept by those, within what has been tried and
        what the user allows. The bound by prices gives way: it is only there against minutes."""
        reach = given.reach_tuples
        most = self.pace.within(self.options.max_batch, "max_batch").kept_tuples
        for _ in range(_NARROWING):
            share = max(entry.of(own, reach), self._min_keep)
            if share * reach <= most:
                break
            reach = max(1, int(most / share))
        return replace(given, reach_tuples=reach, fraction=share)

    @property
    def bounds(self) -> Pace:
        pace = self.pace.within(self.options.max_batch, "max_batch")
        return pace if self.restrained else pace.within(self._longest(), _NO_LONGER)

    def _longest(self) -> int | None:
        """Tuples that fill a batch as long as the target, by the least that they certainly cost.

        A law that decides by the period can be wrong for a while. In a batch that takes minutes it
        would never get to correct itself, and a planned batch cannot be escaped. A law that does
        not answer to the load is left alone. None: no bound.
        """
        prices = self.prices
        if prices is None or prices.least_kept_s <= 0.0 or not self.adapts:
            return None
        room_s = self.target.delay_s - prices.fixed_s
        fits = int(room_s / (prices.least_kept_s + prices.scanned_s))
        return max(prices.cheap_tuples, fits, 1)

    def _wanted(self, decision: Decision, everything: Arrivals) -> tuple[float, float]:
        """(tuples to keep, least fraction of what a batch consumes).

        A share stays a share: what does not fit waits. A count is what fits: the rest goes, and
        nothing has to go when it covers everything.
        """
        action, waiting, min_keep = decision.action, everything.tuples, self._min_keep
        if isinstance(action, KeepFraction):
            share = action.fraction if self.entry is None else self.entry.of(everything)
            return share * waiting, max(share, min_keep)
        most = self.options.max_batch if not self.restrained else None
        fits = action.tuples >= waiting and (most is None or waiting <= most)
        return action.tuples, 1.0 if fits else min_keep

    def _cuts_oldest(self, kept: float, arrivals: Arrivals) -> bool:
        """Whether something is shed anyway and the oldest is what goes.

        A law that decides now takes the backlog into account. One that steers by what it did
        before must find it as it left it: only what gathered before it was asked, or was left
        behind because batches had to grow, is not its doing, and would take minutes to work off.
        """
        if not self._may_cut or self.restrained or self.prices is None:
            return False
        stale = is_stale(arrivals, self.now_s, self.target)
        if self.left_behind and not self.decides_now:
            return stale
        fresh = self.options.policy == "fresh"
        return kept < arrivals.tuples and self.decides_now and (stale or fresh)

    def _thins(self, arrivals: Arrivals) -> float | None:
        """Where the oldest may not go unread, what a law of a period finds at its start is thinned
        to what a batch can take."""
        if self._may_cut or not self.adapts or self.restrained or self.prices is None:
            return None
        if self.decides_now or not self.left_behind:
            return None
        if not is_stale(arrivals, self.now_s, self.target):
            return None
        length_s = self.target.delay_s / (1.0 + self.target.age_share)
        prices = self.prices.slower(self.prices.pace)
        room_s = length_s - prices.fixed_s - prices.scanned_s * arrivals.tuples
        return max(room_s / prices.kept_s, prices.cheap_tuples, LEAST_KEPT * arrivals.tuples)

    @property
    def _may_cut(self) -> bool:
        """Whether tuples may go unread."""
        return self._min_keep == 0.0 and self.adapts

    @property
    def _min_keep(self) -> float:
        return max(self.options.min_keep, self.least_share)

    def _newest(self, decision: Decision, arrivals: Arrivals) -> Cut:
        """The newest that meet the target, with what the law has learned from measured delays."""
        prices, target = self.prices, self.target
        assert prices is not None
        if decision.aim_s is not None:
            prices, target = prices.slower(prices.pace), replace(target, delay_s=decision.aim_s)
        fits = newest_within_target(arrivals, self.now_s, prices, target)
        least = math.ceil(LEAST_KEPT * arrivals.tuples)  # some output remains, and is learned
        kept = min(arrivals.tuples, max(fits, prices.cheap_tuples, least))
        stale = "stale backlog" if self.decides_now else "stale backlog of the start"
        why = "freshest first" if self.options.policy == "fresh" else f"{stale}, freshest once"
        reason = f"{why}: keeps {kept} of {arrivals.tuples}"
        return freshest(cut(kept, 0.0, arrivals.tuples, self.bounds, reason))


def _kept_share(given: Cut) -> float:
    return given.fraction * (1.0 - given.skip_tuples / given.reach_tuples)
