"""No load manager at all."""

from typing import ClassVar

from spillway.load.capabilities import Capabilities, can
from spillway.model import ADMIT_ALL, Decision, Measurement
from spillway.options import Option
from spillway.ports import Cadence


class Nothing:
    """Admits everything: keep = 1.

    Regimes: below capacity the delay is that of the plant; above it the queue, and with it the
    delay, grows without bound. The reference that every other law is measured against.
    """

    cadence: ClassVar[Cadence] = "batch"
    adapts: ClassVar[bool] = False
    capabilities: ClassVar[Capabilities] = can("-------")
    parameters: ClassVar[tuple[Option, ...]] = ()

    def decide(self, measurement: Measurement) -> Decision:
        return Decision(action=ADMIT_ALL, reason="admits everything")
