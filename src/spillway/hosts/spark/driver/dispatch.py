"""The class control at work on Spark: answers the gates' reports, one thread a query.

A query that has pending tuples is held here until its turn comes, as long as its report allows.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from spillway.classes.balance import Balance, QueryLoad
from spillway.classes.control import ClassControl
from spillway.clock import Clock
from spillway.handover import Owned, Positions
from spillway.model import Decided, Order, Report

OnDecided = Callable[[Decided], None]


class Dispatcher:
    """Reports arrive in the channel's threads, periods end in the loop's: one lock for all."""

    def __init__(self, control: ClassControl, clock: Clock, on_decided: OnDecided) -> None:
        self.control = control
        self._clock = clock
        self._on_decided = on_decided
        self.parallelism: int | None = None  # tasks of a batch, on the cores that there are now
        self.plan_until_s: float | None = None  # monotonic: this node's lease; None: for ever
        self._last: dict[str, Report] = {}  # by query
        self._granted: set[str] = set()
        self._held: set[str] = set()  # queries that get no turns
        self._still: set[str] = set()  # and have said that they know
        self._owned: dict[str, Owned] = {}  # what they are told of their results
        self._until: dict[str, Positions] = {}  # and how far their batches may go
        self._changed = threading.Condition()

    def answer(self, report: Report) -> Order:
        """What a query is told; its slot is freed in the same step, so that it competes for it."""
        asks = report.backlog.pending_tuples > 0  # an empty batch (a heartbeat) costs no slot
        deadline_s = time.monotonic() + report.wait_s
        with self._changed:
            now_s, news = self._clock.now_s(), self._news(report)
            self._granted.discard(report.query)  # a turn that it never heard of
            self.control.heard(news, now_s)
            self._changed.notify_all()
            self._changed.wait_for(
                lambda: report.query not in self._held or not report.held, report.wait_s
            )
            if asks and report.query not in self._held:
                self.control.ask(report, self._clock.now_s())
            self._changed.notify_all()
        for decided in news.decided:
            self._on_decided(decided)
        with self._changed:
            held = self._is_held(report)
            granted = not held and (not asks or self._await_turn(report, deadline_s))
            self._grant()
            order = self.control.order(report, may_start=granted)
            return replace(
                order,
                parallelism=self.parallelism,
                plan_until_s=self.plan_until_s,
                held=held,
                owned=self._owned.get(report.query),
                until=self._until.get(report.query),
            )

    def _is_held(self, report: Report) -> bool:
        """A gate whose driver is slow goes on alone, until it has heard that it is to stand still.
        It is known to have heard it when its next report says so."""
        held = report.query in self._held
        (self._still.add if held and report.held else self._still.discard)(report.query)
        return held

    def _news(self, report: Report) -> Report:
        """Without what its last report said: a query that got no answer says it again."""
        before = self._last.get(report.query)
        self._last[report.query] = report
        if before is None:
            return report
        return replace(
            report,
            ended=tuple(batch for batch in report.ended if batch not in before.ended),
            decided=tuple(each for each in report.decided if each not in before.decided),
        )

    def _await_turn(self, report: Report, deadline_s: float) -> bool:
        """By the time that really passes: the clock may be set while a query waits."""
        while True:
            self._grant()
            if self._last.get(report.query) is not report:  # cut off: it asks by another connection
                return False
            if report.query in self._granted:
                self._granted.discard(report.query)
                return True
            left_s = deadline_s - time.monotonic()
            if left_s <= 0.0:
                self.control.turns.withdraw(report.query)
                return False
            now_s = self._clock.now_s()
            next_s = self.control.turns.next_s(now_s)
            self._changed.wait(left_s if next_s is None else min(left_s, max(1e-3, next_s - now_s)))

    def _grant(self) -> None:
        granted = self.control.grant(self._clock.now_s())
        if granted:
            self._granted |= set(granted)
            self._changed.notify_all()

    def leave(self, query: str) -> None:
        """Its planner is gone."""
        with self._changed:
            self.control.leave(query)
            self._changed.notify_all()
            self._granted.discard(query)
            self._grant()

    def finish(self, query: str, wait_s: float) -> None:
        """Grant it no more turns, and wait until its batch in flight has ended."""
        self.hold(query)
        with self._changed:
            self._changed.wait_for(lambda: not self.control.turns.is_running(query), wait_s)

    def hold(self, query: str) -> None:
        """Grant it no turns until it is let go."""
        with self._changed:
            if query not in self._held:
                self._still.discard(query)
            self._held.add(query)
            self.control.turns.withdraw(query)

    def let_go(self, query: str) -> None:
        with self._changed:
            self._held.discard(query)
            self._changed.notify_all()

    def stands_still(self, query: str) -> bool:
        """It is held, it knows, and no batch of it runs."""
        with self._changed:
            return query in self._still and not self.control.turns.is_running(query)

    def bound(self, query: str, until: Positions | None) -> None:
        """How far its batches may go from now on; None: as far as there is."""
        with self._changed:
            if until is None:
                self._until.pop(query, None)
            else:
                self._until[query] = until

    def own(self, query: str, owned: Owned) -> None:
        """Which windows are its own, from its next batch on."""
        with self._changed:
            self._owned[query] = owned

    def left(self, query: str) -> None:
        """It has been stopped for good: nothing of it counts any more."""
        self.leave(query)
        with self._changed:
            self._held.discard(query)
            self._still.discard(query)
            self._owned.pop(query, None)
            self._until.pop(query, None)
            self._last.pop(query, None)

    def period_ended(self) -> Mapping[str, Balance]:
        with self._changed:
            decided = self.control.period_ended(self._clock.now_s())
            self._grant()
            return decided

    def loads(self, class_name: str) -> Mapping[str, QueryLoad]:
        with self._changed:
            return self.control.loads(class_name, self._clock.now_s())

    def silent_s(self, class_name: str) -> float | None:
        with self._changed:
            return self.control.accounts.silent_s(class_name, self._clock.now_s())

    def last_report(self, query: str) -> Report | None:
        return self._last.get(query)

    def is_running(self, query: str) -> bool:
        """Whether a batch of the query holds a slot."""
        with self._changed:
            return self.control.turns.is_running(query)

    def change(self, act: Callable[[ClassControl], None]) -> None:
        """A change from outside, while nobody else looks."""
        with self._changed:
            act(self.control)
            self._grant()

    def drain(self, wait_s: float) -> bool:
        """Grant no more turns, and wait until the batches in flight have ended; True when so."""
        with self._changed:
            self.control.turns.slots = 0
            return self._changed.wait_for(lambda: self.control.turns.idle, wait_s)
