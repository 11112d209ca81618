"""DILoS: spare capacity goes to whoever lacks it, highest priority first (thesis section 6.1.3)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spillway.classes.capacity import ClassUsage, by_priority

RESERVE = 0.05  # of its original share, left to every lender against small perturbations


@dataclass(frozen=True, kw_only=True, slots=True)
class Dilos:
    """Redistribution with demand, supply and reserve.

        demand = (u - 1) L_C            where u > 1
        supply = (1 - u) L_C - 5 % L_C0 where that is positive, within the class's lending cap
        budget = sum of supplies

    1. A class in demand ends with its demand met, or with at least its original share: what is
       missing is taken back from borrowers, lowest priority first, even when these are overloaded.
    2. Demands are met from the budget, highest priority first.
    3. What is left of the budget returns to the classes below their original share, highest
       priority first; the rest stays with the classes that offered it.
    """

    reserve: float = RESERVE

    def __call__(self, classes: Sequence[ClassUsage]) -> Mapping[str, float]:
        ranked = by_priority(classes)
        shares = {c.name: c.capacity for c in ranked}
        offers = {c.name: c.supply(self.reserve) for c in ranked}
        for c in ranked:
            lacking = c.demand()
            lacking -= _take(shares, offers, ranked, c.name, lacking)
            owed = min(lacking, max(0.0, c.original - shares[c.name]))
            _reclaim(shares, ranked, c, owed)
        borrowed = {
            c.name: min(offers[c.name], max(0.0, shares[c.name] - c.original)) for c in ranked
        }
        for c in ranked:
            _take(shares, borrowed, ranked, c.name, max(0.0, c.original - shares[c.name]))
        return shares


def _take(
    shares: dict[str, float],
    offers: dict[str, float],
    ranked: Sequence[ClassUsage],
    to: str,
    wanted: float,
) -> float:
    """Move up to `wanted` out of the offers, lowest priority first; says how much was moved."""
    moved = 0.0
    for lender in reversed(ranked):
        part = min(wanted - moved, offers[lender.name]) if lender.name != to else 0.0
        offers[lender.name] -= part
        shares[lender.name] -= part
        moved += part
    shares[to] += moved
    return moved


def _reclaim(
    shares: dict[str, float], ranked: Sequence[ClassUsage], owner: ClassUsage, owed: float
) -> None:
    """Take back what others hold above their original share, lowest priority first."""
    for borrower in reversed(ranked):
        surplus = max(0.0, shares[borrower.name] - borrower.original)
        part = min(owed, surplus) if borrower.name != owner.name else 0.0
        shares[borrower.name] -= part
        shares[owner.name] += part
        owed -= part


def new_headroom(headroom: float, old_quota: float, new_quota: float) -> float:
    """Eq. 6.1: what a load manager is told after its class's quota changed."""
    return headroom * new_quota / old_quota
