"""BASELINE: fill the queue up to the target in one step."""

from typing import ClassVar

from spillway.load.capabilities import Capabilities, can
from spillway.load.shares import HEADROOM, HEADROOM_OPTION, Headroom, idle, is_idle, share
from spillway.model import ADMIT_ALL, Decision, Measurement
from spillway.options import Option
from spillway.ports import Cadence


class Baseline:
    """v(k) = y_d H / c - q(k) + T H / c tuples in the next period (ctrl section 5).

    The delay model (eq. 11) allows y_d H / c outstanding tuples; q of them are there, T H / c
    will leave. keep = v / f_in, with the next period's arrivals taken as the last one's (eq. 13).

    Assumption: c, H and the virtual queue q are exact. Dead beat: both closed-loop poles of the
    model lie at 0, so an error of the model or of the arrivals goes into the queue undamped, and
    a change of the arrivals between two periods is corrected with a swing the other way.
    """

    cadence: ClassVar[Cadence] = "period"
    adapts: ClassVar[bool] = True
    capabilities: ClassVar[Capabilities] = can("xx---xx")
    parameters: ClassVar[tuple[Option, ...]] = (HEADROOM_OPTION,)

    def __init__(self, *, headroom: float | None = None) -> None:
        self._headroom = Headroom(headroom, HEADROOM)

    def decide(self, measurement: Measurement) -> Decision:
        headroom = self._headroom.of(measurement)
        if is_idle(measurement):
            return idle(headroom)
        if measurement.cost_s <= 0.0:
            return Decision(action=ADMIT_ALL, reason="cost unknown", headroom=headroom)
        capacity = headroom / measurement.cost_s
        queued = max(0, measurement.queued_tuples)
        admissible = (measurement.target.delay_s + measurement.period_s) * capacity - queued
        return Decision(
            action=share(admissible, measurement.offered_tuples),
            reason=f"{queued} queued, room for {max(0.0, admissible):.0f} more tuples",
            headroom=headroom,
        )
