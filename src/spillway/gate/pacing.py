"""How much one batch may take: small at first, and never more than can be finished.

A planned batch is binding in Spark, so a too-large one can never be escaped. Until a size has been
tried, a batch takes at most twice what an earlier one of this run took.
"""

from dataclasses import dataclass

from spillway.gate.arrivals import Arrivals
from spillway.gate.offsets import Costs
from spillway.model import Target

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
    def at_start(cls, first_batch: int, costs: Costs | None, target: Target) -> "Pace":
        """`costs` are those of an earlier run: its JVM was warm, this one is not."""
        kept = first_batch
        if costs is not None and costs.kept_s > 0.0:
            kept = max(kept, int(RESTART_SHARE * target.delay_s / costs.kept_s))
        return cls(kept_tuples=kept, scanned_tuples=kept * SCANNED_PER_KEPT)

    def within(self, limit: int | None, why: str) -> "Pace":
        """The same, with no more than `limit` kept."""
        if limit is None or limit >= self.kept_tuples:
            return self
        return Pace(kept_tuples=limit, scanned_tuples=self.scanned_tuples, why=why)

    def bounds(self, wish: "Wish", pending_tuples: int) -> bool:
        """Whether a batch falls short of the wish."""
        return wish.kept_tuples > self.kept_tuples or pending_tuples > self.scanned_tuples

    def after(self, kept_tuples: int, scanned_tuples: int) -> "Pace":
        """A batch of this size was finished."""
        return Pace(
            kept_tuples=max(self.kept_tuples, GROWTH * kept_tuples),
            scanned_tuples=max(self.scanned_tuples, GROWTH * scanned_tuples),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Wish:
    """What the load manager wants of the waiting tuples.

    `least_fraction` is what must be kept of whatever a batch consumes: a wish that breaks a bound
    sheds more where that allows it, and otherwise leaves the youngest waiting.
    """

    kept_tuples: float
    least_fraction: float
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Cut:
    """The batch: of the oldest `reach_tuples`, skip the oldest `skip_tuples`, keep `fraction`."""

    reach_tuples: int
    skip_tuples: int
    fraction: float
    reason: str


def bounded(wish: Wish, pending_tuples: int, pace: Pace) -> Cut:
    """Fit a wish into the bounds of the pace."""
    least = wish.least_fraction
    fraction = min(1.0, max(least, wish.kept_tuples / pending_tuples if pending_tuples else 1.0))
    reach, skip, notes = pending_tuples, 0, [wish.reason]
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


def freshest(cut: Cut) -> Cut:
    """The same number of tuples, all of them the newest."""
    kept = round((cut.reach_tuples - cut.skip_tuples) * cut.fraction)
    return Cut(
        reach_tuples=cut.reach_tuples,
        skip_tuples=cut.reach_tuples - kept,
        fraction=1.0,
        reason=cut.reason,
    )


def dry(cut: Cut, pace: Pace) -> Cut:
    """The same decision where nothing is dropped: the batch holds what it may keep, all of it."""
    read = 1.0 - cut.skip_tuples / cut.reach_tuples if cut.reach_tuples else 1.0
    return Cut(
        reach_tuples=min(cut.reach_tuples, pace.kept_tuples),
        skip_tuples=0,
        fraction=cut.fraction * read,
        reason=cut.reason,
    )


def is_stale(arrivals: Arrivals, now_s: float, target: Target) -> bool:
    """Whether the backlog spans more than twice the batch length of the uniform optimum.

    With a mean target y that is 2y/3, with a quantile p it is y/(1 + p). Behind that, sampling
    evenly would spend most of the target on tuples that have already missed it.
    """
    quantile = target.quantile
    length_s = target.delay_s * (2.0 / 3.0 if quantile is None else 1.0 / (1.0 + quantile))
    return arrivals.tuples > 0 and now_s - float(arrivals.times_s[0]) > 2.0 * length_s


def newest_within_target(arrivals: Arrivals, now_s: float, costs: Costs, target: Target) -> int:
    """The largest n whose newest n tuples, all kept, still meet the target.

    age(n) + fixed + n * (kept + scanned) <= y; the left side grows with n, so bisection finds it.
    """
    low, high = 0, arrivals.tuples
    while low < high:
        n = (low + high + 1) // 2
        batch_s = costs.fixed_s + n * (costs.kept_s + costs.scanned_s)
        if _age_of_newest_s(arrivals, n, now_s, target) + batch_s <= target.delay_s:
            low = n
        else:
            high = n - 1
    return low


def _age_of_newest_s(arrivals: Arrivals, tuples: int, now_s: float, target: Target) -> float:
    quantile = target.quantile
    if quantile is None:
        return now_s - arrivals.mean_arrival_of_newest_s(tuples)
    return now_s - arrivals.arrival_of_count_s(arrivals.tuples - quantile * tuples)
