"""Further redistribution policies (thesis section 6.3). Each keeps the sum of the shares."""

from collections.abc import Callable, Mapping, Sequence

from spillway.classes.capacity import ClassUsage, Policy, by_priority
from spillway.classes.dilos import RESERVE, Dilos
from spillway.errors import unknown_name


def absolute(classes: Sequence[ClassUsage]) -> Mapping[str, float]:
    """A higher class takes all it needs before a lower one is considered."""
    left = sum(c.capacity for c in classes)
    shares: dict[str, float] = {}
    for c in by_priority(classes):
        shares[c.name] = min(left, c.need + RESERVE * c.original)
        left -= shares[c.name]
    return _spread(shares, classes, left)


def hybrid(classes: Sequence[ClassUsage]) -> Mapping[str, float]:
    """The first class takes all it needs; the others share the rest in proportion to priority."""
    first, *others = by_priority(classes)
    total = sum(c.capacity for c in classes)
    taken = min(total, first.need + RESERVE * first.original) if others else total
    weight = sum(c.priority for c in others)
    rest = {c.name: (total - taken) * c.priority / weight for c in others}
    return {first.name: taken, **rest}


def guaranteed(classes: Sequence[ClassUsage]) -> Mapping[str, float]:
    """Relative priority with regard to the workload.

    As DILoS; then a higher class that still loses tuples never loses a larger fraction of them
    than a lower class: capacity moves up until both lose alike, or the higher one loses nothing.
    """
    ranked = by_priority(classes)
    shares = dict(Dilos()(classes))
    for _ in ranked:  # each round settles one more level of the ladder
        for index, high in enumerate(ranked):
            for low in reversed(ranked[index + 1 :]):
                moved = _to_equal_loss(high, low, shares)
                shares[high.name] += moved
                shares[low.name] -= moved
    return shares


def _to_equal_loss(high: ClassUsage, low: ClassUsage, shares: Mapping[str, float]) -> float:
    """How much must move from `low` to `high` so that `high` loses no larger fraction."""
    lacking_high = max(0.0, high.need - shares[high.name])
    spare_low = max(0.0, shares[low.name] - low.need)
    first = min(lacking_high, spare_low)
    lacking_high -= first
    lacking_low = max(0.0, low.need - shares[low.name])
    if lacking_high <= 0.0 or high.need + low.need <= 0.0:
        return first
    even = (low.need * lacking_high - high.need * lacking_low) / (high.need + low.need)
    return first + min(max(0.0, even), lacking_high)


def fixed(classes: Sequence[ClassUsage]) -> Mapping[str, float]:
    """Nobody lends: every class has the share that its priority gives it."""
    return {c.name: c.original for c in classes}


def _spread(
    shares: dict[str, float], classes: Sequence[ClassUsage], left: float
) -> Mapping[str, float]:
    """Capacity that nobody needs goes to all in proportion to their original shares."""
    weight = sum(c.original for c in classes)
    return {c.name: shares[c.name] + left * c.original / weight for c in classes}


POLICIES: Mapping[str, Callable[[], Policy]] = {
    "dilos": Dilos,
    "absolute": lambda: absolute,
    "hybrid": lambda: hybrid,
    "guaranteed": lambda: guaranteed,
    "none": lambda: fixed,
}


def make_policy(name: str) -> Policy:
    if name not in POLICIES:
        raise unknown_name("redistribution policy", name, POLICIES)
    return POLICIES[name]()
