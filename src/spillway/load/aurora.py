"""AURORA: shed what exceeds the capacity."""

from typing import ClassVar

from spillway.load.capabilities import Capabilities, can
from spillway.load.shares import HEADROOM, HEADROOM_OPTION, Headroom, idle, is_idle, share
from spillway.model import Decision, Measurement
from spillway.options import Option
from spillway.ports import Cadence


class Aurora:
    """S(k) = L(k-1) - L0, with L0 = H: the load above capacity goes (ctrl fig. 1, eq. 7).

    keep = H / L, where L is the offered load of the last period (thesis eq. 3.1), so that shared
    operators and joins count with their load coefficients.

    Assumption: the next period brings what the last one brought, and H is exact. Open loop: the
    delay appears nowhere. Regimes (ctrl 4.3.2): under a rising rate the queue takes in every
    increase and keeps it (eq. 8); after a step the delay stays at whatever the step put into the
    queue; with an empty queue it sheds tuples that could have waited within the target. An H
    that is too high by any amount lets the queue grow for ever.
    """

    cadence: ClassVar[Cadence] = "period"
    adapts: ClassVar[bool] = True
    capabilities: ClassVar[Capabilities] = can("---xxx-")
    parameters: ClassVar[tuple[Option, ...]] = (HEADROOM_OPTION,)

    def __init__(self, *, headroom: float | None = None) -> None:
        self._headroom = Headroom(headroom, HEADROOM)

    def decide(self, measurement: Measurement) -> Decision:
        headroom = self._headroom.of(measurement)
        if is_idle(measurement):
            return idle(headroom)
        load = measurement.offered_load
        return Decision(
            action=share(headroom, load),
            reason=f"load {load:.3g} against capacity {headroom:.3g}",
            headroom=headroom,
        )
