"""What queries report, counted once: by hand, and at random against a count of every event."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillway.classes.accounts import RATE_MEMORY_S, Accounts, Period
from spillway.classes.balance import QueryLoad
from spillway.model import Backlog, BatchRecord, Delays, Ended, Prices, Report

PRICES = Prices(fixed_s=0.2, kept_s=1e-6)
QUERIES = {"a": "gold", "b": "gold", "c": "bronze"}


def accounts() -> Accounts:
    return Accounts(lambda: ["gold", "bronze"])


def report(
    time_s: float = 0.0,
    offered: int = 0,
    *,
    query: str = "q",
    class_name: str = "gold",
    shed: int = 0,
    ended: tuple[Ended, ...] = (),
    prices: Prices | None = PRICES,
) -> Report:
    return Report(
        query=query,
        class_name=class_name,
        time_s=time_s,
        offered_tuples=offered,
        admitted_tuples=offered - shed,
        shed_tuples=shed,
        completed_tuples=offered - shed,
        backlog=Backlog(),
        ended=ended,
        prices=prices,
    )


def batch(duration_s: float, tuples: int = 80, delay_s: float = 0.5) -> Ended:
    return Ended(
        record=BatchRecord(
            kept_tuples=tuples, scanned_tuples=100, duration_s=duration_s, ended_s=0.0
        ),
        delays=(Delays(tuples=tuples, mean_s=delay_s, quantiles_s=(delay_s,) * 4),),
    )


def loads(made: Accounts, now_s: float, *running: str) -> dict[str, QueryLoad]:
    return made.loads("gold", now_s, lambda query: query in running)


def test_a_querys_first_report_is_the_zero_of_its_counts() -> None:
    made = accounts()
    made.heard(report(0.0, 10_000, shed=3_000), 0.0)
    assert made.take_periods()["gold"].shed_tuples == 0


def test_what_a_gate_says_of_an_overload_is_known() -> None:
    made = accounts()
    for overloaded in (False, True):
        made.heard(replace(report(), overloaded=overloaded), 0.0)
        assert loads(made, 0.0)["q"].overloaded is overloaded


def test_counts_of_a_period_are_the_differences_between_reports() -> None:
    made = accounts()
    made.heard(report(0.0, 1_000, shed=100), 0.0)
    made.take_periods()
    ended = batch(0.4)
    made.heard(report(1.0, 1_130, shed=120, ended=(ended,)), 1.0)
    taken = made.take_periods()["gold"]
    assert taken == Period(shed_tuples=20, busy_s=0.4, delays=list(ended.delays))
    assert made.take_periods()["gold"] == Period(), "the next period starts at nothing"


def test_two_reports_in_one_period_count_as_one_that_says_both() -> None:
    made = accounts()
    made.heard(report(), 0.0)
    made.heard(report(0.4, 100, shed=5, ended=(batch(0.3),)), 0.4)
    made.heard(report(0.9, 250, shed=20, ended=(batch(0.2), batch(0.25))), 0.9)
    taken = made.take_periods()["gold"]
    assert taken.shed_tuples == 20
    assert taken.busy_s == pytest.approx(0.75)
    assert len(taken.delays) == 3


def test_a_report_that_comes_periods_later_is_of_the_period_in_which_it_comes() -> None:
    made = accounts()
    made.heard(report(), 0.0)
    for _ in range(3):
        assert made.take_periods()["gold"].busy_s == 0.0
    made.heard(report(3.5, 900, shed=300, ended=(batch(3.0),)), 3.5)
    taken = made.take_periods()["gold"]
    assert (taken.shed_tuples, taken.busy_s) == (300, 3.0)


def test_the_batch_of_a_first_report_counts_although_its_totals_do_not() -> None:
    """A query that was alone for a while has batches to tell of; its totals are of all its life."""
    made = accounts()
    made.heard(report(5.0, 1_000, shed=500, ended=(batch(0.4),)), 5.0)
    taken = made.take_periods()["gold"]
    assert (taken.shed_tuples, taken.busy_s) == (0, 0.4)


def test_a_class_whose_queries_say_nothing_had_an_empty_period() -> None:
    made = accounts()
    made.heard(report(), 0.0)
    assert made.take_periods()["bronze"] == Period()


def test_the_queries_of_a_class_are_counted_together_and_the_classes_apart() -> None:
    made = accounts()
    for query, class_name in (("a", "gold"), ("b", "gold"), ("c", "bronze")):
        made.heard(report(query=query, class_name=class_name), 0.0)
        later = report(1.0, 100, query=query, class_name=class_name, shed=7, ended=(batch(0.1),))
        made.heard(later, 1.0)
    taken = made.take_periods()
    assert (taken["gold"].shed_tuples, taken["bronze"].shed_tuples) == (14, 7)
    assert taken["gold"].busy_s == pytest.approx(2.0 * taken["bronze"].busy_s)


def test_totals_that_fell_take_nothing_back() -> None:
    """A checkpoint was removed: the query begins again at zero."""
    made = accounts()
    made.heard(report(0.0, 1_000, shed=100), 0.0)
    made.heard(report(1.0, 10), 1.0)
    made.heard(report(2.0, 30, shed=4), 2.0)
    assert made.take_periods()["gold"].shed_tuples == 4
    assert loads(made, 2.0)["q"].rate_per_s >= 0.0


def test_a_query_that_left_is_forgotten_but_not_what_it_did() -> None:
    made = accounts()
    made.heard(report(), 0.0)
    made.heard(report(1.0, 100, shed=10, ended=(batch(0.3),)), 1.0)
    made.left("q")
    made.left("never seen")
    assert loads(made, 1.0) == {}
    taken = made.take_periods()["gold"]
    assert (taken.shed_tuples, taken.busy_s) == (10, 0.3)


def test_a_query_that_comes_back_starts_at_a_new_zero() -> None:
    made = accounts()
    made.heard(report(0.0, 100, shed=10), 0.0)
    made.left("q")
    made.heard(report(9.0, 1_000, shed=500), 9.0)
    made.heard(report(10.0, 1_100, shed=501), 10.0)
    assert made.take_periods()["gold"].shed_tuples == 1
    assert loads(made, 10.0)["q"].rate_per_s == pytest.approx(100.0)


def test_loads_leave_out_queries_that_have_not_learned_their_prices() -> None:
    made = accounts()
    made.heard(report(query="new", prices=None), 0.0)
    made.heard(report(query="q"), 0.0)
    made.heard(report(2.0, 2_000, query="q"), 2.0)
    assert loads(made, 2.0) == {
        "q": QueryLoad(rate_per_s=1_000.0, fixed_s=0.2, cost_s=1e-6, least_cost_s=1e-6, at_most=1.0)
    }
    assert made.loads("bronze", 2.0, lambda query: False) == {}


def test_a_load_is_priced_by_what_batches_take_now() -> None:
    """Scanning is part of what a tuple costs; what c is at least leaves out what is in doubt."""
    doubts = (0.0, 0.0, 0.0, 1e-12, 0.0, 0.0)
    prices = Prices(fixed_s=0.2, kept_s=5e-6, scanned_s=1e-6, pace=2.0, doubts=doubts)
    made = accounts()
    made.heard(report(prices=prices), 0.0)
    load = loads(made, 0.0)["q"]
    assert load.fixed_s == pytest.approx(2.0 * 0.2)
    assert load.cost_s == pytest.approx(2.0 * (5e-6 + 1e-6))
    assert load.least_cost_s == pytest.approx(2.0 * (5e-6 - 2e-6))


def test_before_a_second_report_nothing_is_known_to_be_offered() -> None:
    made = accounts()
    made.heard(report(0.0, 1_000_000), 0.0)
    assert loads(made, 0.0)["q"].rate_per_s == 0.0


def test_offered_rates_are_smoothed_over_their_memory() -> None:
    made, offered, now_s = accounts(), 0, 0.0
    made.heard(report(), 0.0)
    seen = []
    for rate_per_s in [100] * 5 + [1_100] * 20:
        now_s, offered = now_s + 1.0, offered + rate_per_s
        made.heard(report(now_s, offered), now_s)
        seen.append(loads(made, now_s)["q"].rate_per_s)
    assert seen[:5] == pytest.approx([100.0] * 5), "the first one is taken as it is"
    assert seen[5] == pytest.approx(100.0 + 1_000.0 / RATE_MEMORY_S)
    assert seen[5:] == sorted(seen[5:])
    assert seen[-1] == pytest.approx(1_100.0, rel=0.02)


def test_a_report_after_a_long_time_says_all_about_the_rate() -> None:
    made = accounts()
    made.heard(report(), 0.0)
    made.heard(report(1.0, 9_000), 1.0)
    made.heard(report(1.0 + RATE_MEMORY_S, 9_500), 1.0 + RATE_MEMORY_S)
    assert loads(made, 6.0)["q"].rate_per_s == pytest.approx(500.0 / RATE_MEMORY_S)


def test_a_clock_that_was_set_back_leaves_rates_as_they_were() -> None:
    made = accounts()
    made.heard(report(3600.0), 3600.0)
    made.heard(report(3601.0, 100), 3601.0)
    made.heard(report(1.0, 200), 1.0)
    assert loads(made, 1.0)["q"].rate_per_s == pytest.approx(100.0)
    made.heard(report(2.0, 300, shed=1), 2.0)
    assert loads(made, 2.0)["q"].rate_per_s == pytest.approx(100.0)
    assert made.take_periods()["gold"].shed_tuples == 1


def test_a_query_that_fell_silent_counts_as_idle_but_not_while_its_batch_runs() -> None:
    made = accounts()
    made.heard(report(100.0), 100.0)
    made.heard(report(101.0, 500), 101.0)
    assert loads(made, 131.0, "q")["q"].rate_per_s == 500.0
    assert loads(made, 101.0 + RATE_MEMORY_S)["q"].rate_per_s == 500.0
    assert loads(made, 131.0)["q"].rate_per_s == 0.0


def test_it_is_known_how_long_a_class_has_been_silent() -> None:
    made = accounts()
    assert made.silent_s("gold", 100.0) is None
    made.heard(report(100.0), 100.0)
    assert made.silent_s("gold", 100.0) is None, "it was offered nothing yet"
    made.heard(report(101.0, 1), 101.0)
    made.heard(report(107.0, 1), 107.0)
    assert made.silent_s("gold", 108.0) == pytest.approx(7.0)
    assert made.silent_s("bronze", 108.0) is None


@dataclass
class World:
    """Queries that shed and run batches, a channel that delivers when it likes, and a driver."""

    made: Accounts = field(default_factory=accounts)
    now_s: float = 0.0
    shed: Counter[str] = field(default_factory=Counter)
    unsaid: dict[str, list[Ended]] = field(default_factory=lambda: {q: [] for q in QUERIES})
    under_way: list[Report] = field(default_factory=list)
    ran: list[tuple[str, Ended]] = field(default_factory=list)
    counted: dict[str, list[Period]] = field(default_factory=lambda: defaultdict(list))

    def happen(self, kind: str, query: str, amount: int) -> None:
        self.now_s += 0.1
        if kind == "shed":
            self.shed[query] += amount
        elif kind == "batch":
            done = batch(amount / 100.0, amount, delay_s=self.now_s)
            self.unsaid[query].append(done)
            self.ran.append((QUERIES[query], done))
        elif kind == "report":
            self.send(query)
        elif kind == "arrival" and self.under_way:
            self.made.heard(self.under_way.pop(0), self.now_s)
        elif kind == "period":
            for name, period in self.made.take_periods().items():
                self.counted[name].append(period)

    def send(self, query: str) -> None:
        ended, self.unsaid[query] = tuple(self.unsaid[query]), []
        shed, class_name = self.shed[query], QUERIES[query]
        said = report(self.now_s, shed, query=query, class_name=class_name, shed=shed, ended=ended)
        self.under_way.append(said)

    def settle(self) -> None:
        """All that happened is said, and all that was said is heard."""
        for query in QUERIES:
            self.send(query)
        for _ in range(len(self.under_way)):
            self.happen("arrival", "", 0)
        self.happen("period", "", 0)


EVENTS = st.tuples(
    st.sampled_from(["shed", "batch", "report", "arrival", "arrival", "period"]),
    st.sampled_from(list(QUERIES)),
    st.integers(1, 1000),
)


@given(st.lists(EVENTS, max_size=80))
def test_everything_is_counted_once_however_reports_and_periods_fall(
    events: list[tuple[str, str, int]],
) -> None:
    world = World()
    world.settle()  # the zero of every query
    for event in events:
        world.happen(*event)
    world.settle()
    for name in ("gold", "bronze"):
        periods = world.counted[name]
        ran = [done for class_name, done in world.ran if class_name == name]
        shed = sum(world.shed[query] for query in QUERIES if QUERIES[query] == name)
        assert sum(period.shed_tuples for period in periods) == shed
        busy_s = sum(done.record.duration_s for done in ran)
        assert sum(period.busy_s for period in periods) == pytest.approx(busy_s)
        counted = [delays for period in periods for delays in period.delays]
        counted.sort(key=lambda delays: delays.mean_s)  # which is when its batch ended
        assert counted == [delays for done in ran for delays in done.delays]


def test_a_report_does_not_change_what_was_taken() -> None:
    made = accounts()
    made.heard(report(), 0.0)
    taken = made.take_periods()["gold"]
    made.heard(report(1.0, 9, ended=(batch(1.0),)), 1.0)
    assert taken == Period()
