"""CTRL: pole placement on the virtual queue."""

import math
from typing import ClassVar, Literal, NamedTuple

from spillway.errors import require
from spillway.load.capabilities import Capabilities, can
from spillway.load.shares import HEADROOM, HEADROOM_OPTION, Headroom, idle, is_idle, share
from spillway.model import ADMIT_ALL, Decision, Measurement
from spillway.options import Option
from spillway.ports import Cadence

_NEWS = 0.3  # of the usual period: the weight of the last one
# What `design` takes, here and in laws that share it.
DESIGN_OPTIONS = (
    Option(
        name="poles",
        kind="numbers",
        count=2,
        above=-1.0,
        below=1.0,
        default=[0.7, 0.7],
        meaning="closed-loop poles: nearer to 1 is slower and calmer",
    ),
    Option(
        name="a",
        kind="number",
        above=-1.0,
        below=1.0,
        default=-0.8,
        meaning="the controller's own pole, which moves the zero (ctrl paper, appendix A)",
    ),
)


class Controller(NamedTuple):
    """C(z) = H (b0 z + b1) / (c T (z + a)): one member of the family that `design` solves."""

    a: float
    b0: float
    b1: float

    def closed_loop(self) -> tuple[float, float]:
        """(p1, p0) of the characteristic equation z^2 + p1 z + p0 = 0 (eq. 17)."""
        return self.a - 1.0 + self.b0, self.b1 - self.a

    def steady(self, error: float) -> float:
        """What b0 e + b1 e - a u comes to under a constant error."""
        return (self.b0 + self.b1) / (1.0 + self.a) * error

    @property
    def zero(self) -> float:
        """The closed loop's zero, -b1 / b0: what tells the members of the family apart."""
        return -self.b1 / self.b0 if self.b0 else math.inf


def design(poles: tuple[complex, complex] = (0.7, 0.7), a: float = -0.8) -> Controller:
    """(a, b0, b1) from eq. 18: the wanted closed-loop poles and the one free parameter a.

    Matching z^2 + (a - 1 + b0) z + (b1 - a) with (z - p1)(z - p2) gives b0 = 1 - a - p1 - p2 and
    b1 = a + p1 p2. The plant integrates, so the static gain (eq. 19) is 1 for every a: eq. 19 adds
    nothing, and a is free. It moves the zero, and with the zero the transient.
    """
    total, product = poles[0] + poles[1], poles[0] * poles[1]
    paired = abs(complex(total).imag) < 1e-9 and abs(complex(product).imag) < 1e-9
    require(paired, "poles", poles, "two real numbers or a conjugate pair")
    inside = all(abs(pole) < 1.0 for pole in poles)
    require(inside, "poles", poles, "inside the unit circle (otherwise the loop is unstable)")
    # With |a| >= 1 the controller's own memory never fades: it winds up while nothing is shed.
    require(abs(a) < 1.0, "a", a, "between -1 and 1, exclusive")
    b0 = 1.0 - a - complex(total).real
    return Controller(a=a, b0=b0, b1=a + complex(product).real)


class Ctrl:
    """u(k) = H/(cT) [b0 e(k) + b1 e(k-1)] - a u(k-1); admit v = u + f_out per second (eq. 10).

    e = y_d - y, with the delay estimated from the virtual queue because the measured one comes too
    late: y = (q + 1) c / H (eq. 11). keep = v / f_in (eq. 13), with f_in of the last period.
    The defaults are the paper's: both poles at 0.7, a = -0.8, H = 0.97.

    The paper never defines f_out. `outflow` is "measured", the completions of the last period, or
    "modelled", H / c (its formula for BASELINE). Measured is right at every load and corrects a
    wrong H by itself. On micro-batches that takes periods that hold whole batches; a gate
    decides when batches have ended and has no others.

    T is the usual period. On micro-batches a period is a batch and now and then three times as long
    as the one before; with the last one for T the queue of two classes on one core swings widely.

    u stays between -H / c, with which nothing is admitted, and what it comes to while the queue is
    empty. The paper has no such bound; without it one wild estimate (a cold start, where c can be
    wrong by a factor of hundred) is remembered for a minute.

    Assumption: q counts tuples one in, one out. Shared operators and joins break that. H is given:
    where it is wrong by a factor the delay settles off the target by about that factor.
    Stable for poles inside the unit circle while the estimation error is bounded (eq. 12).
    """

    cadence: ClassVar[Cadence] = "period"
    adapts: ClassVar[bool] = True
    capabilities: ClassVar[Capabilities] = can("xx---xx")
    parameters: ClassVar[tuple[Option, ...]] = (
        HEADROOM_OPTION,
        *DESIGN_OPTIONS,
        Option(
            name="outflow",
            kind="choice",
            choices=("measured", "modelled"),
            default="measured",
            meaning="f_out: what completed in the last period, or H / c",
        ),
    )

    def __init__(
        self,
        *,
        headroom: float | None = None,
        poles: tuple[complex, complex] = (0.7, 0.7),
        a: float = -0.8,
        outflow: Literal["measured", "modelled"] = "measured",
    ) -> None:
        require(outflow in ("measured", "modelled"), "outflow", outflow, "measured or modelled")
        self._headroom = Headroom(headroom, HEADROOM)
        self._measured = outflow == "measured"
        self._controller = design(poles, a)
        self._error_s = 0.0
        self._growth_per_s = 0.0
        self._period_s: float | None = None  # smoothed

    def decide(self, measurement: Measurement) -> Decision:
        headroom = self._headroom.of(measurement)
        if is_idle(measurement):
            return self._forget(headroom)
        if measurement.cost_s <= 0.0:
            return Decision(action=ADMIT_ALL, reason="cost unknown", headroom=headroom)
        capacity = headroom / measurement.cost_s
        delay_s = (max(0, measurement.queued_tuples) + 1) / capacity
        error_s = measurement.target.delay_s - delay_s
        law, period_s = self._controller, self._usual(measurement.period_s)
        drive = law.b0 * error_s + law.b1 * self._error_s
        growth = capacity / period_s * drive - law.a * self._growth_per_s
        most = law.steady(measurement.target.delay_s) * capacity / period_s
        growth = min(max(-capacity, growth), most)
        arriving_per_s = measurement.offered_tuples / measurement.period_s
        leaving_per_s = measurement.completed_tuples / measurement.period_s
        admissible_per_s = growth + (leaving_per_s if self._measured else capacity)
        self._error_s, self._growth_per_s = error_s, growth
        return Decision(
            action=share(admissible_per_s, arriving_per_s),
            reason=f"estimated delay {delay_s:.3g} s, queue may grow by {growth:.3g}/s",
            headroom=headroom,
        )

    def _usual(self, period_s: float) -> float:
        """T: what is decided now holds in the next period, not in the last one."""
        usual_s = self._period_s or period_s
        self._period_s = usual_s + _NEWS * (period_s - usual_s)
        return self._period_s

    def _forget(self, headroom: float) -> Decision:
        self._error_s = self._growth_per_s = 0.0
        return idle(headroom)
