"""How much of a backlog the next micro-batch keeps. Standard library only."""

import math
from collections.abc import Sequence

from spillway.load.batch_model import SHORTEST_S
from spillway.load.shares import LEAST_KEPT
from spillway.model import Backlog, BatchRecord, Prices, Target

_FIRST_TUPLES = 1000  # of the first batch, when nothing is known about the cost
_LARGEST_GROWTH = 2.0  # of a batch, against the largest one seen
_PEAK_MEMORY = 0.995  # per batch
_AIM = 0.98  # of the target: noise would put every second window above it
_ERROR_LIMIT = 0.3  # of the target: one pause must not move the correction far
_CORRECTION_RANGE = (-0.4, 0.15)
# The margin that noise asks for below a p99 target, in its standard deviations: a batch's duration
# is half of the delay and that of the batch before it the other half, so 2.33 / 2 of each. What was
# lost beyond that to a burst is given back faster.
_MARGIN = 2.33 / math.sqrt(2.0)
_GIVEN_BACK = 6.0
_FEWER = 4  # times fewer in every second batch that is hopeless

Plan = tuple[int, str]  # how many tuples to keep, and why


class BatchPlanner:
    """n = the largest for which age + o + c n + s m meets the target (for its statistic).

    Length. While everything fits within the target everything is kept. Under overload the length
    D of a batch is the age of the next one: for evenly spread arrivals the statistic of the ages
    at planning is p D (p = 1/2 for the mean), so filling up the target, D' = y - p D, swings
    around y / (1 + p) with ratio -p: hardly damped for p99. The length is therefore also held at
    y / (1 + p), which is the best constant one (see `oracle`): a batch that was too long is
    followed by one short batch, and no long one after it.

    Correction. The target used is y (1 + b): b integrates the measured error, slowly and with the
    error clipped, only while shedding is in effect. For the mean it is symmetric. For a percentile
    late tuples count by the batch, so overshoots weigh more; b then settles as the margin that the
    noise of the batch durations asks for. A burst takes more than that; it is given back faster.

    Start. Nothing is shed while the cost is unknown: what a first, small batch does not reach
    waits (that is the gate's work). A batch that sheds does not grow beyond twice the largest one
    so far, and the uncertainty of the estimates counts as time that is needed.

    Impossible. Where not even the fixed price fits, shedding saves next to nothing: as many tuples
    are kept as take a tenth of it. Every second batch keeps fewer: an o that is only thought to be
    too long shows between batches of different size, and like ones would never refute it.
    """

    def __init__(self) -> None:
        self.correction = 0.0
        self._fewer = False  # the last hopeless batch was the smaller one
        self._peak_tuples = 0.0
        self._last_rate_per_s = 0.0  # tuples kept over duration, of the last batch
        self._noise = 0.1

    def observe(
        self,
        batches: Sequence[BatchRecord],
        delay_s: float | None,
        target: Target,
        prices: Prices | None,
    ) -> None:
        """Learn from the batches finished since the last plan and from the delay they gave; None
        where nothing was shed."""
        self._noise = prices.noise if prices else self._noise
        for batch in batches:
            self._peak_tuples = max(self._peak_tuples * _PEAK_MEMORY, float(batch.kept_tuples))
            if batch.duration_s > SHORTEST_S:
                self._last_rate_per_s = batch.kept_tuples / batch.duration_s
        if batches and delay_s is not None:
            self._correct(delay_s / target.delay_s - _AIM, target)

    def aim_s(self, target: Target) -> float:
        """The target, corrected by what was measured."""
        return target.delay_s * (1.0 + self.correction)

    def plan(self, backlog: Backlog, target: Target, prices: Prices | None) -> Plan:
        waiting = backlog.pending_tuples
        if waiting <= 0:
            return self._planned(0, 0, "nothing waits")
        if prices is None:
            return self._planned(waiting, waiting, "the cost is not known yet")
        wanted_s = self.aim_s(target)
        room_s = wanted_s - backlog.statistic_age_s
        everything_s = prices.pace * prices.duration_s(waiting, waiting)
        if everything_s <= room_s:
            return self._planned(waiting, waiting, f"all of it takes {everything_s:.3g} s")
        length_s = min(room_s, wanted_s / (1.0 + target.age_share))
        fits = max(_fitting(prices, length_s / prices.pace, waiting), self._proven(length_s))
        allowed = int(_LARGEST_GROWTH * max(self._peak_tuples, _FIRST_TUPLES / 2))
        least = max(
            math.ceil(LEAST_KEPT * waiting), self._cheap(prices, min(allowed, fits), waiting)
        )
        return self._planned(
            min(waiting, max(least, min(allowed, fits))),
            waiting,
            f"age {backlog.statistic_age_s:.3g} s leaves {room_s:.3g} s, "
            f"batch of {max(0.0, length_s):.3g} s",
        )

    def _cheap(self, prices: Prices, fits: int, waiting: int) -> int:
        """What is kept although it does not fit, because shedding it would save nothing."""
        cheap = prices.cheap_tuples
        if cheap <= fits or cheap >= waiting:
            return cheap
        self._fewer = not self._fewer
        return max(fits, cheap // _FEWER) if self._fewer else cheap

    def _proven(self, length_s: float) -> int:
        """What the last batch alone shows to fit: k times the tuples take at most k times as long.

        That holds for every o, c and s from zero up as long as no more than k times as many are
        scanned, so an overestimated cost cannot keep batches so small that nothing more is ever
        learned about it. When the rate jumps, the first batches may be longer by their scanning.
        """
        return int((1.0 - 2.0 * self._noise) * self._last_rate_per_s * length_s)

    def _planned(self, tuples: int, waiting: int, why: str) -> Plan:
        return tuples, f"keeps {tuples} of {waiting}: {why}"

    def _correct(self, error: float, target: Target) -> None:
        clipped = min(max(-_ERROR_LIMIT, error), _ERROR_LIMIT)
        quantile = target.quantile
        late, early = (0.05, 0.05) if quantile is None else (0.15, 0.6 * (1.0 - quantile))
        if quantile is not None and self.correction < -_MARGIN * self._noise:
            early *= _GIVEN_BACK
        gain = late if clipped > 0.0 else early
        low, high = _CORRECTION_RANGE
        low = max(low, -0.1 - 3.0 * self._noise)  # more than that is no noise
        self.correction = min(max(low, self.correction - gain * clipped), high)


def _fitting(prices: Prices, length_s: float, waiting: int) -> int:
    fixed_s = prices.fixed_s + prices.scanned_s * waiting
    first = min(max(0.0, (length_s - fixed_s) / prices.kept_s), float(waiting))
    doubt_s = prices.doubt_s(first, waiting)
    fits = (length_s - fixed_s - doubt_s) / prices.kept_s
    return int(min(max(0.0, fits), float(waiting)))
