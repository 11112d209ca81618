"""PID: the rate estimator of Spark's DStreams, used as a shedding law."""

from collections.abc import Iterator
from typing import ClassVar

from spillway.errors import require
from spillway.load.capabilities import Capabilities, can
from spillway.load.shares import idle, is_idle, share
from spillway.model import ADMIT_ALL, Decision, Measurement
from spillway.options import Option
from spillway.ports import Cadence

_BEHIND = 0.1  # queued load, in shares of a period, that does not come from chance alone


class Pid:
    """rate <- rate - Kp error - Ki backlog - Kd slope, in tuples per second.

    error = rate - processing rate; backlog = tuples that wait beyond one interval, per interval;
    slope = change of the error per second. Kp = 1, Ki = 0.2, Kd = 0 and a floor of 100/s are
    Spark's defaults (PIDRateEstimator of Spark Streaming). One update per finished batch; where
    the plant has none, a period counts as one. Spark holds back what exceeds the rate; as a law
    here, that part is shed.

    Assumption: batches of one interval. With Kp = 1 the rate is the last processing rate minus a
    fifth of the backlog: stable, but noisy. The target appears nowhere: it drives the queue
    towards empty whatever delay was asked for.
    """

    cadence: ClassVar[Cadence] = "period"
    adapts: ClassVar[bool] = True
    capabilities: ClassVar[Capabilities] = can("--xxxxx")
    parameters: ClassVar[tuple[Option, ...]] = (
        Option(name="proportional", kind="number", at_least=0.0, default=1.0, meaning="Kp"),
        Option(name="integral", kind="number", at_least=0.0, default=0.2, meaning="Ki"),
        Option(name="derivative", kind="number", at_least=0.0, default=0.0, meaning="Kd"),
        Option(
            name="least_rate_per_s",
            kind="number",
            above=0.0,
            default=100.0,
            unit="tuples/s",
            meaning="the rate is never estimated below it",
        ),
    )

    def __init__(
        self,
        *,
        proportional: float = 1.0,
        integral: float = 0.2,
        derivative: float = 0.0,
        least_rate_per_s: float = 100.0,
    ) -> None:
        for name, value in (
            ("proportional", proportional),
            ("integral", integral),
            ("derivative", derivative),
        ):
            require(value >= 0.0, name, value, "0 or more")
        require(least_rate_per_s > 0.0, "least_rate_per_s", least_rate_per_s, "above 0")
        self._gains = proportional, integral, derivative
        self._least_per_s = least_rate_per_s
        self._rate_per_s: float | None = None
        self._error_per_s = 0.0

    def decide(self, measurement: Measurement) -> Decision:
        if is_idle(measurement):
            return idle()
        for tuples, seconds in _finished(measurement):
            self._update(tuples / seconds, measurement)
        if self._rate_per_s is None:
            return Decision(action=ADMIT_ALL, reason="no batch yet")
        admissible = self._rate_per_s * measurement.period_s
        return Decision(
            action=share(admissible, measurement.offered_tuples),
            reason=f"estimated rate {self._rate_per_s:.4g}/s",
        )

    def _update(self, processing_per_s: float, measurement: Measurement) -> None:
        if self._rate_per_s is None:
            self._rate_per_s = processing_per_s
            return
        proportional, integral, derivative = self._gains
        error = self._rate_per_s - processing_per_s
        waiting_per_s = _overdue_tuples(measurement, processing_per_s) / measurement.period_s
        slope = (error - self._error_per_s) / measurement.period_s
        change = proportional * error + integral * waiting_per_s + derivative * slope
        self._rate_per_s = max(self._least_per_s, self._rate_per_s - change)
        self._error_per_s = error


def _finished(measurement: Measurement) -> Iterator[tuple[int, float]]:
    for batch in measurement.batches:
        if batch.kept_tuples > 0 and batch.duration_s > 0.0:
            yield batch.kept_tuples, batch.duration_s
    if measurement.batches or measurement.completed_tuples == 0:
        return
    # With a queue the pipeline was at work all the time, on these tuples or on something else.
    behind = measurement.queued_load_s > _BEHIND * measurement.period_s
    seconds = measurement.period_s if behind else measurement.busy_s
    if seconds > 0.0:
        yield measurement.completed_tuples, seconds


def _overdue_tuples(measurement: Measurement, processing_per_s: float) -> float:
    """Scheduling delay x processing rate: what waits for longer than the batch being gathered."""
    if measurement.batches:
        overdue_s = max(0.0, measurement.backlog.oldest_age_s - measurement.period_s)
        return overdue_s * processing_per_s
    return max(0.0, float(measurement.queued_tuples))
