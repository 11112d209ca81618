"""SEaMLeSS: CTRL on the queued load, with a headroom that tunes itself."""

from typing import ClassVar

from spillway.errors import require
from spillway.load.capabilities import Capabilities, can
from spillway.load.ctrl import DESIGN_OPTIONS, design
from spillway.load.shares import HEADROOM, HEADROOM_OPTION, Headroom, idle, is_idle, share
from spillway.model import Decision, Measurement
from spillway.options import Option
from spillway.ports import Cadence

_HEADROOM_RANGE = (0.01, 64.0)
_NEW_QUOTA = 0.05  # relative change of what is told


class Seamless:
    """u(k) = H [b0 e(k) + b1 e(k-1)] - a u(k-1) seconds of load per period (thesis eq. 4.3).

    y = qL / H, with qL the queued load over the real queues (eq. 4.1, 4.2), and e = D - y. The
    thesis prints e = y - D: positive feedback. The next period may bring v = u + H T; its load is
    taken as the last one's, so keep = v / (L T).

    Headroom: after P periods in which shedding was in effect, H <- H D / D', with D' the mean
    response time of those periods. Other periods say nothing about H: the delay is then on its
    way up or down, or too small to matter.

    Assumption: a new tuple waits for the whole queued load, which needs a fair scheduler.
    Stable as CTRL is; the outer loop moves H once in P periods, slow against the inner one.
    """

    cadence: ClassVar[Cadence] = "period"
    adapts: ClassVar[bool] = True
    capabilities: ClassVar[Capabilities] = can("xxxx-xx")
    parameters: ClassVar[tuple[Option, ...]] = (
        HEADROOM_OPTION,
        *DESIGN_OPTIONS,
        Option(
            name="adjust_periods",
            kind="whole",
            at_least=1,
            default=30,
            unit="periods that shed",
            meaning="P: how many are averaged before H is adjusted",
        ),
    )

    def __init__(
        self,
        *,
        headroom: float | None = None,
        adjust_periods: int = 30,
        poles: tuple[complex, complex] = (0.7, 0.7),
        a: float = -0.8,
    ) -> None:
        require(adjust_periods >= 1, "adjust_periods", adjust_periods, "1 or more")
        self._headroom = Headroom(headroom, HEADROOM)
        self._adjust_periods = adjust_periods
        self._controller = design(poles, a)
        self._error_s = 0.0
        self._growth_s = 0.0
        self._responses_s = 0.0
        self._responses = 0

    def decide(self, measurement: Measurement) -> Decision:
        self._hear(measurement.headroom)
        if is_idle(measurement):
            self._error_s = self._growth_s = 0.0
            return idle(self._headroom.value)
        self._adjust(measurement)
        law, period_s, headroom = self._controller, measurement.period_s, self._headroom.value
        delay_s = measurement.queued_load_s / headroom
        error_s = measurement.target.delay_s - delay_s
        drive = law.b0 * error_s + law.b1 * self._error_s
        growth_s = headroom * drive - law.a * self._growth_s
        most_s = headroom * law.steady(measurement.target.delay_s)
        growth_s = min(max(-headroom * period_s, growth_s), most_s)  # as in CTRL
        self._error_s, self._growth_s = error_s, growth_s
        admissible_s = growth_s + headroom * period_s
        return Decision(
            action=share(admissible_s, measurement.offered_load * period_s),
            reason=f"queued load is {delay_s:.3g} s of delay, room for {admissible_s:.3g} s",
            headroom=headroom,
        )

    def _hear(self, told: float | None) -> None:
        """What was averaged under another quota says nothing about this one."""
        if abs(self._headroom.hear(told) - 1.0) > _NEW_QUOTA:
            self._responses_s, self._responses = 0.0, 0

    def _adjust(self, measurement: Measurement) -> None:
        if measurement.shed_tuples == 0 or not measurement.delay_s:
            return
        self._responses_s += measurement.delay_s / measurement.target.delay_s
        self._responses += 1
        if self._responses >= self._adjust_periods:
            low, high = _HEADROOM_RANGE
            adjusted = self._headroom.value * self._responses / self._responses_s
            self._headroom.value = min(max(low, adjusted), high)
            self._responses_s, self._responses = 0.0, 0
