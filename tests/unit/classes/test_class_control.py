"""The driver's part of the control path, fed by hand: targets, quotas, turns and room."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from spillway.classes.balance import Balance, longest_interval_s
from spillway.classes.control import ClassControl, ClassTerms
from spillway.model import Backlog, BatchRecord, Delays, Ended, Order, Prices, Report, Target

TARGET = Target.parse("2s")
TERMS = {
    "gold": ClassTerms(priority=3, target=TARGET),
    "bronze": ClassTerms(priority=1, target=TARGET),
}
THREE = {**TERMS, "silver": ClassTerms(priority=2, target=TARGET)}
MACHINE = 2.0

IDLE_AND_HEAVY = {"bronze1": 1_000, "bronze2": 1_000, "bronze3": 1_000}
LIGHT_AND_HEAVY = {"gold1": 100, **IDLE_AND_HEAVY}
ALL_HEAVY = {"gold1": 1_000, "gold2": 1_000, "gold3": 1_000, **IDLE_AND_HEAVY}


class Rig:
    """Queries with a name of their class and a number, and a second a period.

    Batches take 0.2 s and 1 ms a tuple.
    """

    certainty = 0.9  # of the price of a tuple: so much of it is proven

    def __init__(
        self,
        policy: str = "dilos",
        terms: Mapping[str, ClassTerms] = TERMS,
        *,
        cycle_periods: int = 1,
        slots: int = 3,
    ) -> None:
        self.now_s = 100_000.0
        self.control = ClassControl(
            terms,
            policy,
            slots=slots,
            machine=MACHINE,
            cycle_periods=cycle_periods,
            now_s=self.now_s,
        )
        self._offered: dict[str, int] = {}
        self._shed: dict[str, int] = {}

    def period(
        self,
        rates: Mapping[str, int],
        shed: Mapping[str, int] | None = None,
        *,
        delays_s: Mapping[str, float] | None = None,
        busy_s: float = 0.1,
    ) -> Mapping[str, Balance]:
        self.now_s += 1.0
        for query, rate in rates.items():
            self._offered[query] = self._offered.get(query, 0) + rate
            self._shed[query] = self._shed.get(query, 0) + (shed or {}).get(query, 0)
            delay_s = (delays_s or {}).get(query)
            ended = () if delay_s is None else (self._ended(delay_s, busy_s),)
            self.control.heard(replace(self.report(query), ended=ended), self.now_s)
        return self.control.period_ended(self.now_s)

    def settled(
        self, rates: Mapping[str, int], shed: Mapping[str, int] | None = None
    ) -> Mapping[str, Balance]:
        for _ in range(8):
            decided = self.period(rates, shed)
        return decided

    def report(self, query: str, *, pending: int = 0) -> Report:
        offered, shed = self._offered.get(query, 0), self._shed.get(query, 0)
        doubt_s = (1.0 - self.certainty) * 1e-3 / 2.0
        doubts = (0.0, 0.0, 0.0, doubt_s**2, 0.0, 0.0)
        return Report(
            query=query,
            class_name=query.rstrip("0123456789"),
            time_s=self.now_s,
            offered_tuples=offered,
            admitted_tuples=offered - shed,
            shed_tuples=shed,
            completed_tuples=offered - shed,
            backlog=Backlog(pending_tuples=pending),
            prices=Prices(fixed_s=0.2, kept_s=1e-3, doubts=doubts),
        )

    def order(self, query: str) -> Order:
        return self.control.order(self.report(query), may_start=True)

    def may_start(self, query: str) -> bool:
        """Ask, and give up at once when it is not granted."""
        asking = self.report(query, pending=10)
        self.control.heard(asking, self.now_s)
        self.control.ask(asking, self.now_s)
        granted = self.control.grant(self.now_s)
        self.control.turns.withdraw(query)
        assert granted in ([], [query])
        return bool(granted)

    @property
    def quotas(self) -> Mapping[str, float]:
        return self.control.turns.quotas

    def _ended(self, delay_s: float, busy_s: float) -> Ended:
        record = BatchRecord(
            kept_tuples=100, scanned_tuples=100, duration_s=busy_s, ended_s=self.now_s
        )
        delays = Delays(tuples=100, mean_s=delay_s, quantiles_s=(delay_s,) * 4)
        return Ended(record=record, delays=(delays,))


# -- quotas


def test_quotas_begin_in_proportion_to_priority() -> None:
    assert Rig().quotas == pytest.approx({"gold": 0.75, "bronze": 0.25})


def test_nothing_moves_before_the_cycle_has_ended() -> None:
    rig = Rig(cycle_periods=3)
    assert rig.period(LIGHT_AND_HEAVY) == {}
    assert rig.period(LIGHT_AND_HEAVY) == {}
    assert set(rig.period(LIGHT_AND_HEAVY)) == {"gold", "bronze"}
    assert rig.period(LIGHT_AND_HEAVY) == {}


def test_what_was_shed_in_any_period_of_a_cycle_counts_at_its_end() -> None:
    rig = Rig(cycle_periods=2)
    rig.settled(LIGHT_AND_HEAVY)
    rig.period(LIGHT_AND_HEAVY, {"bronze1": 1})
    assert rig.period(LIGHT_AND_HEAVY)["gold"].interval_s > 0.0
    rig.period(LIGHT_AND_HEAVY)
    assert rig.period(LIGHT_AND_HEAVY)["gold"].interval_s == 0.0


def test_spare_capacity_of_the_high_class_goes_to_the_overloaded_low_one() -> None:
    rig = Rig()
    rig.settled(LIGHT_AND_HEAVY)
    assert rig.quotas["bronze"] > 0.6
    assert sum(rig.quotas.values()) == pytest.approx(1.0)


def test_without_redistribution_quotas_stay_and_nobody_is_slowed() -> None:
    rig = Rig(policy="none")
    decided = rig.settled(LIGHT_AND_HEAVY, {"bronze1": 100})
    assert rig.quotas == pytest.approx({"gold": 0.75, "bronze": 0.25})
    assert decided["gold"].interval_s == 0.0


def test_a_class_that_comes_back_regains_its_original_share_at_the_next_cycle() -> None:
    rig = Rig()
    rig.settled(LIGHT_AND_HEAVY)
    rig.settled(ALL_HEAVY)
    assert rig.quotas["gold"] >= 0.75 - 1e-9


def test_a_class_without_data_lends_everything_but_its_reserve() -> None:
    rig = Rig()
    rig.settled(IDLE_AND_HEAVY)
    assert rig.quotas["gold"] == pytest.approx(0.05 * 0.75)


def test_a_class_lends_no_more_than_it_was_told_to() -> None:
    stingy = replace(TERMS["gold"], lend=0.2)
    rig = Rig(terms={**TERMS, "gold": stingy})
    rig.settled(IDLE_AND_HEAVY)
    assert rig.quotas["gold"] == pytest.approx(0.8 * 0.75)


def test_loads_are_compared_with_the_batch_time_that_was_really_given() -> None:
    """Three batch-seconds a second on two cores: batches side by side take longer. Never more than
    there are slots, though long batches may end close together."""
    for busy_s, given in ((1.4, 2.8), (2.0, 3.0)):
        rig = Rig(policy="none", slots=3)
        for _ in range(8):
            rig.period(ALL_HEAVY, delays_s={"gold1": 1.0, "bronze1": 1.0}, busy_s=busy_s)
        assert rig.order("gold1").turn == pytest.approx(0.75 * given / 3)


# -- changes while it runs


def test_what_classes_own_of_this_machine_is_relative() -> None:
    rig = Rig(policy="none")
    rig.control.own({"gold": 3.0, "bronze": 3.0})
    assert rig.quotas == pytest.approx({"gold": 0.5, "bronze": 0.5})
    rig.control.own({})
    assert rig.quotas == pytest.approx({"gold": 0.75, "bronze": 0.25})


def test_of_one_class_the_query_goes_first_that_keeps_most_in_a_second() -> None:
    """Not the one of the largest batch."""
    rig = Rig(slots=1)
    for query, kept, busy_s in (("gold1", 100, 1.0), ("gold2", 200, 10.0)):
        record = BatchRecord(
            kept_tuples=kept, scanned_tuples=kept, duration_s=busy_s, ended_s=rig.now_s
        )
        report = replace(rig.report(query, pending=10), ended=(Ended(record=record, delays=()),))
        rig.control.ask(report, rig.now_s)
    assert rig.control.grant(rig.now_s) == ["gold1"]


def test_a_cycle_that_took_no_time_is_no_division_by_it() -> None:
    rig = Rig()
    rig.settled(LIGHT_AND_HEAVY)
    assert set(rig.control.period_ended(rig.now_s)) == {"gold", "bronze"}


def test_a_change_of_priority_counts_from_the_next_cycle_on() -> None:
    rig = Rig(policy="none")
    rig.period(LIGHT_AND_HEAVY)
    rig.control.change("bronze", replace(TERMS["bronze"], priority=9))
    assert rig.quotas["bronze"] == pytest.approx(0.25)
    rig.period(LIGHT_AND_HEAVY)
    assert rig.quotas["bronze"] == pytest.approx(0.75)


def test_the_class_that_becomes_the_highest_gets_the_last_slot() -> None:
    rig = Rig(slots=2)
    rig.control.change("bronze", replace(TERMS["bronze"], priority=9))
    assert rig.may_start("gold1")
    assert not rig.may_start("gold2")
    assert rig.may_start("bronze1")


def test_a_class_alone_has_all_slots() -> None:
    rig = Rig(terms={"gold": TERMS["gold"]}, slots=2)
    assert rig.may_start("gold1")
    assert rig.may_start("gold2")


def test_among_equals_nobody_has_a_slot_of_its_own() -> None:
    rig = Rig(terms={name: replace(TERMS["gold"]) for name in ("b", "a")}, slots=2)
    assert rig.control.turns.first is None


def test_a_change_of_the_target_is_in_the_next_order() -> None:
    rig = Rig()
    assert rig.order("gold1").target == TARGET
    rig.control.change("gold", replace(TERMS["gold"], target=Target.parse("p99 3s")))
    assert rig.order("gold1").target == Target.parse("p99 3s")
    assert rig.order("bronze1").target == TARGET


def test_a_change_of_the_policy_counts_at_the_next_cycle() -> None:
    rig = Rig()
    rig.settled(LIGHT_AND_HEAVY, {"bronze1": 1})
    rig.control.use("none")
    decided = rig.period(LIGHT_AND_HEAVY, {"bronze1": 1})
    assert rig.quotas == pytest.approx({"gold": 0.75, "bronze": 0.25})
    assert decided["gold"].interval_s == 0.0
    rig.control.use("dilos")
    rig.settled(LIGHT_AND_HEAVY)
    assert rig.quotas["bronze"] > 0.6


def test_a_larger_machine_has_more_slots_and_more_to_divide() -> None:
    rig = Rig(policy="none")
    rig.settled(ALL_HEAVY)
    assert rig.order("gold1").turn == pytest.approx(0.75 * MACHINE / 3)
    rig.control.resize(slots=4, machine=3.0)
    rig.period(ALL_HEAVY)
    assert rig.order("gold1").turn == pytest.approx(0.75 * 3.0 / 3)
    assert [rig.may_start(f"gold{number}") for number in range(5)] == [True] * 4 + [False]


def test_on_a_smaller_machine_one_slot_still_stays_for_all() -> None:
    rig = Rig(slots=4)
    rig.settled(LIGHT_AND_HEAVY)
    for _ in range(3):
        rig.period(LIGHT_AND_HEAVY, delays_s={"gold1": 1.9})
    assert rig.control.turns.withheld == 2
    rig.control.resize(slots=3, machine=MACHINE)
    assert rig.control.turns.withheld == 1
    rig.control.resize(slots=2, machine=MACHINE)
    assert rig.may_start("bronze1")


# -- slowing within the target


def test_a_class_is_slowed_within_its_target_only_while_another_sheds() -> None:
    rig = Rig()
    decided = rig.settled(LIGHT_AND_HEAVY, {"bronze1": 1_000})
    interval_s = decided["gold"].interval_s
    [load] = rig.control.loads("gold", rig.now_s).values()
    assert interval_s == pytest.approx(longest_interval_s(load, TARGET))
    assert 0.5 * interval_s + 0.2 < 2.0
    assert decided["bronze"].interval_s == 0.0
    assert rig.period(LIGHT_AND_HEAVY)["gold"].interval_s == 0.0


def test_a_late_class_is_not_slowed() -> None:
    rig = Rig()
    shed = {"bronze1": 1_000}
    assert rig.settled(LIGHT_AND_HEAVY, shed)["gold"].interval_s > 0.0
    late = rig.period(LIGHT_AND_HEAVY, shed, delays_s={"gold1": 1.9})
    assert late["gold"].interval_s == 0.0
    again = rig.period(LIGHT_AND_HEAVY, shed)
    assert again["gold"].interval_s == 0.0, "the last delay measured counts until the next"
    early = rig.period(LIGHT_AND_HEAVY, shed, delays_s={"gold1": 0.9})
    assert early["gold"].interval_s > 0.0


def slowed() -> tuple[Rig, float]:
    rig = Rig(slots=1)
    decided = rig.settled(LIGHT_AND_HEAVY, {"bronze1": 1_000})
    return rig, decided["gold"].interval_s


def test_a_slowed_class_starts_its_next_batch_only_after_the_interval() -> None:
    rig, interval_s = slowed()
    assert rig.may_start("gold1")
    rig.now_s += 0.9 * interval_s
    assert not rig.may_start("gold1")
    rig.now_s += 0.2 * interval_s
    assert rig.may_start("gold1")


def test_the_interval_counts_from_the_very_moment_of_the_start() -> None:
    rig, _ = slowed()
    assert rig.may_start("gold1")
    assert not rig.may_start("gold1"), "it asks again in the same moment"


def test_while_a_query_is_slowed_its_slot_is_for_others() -> None:
    rig, interval_s = slowed()
    assert rig.may_start("gold1")
    assert not rig.may_start("bronze1")
    rig.now_s += 0.5 * interval_s
    assert not rig.may_start("gold1")
    assert rig.may_start("bronze1")


def test_a_query_that_starts_anew_is_not_slowed_by_its_former_life() -> None:
    rig, _ = slowed()
    assert rig.may_start("gold1")
    rig.control.leave("gold1")
    assert rig.may_start("gold1")


@pytest.mark.parametrize("jump_s", [-3600.0, 3600.0])
@pytest.mark.parametrize("shed", [0, 1_000])
def test_nobody_is_held_back_until_the_clock_is_where_it_was(jump_s: float, shed: int) -> None:
    rig = Rig()
    rig.settled(LIGHT_AND_HEAVY, {"bronze1": shed})
    assert rig.may_start("gold1")
    assert rig.may_start("bronze1")
    rig.now_s += jump_s
    assert rig.may_start("bronze1")
    assert rig.may_start("gold1")


# -- sparing, and room for those who are spared


def test_a_class_within_its_share_is_spared_and_the_lowest_never_is() -> None:
    rig = Rig()
    rig.settled({"gold1": 100, "bronze1": 100})
    assert rig.order("gold1").spared
    assert not rig.order("bronze1").spared
    rig.settled({**ALL_HEAVY, "bronze1": 100})
    assert not rig.order("gold1").spared


def test_until_its_load_is_known_every_class_but_the_lowest_is_spared() -> None:
    rig = Rig(terms=THREE, cycle_periods=5)
    spared = {name: rig.order(f"{name}1").spared for name in THREE}
    assert spared == {"gold": True, "silver": True, "bronze": False}
    assert rig.control.turns.spared == {"gold", "silver"}


def test_a_price_that_may_be_nothing_does_not_make_a_class_shed() -> None:
    rig = Rig()
    rig.certainty = 0.0
    rig.settled({**ALL_HEAVY, "bronze1": 100})
    assert rig.order("gold1").spared


def test_a_class_whose_load_manager_does_not_adapt_is_never_told_that_it_is_spared() -> None:
    """A fixed share is the flow's own will: it is obeyed whatever the load."""
    rig = Rig(terms={**TERMS, "gold": replace(TERMS["gold"], adapts=False)})
    assert not rig.order("gold1").spared
    assert rig.settled({"gold1": 100, "bronze1": 100})["gold"].spared
    assert not rig.order("gold1").spared


def test_others_get_fewer_slots_while_a_spared_class_is_late() -> None:
    rig = Rig()
    turns = rig.control.turns
    rig.settled(LIGHT_AND_HEAVY)
    assert turns.withheld == 0
    rig.period(LIGHT_AND_HEAVY, delays_s={"gold1": 1.9})
    assert turns.withheld == 1
    rig.period(LIGHT_AND_HEAVY, delays_s={"gold1": 1.3})
    assert turns.withheld == 1, "neither late nor early"
    rig.period(LIGHT_AND_HEAVY, delays_s={"gold1": 0.5})
    assert turns.withheld == 0


def test_slots_are_given_back_when_the_late_class_has_gone_quiet() -> None:
    rig = Rig()
    rig.settled(LIGHT_AND_HEAVY)
    rig.period(LIGHT_AND_HEAVY, delays_s={"gold1": 1.9})
    rig.period(IDLE_AND_HEAVY)
    assert rig.control.turns.withheld == 0


def test_a_late_class_that_is_not_spared_makes_nobody_give_way() -> None:
    rig = Rig()
    rig.settled(LIGHT_AND_HEAVY)
    rig.period(LIGHT_AND_HEAVY, delays_s={"bronze1": 9.0})
    assert rig.control.turns.withheld == 0


def test_no_room_is_made_for_a_target_that_a_batch_alone_breaks() -> None:
    impossible = replace(TERMS["gold"], target=Target.parse("100ms"))
    rig = Rig(terms={**TERMS, "gold": impossible})
    rig.settled(LIGHT_AND_HEAVY)
    rig.period(LIGHT_AND_HEAVY, delays_s={"gold1": 0.3})
    assert rig.control.turns.withheld == 0


@pytest.mark.parametrize(
    ("target", "late_s"), [("2s", 1.7), ("p95 2s", 1.5), ("p99 2s", 1.2)], ids=str
)
def test_a_quantile_counts_as_late_earlier_than_a_mean(target: str, late_s: float) -> None:
    rig = Rig(terms={**TERMS, "gold": replace(TERMS["gold"], target=Target.parse(target))})
    rig.settled(LIGHT_AND_HEAVY)
    rig.period(LIGHT_AND_HEAVY, delays_s={"gold1": 0.99 * late_s})
    assert rig.control.turns.withheld == 0
    rig.period(LIGHT_AND_HEAVY, delays_s={"gold1": 1.01 * late_s})
    assert rig.control.turns.withheld == 1


def test_the_delay_of_a_class_is_that_of_the_tuples_of_all_its_queries() -> None:
    """Two queries with as many tuples each: the mean is in the middle, a p99 at the later one."""
    both = {"gold1": 100, "gold2": 100, **IDLE_AND_HEAVY}
    delays_s = {"gold1": 0.2, "gold2": 1.9}
    for target, withheld in (("2s", 0), ("p99 2s", 1)):
        terms = replace(TERMS["gold"], target=Target.parse(target))
        rig = Rig(terms={**TERMS, "gold": terms})
        rig.settled(both)
        rig.period(both, delays_s=delays_s)
        assert rig.control.turns.withheld == withheld


# -- what each query can use


def test_while_there_is_a_slot_for_everybody_each_has_one_batch_after_the_other() -> None:
    rig = Rig()
    assert rig.order("gold1").turn == 1.0, "nothing is known yet"
    rig.settled({"gold1": 1_000, "bronze1": 5_000})
    assert rig.order("gold1").turn == 1.0
    assert rig.order("bronze1").turn == 1.0


def test_with_more_queries_than_slots_a_class_divides_what_its_quota_gives() -> None:
    rig = Rig()
    rig.settled({"gold1": 100, "bronze1": 500, "bronze2": 1_000, "bronze3": 2_000})
    turns = [rig.order(f"bronze{number}").turn for number in (1, 2, 3)]
    assert sum(turns) == pytest.approx(rig.quotas["bronze"] * MACHINE)
    assert turns == sorted(turns)
    assert turns[2] < 1.0
    assert rig.order("gold1").turn == 1.0, "what gold needs fits into its quota"


def test_equal_queries_have_equal_turns() -> None:
    rig = Rig()
    rig.settled(ALL_HEAVY)
    for name in TERMS:
        turns = [rig.order(f"{name}{number}").turn for number in (1, 2, 3)]
        assert turns == pytest.approx([rig.quotas[name] * MACHINE / 3] * 3)


def test_where_nobody_lends_even_few_queries_have_no_more_than_their_quota() -> None:
    rig = Rig(policy="none")
    rig.settled({"gold1": 1_000, "bronze1": 1_000})
    assert rig.order("gold1").turn == 1.0
    assert rig.order("bronze1").turn == pytest.approx(0.25 * MACHINE)


def test_a_query_that_is_new_or_comes_back_has_a_whole_turn_until_its_load_is_known() -> None:
    rig = Rig()
    rig.settled(ALL_HEAVY)
    assert rig.order("bronze4").turn == 1.0
    assert rig.order("bronze1").turn < 1.0
    rig.control.leave("bronze1")
    assert rig.order("bronze1").turn == 1.0


def test_a_query_that_left_leaves_its_turn_to_the_others() -> None:
    rig = Rig()
    rig.settled(ALL_HEAVY)
    before = rig.order("gold2").turn
    rig.control.leave("gold1")
    rig.settled({query: rate for query, rate in ALL_HEAVY.items() if query != "gold1"})
    assert rig.order("gold2").turn > before


def test_an_order_says_whether_the_query_may_start() -> None:
    rig = Rig()
    assert rig.control.order(rig.report("gold1"), may_start=True).may_start
    assert not rig.control.order(rig.report("gold1"), may_start=False).may_start


def test_on_one_of_several_machines_classes_own_what_the_cluster_says() -> None:
    control = Rig().control
    control.own({"gold": 0.2, "bronze": 0.8})
    assert control.turns.quotas == pytest.approx({"gold": 0.2, "bronze": 0.8})
    control.own({"gold": 1.0})
    assert control.turns.quotas["bronze"] == pytest.approx(0.01, rel=0.02)  # nobody stands still
    control.own({})
    assert control.turns.quotas == pytest.approx({"gold": 0.75, "bronze": 0.25})


# -- shedding for the sake of others


def test_what_is_dropped_for_others_is_told_to_its_gate_and_asks_for_nothing_here() -> None:
    rig = Rig(terms={"bronze": TERMS["bronze"]})
    two = {"bronze1": 2_000, "bronze2": 2_000}
    rig.settled(two)
    alike = rig.order("bronze1").turn
    assert rig.order("bronze1").most_keep == 1.0
    rig.control.keep_at_most({"bronze1": 0.1})
    rig.settled(two)
    assert rig.order("bronze1").most_keep == 0.1
    assert rig.order("bronze2").most_keep == 1.0
    assert rig.order("bronze2").turn >= alike
    offered = rig.control.loads("bronze", rig.now_s)["bronze1"].rate_per_s
    assert offered == pytest.approx(2_000, rel=0.01)  # what others are told of
    rig.control.keep_at_most({})
    assert rig.order("bronze1").most_keep == 1.0
