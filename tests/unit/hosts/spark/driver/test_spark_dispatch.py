import threading
from collections.abc import Callable

import pytest

from spillway.classes.scheduler import ClassScheduler
from spillway.clock import ManualClock, WallClock
from spillway.hosts.spark.driver.dispatch import Dispatcher

QUOTAS = {"gold": 0.75, "bronze": 0.25}


def dispatcher(slots: int = 1, clock: ManualClock | None = None) -> Dispatcher:
    return Dispatcher(ClassScheduler(QUOTAS), clock or ManualClock(), slots=slots)


def asking(ask: Callable[[], bool]) -> tuple[threading.Thread, list[bool]]:
    answers: list[bool] = []
    thread = threading.Thread(target=lambda: answers.append(ask()))
    thread.start()
    return thread, answers


def test_a_lone_gate_starts_at_once() -> None:
    assert dispatcher().request("q", "gold", 1.0, wait_s=0.0)


def test_no_more_batches_are_in_flight_than_there_are_slots() -> None:
    desk = dispatcher(slots=2)
    assert desk.request("a", "gold", 1.0, wait_s=0.0)
    assert desk.request("b", "gold", 1.0, wait_s=0.0)
    assert not desk.request("c", "gold", 1.0, wait_s=0.0)
    desk.finished("a", 0.1)
    assert desk.request("c", "gold", 1.0, wait_s=0.0)


def test_the_last_slot_is_for_the_highest_class_alone() -> None:
    desk = Dispatcher(ClassScheduler(QUOTAS), ManualClock(), slots=2, first="gold")
    assert desk.request("b1", "bronze", 1.0, wait_s=0.0)
    assert not desk.request("b2", "bronze", 1.0, wait_s=0.0)
    assert desk.request("g", "gold", 1.0, wait_s=0.0)


def test_a_held_gate_is_woken_when_a_slot_is_free() -> None:
    desk = dispatcher()
    desk.request("a", "gold", 1.0, wait_s=0.0)
    thread, answers = asking(lambda: desk.request("b", "bronze", 1.0, wait_s=10.0))
    desk.finished("a", 0.1)
    thread.join(5.0)
    assert answers == [True]


def test_draining_grants_nothing_more_and_waits_for_what_is_in_flight() -> None:
    desk = dispatcher(slots=2)
    assert desk.drain(wait_s=0.0), "nothing is in flight"
    desk = dispatcher(slots=2)
    desk.request("a", "gold", 1.0, wait_s=0.0)
    assert not desk.drain(wait_s=0.0)
    assert not desk.request("b", "gold", 1.0, wait_s=0.0)
    assert not desk.request("a", "gold", 1.0, wait_s=0.0, busy_s=0.1)
    assert desk.drain(wait_s=0.0)


def test_a_gate_that_is_gone_frees_its_slot() -> None:
    desk = dispatcher()
    desk.request("a", "gold", 1.0, wait_s=0.0)
    desk.leave("a")
    assert desk.request("b", "gold", 1.0, wait_s=0.0)


def test_classes_get_batch_time_in_proportion_to_their_quotas() -> None:
    """Both gates always have pending tuples: the one that ends a batch asks again at once."""
    desk = dispatcher()
    batch_s = {"gold": 1.0, "bronze": 0.5}
    used_s = dict.fromkeys(batch_s, 0.0)
    assert desk.request("gold", "gold", 1.0, wait_s=0.0)
    running = "gold"
    for _ in range(60):
        used_s[running] += batch_s[running]
        waiting = "bronze" if running == "gold" else "gold"
        thread, granted = asking(lambda n=waiting: desk.request(n, n, 1.0, wait_s=30.0))
        _until(lambda n=waiting: n in desk._requests)
        if desk.request(running, running, 1.0, wait_s=0.0, busy_s=batch_s[running]):
            desk._requests.pop(waiting).granted.set()  # it gives up, to ask again
            thread.join(5.0)
        else:
            thread.join(5.0)
            assert granted == [True]
            running = waiting
    assert used_s["gold"] / sum(used_s.values()) == pytest.approx(0.75, abs=0.05)


def test_inside_a_class_the_fastest_goes_first_but_none_starves() -> None:
    clock = ManualClock()
    desk = dispatcher(clock=clock)
    desk.request("busy", "gold", 1.0, wait_s=0.0)
    assert not desk.request("slow", "gold", 1.0, wait_s=0.0)
    fast, fast_answers = asking(lambda: desk.request("fast", "gold", 9.0, wait_s=5.0))
    slow, slow_answers = asking(lambda: desk.request("slow", "gold", 1.0, wait_s=5.0))
    _until(lambda: len(desk._requests) == 2)
    desk.finished("busy", 0.1)
    fast.join(5.0)
    assert fast_answers == [True]
    clock.advance(2.0)
    faster, faster_answers = asking(lambda: desk.request("faster", "gold", 99.0, wait_s=0.3))
    _until(lambda: len(desk._requests) == 2)
    desk.finished("fast", 0.1)
    slow.join(5.0)
    faster.join(5.0)
    assert slow_answers == [True]
    assert faster_answers == [False]


def _until(condition: Callable[[], bool]) -> None:
    for _ in range(1000):
        if condition():
            return
        threading.Event().wait(0.005)
    raise AssertionError("did not happen in time")


def test_where_nobody_lends_a_class_has_no_more_than_its_quota() -> None:
    clock = ManualClock()
    desk = dispatcher(slots=1, clock=clock)
    desk.set_lending(False)
    clock.advance(1.0)  # bronze has earned a quarter of a second
    assert desk.request("b", "bronze", 1.0, wait_s=0.0)
    clock.advance(1.0)
    assert not desk.request("b", "bronze", 1.0, wait_s=0.0, busy_s=1.0)
    clock.advance(1.9)  # of the second that it used, 0.025 s are still to be earned
    assert not desk.request("b", "bronze", 1.0, wait_s=0.0)
    clock.advance(0.2)
    assert desk.request("b", "bronze", 1.0, wait_s=0.0)


def test_an_idle_class_saves_up_no_more_than_a_second_of_its_quota() -> None:
    clock = ManualClock()
    desk = dispatcher(slots=1, clock=clock)
    desk.set_lending(False)
    clock.advance(1000.0)
    assert desk.request("b", "bronze", 1.0, wait_s=0.0)
    clock.advance(0.3)
    assert not desk.request("b", "bronze", 1.0, wait_s=0.0, busy_s=0.4)


def test_a_gate_that_waits_starts_when_its_class_has_earned_enough() -> None:
    desk = Dispatcher(ClassScheduler(QUOTAS), WallClock(), slots=1)
    desk.set_lending(False)
    assert desk.request("g", "gold", 1.0, wait_s=0.5)
    assert desk.request("g", "gold", 1.0, wait_s=1.0, busy_s=0.1)


def test_withheld_slots_are_missing_for_all_but_the_highest_class() -> None:
    desk = Dispatcher(ClassScheduler(QUOTAS), ManualClock(), slots=3, first="gold")
    desk.withhold(5)
    assert desk.withheld == 1  # one slot always stays
    assert desk.request("b1", "bronze", 1.0, wait_s=0.0)
    assert not desk.request("b2", "bronze", 1.0, wait_s=0.0)
    assert desk.request("g1", "gold", 1.0, wait_s=0.0)
    assert desk.request("g2", "gold", 1.0, wait_s=0.0)
    desk.finished("g1", 0.1)
    desk.withhold(0)
    assert desk.request("b2", "bronze", 1.0, wait_s=0.0)


def test_a_spared_class_may_take_a_slot_that_is_withheld_from_the_others() -> None:
    quotas = {"gold": 0.6, "silver": 0.3, "bronze": 0.1}
    desk = Dispatcher(ClassScheduler(quotas), ManualClock(), slots=3, first="gold")
    desk.spare(["gold", "silver"])
    desk.withhold(1)
    assert desk.request("b1", "bronze", 1.0, wait_s=0.0)
    assert not desk.request("b2", "bronze", 1.0, wait_s=0.0)
    assert desk.request("s1", "silver", 1.0, wait_s=0.0)
    assert not desk.request("s2", "silver", 1.0, wait_s=0.0), "the last slot is gold's"
    assert desk.request("g", "gold", 1.0, wait_s=0.0)
