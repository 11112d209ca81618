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
from dataclasses import dataclass

from spillway.gate.measuring import Standing
from spillway.gate.plausible import Plausible, Seen
from spillway.model import BatchRecord, Prices, Target

_FEWEST = 6  # batches that show anything
_WHOLE_SHARE = 0.98  # kept of what was scanned: a batch that shed next to nothing
_SUSPECT = 0.8  # of the time that a batch may take: shorter ones are no reason to look closer
_WORTH = 0.2  # of that time: where tuples take less, dropping them buys nothing
_LONG = 5.0  # fixed prices: of such batches little is lost to them
_WHOLE = 3  # batches in a row that kept everything in time: no overload
_FITS = 0.95  # of the time: what is thought to take less than this is no overload


@dataclass(frozen=True, kw_only=True, slots=True)
class Room:
    """What a target and a turn leave: batches every `interval_s` that take `length_s`."""

    interval_s: float
    length_s: float

    @classmethod
    def of(cls, target: Target, turn: float) -> "Room":
        interval_s = target.delay_s / (target.age_share + turn)
        return cls(interval_s=interval_s, length_s=turn * interval_s)


class Evidence:
    """Told where the query stands at every plan, and what its batches took."""

    def __init__(self) -> None:
        self.overloaded = False
        self.doubtful = False  # only batches of another size can show whether shedding would help
        self.unreachable = ""  # why the target cannot hold, whatever is shed
        self.most_per_s = math.inf  # what can be carried at most, in batches as long as allowed
        self.rate_per_s = 0.0  # what arrives, over the time of about one batch
        self._offered: deque[tuple[float, int]] = deque()
        self._seen = Seen()  # batches that shed nothing
        self._ended: BatchRecord | None = None  # since the last look
        self._whole = 0  # batches in a row that kept everything in time

    @property
    def last_s(self) -> float:
        return self._seen.last.duration_s if self._seen else math.inf

    def ended(self, batch: BatchRecord) -> None:
        if batch.kept_tuples <= 0 or batch.duration_s <= 0.0:
            return
        self._ended = batch
        if _is_whole(batch):
            self._seen.add(batch)

    def rest(self) -> None:
        """Nothing waits: what was shown is over."""
        self.overloaded = False

    def look(self, now: Standing, room: Room, prices: Prices | None) -> None:
        """At every plan."""
        self._measure_rate(now.now_s, now.offered_tuples, room)
        batch, self._ended = self._ended, None
        if self.overloaded:
            self._disprove(batch, room, prices)
        elif batch is not None and len(self._seen) >= _FEWEST:
            self._prove(room, prices)

    def _measure_rate(self, now_s: float, offered_tuples: int, room: Room) -> None:
        seen = self._offered
        if seen and now_s <= seen[-1][0]:  # the clock was set back
            seen.clear()
        seen.append((now_s, offered_tuples))
        while len(seen) > 2 and now_s - seen[1][0] >= room.interval_s:
            seen.popleft()
        if len(seen) > 1:
            self.rate_per_s = (offered_tuples - seen[0][1]) / (now_s - seen[0][0])

    def _prove(self, room: Room, prices: Prices | None) -> None:
        wanted = self.rate_per_s * room.interval_s  # what one batch would hold
        expected_s = prices.pace * prices.duration_s(wanted, wanted) if prices else math.inf
        if max(expected_s, self.last_s) < _SUSPECT * room.length_s:
            self.doubtful, self.unreachable, self.most_per_s = False, "", math.inf
            return
        plausible = Plausible.of(self._seen)
        fixed_s = plausible.least_fixed_s
        self.most_per_s = plausible.most_per_s(max(room.length_s, _LONG * fixed_s))
        self.unreachable = _why_not(fixed_s, room)
        takes_s, tuples_s = plausible.least_s(wanted), plausible.least_tuples_s(wanted)
        self.doubtful = takes_s > room.length_s and tuples_s < _WORTH * room.length_s
        if prices is not None:  # the split that was learned before others took the machine
            tuples_s = min(tuples_s, prices.pace * prices.kept_s * wanted)
        if takes_s > room.length_s and tuples_s >= _WORTH * room.length_s and not self.unreachable:
            self.overloaded, self._whole = True, 0

    def _disprove(self, batch: BatchRecord | None, room: Room, prices: Prices | None) -> None:
        """Over when all that arrives seems to fit, or all of it did for some time."""
        if batch is not None:
            whole = _is_whole(batch) and batch.duration_s <= room.length_s
            self._whole = self._whole + 1 if whole else 0
        wanted = self.rate_per_s * room.interval_s
        fits = prices is not None and (
            prices.pace * prices.duration_s(wanted, wanted) < _FITS * room.length_s
        )
        if fits or self._whole >= _WHOLE:
            self.rest()


def _is_whole(batch: BatchRecord) -> bool:
    return batch.kept_tuples >= _WHOLE_SHARE * batch.scanned_tuples


def _why_not(fixed_s: float, room: Room) -> str:
    if fixed_s < room.length_s:
        return ""
    return (
        f"a batch takes {fixed_s:.2g} s without a tuple, the target allows {room.length_s:.2g} s:"
        " nothing is shed for it"
    )
