"""PIE: active queue management for packets, used as a shedding law."""

from typing import ClassVar

from spillway.errors import require
from spillway.load.capabilities import Capabilities, can
from spillway.load.shares import LEAST_KEPT, idle, is_idle
from spillway.model import Decision, KeepFraction, Measurement
from spillway.options import Option
from spillway.ports import Cadence

# Below these drop probabilities the gains are divided by the second figure (RFC 8033, 4.2).
_TUNING = ((1e-6, 2048), (1e-5, 512), (1e-4, 128), (1e-3, 32), (1e-2, 8), (1e-1, 2))
_LEAST_DRAIN = 0.01
_DECAY = 0.98  # per update, while the queue is empty (4.2)


class Pie:
    """p <- p + alpha (y - y_d) + beta (y - y_before), the probability of dropping (RFC 8033).

    The gains shrink with p (4.2), p decays while the delay is zero (4.2), one update adds at most
    `largest_step` (4.2), nothing is dropped within `burst_targets` x y_d of a calm queue (4.4) nor
    while the delay was below y_d / 2 and p below 0.2 (4.1). y is the estimated queueing delay.

    alpha and beta keep the RFC's ratio of 10 but not its size: 0.125/s and 1.25/s belong to an
    update every 15 ms and to senders that slow down when they lose a packet; a stream does not.
    With an update per period T and load L the loop is z(z-1)^2 + TL(alpha z + beta (z-1)) = 0;
    0.02 and 0.2 keep it stable up to TL of about 4.

    Assumption: the drop probability changes little between updates. It needs neither cost nor
    headroom, but reaches a strong overload only after some twenty updates.
    """

    cadence: ClassVar[Cadence] = "period"
    adapts: ClassVar[bool] = True
    capabilities: ClassVar[Capabilities] = can("xxxx-xx")
    parameters: ClassVar[tuple[Option, ...]] = (
        Option(
            name="alpha_per_s",
            kind="number",
            above=0.0,
            default=0.02,
            meaning="drop probability per second above the target",
        ),
        Option(
            name="beta_per_s",
            kind="number",
            at_least=0.0,
            default=0.2,
            meaning="drop probability per second of growing delay",
        ),
        Option(
            name="largest_step",
            kind="number",
            above=0.0,
            at_most=1.0,
            default=0.1,
            meaning="what one update adds at most",
        ),
        Option(
            name="burst_targets",
            kind="number",
            at_least=0.0,
            default=1.0,
            unit="targets",
            meaning="for so long nothing is dropped after a calm queue",
        ),
    )

    def __init__(
        self,
        *,
        alpha_per_s: float = 0.02,
        beta_per_s: float = 0.2,
        largest_step: float = 0.1,
        burst_targets: float = 1.0,
    ) -> None:
        require(alpha_per_s > 0.0, "alpha_per_s", alpha_per_s, "above 0")
        require(beta_per_s >= 0.0, "beta_per_s", beta_per_s, "0 or more")
        require(0.0 < largest_step <= 1.0, "largest_step", largest_step, "above 0, at most 1")
        require(burst_targets >= 0.0, "burst_targets", burst_targets, "0 or more")
        self._gains = alpha_per_s, beta_per_s
        self._largest_step = largest_step
        self._burst_targets = burst_targets
        self._burst_s: float | None = None  # what is left of the allowance; None before the start
        self._drop = 0.0
        self._before_s = 0.0
        self._drain = 1.0  # load that leaves per second
        self._queued_s = 0.0

    def decide(self, measurement: Measurement) -> Decision:
        target_s = measurement.target.delay_s
        delay_s = self._delay(measurement)
        self._update(delay_s, target_s)
        spared = self._spared(delay_s, measurement)
        before_s, self._before_s = self._before_s, delay_s
        if is_idle(measurement):
            return idle()
        if spared or (before_s < target_s / 2.0 and self._drop < 0.2):
            return Decision(
                action=KeepFraction(fraction=1.0), reason=f"delay {delay_s:.3g} s: burst allowance"
            )
        return Decision(
            action=KeepFraction(fraction=1.0 - self._drop),
            reason=f"delay {delay_s:.3g} s: drop probability {self._drop:.3g}",
        )

    def _update(self, delay_s: float, target_s: float) -> None:
        alpha, beta = self._gains
        step = alpha * (delay_s - target_s) + beta * (delay_s - self._before_s)
        for below, divisor in _TUNING:
            if self._drop < below:
                step /= divisor
                break
        self._drop += min(step, self._largest_step)
        if delay_s == 0.0 and self._before_s == 0.0:
            self._drop *= _DECAY
        self._drop = min(max(0.0, self._drop), 1.0 - LEAST_KEPT)

    def _spared(self, delay_s: float, measurement: Measurement) -> bool:
        target_s = measurement.target.delay_s
        calm = self._drop == 0.0 and max(delay_s, self._before_s) < target_s / 2.0
        if calm or self._burst_s is None:
            self._burst_s = self._burst_targets * target_s
        self._burst_s -= measurement.period_s
        return self._burst_s > 0.0

    def _delay(self, measurement: Measurement) -> float:
        """The queueing delay now: queue over departure rate (RFC 8033, 4.3)."""
        if measurement.prices is not None and measurement.headroom:
            return measurement.queued_load_s / measurement.headroom
        queued_s, before_s = measurement.queued_load_s, self._queued_s
        self._queued_s = queued_s
        if queued_s > 0.0 and before_s > 0.0:
            left = measurement.admitted_load - (queued_s - before_s) / measurement.period_s
            self._drain += 0.5 * (max(_LEAST_DRAIN, left) - self._drain)
        return queued_s / self._drain
