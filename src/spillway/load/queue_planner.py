"""How much load an operator network may take in over the next period. Standard library only."""

from collections import deque

from spillway.load.shares import HEADROOM, Headroom
from spillway.model import Measurement

_HEADROOM_RANGE = (0.01, 64.0)
_HEADROOM_GAIN = 0.2
_STRETCH_GAIN = 0.1
_STRETCH_RANGE = (0.5, 8.0)
_AIM = 0.95  # of the target
_BUSY_S = 0.05  # queued load, in shares of a period, below which the plant may have been idle


class QueuePlanner:
    """v = H (y* - qL / H) + H T seconds of load, y* = 0.95 y / k; keep = v / (L T).

    qL is the queued load (thesis eq. 4.1), H the headroom, k how much longer the measured delay is
    than the predicted one, L the load of the last period, as in every law of the papers.

    H is observed, not tuned: in a period that began and ended with a queue, the load that
    disappeared, (admitted T - growth of qL) / T, is what the plant can do. It follows a background
    job within a few periods, shedding or not. k compares a measured delay with the prediction made
    when those tuples came in, so a delay on its way up or down is no error; it takes up unfair
    schedulers and wrong coefficients. The queue is measured, not guessed, so filling it in one
    step is stable; aiming a little below the target costs no tuples in lasting overload, where
    the loss does not depend on how long the queue is.
    """

    def __init__(self, *, headroom: float | None = None) -> None:
        self._headroom = Headroom(headroom, HEADROOM)
        self._stretch = 1.0
        self._queued_s: float | None = None
        self._predicted_s: deque[float] = deque(maxlen=256)

    @property
    def headroom(self) -> float:
        return self._headroom.value

    def admissible_load(self, measurement: Measurement) -> tuple[float, float, str]:
        """(admissible, expected) seconds of load in the next period, and why."""
        self._headroom.hear(measurement.headroom)
        self._observe_headroom(measurement)
        self._observe_stretch(measurement)
        queued_s, period_s = measurement.queued_load_s, measurement.period_s
        self._queued_s = queued_s
        self._predicted_s.append(queued_s / self.headroom)
        wanted_s = _AIM * measurement.target.delay_s / self._stretch
        admissible_s = self.headroom * (wanted_s + period_s) - queued_s
        reason = (
            f"queued load is {queued_s / self.headroom:.3g} s of delay, aims at {wanted_s:.3g} s"
        )
        return admissible_s, measurement.offered_load * period_s, reason

    def _observe_headroom(self, measurement: Measurement) -> None:
        before_s, now_s, period_s = self._queued_s, measurement.queued_load_s, measurement.period_s
        least_s = _BUSY_S * period_s
        if before_s is None or before_s < least_s or now_s < least_s:
            return
        done = measurement.admitted_load - (now_s - before_s) / period_s
        # A cost that changes revalues the whole queue: no work was done or undone by that.
        done = min(max(0.5 * self.headroom, done), 2.0 * self.headroom)
        low, high = _HEADROOM_RANGE
        moved = self.headroom + _HEADROOM_GAIN * (done - self.headroom)
        self._headroom.value = min(max(low, moved), high)

    def _observe_stretch(self, measurement: Measurement) -> None:
        delay_s = measurement.delay_s
        if delay_s is None or delay_s <= 0.5 * measurement.target.delay_s:
            return  # small delays are mostly processing time, which the queue does not explain
        lag = max(1, round(delay_s / measurement.period_s))
        if lag > len(self._predicted_s):
            return
        predicted_s = max(self._predicted_s[-lag], 0.25 * measurement.target.delay_s)
        low, high = _STRETCH_RANGE
        ratio = min(max(0.5, delay_s / predicted_s), 2.0 * self._stretch)
        self._stretch += _STRETCH_GAIN * (ratio - self._stretch)
        self._stretch = min(max(low, self._stretch), high)
