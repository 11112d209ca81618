"""The class scheduler's cycle over a plant that is fed by hand."""

import pytest

from spillway.classes.balance import longest_interval_s
from spillway.classes.capacity import original_shares
from spillway.classes.scheduler import ClassScheduler
from spillway.clock import ManualClock
from spillway.flow.flow import ServiceClass
from spillway.hosts.spark.driver.balancer import Balancer
from spillway.hosts.spark.driver.channel import GateReport
from spillway.hosts.spark.driver.control import ClassState, SparkPlant
from spillway.hosts.spark.driver.dispatch import Dispatcher
from spillway.model import Backlog, Target

CLASSES = {
    "gold": ServiceClass(priority=3, delay="2s"),
    "bronze": ServiceClass(priority=1, delay="2s"),
}
MACHINE = 2.0


class Rig:
    """Two classes with one gate each; `run` lets a period pass at given rates."""

    certainty = 0.9  # of the cost of a tuple: so much of it is proven

    def __init__(self, policy: str = "dilos", cycle_periods: int = 1) -> None:
        quotas = original_shares({name: c.priority for name, c in CLASSES.items()})
        self.clock = ManualClock()
        self.desk = Dispatcher(ClassScheduler(quotas), self.clock, slots=3, first="gold")
        states = {
            name: ClassState(target=Target.parse(c.delay), decides_at_gate=True)
            for name, c in CLASSES.items()
        }
        self.plant = SparkPlant(states, self.desk, self.clock)
        self.balancer = Balancer(
            self.plant,
            self.desk,
            policy,
            machine=MACHINE,
            cycle_periods=cycle_periods,
        )
        self._totals = dict.fromkeys(CLASSES, (0, 0))
        self.classes = dict(CLASSES)

    def period(
        self,
        rates: dict[str, int],
        shed: dict[str, int] | None = None,
        delay_s: float | None = None,
    ) -> object:
        self.clock.advance(1.0)
        self._delay_s = delay_s
        for name, rate in rates.items():
            offered, gone = self._totals[name]
            self._totals[name] = offered + rate, gone + (shed or {}).get(name, 0)
            self.plant.answer(self._report(name))
        measured = {m.class_name: m for m in self.plant.observe()}
        return self.balancer.period_ended(self.classes, measured)

    def _report(self, name: str) -> GateReport:
        offered, shed = self._totals[name]
        return GateReport(
            gate=f"{name}/s",
            class_name=name,
            time_s=self.clock.now_s(),
            offered_tuples=offered,
            admitted_tuples=offered - shed,
            shed_tuples=shed,
            completed_tuples=offered - shed,
            delay_s=self._delay_s,
            backlog=Backlog(),
            batches=(),
            fixed_s=0.2,
            cost_s=1e-3,
            least_cost_s=self.certainty * 1e-3,
        )


LIGHT_AND_HEAVY = {"gold": 100, "bronze": 3_000}


def settled(rig: Rig, rates: dict[str, int], shed: dict[str, int] | None = None) -> None:
    for _ in range(8):
        rig.period(rates, shed)


def test_nothing_moves_before_the_cycle_has_ended() -> None:
    rig = Rig(cycle_periods=3)
    assert rig.period(LIGHT_AND_HEAVY) == {}
    assert rig.period(LIGHT_AND_HEAVY) == {}
    assert set(rig.period(LIGHT_AND_HEAVY)) == {"gold", "bronze"}


def test_spare_capacity_of_the_high_class_goes_to_the_overloaded_low_one() -> None:
    rig = Rig()
    settled(rig, LIGHT_AND_HEAVY)
    assert rig.desk.quotas["bronze"] > 0.6
    assert sum(rig.desk.quotas.values()) == pytest.approx(1.0)


def test_without_redistribution_quotas_stay_and_nobody_is_slowed() -> None:
    rig = Rig(policy="none")
    settled(rig, LIGHT_AND_HEAVY, {"bronze": 100})
    assert dict(rig.desk.quotas) == pytest.approx({"gold": 0.75, "bronze": 0.25})
    assert rig.plant.classes["gold"].interval_s == 0.0


def test_a_class_is_slowed_within_its_target_only_while_another_sheds() -> None:
    rig = Rig()
    settled(rig, LIGHT_AND_HEAVY, {"bronze": 1_000})
    interval_s = rig.plant.classes["gold"].interval_s
    [load] = rig.plant.loads("gold")
    assert interval_s == pytest.approx(longest_interval_s(load, Target.parse("2s")))
    assert 0.5 * interval_s + 0.2 < 2.0
    assert rig.plant.classes["bronze"].interval_s == 0.0
    rig.period(LIGHT_AND_HEAVY)
    assert rig.plant.classes["gold"].interval_s == 0.0


def test_the_load_manager_is_told_its_share_of_the_machine() -> None:
    rig = Rig()
    settled(rig, LIGHT_AND_HEAVY)
    for name, quota in rig.desk.quotas.items():
        assert rig.plant.classes[name].headroom == pytest.approx(quota * MACHINE)


def test_a_class_that_comes_back_regains_its_original_share_at_the_next_cycle() -> None:
    rig = Rig()
    settled(rig, LIGHT_AND_HEAVY)
    settled(rig, {"gold": 5_000, "bronze": 5_000})
    assert rig.desk.quotas["gold"] >= 0.75 - 1e-9


def test_a_change_of_priority_counts_from_the_next_cycle_on() -> None:
    rig = Rig(policy="none")
    rig.period(LIGHT_AND_HEAVY)
    rig.classes["bronze"] = replace_priority(rig.classes["bronze"], 9)
    rig.period(LIGHT_AND_HEAVY)
    assert rig.desk.quotas["bronze"] == pytest.approx(0.75)


def test_a_class_without_data_lends_everything_but_its_reserve() -> None:
    rig = Rig()
    settled(rig, {"bronze": 5_000})
    assert rig.desk.quotas["gold"] == pytest.approx(0.05 * 0.75)


def replace_priority(service_class: ServiceClass, priority: int) -> ServiceClass:
    return service_class.model_copy(update={"priority": priority})


def test_a_class_within_its_share_is_spared_and_the_lowest_never_is() -> None:
    rig = Rig()
    settled(rig, {"gold": 100, "bronze": 100})
    assert rig.plant.classes["gold"].spared
    assert not rig.plant.classes["bronze"].spared
    settled(rig, {"gold": 5_000, "bronze": 100})
    assert not rig.plant.classes["gold"].spared


def test_others_get_fewer_slots_while_a_spared_class_is_late() -> None:
    rig = Rig()
    settled(rig, LIGHT_AND_HEAVY)
    assert rig.desk.withheld == 0
    rig.period(LIGHT_AND_HEAVY, delay_s=1.9)
    assert rig.desk.withheld == 1
    rig.period(LIGHT_AND_HEAVY, delay_s=1.2)
    assert rig.desk.withheld == 1
    rig.period(LIGHT_AND_HEAVY, delay_s=0.5)
    assert rig.desk.withheld == 0


def test_a_cost_that_may_be_nothing_does_not_make_a_class_shed() -> None:
    rig = Rig()
    rig.certainty = 0.0
    settled(rig, {"gold": 5_000, "bronze": 100})
    assert rig.plant.classes["gold"].spared


def test_a_late_class_is_not_slowed() -> None:
    rig = Rig()
    settled(rig, LIGHT_AND_HEAVY, {"bronze": 1_000})
    assert rig.plant.classes["gold"].interval_s > 0.0
    rig.period(LIGHT_AND_HEAVY, {"bronze": 1_000}, delay_s=1.9)
    assert rig.plant.classes["gold"].interval_s == 0.0
