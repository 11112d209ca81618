"""ALoMa: load monitor and response-time monitor settle the capacity between them."""

import math
from typing import ClassVar, Literal

from spillway.errors import require
from spillway.load.capabilities import Capabilities, can
from spillway.load.shares import HEADROOM_OPTION, LEAST_KEPT, Headroom, idle, is_idle
from spillway.model import Decision, KeepFraction, Measurement
from spillway.options import Option
from spillway.ports import Cadence

State = Literal["normal", "under threshold", "over threshold"]

# The threshold, as a part of the target, when nobody gives one: where it begins, how far it goes,
# what the mean response is led to, and how fast. Fast would be one more swing; 0.03 is 33 periods.
_BEGINS, _LEAST, _MOST, _AIM, _GAIN = 0.9, 0.6, 1.0, 0.98, 0.03
_MOST_ERROR = 0.5  # of the target: one long stall must not move it far
_CAPACITY = 0.8  # before the first period, where nobody says
_CAPACITY_RANGE = (0.01, 64.0)


class Aloma:
    """Algorithm 1 of the thesis, with L the load that passes the gate and L_C the capacity.

    L > L_C:  normal           increase L_C (eq. 5.1)
              over threshold   shed L - L_C more
              under threshold  shedding, and the response time does not rise: increase L_C and
                               shed x % less (eq. 5.2)
    L <= L_C: over threshold   the response time does not fall: decrease L_C and shed x % more
              otherwise        shed L_C - L less

    Eq. 5.1 moves L_C by log2(z + 1) / z of its distance to L, z the distance in per cent of L_C,
    at least 1. Eq. 5.2: x = 1 + log2(k), k how often in sequence; x is in points of the shed
    share. Normal is a response time of at most twice the smallest seen; that smallest is doubled
    every `refresh_periods` and replaced by the next smaller one.

    Over threshold is above `threshold` times the target. In the thesis the threshold is the target.
    It steps once that is passed, and the more so the more uneven its batches are: so it hunts
    around a delay above the threshold, by 3 to 30 %. Where no threshold is given it therefore
    follows the responses while something is shed, until their mean lies a little below the target.

    Assumption: the load statistics are roughly right and the target lies above the response time
    of an unloaded system. The response time is measured, so any scheduler and any query network
    will do. No model of stability: it hunts around the target with steps of 1 % and more.
    """

    cadence: ClassVar[Cadence] = "period"
    adapts: ClassVar[bool] = True
    capabilities: ClassVar[Capabilities] = can("xxxxxxx")
    parameters: ClassVar[tuple[Option, ...]] = (
        HEADROOM_OPTION,
        Option(
            name="refresh_periods",
            kind="whole",
            at_least=1,
            default=60,
            unit="periods",
            meaning="how often the smallest response time seen is doubled",
        ),
        Option(
            name="threshold",
            kind="number",
            above=0.0,
            at_most=1.0,
            meaning="above this part of the target the response time is over threshold; 1 as in"
            " the thesis, where delays settle above the target",
            without="what leads the mean response a little below the target",
        ),
    )

    def __init__(
        self,
        *,
        headroom: float | None = None,
        refresh_periods: int = 60,
        threshold: float | None = None,
    ) -> None:
        require(refresh_periods >= 1, "refresh_periods", refresh_periods, "1 or more")
        self._follows = threshold is None
        self._threshold = _BEGINS if threshold is None else threshold
        self._capacity = Headroom(headroom, _CAPACITY)  # L_C
        self._refresh_periods = refresh_periods
        self._periods = 0
        self._smallest_s = math.inf
        self._previous_s: float | None = None
        self._shed = 0.0  # share of the offered load
        self._less_in_a_row = 0
        self._more_in_a_row = 0

    def decide(self, measurement: Measurement) -> Decision:
        self._capacity.hear(measurement.headroom)
        if is_idle(measurement):
            self._shed = 0.0
            return idle(self._capacity.value)
        response_s = self._response(measurement)
        state = self._state(response_s, self._threshold * measurement.target.delay_s)
        reason = self._algorithm(measurement, state, response_s)
        self._previous_s = response_s
        self._shed = min(max(0.0, self._shed), 1.0 - LEAST_KEPT)
        return Decision(
            action=KeepFraction(fraction=1.0 - self._shed),
            reason=f"{state}: {reason}",
            headroom=self._capacity.value,
        )

    def _algorithm(self, measurement: Measurement, state: State, response_s: float) -> str:
        load, offered = measurement.admitted_load, measurement.offered_load
        gap = abs(load - self._capacity.value) / offered if offered > 0.0 else 1.0
        previous_s = response_s if self._previous_s is None else self._previous_s
        less, more = self._less_in_a_row, self._more_in_a_row
        self._less_in_a_row = self._more_in_a_row = 0
        if load > self._capacity.value:
            if state == "normal":
                self._move_towards(load)
                return "capacity was underestimated"
            if state == "over threshold":
                self._shed += gap
                return "sheds the load above capacity"
            if self._shed > 0.0 and response_s <= previous_s:
                self._less_in_a_row = less + 1
                self._move_towards(load)
                self._shed -= (1.0 + math.log2(less + 1)) / 100.0
                return "sheds more than necessary: a little less"
            return "waits"
        if state == "over threshold":
            if response_s >= previous_s:
                self._more_in_a_row = more + 1
                self._move_towards(load)
                self._shed += (1.0 + math.log2(more + 1)) / 100.0
                return "capacity was overestimated: a little more is shed"
            return "response time falls: waits"
        self._shed -= gap
        return "capacity is free"

    def _move_towards(self, load: float) -> None:
        """Eq. 5.1; the sign is that of L - L_C."""
        capacity = self._capacity.value
        gap = load - capacity
        percent = max(1.0, abs(gap) / capacity * 100.0)
        low, high = _CAPACITY_RANGE
        moved = capacity + math.log2(percent + 1.0) / percent * gap
        self._capacity.value = min(max(low, moved), high)

    def _state(self, response_s: float, threshold_s: float) -> State:
        if response_s > threshold_s:
            return "over threshold"
        return "normal" if response_s <= 2.0 * self._smallest_s else "under threshold"

    def _response(self, measurement: Measurement) -> float:
        """The measured one; with nothing completed the last one stands while something waits."""
        self._periods += 1
        if self._periods % self._refresh_periods == 0:
            self._smallest_s *= 2.0
        response_s = measurement.delay_s
        if response_s is None:
            return self._previous_s or 0.0 if measurement.queued_load_s > 0.0 else 0.0
        self._smallest_s = min(self._smallest_s, response_s)
        if self._follows and self._shed > 0.0:
            error = _AIM - response_s / measurement.target.delay_s
            moved = self._threshold + _GAIN * min(max(-_MOST_ERROR, error), _MOST_ERROR)
            self._threshold = min(max(_LEAST, moved), _MOST)
        return response_s
