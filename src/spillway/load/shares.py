"""From what a law would admit to the fraction that a gate can obey."""

from spillway.model import ADMIT_ALL, Decision, KeepFraction, Measurement

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


def headroom_of(measurement: Measurement, own: float) -> float:
    """The class scheduler's assignment where there is one, else the law's own figure."""
    assigned = measurement.headroom
    return assigned if assigned is not None and assigned > 0.0 else own
