"""What the gates report becomes measurements, and who may start a batch: without Spark."""

from dataclasses import replace

import pytest

from spillway.classes.scheduler import ClassScheduler
from spillway.clock import ManualClock
from spillway.hosts.spark.driver.channel import GateReport
from spillway.hosts.spark.driver.control import ClassState, GateDecides, SparkPlant
from spillway.hosts.spark.driver.dispatch import Dispatcher
from spillway.model import (
    Backlog,
    BatchRecord,
    Decision,
    KeepFraction,
    Measurement,
    Target,
)

GOLD = Target.parse("1s")


def plant(clock: ManualClock, *, at_gate: bool = False, slots: int = 2) -> SparkPlant:
    states = {name: ClassState(target=GOLD, decides_at_gate=at_gate) for name in ("gold", "bronze")}
    desk = Dispatcher(ClassScheduler({"gold": 0.75, "bronze": 0.25}), clock, slots=slots)
    return SparkPlant(states, desk, clock)


def report(time_s: float = 0.0, *, gate: str = "q/s", class_name: str = "gold") -> GateReport:
    return GateReport(
        gate=gate,
        class_name=class_name,
        time_s=time_s,
        offered_tuples=0,
        admitted_tuples=0,
        shed_tuples=0,
        completed_tuples=0,
        delay_s=None,
        backlog=Backlog(),
        batches=(),
    )


def batch(duration_s: float) -> BatchRecord:
    return BatchRecord(
        kept_tuples=80, scanned_tuples=100, duration_s=duration_s, ended_s=duration_s
    )


def waiting(tuples: int, age_s: float = 0.5) -> Backlog:
    return Backlog(
        pending_tuples=tuples, mean_age_s=age_s, statistic_age_s=age_s, oldest_age_s=2 * age_s
    )


def measured(spark: SparkPlant) -> dict[str, Measurement]:
    return {m.class_name: m for m in spark.observe()}


def test_a_gates_first_report_is_the_zero_of_its_counts() -> None:
    clock = ManualClock()
    spark = plant(clock)
    spark.answer(replace(report(), offered_tuples=10_000, admitted_tuples=10_000))
    clock.advance(1.0)
    assert measured(spark)["gold"].offered_tuples == 0


def test_counts_of_a_period_are_the_differences_between_reports() -> None:
    clock = ManualClock()
    spark = plant(clock)
    spark.answer(report())
    clock.advance(1.0)
    later = replace(
        report(1.0),
        offered_tuples=130,
        admitted_tuples=80,
        shed_tuples=20,
        completed_tuples=80,
        delay_s=0.7,
        backlog=waiting(30),
        batches=(batch(0.4),),
    )
    spark.answer(later)
    seen = measured(spark)["gold"]
    assert (seen.offered_tuples, seen.admitted_tuples, seen.shed_tuples) == (130, 80, 20)
    assert (seen.completed_tuples, seen.queued_tuples) == (80, 30)
    assert (seen.period_s, seen.busy_s, seen.delay_s) == (1.0, 0.4, 0.7)
    assert measured(spark)["gold"].offered_tuples == 0  # the next period starts at nothing


def test_a_class_whose_gates_say_nothing_is_measured_as_idle() -> None:
    clock = ManualClock()
    spark = plant(clock)
    clock.advance(1.0)
    seen = measured(spark)["bronze"]
    assert (seen.offered_tuples, seen.queued_tuples, seen.busy_s) == (0, 0, 0.0)
    assert seen.delay_s is None


def test_the_cost_of_a_tuple_is_without_the_fixed_price_of_batches() -> None:
    clock = ManualClock()
    spark = plant(clock)
    learned = {"fixed_s": 0.3, "cost_s": 1e-3}
    spark.answer(replace(report(), **learned))
    clock.advance(1.0)
    spark.answer(replace(report(1.0), offered_tuples=100, batches=(batch(0.4),), **learned))
    seen = measured(spark)["gold"]
    assert seen.cost_s == pytest.approx(1e-3)  # not 0.4 s / 80 tuples
    assert seen.offered_load == pytest.approx(0.1)


def test_what_is_known_of_the_cost_stays_when_the_gate_has_gone() -> None:
    clock = ManualClock()
    spark = plant(clock)
    spark.answer(replace(report(), fixed_s=0.3, cost_s=1e-3))
    measured(spark)
    spark.leave("q/s")
    assert measured(spark)["gold"].cost_s == pytest.approx(1e-3)


def test_a_mean_delay_is_weighted_by_tuples_and_of_quantiles_the_largest_counts() -> None:
    clock = ManualClock()
    spark = plant(clock)

    def two_gates(at_s: float) -> float | None:
        for gate, tuples, delay_s in (("a/s", 300, 1.0), ("b/s", 100, 3.0)):
            total = round(at_s) * tuples
            spark.answer(replace(report(at_s, gate=gate), completed_tuples=total, delay_s=delay_s))
        return measured(spark)["gold"].delay_s

    two_gates(0.0)
    assert two_gates(1.0) == pytest.approx(1.5)
    spark.classes["gold"].target = Target.parse("p99 1s")
    assert two_gates(2.0) == pytest.approx(3.0)


def test_loads_leave_out_gates_that_have_not_learned_their_cost() -> None:
    clock = ManualClock()
    spark = plant(clock)
    spark.answer(report(gate="new/s"))
    spark.answer(replace(report(gate="q/s"), fixed_s=0.2, cost_s=1e-6))
    spark.answer(replace(report(2.0, gate="q/s"), offered_tuples=2_000, fixed_s=0.2, cost_s=1e-6))
    [load] = spark.loads("gold")
    assert (load.rate_per_s, load.fixed_s) == (1_000.0, 0.2)
    assert spark.loads("bronze") == ()


def test_a_held_class_starts_its_next_batch_only_after_the_interval() -> None:
    clock = ManualClock(100.0)
    spark = plant(clock)
    spark.classes["gold"].interval_s = 2.0
    asking = replace(report(), backlog=waiting(10), wait_s=0.0)
    assert spark.answer(asking).may_start
    clock.advance(1.5)
    assert not spark.answer(asking).may_start
    clock.advance(0.6)
    assert spark.answer(asking).may_start


def test_holding_a_gate_gives_its_slot_to_others() -> None:
    clock = ManualClock(100.0)
    spark = plant(clock, slots=1)
    spark.classes["gold"].interval_s = 2.0
    gold = replace(report(), backlog=waiting(10), wait_s=0.0)
    bronze = replace(report(gate="r/s", class_name="bronze"), backlog=waiting(10), wait_s=0.0)
    assert spark.answer(gold).may_start
    assert not spark.answer(bronze).may_start
    clock.advance(0.5)
    assert not spark.answer(replace(gold, batches=(batch(0.5),))).may_start
    assert spark.answer(bronze).may_start


def test_an_empty_batch_needs_no_slot() -> None:
    clock = ManualClock(100.0)
    spark = plant(clock, slots=1)
    bronze = replace(report(gate="r/s", class_name="bronze"), backlog=waiting(10), wait_s=0.0)
    assert spark.answer(bronze).may_start
    assert spark.answer(report()).may_start


def test_a_change_of_the_target_is_in_the_next_answer() -> None:
    spark = plant(ManualClock())
    spark.answer(report())
    spark.classes["gold"].target = Target.parse("p99 3s")
    assert spark.answer(report()).target == Target.parse("p99 3s")


@pytest.mark.parametrize("at_gate", [True, False])
def test_a_decision_of_the_loop_goes_to_gates_that_do_not_decide_themselves(at_gate: bool) -> None:
    spark = plant(ManualClock(), at_gate=at_gate)
    half = KeepFraction(fraction=0.5)
    spark.actuate("gold", Decision(action=half, reason="too much"))
    assert spark.answer(report()).action == (None if at_gate else half)


def test_the_stand_in_puts_what_the_gates_kept_into_the_journal() -> None:
    clock = ManualClock()
    spark = plant(clock)
    spark.answer(report())
    spark.answer(replace(report(1.0), admitted_tuples=30, shed_tuples=10))
    decision = GateDecides().decide(measured(spark)["gold"])
    assert decision.action == KeepFraction(fraction=0.75)


def test_gates_of_a_spared_class_are_told_to_keep_everything() -> None:
    spark = plant(ManualClock(), at_gate=True)
    spark.classes["gold"].spared = True
    assert spark.answer(report()).action == KeepFraction(fraction=1.0)
    spark.classes["gold"].spared = False
    assert spark.answer(report()).action is None


def test_a_gate_that_fell_silent_counts_as_idle_but_not_while_its_batch_runs() -> None:
    clock = ManualClock(100.0)
    spark = plant(clock)
    learned = {"fixed_s": 0.2, "cost_s": 1e-6}
    spark.answer(replace(report(100.0), **learned))
    spark.answer(replace(report(101.0), offered_tuples=500, backlog=waiting(10), **learned))
    clock.advance(30.0)
    assert spark.loads("gold")[0].rate_per_s == 500.0  # its batch is still in flight
    spark.answer(replace(report(131.0), offered_tuples=500, batches=(batch(30.0),), **learned))
    clock.advance(30.0)
    assert spark.loads("gold")[0].rate_per_s == 0.0


def test_a_plant_knows_how_long_a_class_has_been_silent() -> None:
    clock = ManualClock(100.0)
    spark = plant(clock)
    assert spark.silent_s("gold") is None
    spark.answer(replace(report(100.0), offered_tuples=1))
    clock.advance(7.0)
    spark.answer(replace(report(107.0), offered_tuples=1))
    assert spark.silent_s("gold") == pytest.approx(7.0)


def test_a_spared_class_cuts_a_backlog_that_is_older_than_any_contention() -> None:
    spark = plant(ManualClock(), at_gate=True)
    spark.classes["gold"].spared = True
    late, stale = waiting(10, age_s=2.0), waiting(10, age_s=60.0)
    assert spark.answer(replace(report(), backlog=late)).action == KeepFraction(fraction=1.0)
    assert spark.answer(replace(report(), backlog=stale)).action is None


def test_a_fixed_share_is_obeyed_by_a_spared_class_as_well() -> None:
    spark = plant(ManualClock(), at_gate=True)
    spark.classes["gold"].spared = True
    spark.classes["gold"].can_be_spared = False
    assert spark.answer(report()).action is None


def test_the_gates_of_one_query_need_one_slot() -> None:
    clock = ManualClock()
    spark = plant(clock, at_gate=True, slots=1)
    left = replace(report(gate="q/left"), joint="q", backlog=waiting(5))
    right = replace(report(gate="q/right"), joint="q", backlog=waiting(5))
    other = replace(report(gate="other/s"), backlog=waiting(5))
    for _ in range(3):
        assert spark.answer(left).may_start
        assert spark.answer(replace(right, joined=True)).may_start
        assert not spark.answer(other).may_start  # the query's batch runs
        spark.answer(replace(right, joined=True, backlog=Backlog()))  # nothing more on this side
        assert not spark.answer(other).may_start
    spark.leave("q/right")
    assert spark.answer(other).may_start
