"""Who decides about a gate's next batch, and what the decision means for the waiting tuples.

The control loop decides when there is one and it answers; otherwise the gate decides by itself, so
a dead loop never stops a query. `predictive` always runs at the gate, where the backlog is known.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from spillway.clock import Clock
from spillway.gate.arrivals import Arrivals
from spillway.gate.offsets import Costs, Offset
from spillway.gate.options import GateOptions
from spillway.gate.pacing import Wish, is_stale, newest_within_target
from spillway.hosts.spark.driver.channel import ChannelClient, Directive, GateReport
from spillway.hosts.spark.planner.own_control import OwnControl, delay_of
from spillway.model import (
    Backlog,
    BatchRecord,
    Decision,
    KeepFraction,
    KeepOfBacklog,
    Target,
)

_UNREPORTED_KEPT = 100  # of the batches that ended while the loop did not answer

Ask = Callable[[GateReport], Directive | None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """What a batch should keep; `fresh` takes all of it from the newest tuples."""

    wish: Wish
    fresh: bool = False
    share: float | None = None  # decided for all gates of the query


class Decider:
    def __init__(self, gate: GateOptions, clock: Clock, ask: Ask | None = None) -> None:
        self._gate = gate
        self._clock = clock
        self._control = OwnControl(gate.manager, gate.period_s, gate.law_parameters)
        if ask is None and gate.channel is not None:
            ask = ChannelClient(gate.channel, clock).ask
        self._ask = ask
        self._directive: Directive | None = None
        self._unreported: list[BatchRecord] = []
        self._delays: list[tuple[float, int]] = []
        self.target: Target = gate.target

    @property
    def costs(self) -> Costs | None:
        return self._control.costs

    @property
    def longest_batch(self) -> int | None:
        """Tuples that a batch as long as the target keeps; None: no bound.

        A law that decides by the period can be wrong for a while. In a batch that takes minutes it
        would never get to correct itself, and a planned batch cannot be escaped. Manager `none` is
        plain Spark and stays so.
        """
        costs = self.costs
        if costs is None or costs.kept_s <= 0.0 or self._gate.manager == "none":
            return None
        room_s = self.target.delay_s - costs.fixed_s
        fits = int(room_s / (costs.kept_s + costs.scanned_s))
        return max(self._gate.first_batch, self._control.cheap_tuples, fits)

    def batch_ended(self, offset: Offset, record: BatchRecord) -> None:
        delay_s = delay_of(offset, record.ended_s, self.target)
        self._control.batch_ended(record, delay_s)
        if self._ask is not None:
            self._unreported = [*self._unreported[1 - _UNREPORTED_KEPT :], record]
            if delay_s is not None:
                delay = (delay_s, record.kept_tuples)
                self._delays = [*self._delays[1 - _UNREPORTED_KEPT :], delay]

    def rest(self, previous: Offset, *, joined: bool = False) -> None:
        """Nothing waits: tell the loop that the last batch has ended, once."""
        if self._unreported:
            self._consult(previous, Backlog(), 0.0, joined)

    def may_start(
        self, previous: Offset, arrivals: Arrivals, wait_s: float, *, joined: bool = False
    ) -> bool:
        """Ask the control loop for this gate's turn, for at most `wait_s`.

        `joined`: another gate of the query has got it for the batch of this trigger.
        """
        backlog = arrivals.backlog(self._clock.now_s(), self.target)
        self._directive = self._consult(previous, backlog, wait_s, joined)
        return self._directive is None or self._directive.may_start

    def choose(self, previous: Offset, arrivals: Arrivals, *, growing: bool = False) -> Choice:
        """`growing`: batches are still too small for the load, because they have to be tried."""
        directive, now_s = self._directive, self._clock.now_s()
        backlog = arrivals.backlog(now_s, self.target)
        if directive is not None and directive.action is not None:
            decision = Decision(action=directive.action, reason=directive.reason)
        else:
            decision = self._control.decide(now_s, backlog, previous, self.target)
        alone = self._ask is not None and directive is None
        if alone:
            decision = replace(decision, reason=f"no control loop: {decision.reason}")
        if isinstance(decision.action, KeepFraction):
            return self._share(decision.action.fraction, decision.reason, arrivals, now_s, growing)
        assert isinstance(decision.action, KeepOfBacklog)
        return self._count(decision.action.tuples, decision, arrivals, now_s)

    def _share(
        self, share: float, reason: str, arrivals: Arrivals, now_s: float, growing: bool
    ) -> Choice:
        """A share stays a share: what does not fit waits.

        What waits because batches were too small after a start is not the law's doing: a law that
        sheds would take minutes to work it off, so it is cut as a count would cut it.
        """
        kept, least = share * arrivals.tuples, max(share, self._gate.min_keep)
        left_behind = growing and is_stale(arrivals, now_s, self.target)
        if left_behind and self._gate.manager != "fixed" and self._may_cut(kept, arrivals):
            return self._newest(arrivals, now_s, "stale backlog of the start, freshest once")
        return Choice(wish=Wish(kept_tuples=kept, least_fraction=least, reason=reason))

    def _count(self, tuples: int, decision: Decision, arrivals: Arrivals, now_s: float) -> Choice:
        """A count is what fits: the rest goes."""
        if self._may_cut(tuples, arrivals):
            if self._gate.policy == "fresh":
                return self._newest(arrivals, now_s, "freshest first", decision)
            if is_stale(arrivals, now_s, self.target):
                return self._newest(arrivals, now_s, "stale backlog, freshest once", decision)
        # Nothing has to go: let it wait.
        least = 1.0 if tuples >= arrivals.tuples else self._gate.min_keep
        wish = Wish(kept_tuples=tuples, least_fraction=least, reason=decision.reason)
        return Choice(wish=wish)

    def _may_cut(self, kept: float, arrivals: Arrivals) -> bool:
        """Whether something is shed anyway and the oldest may be what goes."""
        free = self._gate.min_keep == 0.0 and self._gate.joint is None
        return free and kept < arrivals.tuples and self.costs is not None

    def _newest(
        self, arrivals: Arrivals, now_s: float, why: str, decision: Decision | None = None
    ) -> Choice:
        """The newest that meet the target, with what the law has learned from measured delays."""
        costs, target = self.costs, self.target
        assert costs is not None
        if decision is not None and decision.aim_s is not None:
            costs, target = costs.slower(decision.pace), replace(target, delay_s=decision.aim_s)
        fits = newest_within_target(arrivals, now_s, costs, target)
        kept = min(arrivals.tuples, max(fits, self._control.cheap_tuples))
        reason = f"{why}: keeps {kept} of {arrivals.tuples}"
        return Choice(wish=Wish(kept_tuples=kept, least_fraction=0.0, reason=reason), fresh=True)

    def _consult(
        self, previous: Offset, backlog: Backlog, wait_s: float, joined: bool
    ) -> Directive | None:
        if self._ask is None:
            return None
        completed, totals = sum(n for _, n in self._delays), previous.totals
        delay_s = sum(d * n for d, n in self._delays) / completed if completed else None
        directive = self._ask(
            GateReport(
                gate=previous.gate,
                class_name=self._gate.class_name,
                time_s=self._clock.now_s(),
                offered_tuples=totals.admitted + totals.shed + backlog.pending_tuples,
                admitted_tuples=totals.admitted,
                shed_tuples=totals.shed,
                completed_tuples=totals.admitted,
                delay_s=delay_s,
                backlog=backlog,
                batches=tuple(self._unreported),
                fixed_s=self.costs.fixed_s if self.costs else 0.0,
                cost_s=self.costs.kept_s + self.costs.scanned_s if self.costs else 0.0,
                least_cost_s=self._control.least_cost_s,
                reason=previous.rule.reason,
                wait_s=wait_s,
                joint=self._gate.joint,
                joined=joined,
            )
        )
        if directive is not None:
            self._unreported, self._delays = [], []
            self.target = directive.target
        return directive
