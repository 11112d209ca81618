"""How much one batch may take: small at first, and never more than can be finished.

A planned batch is binding in Spark, so a too-large one can never be escaped. Until a size has been
tried, a batch takes at most twice what an earlier one of this run took.
"""

from dataclasses import dataclass

from spillway.model import Prices, Target

GROWTH = 2
SCANNED_PER_KEPT = 50  # an unread tuple costs a fraction of a kept one
RESTART_SHARE = 0.25  # of the target: what a restart may spend on its first batch


@dataclass(frozen=True, kw_only=True, slots=True)
class Pace:
    """Upper bounds of the next batch."""

    kept_tuples: int
    scanned_tuples: int
    why: str = "growing"  # of the bound on what is kept

    @classmethod
    def at_start(cls, first_batch: int, prices: Prices | None, target: Target) -> "Pace":
        """`prices` are those of an earlier run: its JVM was warm, this one is not."""
        kept = first_batch
        if prices is not None and prices.kept_s > 0.0:
            kept = max(kept, int(RESTART_SHARE * target.delay_s / prices.kept_s))
        return cls(kept_tuples=kept, scanned_tuples=kept * SCANNED_PER_KEPT)

    def within(self, limit: int | None, why: str) -> "Pace":
        """The same, with no more than `limit` kept."""
        if limit is None or limit >= self.kept_tuples:
            return self
        return Pace(kept_tuples=limit, scanned_tuples=self.scanned_tuples, why=why)

    def bounds(self, kept: float, pending_tuples: int) -> bool:
        """Whether a batch falls short of what is wanted."""
        return kept > self.kept_tuples or pending_tuples > self.scanned_tuples

    def after(self, kept_tuples: int, scanned_tuples: int) -> "Pace":
        """A batch of this size was finished."""
        return Pace(
            kept_tuples=max(self.kept_tuples, GROWTH * kept_tuples),
            scanned_tuples=max(self.scanned_tuples, GROWTH * scanned_tuples),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Cut:
    """The batch: of the oldest `reach_tuples`, skip the oldest `skip_tuples`, keep `fraction`."""

    reach_tuples: int
    skip_tuples: int
    fraction: float
    reason: str


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
