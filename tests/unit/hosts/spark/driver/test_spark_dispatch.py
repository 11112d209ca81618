"""The class control behind one lock: who waits, who is woken, and what ends a wait."""

import threading
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from spillway.classes.control import ClassControl, ClassTerms
from spillway.clock import Clock, ManualClock, WallClock
from spillway.handover import Owned
from spillway.hosts.spark.driver.dispatch import Dispatcher
from spillway.model import (
    ADMIT_ALL,
    Backlog,
    BatchRecord,
    Decided,
    Decision,
    Ended,
    Measurement,
    Order,
    Prices,
    Report,
    Target,
)

TARGET = Target(delay_s=0.3)
TERMS = {
    "gold": ClassTerms(priority=3, target=TARGET),
    "bronze": ClassTerms(priority=1, target=TARGET),
}


def dispatcher(slots: int = 1, clock: Clock | None = None, policy: str = "dilos") -> Dispatcher:
    clock = clock or ManualClock(1_000.0)
    control = ClassControl(
        TERMS, policy, slots=slots, machine=2.0, cycle_periods=1, now_s=clock.now_s()
    )
    return Dispatcher(control, clock, on_decided=lambda decided: None)


def report(query: str, *, wait_s: float = 0.0, pending: int = 5, shed: int = 0) -> Report:
    """Of a query whose class is before the number in its name."""
    return Report(
        query=query,
        class_name=query.rstrip("0123456789"),
        time_s=0.0,
        offered_tuples=shed,
        admitted_tuples=0,
        shed_tuples=shed,
        completed_tuples=0,
        backlog=Backlog(pending_tuples=pending),
        prices=Prices(fixed_s=0.05, kept_s=1e-6),
        wait_s=wait_s,
    )


def batch(duration_s: float, kept: int = 80) -> Ended:
    record = BatchRecord(kept_tuples=kept, scanned_tuples=100, duration_s=duration_s, ended_s=1.0)
    return Ended(record=record)


def idle(query: str, busy_s: float = 0.1) -> Report:
    """Its batch has ended, and nothing waits."""
    return replace(report(query, pending=0), ended=(batch(busy_s),))


class Waiter:
    """A query whose thread is held by the dispatcher."""

    def __init__(self, desk: Dispatcher, asked: Report) -> None:
        self._orders: list[Order] = []
        self._thread = threading.Thread(target=lambda: self._orders.append(desk.answer(asked)))
        self._thread.start()
        until(lambda: desk.control.turns.is_asking(asked.query) or bool(self._orders))

    @property
    def may_start(self) -> bool:
        self._thread.join(10.0)
        [order] = self._orders
        return order.may_start


def until(condition: Callable[[], bool]) -> None:
    ends_s = time.monotonic() + 60.0
    while not condition():
        assert time.monotonic() < ends_s, "did not happen in time"
        time.sleep(0.002)


def may_start(desk: Dispatcher, query: str) -> bool:
    return desk.answer(report(query)).may_start


def test_a_query_that_finds_a_slot_is_told_to_start_at_once() -> None:
    order = dispatcher().answer(report("gold1", wait_s=10.0))
    assert order == Order(target=TARGET, may_start=True, spared=True)


def test_an_empty_batch_needs_no_slot() -> None:
    desk = dispatcher()
    assert may_start(desk, "bronze1")
    assert desk.answer(report("gold1", pending=0)).may_start


def test_a_query_that_waits_is_woken_when_a_batch_has_ended() -> None:
    desk = dispatcher()
    assert may_start(desk, "gold1")
    waiter = Waiter(desk, report("bronze1", wait_s=10.0))
    desk.answer(idle("gold1"))
    assert waiter.may_start


def test_a_query_that_waits_is_woken_when_another_is_gone() -> None:
    desk = dispatcher()
    assert may_start(desk, "gold1")
    waiter = Waiter(desk, report("bronze1", wait_s=10.0))
    desk.leave("gold1")
    assert waiter.may_start


def test_a_query_that_waits_is_woken_when_the_machine_grows() -> None:
    desk = dispatcher(slots=2)
    assert may_start(desk, "bronze1")
    waiter = Waiter(desk, report("bronze2", wait_s=10.0))
    desk.change(lambda control: control.resize(slots=3, machine=2.0))
    assert waiter.may_start


def test_a_query_that_waits_is_told_the_target_in_force_when_its_turn_comes() -> None:
    desk = dispatcher()
    orders: list[Order] = []
    assert may_start(desk, "gold1")
    asking = report("bronze1", wait_s=10.0)
    thread = threading.Thread(target=lambda: orders.append(desk.answer(asking)))
    thread.start()
    until(lambda: desk.control.turns.is_asking("bronze1"))
    changed = replace(TERMS["bronze"], target=Target.parse("p99 9s"))
    desk.change(lambda control: control.change("bronze", changed))
    desk.answer(idle("gold1"))
    thread.join(10.0)
    assert [order.target for order in orders] == [Target.parse("p99 9s")]


def test_a_query_whose_batch_has_ended_competes_for_its_own_slot() -> None:
    """Otherwise whoever waits would always get it, whatever the quotas."""
    desk = dispatcher()
    assert may_start(desk, "gold1")
    waiter = Waiter(desk, report("bronze1", wait_s=10.0))
    assert desk.answer(replace(report("gold1"), ended=(batch(0.001),))).may_start
    assert not desk.answer(replace(report("gold1"), ended=(batch(9.0),))).may_start
    assert waiter.may_start


@pytest.mark.parametrize("jump_s", [0.0, -3600.0, 3600.0, -0.05])
def test_a_wait_is_as_long_as_was_asked_whatever_the_clock_does(jump_s: float) -> None:
    clock = ManualClock(10_000.0)
    desk = dispatcher(clock=clock)
    assert may_start(desk, "gold1")
    started_s = time.monotonic()
    waiter = Waiter(desk, report("bronze1", wait_s=0.2))
    clock.advance(jump_s)
    desk.change(lambda control: None)
    assert not waiter.may_start
    assert 0.19 < time.monotonic() - started_s < 60.0
    assert not desk.control.turns.is_asking("bronze1")


@pytest.mark.parametrize("jump_s", [-3600.0, 3600.0])
def test_a_query_that_waits_is_woken_whatever_the_clock_does(jump_s: float) -> None:
    clock = ManualClock(10_000.0)
    desk = dispatcher(clock=clock)
    for query in ("bronze1", "gold1"):
        assert may_start(desk, query)
        if query == "bronze1":
            desk.answer(idle(query))
    waiter = Waiter(desk, report("bronze1", wait_s=10.0))
    clock.advance(jump_s)
    desk.answer(idle("gold1"))
    assert waiter.may_start


def test_where_nobody_lends_a_query_waits_until_its_class_has_earned_enough() -> None:
    desk = dispatcher(slots=2, clock=WallClock(), policy="none")
    started_s = time.monotonic()
    assert desk.answer(report("bronze1", wait_s=60.0)).may_start
    again = replace(report("bronze1", wait_s=60.0), ended=(batch(0.1),))
    assert desk.answer(again).may_start
    assert 0.2 < time.monotonic() - started_s < 30.0  # a quarter of the open slot is its own


def test_a_query_that_is_slowed_waits_until_its_interval_is_over() -> None:
    desk = dispatcher(slots=3, clock=WallClock())
    for shed in (0, 10):
        desk.answer(report("bronze1", pending=0, shed=shed))
    started_s = time.monotonic()
    assert may_start(desk, "gold1")
    interval_s = desk.period_ended()["gold"].interval_s
    assert 0.2 < interval_s < 0.6
    assert desk.answer(replace(report("gold1", wait_s=60.0), ended=(batch(0.001),))).may_start
    assert 0.5 * interval_s < time.monotonic() - started_s < 30.0


# -- the end of a flow


def test_draining_ends_at_once_when_nothing_is_in_flight() -> None:
    assert dispatcher(slots=2).drain(wait_s=0.0)


def test_draining_grants_nothing_more_and_waits_for_what_is_in_flight() -> None:
    desk = dispatcher(slots=3)
    assert may_start(desk, "gold1")
    assert not desk.drain(wait_s=0.01)
    assert not may_start(desk, "gold2")
    draining: list[bool] = []
    thread = threading.Thread(target=lambda: draining.append(desk.drain(wait_s=10.0)))
    thread.start()
    assert not desk.answer(replace(report("gold1"), ended=(batch(0.1),))).may_start
    thread.join(10.0)
    assert draining == [True]


def test_draining_does_not_wait_for_queries_that_wait_and_lets_none_of_them_start() -> None:
    desk = dispatcher()
    assert may_start(desk, "gold1")
    waiters = [Waiter(desk, report(query, wait_s=0.3)) for query in ("gold2", "bronze1")]
    assert not desk.drain(wait_s=0.0)
    desk.answer(idle("gold1"))
    assert desk.drain(wait_s=0.0)
    assert [waiter.may_start for waiter in waiters] == [False, False]
    assert desk.drain(wait_s=0.0)


def test_draining_ends_when_the_last_batch_in_flight_is_gone_with_its_query() -> None:
    desk = dispatcher()
    assert may_start(desk, "gold1")
    threading.Timer(0.05, desk.leave, ["gold1"]).start()
    assert desk.drain(wait_s=10.0)


# -- a query that moves is to stand still, and has to know


def test_a_query_stands_still_once_it_has_said_that_it_knows() -> None:
    desk = dispatcher()
    desk.answer(report("gold1"))
    desk.answer(idle("gold1"))
    desk.hold("gold1")
    assert not desk.stands_still("gold1")  # it may have gone on alone: its driver was slow
    assert desk.answer(report("gold1", wait_s=30.0)).held  # told at once
    assert not desk.stands_still("gold1")
    assert desk.answer(replace(report("gold1"), held=True)).held
    assert desk.stands_still("gold1")
    desk.let_go("gold1")
    assert not desk.answer(replace(report("gold1", pending=0), held=True)).held
    desk.hold("gold1")
    assert not desk.stands_still("gold1")  # what it said was of the time before


def test_a_query_is_told_how_far_its_batches_may_go() -> None:
    desk = dispatcher()
    desk.bound("gold1", {"ticks": {0: 7}})
    assert desk.answer(report("gold1")).until == {"ticks": {0: 7}}
    desk.bound("gold1", None)
    assert desk.answer(report("gold1")).until is None
    desk.bound("gold1", {"ticks": {0: 7}})
    desk.left("gold1")
    assert desk.answer(report("gold1")).until is None


# -- a query that was cut off asks again by another connection


def test_a_query_that_asks_again_is_waited_for_once() -> None:
    """The thread of the broken connection must not take the turn with it."""
    desk = dispatcher()
    assert may_start(desk, "gold1")
    cut_off = Waiter(desk, report("bronze1", wait_s=10.0))
    again = Waiter(desk, report("bronze1", wait_s=9.0))
    assert not cut_off.may_start
    desk.answer(idle("gold1"))
    assert again.may_start
    assert not may_start(desk, "gold1")


def test_a_turn_that_nobody_took_is_free_when_its_query_asks_again() -> None:
    desk = dispatcher()
    assert may_start(desk, "gold1")
    fast = replace(report("gold2", wait_s=10.0), ended=(batch(0.1, kept=900),))
    slow = replace(report("gold3", wait_s=10.0), ended=(batch(0.1, kept=9),))
    cut_off, other = Waiter(desk, fast), Waiter(desk, slow)
    with desk._changed:  # before any thread has woken
        desk.answer(idle("gold1"))
        assert desk.control.turns.is_running("gold2")
        assert desk.answer(report("gold2")).may_start  # again the fastest that asks
    assert not cut_off.may_start
    desk.answer(idle("gold2"))
    assert other.may_start  # there was one turn, not two


def test_what_a_query_says_twice_because_it_got_no_answer_counts_once() -> None:
    desk = dispatcher(slots=3)
    seen: list[Decided] = []
    desk._on_decided = seen.append
    first, second = (replace(batch(busy_s), delays=()) for busy_s in (0.3, 0.5))
    desk.answer(replace(report("gold1", pending=0), ended=(first,), decided=(decided(1.0),)))
    desk.leave("gold1")
    both = (decided(1.0), decided(2.0))
    desk.answer(replace(report("gold1", pending=0), ended=(first, second), decided=both))
    assert desk.control.accounts.take_periods()["gold"].busy_s == pytest.approx(0.8)
    assert [d.measurement.time_s for d in seen] == [1.0, 2.0]
    desk.answer(report("gold1", pending=0))
    desk.answer(replace(report("gold1", pending=0), ended=(batch(0.3),)))
    assert desk.control.accounts.take_periods()["gold"].busy_s == pytest.approx(0.3)


def decided(time_s: float) -> Decided:
    measurement = Measurement(
        time_s=time_s,
        period_s=1.0,
        target=TARGET,
        offered_tuples=0,
        admitted_tuples=0,
        shed_tuples=0,
        completed_tuples=0,
        queued_tuples=0,
        queued_load_s=0.0,
        offered_load=0.0,
        admitted_load=0.0,
        cost_s=0.0,
        delay_s=None,
        busy_s=0.0,
    )
    return Decided(measurement=measurement, decision=Decision(action=ADMIT_ALL, reason="all fits"))


# -- many at once


def test_any_number_of_queries_at_once_keeps_to_the_slots_and_none_starves() -> None:
    slots = 3
    desk = dispatcher(slots=slots, clock=WallClock())
    in_flight, most, problems = set[str](), [0], list[str]()
    watch = threading.Lock()

    def live(query: str) -> None:
        done: tuple[Ended, ...] = ()
        for number in range(15):
            started = False
            for _ in range(400):
                asked = replace(report(query, wait_s=0.05), ended=done)
                started, done = desk.answer(asked).may_start, ()
                if started:
                    break
            if not started:
                problems.append(f"{query} starved")
                return
            with watch:
                in_flight.add(query)
                most[0] = max(most[0], len(in_flight))
                others = sum(not name.startswith("gold") for name in in_flight)
                if others > slots - 1:
                    problems.append("the highest class has no slot of its own")
            time.sleep(0.001)
            with watch:
                in_flight.discard(query)
            done = (batch(0.001 + number * 1e-6),)
        desk.answer(replace(report(query, pending=0), ended=done))

    queries = [f"{name}{number}" for name in TERMS for number in range(5)]
    threads = [threading.Thread(target=live, args=(query,)) for query in queries]
    for thread in threads:
        thread.start()
    for _ in range(20):
        desk.period_ended()
        desk.loads("gold")
        desk.silent_s("bronze")
        time.sleep(0.005)
    for thread in threads:
        thread.join(60.0)
    assert problems == []
    assert most[0] == slots
    assert desk.drain(wait_s=0.0)


def test_what_is_known_of_a_class_is_read_by_the_clock() -> None:
    clock = ManualClock(100.0)
    desk = dispatcher(clock=clock)
    assert desk.silent_s("gold") is None
    desk.answer(replace(report("gold1", pending=0), offered_tuples=1, time_s=100.0))
    clock.advance(7.0)
    assert desk.silent_s("gold") == pytest.approx(7.0)
    [load] = desk.loads("gold").values()
    assert load.fixed_s == 0.05


def test_a_query_that_leaves_gets_no_more_turns_and_its_batch_is_waited_for() -> None:
    desk = dispatcher(slots=2, clock=WallClock())
    assert desk.answer(report("gold1")).may_start
    begun_s = time.monotonic()
    desk.finish("gold1", 0.2)
    assert time.monotonic() - begun_s >= 0.2  # its batch did not end
    assert not desk.answer(replace(report("gold1"), ended=(batch(0.1),))).may_start
    desk.finish("gold1", 60.0)  # it has ended by now
    desk.left("gold1")
    assert desk.last_report("gold1") is None
    assert desk.answer(report("gold1")).may_start  # as one that comes anew


def test_every_order_says_how_long_it_holds() -> None:
    desk = dispatcher(slots=2, clock=WallClock())
    assert desk.answer(report("gold1", pending=0)).plan_until_s is None
    desk.plan_until_s = 17.0
    assert desk.answer(report("gold1", pending=0)).plan_until_s == 17.0


def test_a_held_query_gets_no_turn_until_it_is_let_go_and_hears_what_is_its_own() -> None:
    control = dispatcher()
    control.hold("gold1")
    order = control.answer(report("gold1"))
    assert (order.may_start, order.held, order.owned) == (False, True, None)
    assert not control.answer(report("gold1", pending=0)).may_start  # nor a heartbeat
    control.own("gold1", Owned(until_us=77))
    waiting = threading.Timer(0.05, lambda: control.let_go("gold1"))
    waiting.start()
    order = control.answer(replace(report("gold1", wait_s=60.0), held=True))
    assert (order.may_start, order.held, order.owned) == (True, False, Owned(until_us=77))


def test_a_query_that_has_left_is_held_no_more() -> None:
    control = dispatcher()
    control.hold("gold1")
    control.own("gold1", Owned(until_us=77))
    control.left("gold1")
    order = control.answer(report("gold1"))
    assert (order.may_start, order.held, order.owned) == (True, False, None)
