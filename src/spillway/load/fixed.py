"""A constant share, chosen by hand."""

from typing import ClassVar

from spillway.errors import require
from spillway.load.capabilities import Capabilities, can
from spillway.load.shares import idle, is_idle
from spillway.model import Decision, KeepFraction, Measurement
from spillway.options import Option
from spillway.ports import Cadence


class Fixed:
    """keep = a constant, whatever the load.

    Assumption: somebody knows the overload in advance. Too large a share and the delay grows
    without bound; too small and tuples are lost that could have been kept. Open loop: no paper
    proposes it, many systems run it.
    """

    cadence: ClassVar[Cadence] = "batch"
    adapts: ClassVar[bool] = False
    capabilities: ClassVar[Capabilities] = can("---xx-x")
    parameters: ClassVar[tuple[Option, ...]] = (
        Option(
            name="keep_fraction",
            kind="number",
            above=0.0,
            at_most=1.0,
            default=0.5,
            meaning="the share that is kept",
        ),
    )

    def __init__(self, *, keep_fraction: float = 0.5) -> None:
        require(0.0 < keep_fraction <= 1.0, "keep_fraction", keep_fraction, "above 0, at most 1")
        self._keep = KeepFraction(fraction=keep_fraction)

    def decide(self, measurement: Measurement) -> Decision:
        if is_idle(measurement):
            return idle()
        return Decision(action=self._keep, reason=f"fixed share {self._keep.fraction:g}")
