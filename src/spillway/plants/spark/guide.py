"""A gate's line to the control loop: it reports, asks for its turn, and remembers what it was told.

When the loop is gone the gate goes on alone: it starts when it likes, with its last known target
and its own load manager.
"""

from spillway.clock import Clock
from spillway.gate.offsets import Offset
from spillway.model import Backlog, BatchRecord, Decision, Target
from spillway.plants.spark.channel import ChannelClient, Directive, GateReport


class Guide:
    def __init__(self, path: str, class_name: str, target: Target, clock: Clock) -> None:
        self._client = ChannelClient(path, clock)
        self._clock = clock
        self._class_name = class_name
        self._target = target
        self._directive: Directive | None = None
        self._batches: list[BatchRecord] = []
        self._delays: list[tuple[float, int]] = []

    @property
    def target(self) -> Target:
        """The class's target as it was last told; it can change while the query runs."""
        return self._target

    @property
    def decision(self) -> Decision | None:
        """What the loop decided; None when the gate's own load manager decides."""
        directive = self._directive
        if directive is None or directive.action is None:
            return None
        return Decision(action=directive.action, reason=directive.reason)

    @property
    def has_news(self) -> bool:
        return bool(self._batches)

    def batch_ended(self, record: BatchRecord, delay_s: float | None) -> None:
        self._batches.append(record)
        if delay_s is not None:
            self._delays.append((delay_s, record.kept_tuples))

    def may_start(self, backlog: Backlog, previous: Offset, wait_s: float) -> bool:
        """Report, and wait up to `wait_s` for this gate's turn."""
        directive = self._client.ask(self._report(backlog, previous, wait_s))
        self._directive = directive
        if directive is None:
            return True
        self._batches.clear()
        self._delays.clear()
        self._target = directive.target
        return directive.may_start

    def close(self) -> None:
        self._client.close()

    def _report(self, backlog: Backlog, previous: Offset, wait_s: float) -> GateReport:
        totals = previous.totals
        kept = sum(tuples for _, tuples in self._delays)
        delay_s = sum(d * n for d, n in self._delays) / kept if kept else None
        return GateReport(
            gate=previous.gate,
            class_name=self._class_name,
            time_s=self._clock.now_s(),
            offered_tuples=totals.admitted + totals.shed + backlog.pending_tuples,
            admitted_tuples=totals.admitted,
            shed_tuples=totals.shed,
            completed_tuples=totals.admitted,  # a gate plans only when its last batch has ended
            delay_s=delay_s,
            backlog=backlog,
            batches=tuple(self._batches),
            reason=previous.rule.reason,
            wait_s=wait_s,
        )
