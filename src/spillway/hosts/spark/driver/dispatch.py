"""The class control at work on Spark: answers the gates' reports, one thread a query.

A query that has pending tuples is held here until its turn comes, as long as its report allows.
"""

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace

from spillway.classes.balance import Balance, QueryLoad
from spillway.classes.control import ClassControl
from spillway.clock import Clock
from spillway.model import Decided, Order, Report

OnDecided = Callable[[Decided], None]


class Dispatcher:
    """Reports arrive in the channel's threads, periods end in the loop's: one lock for all."""

    def __init__(self, control: ClassControl, clock: Clock, on_decided: OnDecided) -> None:
        self.control = control
        self._clock = clock
        self._on_decided = on_decided
        self.parallelism: int | None = None  # tasks of a batch; None: as each gate was told first
        self._granted: set[str] = set()
        self._changed = threading.Condition()

    def answer(self, report: Report) -> Order:
        """What a query is told; its slot is freed in the same step, so that it competes for it."""
        for decided in report.decided:
            self._on_decided(decided)
        with self._changed:
            now_s = self._clock.now_s()
            self.control.heard(report, now_s)
            self._changed.notify_all()
            if report.backlog.pending_tuples == 0:  # an empty batch (a heartbeat) costs no slot
                self._grant()
                return self._order(report, may_start=True)
            self.control.ask(report, now_s)
            granted = self._await_turn(report)
            return self._order(report, may_start=granted)

    def _order(self, report: Report, *, may_start: bool) -> Order:
        order = self.control.order(report, may_start=may_start)
        return replace(order, parallelism=self.parallelism)

    def _await_turn(self, report: Report) -> bool:
        deadline_s = self._clock.now_s() + report.wait_s
        while True:
            self._grant()
            if report.query in self._granted:
                self._granted.discard(report.query)
                return True
            now_s = self._clock.now_s()
            left_s = deadline_s - now_s
            if not 0.0 < left_s <= report.wait_s:  # over, or the clock has jumped
                self.control.turns.withdraw(report.query)
                return False
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
