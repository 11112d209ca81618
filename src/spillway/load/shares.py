"""From what a law would admit to the fraction that a gate can obey."""

from spillway.errors import require
from spillway.model import ADMIT_ALL, Decision, KeepFraction, Measurement
from spillway.options import Option

HEADROOM = 0.97  # of a machine of its own, where nobody says (ctrl paper, 4.2)
HEADROOM_OPTION = Option(
    name="headroom",
    kind="number",
    meaning="H: the part of what the query may use of the machine that goes to tuples",
    above=0.0,
    at_most=64.0,
    without="all of it",
)
LEAST_KEPT = 0.01  # shedding is capped at 99 %, so that some output remains (thesis 5.3.2.6)


def share(admissible: float, expected: float) -> KeepFraction:
    """admissible / expected within [0.01, 1]; everything when nothing is expected."""
    if expected <= 0.0 or admissible >= expected:
        return ADMIT_ALL
    return KeepFraction(fraction=max(LEAST_KEPT, admissible / expected))


def is_idle(measurement: Measurement) -> bool:
    """Nothing arrived and nothing waits: there is nothing to shed and nothing to learn."""
    return (
        measurement.offered_tuples == 0
        and measurement.queued_tuples <= 0
        and measurement.backlog.pending_tuples == 0
    )


def idle(headroom: float | None = None) -> Decision:
    return Decision(
        action=ADMIT_ALL, reason="idle: nothing arrived, nothing waits", headroom=headroom
    )


class Headroom:
    """H as a law uses it: what it is told, and what it has made of that.

    Told for the first time, H is that; afterwards every change of what is told scales it, so that
    what was learned stays (thesis eq. 6.1). A headroom that the user gives is a share of what is
    told; where nobody tells anything it is H itself.
    """

    def __init__(self, given: float | None, alone: float) -> None:
        require(given is None or given > 0.0, "headroom", given, "above 0")
        self.value = alone if given is None else given
        self._share = 1.0 if given is None else given
        self._told: float | None = None

    def hear(self, told: float | None) -> float:
        """Take over what the class scheduler says now; by which factor that changed H."""
        if told is None or told <= 0.0 or told == self._told:
            return 1.0
        before, self._told = self._told, told
        factor = told * self._share / self.value if before is None else told / before
        self.value *= factor
        return factor

    def of(self, measurement: Measurement) -> float:
        """For laws that learn nothing of their own."""
        self.hear(measurement.headroom)
        return self.value
