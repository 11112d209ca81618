"""Whether something has to go: shown by batches that ran, never guessed.

A backlog alone shows nothing. It can come from a cold start, a restart, a pause or a burst that has
passed; then it is worked off, late and whole. Something has to go only where what keeps arriving
is certainly more than the query can carry within its target: what comes in the time from one batch
to the next takes longer than that time allows, whatever the last batches leave open (`Plausible`).

And only where that helps. A batch that is long by its fixed price, or because others hold the
machine, is as long without its tuples: dropping them would be pure loss.
"""

import math
from collections import deque

from spillway.gate.measuring import Standing
from spillway.gate.plausible import Plausible, Seen
from spillway.gate.room import LONG, Room
from spillway.model import BatchRecord, Prices

_FEWEST = 6  # batches that show anything
_WHOLE_SHARE = 0.98  # kept of what was scanned: a batch that shed next to nothing
_SUSPECT = 0.8  # of the time that a batch may take: shorter ones are no reason to look closer
_WORTH = 0.2  # of that time: where tuples take less, dropping them buys nothing
_WHOLE = 10  # batches in a row that kept everything in time: no overload
_FITS = 0.95  # of the time: what is thought to take less than this is no overload
_FEW, _ALIKE = 0.25, 1.25  # of the last whole batch: what is kept and scanned, to compare them
_LOOKS = 3  # at least, that a rate is measured by, however long batches take
_REACH = 8.0  # times the largest batch that ran: of a larger one nothing is shown
_LASTS = 5  # intervals: a rise that is shorter does not end a catch-up
_PERSISTS = 20  # batches that would be too long by the best guess, more than would not
_WARM_S = 60.0  # of a run: a JVM is warm by then
_CERTAIN = 2.0  # standard deviations, of the fixed price that an overload is judged by


class Evidence:
    """Told where the query stands at every plan, and what its batches took.

    What arrived at once is no load: the rate has to be too high for longer than the time over which
    it is measured. While what waited before is caught up it has to last longer still.
    """

    def __init__(self, max_batch: int | None = None) -> None:
        self.overloaded = False
        self.doubtful = False  # only batches of another size can show whether shedding would help
        self.fixed_s = 0.0  # what a batch certainly takes without a tuple
        self.most_per_s = math.inf  # batch time carries at most, in batches as long as allowed
        self._max_batch = math.inf if max_batch is None else max_batch
        self._offered: deque[tuple[float, int]] = deque()
        self._seen = Seen()  # batches that shed nothing
        self._ended: BatchRecord | None = None  # since the last look
        self._whole = 0  # batches in a row that kept everything in time
        self._too_long = 0  # batches by the best guess, less those that were not
        self._in_vain: list[BatchRecord] = []  # batches in a row that shed and gained nothing

    @property
    def last_s(self) -> float:
        return self._seen.last.duration_s if self._seen else math.inf

    def ended(self, batch: BatchRecord) -> None:
        if self.overloaded and self._seen:
            self._look_for_gain(batch)
        if batch.kept_tuples <= 0 or batch.duration_s <= 0.0:
            return
        self._ended = batch
        if _is_whole(batch):
            self._seen.add(batch)

    def rest(self) -> None:
        """Nothing waits: what was shown is over."""
        self.overloaded, self._in_vain = False, []

    def _look_for_gain(self, batch: BatchRecord) -> None:
        """Batches that keep far less than the last whole one, and are hardly shorter, show that the
        tuples never were what took the time, whatever was thought before."""
        whole = self._seen.last
        few = not _is_whole(batch) and batch.kept_tuples <= _FEW * whole.kept_tuples
        alike = batch.scanned_tuples <= _ALIKE * whole.scanned_tuples
        long = batch.duration_s >= (1.0 - _WORTH) * whole.duration_s
        self._in_vain = [*self._in_vain, batch] if few and alike and long else []
        if len(self._in_vain) >= _FEWEST:
            for each in self._in_vain:
                self._seen.add(each)
            self.rest()

    def look(
        self, now: Standing, room: Room, prices: Prices | None, behind_since_s: float | None = None
    ) -> None:
        """At every plan. Something has been caught up for as long as `behind_since_s`."""
        self._remember(now, room)
        rate_per_s = self._rate_per_s(now.now_s, room, behind_since_s)
        batch, self._ended = self._ended, None
        if self.overloaded:
            self._disprove(batch, room, prices, rate_per_s)
        elif (
            batch is not None
            and len(self._seen) >= _FEWEST
            and self._seems(room, prices, rate_per_s)
        ):
            self.overloaded, self._whole = True, 0

    def _remember(self, now: Standing, room: Room) -> None:
        seen = self._offered
        if seen and now.now_s <= seen[-1][0]:  # the clock was set back
            seen.clear()
        seen.append((now.now_s, now.offered_tuples))
        while len(seen) > _LOOKS and now.now_s - seen[1][0] >= _LASTS * room.interval_s:
            seen.popleft()

    def _rate_per_s(self, now_s: float, room: Room, behind_since_s: float | None) -> float:
        """The least of the last interval and the one before it; in a catch-up also of all of it, or
        of the last intervals. Once it is an overload, over both."""
        if len(self._offered) < _LOOKS:
            return 0.0
        last = self._place(now_s - room.interval_s, len(self._offered) - 1)
        before = self._place(now_s - 2.0 * room.interval_s, last)
        if self.overloaded:
            return self._between(before, -1)
        rates = [self._between(last, -1), self._between(before, last)]
        if behind_since_s is not None:
            from_s = max(behind_since_s, now_s - _LASTS * room.interval_s)
            if now_s - from_s <= room.interval_s:
                return 0.0
            rates.append(self._between(self._place(from_s, len(self._offered) - 1), -1))
        return min(rates)

    def _place(self, at_s: float, below: int) -> int:
        """The last look that is no later, of those below a place; else the first one."""
        places = range(min(below, len(self._offered)) - 1, 0, -1)
        return next((place for place in places if self._offered[place][0] <= at_s), 0)

    def _between(self, begun: int, ended: int) -> float:
        (begun_s, offered), (ended_s, since) = self._offered[begun], self._offered[ended]
        return (since - offered) / (ended_s - begun_s) if ended_s > begun_s else math.inf

    def _seems(self, room: Room, prices: Prices | None, rate_per_s: float) -> bool:
        """Whether all that the batches leave open says overload, and that shedding would help."""
        wanted = rate_per_s * room.interval_s  # what one batch would hold
        if max(self._expected_s(wanted, prices), self.last_s) < _SUSPECT * room.length_s:
            self.doubtful, self.most_per_s = False, math.inf
            self.fixed_s = min(self.fixed_s, self.last_s)
            return False
        plausible = Plausible.of(self._seen)
        asked, fixed_s = room, plausible.least_fixed_s
        self.fixed_s = fixed_s
        if plausible.most_fixed_s >= room.length_s:
            # Perhaps no shedding holds the target: what counts is what cannot be carried at all.
            room = room.widened(plausible.most_fixed_s)
            wanted = rate_per_s * room.interval_s
        self.most_per_s = self._carried_per_s(plausible, room)
        most, batches = min(wanted, self._max_batch), max(1.0, wanted / self._max_batch)
        takes_s = batches * plausible.least_s(min(most, _REACH * self._seen.most_tuples))
        tuples_s = plausible.least_tuples_s(wanted) + (batches - 1.0) * fixed_s
        expected_s = self._expected_s(wanted, prices)
        worth_s = _WORTH * room.length_s
        unclear = room is not asked or tuples_s < worth_s
        too_long = max(takes_s, expected_s) > room.length_s or self.last_s > asked.length_s
        self.doubtful = unclear and too_long and fixed_s < asked.length_s
        if prices is not None:  # the split that was learned before others took the machine
            kept_s = prices.pace * prices.kept_s * wanted
            tuples_s = min(tuples_s, kept_s + (batches - 1.0) * fixed_s)
        certain = takes_s > room.length_s or self._persists(room, expected_s)
        return certain and tuples_s >= worth_s

    def _carried_per_s(self, plausible: Plausible, room: Room) -> float:
        """At most, by batch time."""
        most_per_s = plausible.most_per_s(max(room.length_s, LONG * plausible.least_fixed_s))
        if math.isinf(self._max_batch):
            return most_per_s
        largest_s = plausible.least_s(self._max_batch)
        return min(most_per_s, self._max_batch / max(largest_s, 1e-6))

    def _persists(self, room: Room, expected_s: float) -> bool:
        """A little too much for minutes: less than any single batch could show."""
        step = 1 if expected_s > room.length_s and self._seen.lasts_s >= _WARM_S else -1
        self._too_long = min(max(0, self._too_long + step), _PERSISTS)
        return self._too_long == _PERSISTS

    def _expected_s(self, wanted: float, prices: Prices | None) -> float:
        if prices is None:
            return math.inf
        most, batches = min(wanted, self._max_batch), max(1.0, wanted / self._max_batch)
        return batches * prices.pace * prices.duration_s(most, most)

    def _disprove(
        self, batch: BatchRecord | None, room: Room, prices: Prices | None, rate_per_s: float
    ) -> None:
        """Over when all that arrives seems to fit, or hardly not and all of it did for some time.

        Batches that shed differ in what they keep, so now the learned fixed price can be trusted.
        """
        if prices is not None:
            doubt_s = _CERTAIN * math.sqrt(max(0.0, prices.doubts[0]))
            self.fixed_s = prices.pace * max(0.0, prices.fixed_s - doubt_s)
        expected_s = self._expected_s(rate_per_s * room.interval_s, prices)
        if batch is not None:
            in_time = batch.duration_s <= room.length_s and expected_s < room.length_s
            self._whole = self._whole + 1 if in_time and _is_whole(batch) else 0
        if expected_s < _FITS * room.length_s or self._whole >= _WHOLE:
            self.rest()


def _is_whole(batch: BatchRecord) -> bool:
    if batch.whole is not None:
        return batch.whole
    return batch.kept_tuples >= _WHOLE_SHARE * batch.scanned_tuples
