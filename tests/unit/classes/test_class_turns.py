"""Whose turn it is: slots, quotas and patience, by hand and at random."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillway.classes.turns import Turns

QUOTAS = {"gold": 0.75, "bronze": 0.25}
THREE = {"gold": 0.6, "silver": 0.3, "bronze": 0.1}


def turns(slots: int = 1, *, first: str | None = None, lends: bool = True) -> Turns:
    made = Turns(QUOTAS, slots=slots, now_s=0.0, first=first)
    made.lends = lends
    return made


def may_start(desk: Turns, query: str, class_name: str, now_s: float = 0.0) -> bool:
    """Ask, and give up at once when it is not granted."""
    desk.ask(query, class_name, 1.0, now_s)
    granted = desk.grant(now_s)
    desk.withdraw(query)
    assert granted in ([], [query])
    return bool(granted)


def test_a_lone_query_starts_at_once() -> None:
    assert may_start(turns(), "q", "gold")


def test_no_more_batches_are_in_flight_than_there_are_slots() -> None:
    desk = turns(slots=2)
    for query in "abc":
        desk.ask(query, "gold", 1.0, 0.0)
    assert desk.grant(0.0) == ["a", "b"]
    assert desk.is_running("a")
    assert desk.is_asking("c")
    desk.ended("a", 0.1)
    assert desk.grant(0.1) == ["c"]
    assert desk.grant(0.1) == []


def test_the_last_slot_is_for_the_highest_class_alone() -> None:
    desk = turns(slots=2, first="gold")
    assert may_start(desk, "b1", "bronze")
    assert not may_start(desk, "b2", "bronze")
    assert may_start(desk, "g", "gold")


def test_the_only_slot_of_a_machine_is_for_all() -> None:
    desk = turns(slots=1, first="gold")
    assert may_start(desk, "b", "bronze")
    desk.ended("b", 0.1)
    assert may_start(desk, "g", "gold")


def test_where_nobody_lends_the_only_slot_is_divided_all_the_same() -> None:
    desk = turns(slots=1, first="gold", lends=False)
    assert may_start(desk, "b", "bronze", 1.0)


def test_without_slots_nobody_starts() -> None:
    desk = turns(slots=0, first="gold")
    assert not may_start(desk, "g", "gold")


def test_a_query_that_is_gone_frees_its_slot_and_its_place() -> None:
    desk = turns()
    desk.ask("a", "gold", 1.0, 0.0)
    desk.ask("b", "gold", 9.0, 0.0)
    assert desk.grant(0.0) == ["b"]
    desk.leave("a")
    desk.leave("b")
    assert desk.idle
    assert desk.grant(0.0) == []
    desk.leave("never seen")


def test_an_end_that_nobody_granted_is_charged_to_nobody() -> None:
    """A query that went on alone while the driver did not answer."""
    desk = turns(lends=False)
    desk.ended("b", 100.0)
    assert may_start(desk, "b", "bronze", 1.0)


def test_classes_get_batch_time_in_proportion_to_their_quotas() -> None:
    """Both always have pending tuples: the one that ends a batch asks again in the same step."""
    desk = turns()
    batch_s = {"gold": 1.0, "bronze": 0.5}
    used_s = dict.fromkeys(batch_s, 0.0)
    for name in batch_s:
        desk.ask(name, name, 1.0, 0.0)
    now_s = 0.0
    for _ in range(2_000):
        [running] = desk.grant(now_s)
        now_s += batch_s[running]
        used_s[running] += batch_s[running]
        desk.ended(running, batch_s[running])
        desk.ask(running, running, 1.0, now_s)
    assert used_s["gold"] / now_s == pytest.approx(0.75, abs=0.01)


def test_new_quotas_count_from_the_next_grant_on() -> None:
    desk = turns(slots=2, lends=False)
    desk.set_quotas({"gold": 0.0, "bronze": 1.0})
    assert not may_start(desk, "g", "gold", 1.0)
    assert may_start(desk, "b", "bronze", 1.0)


def test_inside_a_class_the_fastest_goes_first_but_none_starves() -> None:
    desk = turns()
    desk.ask("slow", "gold", 1.0, 0.0)
    desk.ask("fast", "gold", 9.0, 0.5)
    assert desk.grant(0.5) == ["fast"]
    desk.ended("fast", 0.4)
    desk.ask("fast", "gold", 9.0, 0.9)
    assert desk.grant(0.9) == ["fast"], "one second of patience is not over"
    desk.ended("fast", 0.4)
    desk.ask("fast", "gold", 9.0, 1.3)
    assert desk.grant(1.3) == ["slow"]


def test_of_those_who_lost_patience_the_longest_waiting_goes_first() -> None:
    desk = turns()
    desk.ask("late", "gold", 9.0, 1.0)
    desk.ask("early", "gold", 1.0, 0.0)
    assert desk.grant(5.0) == ["early"]


def test_a_query_that_asks_again_keeps_its_place() -> None:
    desk = turns()
    assert may_start(desk, "busy", "gold")
    assert not may_start(desk, "slow", "gold", 0.0)
    assert not may_start(desk, "slow", "gold", 1.0)
    desk.ended("busy", 2.0)
    desk.ask("fast", "gold", 9.0, 2.0)
    desk.ask("slow", "gold", 1.0, 2.0)
    assert desk.grant(2.0) == ["slow"]


def test_patience_also_ends_after_the_clock_was_set_back() -> None:
    desk = turns()
    assert may_start(desk, "busy", "gold", 3600.0)
    assert not may_start(desk, "slow", "gold", 3600.0)
    assert not may_start(desk, "slow", "gold", 0.0)
    desk.ended("busy", 1.0)
    desk.ask("fast", "gold", 9.0, 2.0)
    desk.ask("slow", "gold", 1.0, 2.0)
    assert desk.grant(2.0) == ["slow"]


def test_a_query_that_is_held_back_starts_when_its_time_has_come() -> None:
    desk = turns()
    desk.ask("q", "gold", 1.0, 0.0, from_s=2.0)
    assert desk.next_s(0.0) == 2.0
    assert desk.grant(1.9) == []
    assert desk.grant(2.0) == ["q"]
    assert desk.next_s(2.0) is None


def test_nobody_is_held_back_by_a_clock_that_was_set_back_meanwhile() -> None:
    desk = turns()
    desk.ask("q", "gold", 1.0, 3600.0, from_s=3602.0)
    assert desk.grant(3600.0) == []
    assert desk.next_s(0.0) is None
    assert desk.grant(0.0) == ["q"]


def test_while_one_is_held_back_its_slot_is_for_others() -> None:
    desk = turns()
    desk.ask("held", "gold", 9.0, 0.0, from_s=2.0)
    desk.ask("other", "gold", 1.0, 0.0)
    desk.ask("bronze", "bronze", 1.0, 0.0)
    [first] = desk.grant(0.0)
    desk.ended(first, 0.1)
    [second] = desk.grant(0.1)
    assert {first, second} == {"other", "bronze"}


def test_where_nobody_lends_a_class_has_no_more_than_its_quota() -> None:
    desk = turns(lends=False)
    assert may_start(desk, "b", "bronze", 1.0)  # it has earned a quarter of a second
    desk.ended("b", 1.0)
    assert not may_start(desk, "b", "bronze", 2.0)
    assert not may_start(desk, "b", "bronze", 3.9)  # 0.025 s are still to be earned
    assert may_start(desk, "b", "bronze", 4.1)


def test_where_nobody_lends_time_alone_makes_a_class_eligible() -> None:
    desk = turns(lends=False)
    desk.ask("b", "bronze", 1.0, 0.0)
    now_s = 0.0
    while not desk.grant(now_s):
        next_s = desk.next_s(now_s)
        assert next_s is not None
        assert now_s < next_s <= 1.0
        now_s = next_s


def test_an_idle_class_saves_up_no_more_than_a_second_of_its_quota() -> None:
    desk = turns(lends=False)
    assert may_start(desk, "b", "bronze", 1000.0)
    desk.ended("b", 0.4)
    assert not may_start(desk, "b", "bronze", 1000.3)


def test_where_nobody_lends_a_quota_is_of_all_the_slots_that_are_open() -> None:
    desk = turns(slots=3, first="gold", lends=False)
    assert may_start(desk, "b", "bronze", 1.0)
    desk.ended("b", 0.4)
    assert may_start(desk, "b", "bronze", 1.0), "it earns two quarters of a second in a second"
    desk.ended("b", 0.4)
    assert not may_start(desk, "b", "bronze", 1.0)
    assert may_start(desk, "b", "bronze", 1.7)


def test_what_a_class_borrowed_is_not_asked_back_when_lending_ends() -> None:
    desk = turns()
    for second in range(100):
        assert may_start(desk, "b", "bronze", float(second))
        desk.ended("b", 1.0)
    desk.lends = False
    assert may_start(desk, "b", "bronze", 101.0)


@pytest.mark.parametrize("jump_s", [-3600.0, 3600.0])
def test_allowances_outlive_a_jump_of_the_clock(jump_s: float) -> None:
    desk = turns(lends=False)
    assert may_start(desk, "b", "bronze", 10_000.0)
    desk.ended("b", 0.25)
    assert not may_start(desk, "b", "bronze", 10_000.0)
    may_start(desk, "g", "gold", 10_000.0 + jump_s)
    desk.ended("g", 0.1)
    assert may_start(desk, "b", "bronze", 10_001.0 + jump_s)


def test_withheld_slots_are_missing_for_all_but_the_highest_class() -> None:
    desk = turns(slots=3, first="gold")
    desk.withhold(5)
    assert desk.withheld == 1  # one slot always stays
    assert may_start(desk, "b1", "bronze")
    assert not may_start(desk, "b2", "bronze")
    assert may_start(desk, "g1", "gold")
    assert may_start(desk, "g2", "gold")
    desk.ended("g1", 0.1)
    desk.withhold(-1)
    assert desk.withheld == 0
    assert may_start(desk, "b2", "bronze")


def test_a_spared_class_may_take_a_slot_that_is_withheld_from_the_others() -> None:
    desk = Turns(THREE, slots=3, now_s=0.0, first="gold")
    desk.spared = frozenset({"gold", "silver"})
    desk.withhold(1)
    assert may_start(desk, "b1", "bronze")
    assert not may_start(desk, "b2", "bronze")
    assert may_start(desk, "s1", "silver")
    assert not may_start(desk, "s2", "silver"), "the last slot is gold's"
    assert may_start(desk, "g", "gold")


@dataclass
class Life:
    """Queries that ask, end and go as they like, and what must hold at every moment."""

    desk: Turns
    slots: int
    first: str | None
    running: dict[str, str] = field(default_factory=dict)
    asking: dict[str, str] = field(default_factory=dict)
    now_s: float = 0.0

    def step(self, act: str, number: int) -> None:
        query, class_name = str(number), list(THREE)[number % 3]
        self.now_s += 0.1
        if act == "ask" and query not in self.running:
            self.desk.ask(query, class_name, float(number), self.now_s)
            self.asking[query] = class_name
        elif act == "withdraw":
            self.desk.withdraw(query)
            self.asking.pop(query, None)
        elif act == "end":
            self.desk.ended(query, 0.05 * number)
            self.running.pop(query, None)
        elif act == "leave":
            self.desk.leave(query)
            self.running.pop(query, None)
            self.asking.pop(query, None)
        for granted in self.desk.grant(self.now_s):
            self.running[granted] = self.asking.pop(granted)

    def check(self) -> None:
        others = [name for name in self.running.values() if name != self.first]
        reserved = 1 if self.first is not None and self.slots > 1 else 0
        assert len(self.running) <= self.slots
        assert len(others) <= self.slots - reserved
        assert self.desk.idle == (not self.running)
        assert all(self.desk.is_running(query) for query in self.running)
        assert all(self.desk.is_asking(query) for query in self.asking)
        if len(self.running) < self.slots:
            assert self.first not in self.asking.values(), "a slot is free for the highest class"
            if len(others) < self.slots - reserved:
                assert not self.asking, "a slot is free for all"


ACTS = st.sampled_from(["ask", "ask", "ask", "end", "end", "withdraw", "leave"])


@given(
    slots=st.integers(1, 4),
    first=st.sampled_from(["gold", None]),
    steps=st.lists(st.tuples(ACTS, st.integers(0, 8)), max_size=60),
)
def test_slots_are_never_exceeded_and_none_is_free_while_somebody_waits(
    slots: int, first: str | None, steps: list[tuple[str, int]]
) -> None:
    life = Life(Turns(THREE, slots=slots, now_s=0.0, first=first), slots, first)
    for act, number in steps:
        life.step(act, number)
        life.check()
