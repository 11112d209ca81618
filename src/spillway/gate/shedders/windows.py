"""Whole windows: a tumbling window of event time is kept or gone as a whole.

Its fate is drawn when its first tuple is planned and stands in every later offset, so that what
remains is complete: the query's result is a subset of the true one.

Windows are drawn systematically: each has a chance p, chances are laid end to end from a random
start, and a window stays when a whole number lies in its piece. So of windows of equal size never
one more or less stays than was decided, and each window's chance is p itself: it depends on the
decisions and the sizes, never on the lots of the windows before (a chance that made up for their
lots would be known given the past only, and 1 / p would weigh too little). p is the decided share,
plus what is owed because the share changed while a window lasted, over the size of a window.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from spillway.errors import SpillwayError
from spillway.gate.sampling import PPM
from spillway.gate.shedders.hashing import Indexes, microseconds, places_ppm, salted
from spillway.gate.shedders.kept import Kept
from spillway.gate.shedders.shedder import Batch, Shedder, WholeWindows, asked_us
from spillway.options import Option

REMEMBERED = 128  # decided windows
NEVER = -(1 << 62)  # before all windows


@dataclass(frozen=True, kw_only=True, slots=True)
class Held:
    """How many tuples of the batch at hand a window holds."""

    window: int
    tuples: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Windows(Shedder):
    name: ClassVar[str] = "windows"
    options: ClassVar[tuple[Option, ...]] = (
        Option("window", "duration", "length of the query's tumbling window", example="10s"),
    )
    no_sample: ClassVar[str] = (
        "the windows that remain are complete: their results are exact as they are"
    )

    column: str  # the event time
    length_us: int
    windows: tuple[tuple[int, int], ...] = ()  # decided ones and their chance in ppm, < 0: gone
    window_tuples: int = 0  # what a window holds, about
    kept_tuples: int = 0
    owed_tuples: int = 0  # decided minus expected by the windows' chances, of all batches so far
    place_ppm: int = 0  # where the chances laid end to end have come to, without whole numbers
    unsure_until: int = NEVER  # the newest window forgotten that was not certain to stay
    timeless: int = 0  # 1: nothing is dropped, rows without an event time stay as well

    @classmethod
    def asked(cls, options: Mapping[str, str], event_time: str | None) -> "Windows":
        if event_time is None:
            raise SpillwayError(
                "shedder 'windows' needs the event time: name its column with option 'heartbeat'"
                " (event_time in a flow file)"
            )
        return cls(column=event_time, length_us=asked_us(options, "window"))

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    @property
    def whole_windows(self) -> WholeWindows:
        return WholeWindows(column=self.column, length_us=self.length_us)

    def keep(self, rows: Any, *, share: int, seed: int, block: int) -> Kept:
        chances, since = dict(self.windows), _since(self.windows)
        found, null = self._numbers(rows)
        distinct, inverse = np.unique(found, return_inverse=True)
        fates = [chances.get(int(w), self._chance_of_late(int(w))) for w in distinct]
        chance = np.array(fates, dtype=np.int64)[inverse]
        chance[null] = PPM * self.timeless
        mask: npt.NDArray[np.bool] = chance > 0
        first = np.array([since.get(int(window), 0) for window in distinct], dtype=np.int64)
        return Kept(
            mask=mask,
            weights=PPM / chance[mask].astype(np.float64),
            kept_from_us=(first * self.length_us)[inverse[mask]],
        )

    def _is_forgotten(self, window: int) -> bool:
        """Older than all that are remembered."""
        return len(self.windows) >= REMEMBERED and window < self.windows[0][0]

    def _chance_of_late(self, window: int) -> int:
        """Of a window that is forgotten: it stayed for certain, or what comes that late is gone."""
        return PPM if self._is_forgotten(window) and window > self.unsure_until else 0

    def _numbers(self, rows: Any) -> tuple[Indexes, npt.NDArray[np.bool]]:
        """Each row's window, counted from 1970 as Spark does, and where there is no event time."""
        times_us, null = microseconds(rows.column(self.column))
        return times_us // self.length_us, null

    def decided(self, batch: Batch) -> "Windows":
        counts: Counter[int] = Counter()
        nulls = 0
        for rows in batch.blocks:
            found, null = self._numbers(rows)
            numbers, tuples = np.unique(found[~null], return_counts=True)
            counts.update(dict(zip(numbers.tolist(), tuples.tolist(), strict=True)))
            nulls += int(null.sum())
        held = [Held(window=window, tuples=tuples) for window, tuples in counts.items()]
        drawn = self.drawn(held, batch.keep_ppm, batch.seed)
        timeless = int(batch.keep_ppm == PPM)
        kept = drawn.kept_tuples + timeless * nulls
        return replace(drawn, kept_tuples=kept, timeless=timeless)

    def drawn(self, held: Iterable[Held], keep_ppm: int, seed: int) -> "Windows":
        """With fates for the windows that are new, and counts of what stays."""
        fates = dict(self.windows)
        owed, kept, place = float(self.owed_tuples), 0, self.place_ppm
        ordered = sorted(held, key=lambda h: h.window)
        size = max([self.window_tuples, *(h.tuples for h in ordered)], default=1)
        late = [h for h in ordered if self._is_forgotten(h.window)]
        for h in ordered[len(late) :]:
            if h.window not in fates:
                chance = _chance_ppm(keep_ppm, owed, size)
                stays = (place + _start_ppm(seed)) % PPM + chance >= PPM
                fates[h.window] = chance if stays else -chance
                place = (place + chance) % PPM
            fate = fates[h.window]
            kept += h.tuples if fate > 0 else 0
            owed += h.tuples * (keep_ppm - abs(fate)) / PPM
        remembered = _remembered(fates, ordered)
        gone = fates.keys() - {window for window, _ in remembered}
        unsure = [self.unsure_until, *(window for window in gone if fates[window] != PPM)]
        drawn = replace(self, windows=remembered, unsure_until=max(unsure))
        for h in late:
            fate = drawn._chance_of_late(h.window)
            kept += h.tuples if fate > 0 else 0
            owed += h.tuples * (keep_ppm - fate) / PPM
        return replace(
            drawn,
            window_tuples=self._typical(ordered, size),
            kept_tuples=kept,
            owed_tuples=round(max(-2.0 * size, min(2.0 * size, owed))),
            place_ppm=place,
        )

    def _typical(self, held: list[Held], size: int) -> int:
        """Follows a growing stream at once, a shrinking one slowly; a window may span batches."""
        if not held:
            return self.window_tuples
        return max(self.window_tuples * 15 // 16, size if len(held) > 1 else held[0].tuples, 1)


def _since(fates: Iterable[tuple[int, int]]) -> dict[int, int]:
    """For every window that stays: since which one none has gone.

    A longer window of the query that ends in it is complete if it begins no earlier.
    """
    first: dict[int, int] = {}
    for window, chance_ppm in sorted(fates):
        if chance_ppm > 0:
            first[window] = first.get(window - 1, window)
    return first


def _remembered(fates: dict[int, int], held: list[Held]) -> tuple[tuple[int, int], ...]:
    """The newest fates, and those of all windows that this batch has tuples of."""
    here = {h.window for h in held}
    spare = [window for window in sorted(fates) if window not in here]
    gone = set(spare[: max(0, len(fates) - REMEMBERED)])
    return tuple((window, fates[window]) for window in sorted(fates) if window not in gone)


def _chance_ppm(keep_ppm: int, owed: float, size: int) -> int:
    """Where some are kept at all, no window is without a chance: nobody could speak for it."""
    if keep_ppm == PPM:
        return PPM
    return min(PPM, max(-(-keep_ppm // 2), round(keep_ppm + PPM * owed / max(1, size))))


def _start_ppm(seed: int) -> int:
    return int(places_ppm(salted(np.zeros(1, dtype=np.uint64), seed))[0])
