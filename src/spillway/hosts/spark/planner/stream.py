"""The log behind a gate, as its planner looks at it."""

from collections.abc import Callable

from spillway.errors import SpillwayError
from spillway.gate.offsets import Offset
from spillway.gate.options import GateOptions
from spillway.gate.planning import Waiting, survey
from spillway.ports import Log, Span

_SHORT_S = 30.0  # a log that ends below our position for so long will not come back


class Stream:
    """`may_fall`: the log's end follows the clock, so a clock that jumps back takes it along."""

    def __init__(
        self,
        log: Log,
        gate: GateOptions,
        may_fall: bool,
        elapsed: Callable[[], float],
        frozen: tuple[Span, ...] | None = None,
    ) -> None:
        self.log = log
        self._gate = gate
        self._may_fall = may_fall
        self._elapsed = elapsed
        self._frozen = frozen  # what there was when a run of AvailableNow began
        self._short_since_s: float | None = None  # the log has ended below our position

    def survey(self, previous: Offset, now_s: float, *, frozen: bool = False) -> Waiting:
        """What no batch has consumed; frozen: of what was there at the first look."""
        extent = self.log.extent(now_s) if self._frozen is None or not frozen else self._frozen
        if frozen:
            self._frozen = extent
        self._require_reached(previous, extent)
        waiting = survey(previous, extent, self.log.arrivals)
        if waiting.lost_tuples > 0 and self._gate.fail_on_data_loss:
            raise SpillwayError(
                f"the log dropped {waiting.lost_tuples} tuples before they were read: option"
                " 'failOnDataLoss' is true; set it to false to count them as shed and go on"
            )
        return waiting

    def _require_reached(self, previous: Offset, extent: tuple[Span, ...]) -> None:
        """A lagging replica may end below our position for a moment, a new topic does for good."""
        reached = {s.partition: s.stop for s in previous.stretches}
        short = [span for span in extent if span.stop < reached.get(span.partition, 0)]
        if not short or self._may_fall:
            self._short_since_s = None
            return
        if self._short_since_s is None:
            self._short_since_s = self._elapsed()
        if self._elapsed() - self._short_since_s > _SHORT_S:
            first = short[0]
            raise SpillwayError(
                f"partition {first.partition} of the log ends at {first.stop}, but this checkpoint"
                f" has read up to {reached[first.partition]}: it was cut short or made anew; start"
                " with a new checkpoint"
            )
