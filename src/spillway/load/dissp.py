"""DISSP: an integral controller that knows nothing of the plant."""

import math
import warnings
from collections import deque
from typing import ClassVar, Literal

from spillway.errors import require
from spillway.load.capabilities import Capabilities, can
from spillway.load.shares import LEAST_KEPT
from spillway.model import Decision, KeepOfBacklog, Measurement
from spillway.options import Option
from spillway.ports import Cadence

_BOUNDED = 0.8  # of what was wanted: less than that was somebody else's doing
_LARGEST_CUT = 0.5  # of n in one step: a pause of the machine must not end the stream
_LONGEST_LAG = 1024  # periods of history that eq. 6 may reach back


def largest_stable_gain(target_s: float, period_s: float) -> float:
    """2 / (2 tau + 1) with tau = ceil(T / period): proposition 1."""
    lag_periods = math.ceil(target_s / period_s - 1e-9)
    return 2.0 / (2.0 * lag_periods + 1.0)


class Dissp:
    """n(t+1) = n(t) + q n(t) (T - l) / T: how many of the waiting tuples to keep (eq. 7).

    `equation=6` is the form before the paper's last approximation,
    n(t+1) = n(t) + p n(t - tau) (T - l) / l, with n as it was when the measured tuples entered.

    l is the measured latency, old by tau periods. No model, no cost, no headroom. n stays within
    [1, N]: from 0 eq. 7 never returns, and in underload it would wind up without limit. While
    nothing is being shed and l <= T, n follows N, so a rise of the load alone sheds nothing.
    Stable for gains below 2 / (2 tau + 1) (proposition 1, for the linear loop); outside that bound
    the law warns once and says so in every reason. The paper's own 0.1 at T = 3 s and a period of
    250 ms lies outside: the bound is 0.08.
    """

    cadence: ClassVar[Cadence] = "buffer"
    adapts: ClassVar[bool] = True
    capabilities: ClassVar[Capabilities] = can("xxxx-xx")
    parameters: ClassVar[tuple[Option, ...]] = (
        Option(
            name="gain", kind="number", above=0.0, at_most=1.0, default=0.1, meaning="q of eq. 7"
        ),
        Option(
            name="equation",
            kind="whole",
            at_least=6,
            at_most=7,
            default=7,
            meaning="6 is the form before the paper's last approximation",
        ),
    )

    def __init__(self, *, gain: float = 0.1, equation: Literal[6, 7] = 7) -> None:
        require(gain > 0.0, "gain", gain, "above 0")
        require(equation in (6, 7), "equation", equation, "6 or 7")
        self._gain = gain
        self._equation = equation
        self._kept = 0.0  # n(t); 0 before the first overload
        self._shedding = False
        self._history: deque[float] = deque(maxlen=_LONGEST_LAG)
        self._warned = False

    def decide(self, measurement: Measurement) -> Decision:
        warning = self._warning(measurement)
        waiting = measurement.backlog.pending_tuples
        if waiting == 0:
            self._shedding = False
            return Decision(action=KeepOfBacklog(tuples=0), reason="nothing waits" + warning)
        target_s, latency_s = measurement.target.delay_s, measurement.delay_s
        before = self._before(measurement) if self._shedding else float(waiting)
        wanted = before
        if latency_s is not None and latency_s > 0.0:
            wanted += self._gain * self._step(before, measurement, latency_s)
            wanted = max(_LARGEST_CUT * before, wanted)
        self._kept = min(max(1.0, LEAST_KEPT * waiting, wanted), float(waiting))
        self._shedding = self._kept < waiting
        self._history.append(self._kept)
        seen = "none" if latency_s is None else f"{latency_s:.3g} s"
        return Decision(
            action=KeepOfBacklog(tuples=round(self._kept)),
            reason=f"latency {seen} against {target_s:g} s: keeps {self._kept:.0f} of {waiting}"
            + warning,
        )

    def _before(self, measurement: Measurement) -> float:
        """n(t) is what was processed: a gate that bounds its batches may have kept fewer. A little
        fewer is the chance of a sample, and means nothing."""
        if not measurement.batches:
            return self._kept
        processed = float(measurement.batches[-1].kept_tuples)
        return max(1.0, processed) if processed < _BOUNDED * self._kept else self._kept

    def _step(self, kept: float, measurement: Measurement, latency_s: float) -> float:
        target_s = measurement.target.delay_s
        if self._equation == 7:
            return kept * (target_s - latency_s) / target_s
        lag = max(1, math.ceil(latency_s / measurement.period_s))
        then = self._history[-lag] if lag <= len(self._history) else kept
        return then * (target_s - latency_s) / latency_s

    def _warning(self, measurement: Measurement) -> str:
        bound = largest_stable_gain(measurement.target.delay_s, measurement.period_s)
        if self._gain < bound:
            return ""
        text = f"gain {self._gain:g} is outside the stable range (0, {bound:.3g}) of proposition 1"
        if not self._warned:
            self._warned = True
            warnings.warn(f"dissp: {text}", RuntimeWarning, stacklevel=3)
        return f"; {text}"
