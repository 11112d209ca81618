"""An error budget against a delay target: what each asks of the gate, and which one gives.

The bounds of a sum over N offered tuples with coefficient of variation v, of which a fraction f is
kept, lie about z sqrt((1 - f) (1 + v^2) / (f N)) of the sum apart from it. For that to stay within
the budget e, f >= 1 / (1 + e^2 N / (z^2 (1 + v^2))).
"""

import re
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

from spillway.errors import SpillwayError

Gives = Literal["delay", "error"]
VARIATION = 1.0  # of the values, as with an exponential distribution; a count has none

_PERCENT = re.compile(r"^\s*([0-9]*\.?[0-9]+)\s*%\s*$")


def parse_error(text: str) -> float:
    """'5%' -> 0.05."""
    match = _PERCENT.match(text)
    value = float(match[1]) / 100.0 if match else 0.0
    if not 0.0 < value < 1.0:
        raise SpillwayError(
            f"error is '{text}': it must be a percentage above 0 and below 100, such as '5%'"
        )
    return value


def needed_keep_fraction(
    error: float, tuples: int, confidence: float = 0.95, variation: float = VARIATION
) -> float:
    """The least fraction with which a group of `tuples` offered tuples stays within `error`."""
    z = NormalDist().inv_cdf(0.5 + confidence / 2.0)
    return 1.0 / (1.0 + error * error * tuples / (z * z * (1.0 + variation * variation)))


@dataclass(frozen=True, kw_only=True, slots=True)
class Budget:
    """A query's error budget, the least fraction that it needs, and what it would rather lose."""

    error: float
    tuples: int
    needed_fraction: float
    gives: Gives

    @property
    def min_keep(self) -> float:
        """What the gate must keep whatever the delay; nothing where the error gives."""
        return self.needed_fraction if self.gives == "delay" else 0.0


def verdict(budget: Budget, *, kept_fraction: float, delay_s: float, target_s: float) -> str | None:
    """Which of the two gives at the moment; None while both hold."""
    if budget.gives == "error" and kept_fraction < budget.needed_fraction:
        return (
            f"error gives: keeps {kept_fraction:.0%}, but an error within {budget.error:.1%} of"
            f" groups of {budget.tuples:,} tuples needs {budget.needed_fraction:.0%}"
        )
    if budget.gives == "delay" and delay_s > target_s and kept_fraction < 1.0:
        return (
            f"delay gives: {delay_s:.2f} s instead of {target_s:g} s, because an error within"
            f" {budget.error:.1%} needs {budget.needed_fraction:.0%} of the tuples"
        )
    return None
