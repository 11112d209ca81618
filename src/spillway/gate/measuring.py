"""What a gate's load manager gets to see: the only place where a Measurement of a gate is made."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from spillway.gate.delays import delay_s
from spillway.model import Backlog, Delays, Ended, Measurement, Prices, Target

_SHORTEST_S = 1e-3  # of a period
_LEAST_HEADROOM = 0.05  # of a turn: however dear a batch is, some of it is for tuples
_ENDED_KEPT = 100  # while nobody asks


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """Where a query stands at a trigger. Counts are since its first start."""

    now_s: float
    target: Target
    admitted_tuples: int
    shed_tuples: int
    backlog: Backlog
    waiting_share: float = 1.0  # the part of the backlog that will be kept, by how it came in
    turn: float = 1.0  # batch-seconds per second that it may use

    @property
    def offered_tuples(self) -> int:
        return self.admitted_tuples + self.shed_tuples + self.backlog.pending_tuples


class Meter:
    """Counts what happens between two decisions.

    A gate sees a batch end when the next one is planned: nothing is in flight then, and all that
    is outstanding waits. Seen there, the queue is at its shortest. What the papers' laws mean is
    the queue that a tuple meets. Over a cycle of batches n tuples gather and n more are in work
    for the part of the time in which a batch runs; so the mean of what is outstanding is
    n (p + turn), p = 1/2 for the mean and the quantile for a percentile, and by Little's law the
    delay is that, times c / H. H is what a turn leaves for tuples: the fixed price of a batch as
    long as the target allows, and scanning, count out.
    """

    def __init__(self, query: str, class_name: str) -> None:
        self._query, self._class_name = query, class_name
        self._before: Standing | None = None
        self._ended: list[Ended] = []
        self._completed_tuples = 0

    def ended(self, batch: Ended) -> None:
        self._ended = [*self._ended[1 - _ENDED_KEPT :], batch]
        self._completed_tuples += sum(d.tuples for d in batch.delays)

    def is_due(self, now: Standing, period_s: float) -> bool:
        """Whether a period has passed since the last decision; the first begins now, and so does
        one in which the clock was set back: nobody knows how long it was."""
        if self._before is None or now.now_s < self._before.now_s:
            self.begin(now)
            return False
        return now.now_s - self._before.now_s >= period_s

    def begin(self, now: Standing) -> None:
        """A period begins here."""
        self._before, self._ended, self._completed_tuples = now, [], 0

    def measure(self, now: Standing, prices: Prices | None, entry_share: float) -> Measurement:
        """Since the last decision, at first since the oldest waiting tuple arrived.

        `entry_share` was in force for what arrived meanwhile.
        """
        came_s = now.now_s - now.backlog.oldest_age_s
        before = self._before or replace(now, now_s=came_s, backlog=Backlog())
        ended, completed = tuple(self._ended), self._completed_tuples
        self._before, self._ended, self._completed_tuples = now, [], 0
        period_s = max(_SHORTEST_S, now.now_s - before.now_s)
        offered = max(0, now.offered_tuples - before.offered_tuples)
        cost_s = prices.pace * prices.kept_s if prices else 0.0
        waiting = now.waiting_share * now.backlog.pending_tuples
        queued = waiting * (now.target.age_share + now.turn)
        records = tuple(batch.record for batch in ended)
        return Measurement(
            time_s=now.now_s,
            period_s=period_s,
            target=now.target,
            offered_tuples=offered,
            admitted_tuples=now.admitted_tuples - before.admitted_tuples,
            shed_tuples=now.shed_tuples - before.shed_tuples,
            completed_tuples=completed,
            queued_tuples=round(queued),
            queued_load_s=queued * cost_s,
            offered_load=offered * cost_s / period_s,
            admitted_load=entry_share * offered * cost_s / period_s,
            cost_s=cost_s,
            delay_s=delay_s(_delays(ended), now.target),
            busy_s=sum(record.duration_s for record in records),
            backlog=now.backlog,
            batches=records,
            prices=prices,
            headroom=headroom(prices, now.target, now.turn, offered / period_s),
            class_name=self._class_name,
            query=self._query,
        )


def headroom(prices: Prices | None, target: Target, turn: float, rate_per_s: float) -> float:
    """H: turn - o / D - s r. D is the interval of batches that meets the target: p D + turn D."""
    if prices is None:
        return turn
    interval_s = target.delay_s / (target.age_share + turn)
    spent = prices.pace * (prices.fixed_s / interval_s + prices.scanned_s * rate_per_s)
    return max(_LEAST_HEADROOM * turn, turn - spent)


def _delays(ended: Sequence[Ended]) -> list[Delays]:
    return [delays for batch in ended for delays in batch.delays]
