"""How much one batch may take: small at first, and never more than can be finished.

A planned batch is binding in Spark, so a too-large one can never be escaped. k times the tuples
take at most k times as long: after a batch of n tuples in d seconds, the next may hold n L / d, and
then takes no longer than L. While batches carry ever more per second (a cold JVM, a fixed price
that is spread over more tuples) they may double in any case.
"""

from dataclasses import dataclass, replace

from spillway.model import BatchRecord, Prices, Target

GROWTH = 2.0
_IMPROVED = 1.25  # carried per second, over the best before: still warming up or growing
SCANNED_PER_KEPT = 50  # an unread tuple costs a fraction of a kept one
RESTART_SHARE = 0.25  # of the target: what a restart may spend on its first batch
_OF_SHORTEST = 2.0  # a batch may be twice as long as the shortest: that one is all fixed price
_FORGET = 1.05  # of the best rate, for every batch
_HALVED = 2.0  # times smaller: a batch that is compared with one before it
_NEAR = 0.5  # of the bound: a batch this large shows whether the bound is right


@dataclass(frozen=True, kw_only=True, slots=True)
class Pace:
    """Upper bounds of the next batch, and what they come from."""

    kept_tuples: int
    scanned_tuples: int
    why: str = "growing"  # of the bound on what is kept
    first_tuples: int = 1  # the bound never falls below
    best_per_s: float = 0.0  # kept tuples over duration
    shortest_s: float = 0.0  # of a batch on the machine as it is now; 0: no batch yet
    shortest_tuples: int = 0  # in that batch
    larger: tuple[int, float] = (0, 0.0)  # a batch before: its tuples, and what it took

    @classmethod
    def at_start(cls, first_batch: int, prices: Prices | None, target: Target) -> "Pace":
        """`prices` are those of an earlier run: its JVM was warm, this one is not."""
        kept = first_batch
        if prices is not None and prices.kept_s > 0.0:
            kept = max(kept, int(RESTART_SHARE * target.delay_s / prices.kept_s))
        return cls(
            kept_tuples=kept, scanned_tuples=kept * SCANNED_PER_KEPT, first_tuples=first_batch
        )

    def within(self, limit: int | None, why: str) -> "Pace":
        """The same, with no more than `limit` kept."""
        if limit is None or limit >= self.kept_tuples:
            return self
        return replace(self, kept_tuples=limit, why=why)

    def bounds(self, kept: float, pending_tuples: int) -> bool:
        """Whether a batch falls short of what is wanted."""
        return kept > self.kept_tuples or pending_tuples > self.scanned_tuples

    def after(self, batch: BatchRecord, target: Target) -> "Pace":
        """A batch was finished; how long it took is not known of one that was replayed."""
        kept, scanned = batch.kept_tuples, batch.scanned_tuples
        if batch.duration_s <= 0.0 or kept <= 0:
            most = max(self.kept_tuples, int(GROWTH * kept))
            return replace(
                self,
                kept_tuples=most,
                scanned_tuples=max(self.scanned_tuples, int(GROWTH * scanned)),
            )
        shortest_s, shortest_tuples = self._shortest(kept, batch.duration_s)
        longest_s = max(target.delay_s, _OF_SHORTEST * shortest_s)
        factor, per_s = longest_s / batch.duration_s, kept / batch.duration_s
        last = kept, batch.duration_s
        if per_s > _IMPROVED * self.best_per_s:
            factor = max(factor, min(GROWTH, GROWTH * factor))
        return replace(
            self,
            kept_tuples=_moved(self.kept_tuples, factor, kept),
            scanned_tuples=max(
                SCANNED_PER_KEPT * self.first_tuples,
                _moved(self.scanned_tuples, factor, scanned),
            ),
            best_per_s=max(per_s, self.best_per_s / _FORGET),
            shortest_s=shortest_s,
            shortest_tuples=shortest_tuples,
            larger=self.larger if kept <= self.larger[0] < _HALVED * kept else last,
        )

    def _shortest(self, kept: int, took_s: float) -> tuple[float, int]:
        """Only what a larger batch cannot explain by its size shows a machine that became slower:
        otherwise long batches would allow ever longer ones."""
        if self.shortest_s <= 0.0 or took_s <= self.shortest_s:
            return took_s, kept
        least_s = took_s / max(1.0, kept / self.shortest_tuples)
        return max(self.shortest_s, least_s, self._alone_s(kept, took_s)), self.shortest_tuples

    def _alone_s(self, kept: int, took_s: float) -> float:
        """Without a tuple: what a batch takes that is half as large as one before it, and hardly
        shorter. Smaller and smaller ones would carry ever less and be as long."""
        larger, longer_s = self.larger
        if larger < _HALVED * kept:
            return 0.0
        return took_s - kept * max(0.0, longer_s - took_s) / (larger - kept)


def _moved(bound: int, factor: float, tuples: int) -> int:
    """Down only by a batch that tried the bound, or was too long below it."""
    allowed = max(1, int(factor * tuples))
    return allowed if tuples >= _NEAR * bound or factor <= 1.0 else max(bound, allowed)


@dataclass(frozen=True, kw_only=True, slots=True)
class Cut:
    """The batch: of the oldest `reach_tuples`, skip the oldest `skip_tuples`, keep `fraction`."""

    reach_tuples: int
    skip_tuples: int
    fraction: float
    reason: str

    def keeping_at_most(self, share: float) -> "Cut":
        """Of all that it consumes, whatever is skipped."""
        left = self.reach_tuples - self.skip_tuples
        if self.fraction * left <= share * self.reach_tuples:
            return self
        return replace(self, fraction=share * self.reach_tuples / left)


def cut(kept: float, least: float, pending_tuples: int, pace: Pace, reason: str) -> Cut:
    """About `kept` of the waiting tuples, within the bounds of the pace.

    `least` is what must be kept of whatever a batch consumes: what breaks a bound is shed where
    that allows it, and otherwise the youngest are left waiting.
    """
    fraction = min(1.0, max(least, kept / pending_tuples if pending_tuples else 1.0))
    reach, skip, notes = pending_tuples, 0, [reason]
    if fraction * reach > pace.kept_tuples:
        fraction = max(least, pace.kept_tuples / reach)
        reach = min(reach, int(pace.kept_tuples / fraction)) if fraction > 0.0 else reach
        notes.append(f"{pace.why}: at most {pace.kept_tuples} kept")
    if reach > pace.scanned_tuples and least == 0.0:
        skip = reach - pace.scanned_tuples
        fraction = min(1.0, fraction * reach / pace.scanned_tuples)
        notes.append(f"{skip} skipped unread")
    elif reach > pace.scanned_tuples:
        reach = pace.scanned_tuples
        notes.append(f"growing: at most {reach} scanned")
    reason = "; ".join(note for note in notes if note)
    return Cut(reach_tuples=reach, skip_tuples=skip, fraction=fraction, reason=reason)


def freshest(given: Cut) -> Cut:
    """The same number of tuples, all of them the newest."""
    kept = round((given.reach_tuples - given.skip_tuples) * given.fraction)
    return Cut(
        reach_tuples=given.reach_tuples,
        skip_tuples=given.reach_tuples - kept,
        fraction=1.0,
        reason=given.reason,
    )


def dry(given: Cut, pace: Pace) -> Cut:
    """The same decision where nothing is dropped: the batch holds what it may keep, all of it."""
    read = 1.0 - given.skip_tuples / given.reach_tuples if given.reach_tuples else 1.0
    return Cut(
        reach_tuples=min(given.reach_tuples, pace.kept_tuples),
        skip_tuples=0,
        fraction=given.fraction * read,
        reason=given.reason,
    )
