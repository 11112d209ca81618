"""The class scheduler's cycle on Spark: read the classes' loads, move quotas, tell everybody."""

from collections.abc import Mapping

from spillway.classes.balance import Balance, ClassLoad, balance
from spillway.classes.capacity import original_shares
from spillway.classes.dilos import new_headroom
from spillway.classes.policies import make_policy
from spillway.flow.flow import ServiceClass
from spillway.hosts.spark.driver.control import SparkPlant
from spillway.hosts.spark.driver.dispatch import Dispatcher
from spillway.model import Measurement, Target

# The part of a target above which a class counts as late: a quantile leaves less room for a batch
# that takes longer than usual. Below EARLY of that part, others get their slots back.
LATE = {"mean": 0.85, "p95": 0.75, "p99": 0.6}
EARLY = 0.7


class Balancer:
    """Counts control periods; every `cycle_periods` of them it redistributes."""

    def __init__(
        self,
        plant: SparkPlant,
        dispatcher: Dispatcher,
        policy: str,
        *,
        machine: float,
        cycle_periods: int,
    ) -> None:
        self._plant = plant
        self._dispatcher = dispatcher
        self.use(policy)
        self._machine = machine
        self._cycle_periods = cycle_periods
        self._periods = 0
        self._shed: dict[str, int] = {}
        self._busy_s = self._elapsed_s = 0.0
        self._used: dict[str, float] = {}  # of what its target leaves, by the last measured delay

    def use(self, policy: str) -> None:
        """The policy of the next cycles; with `none` nobody lends and nobody is slowed."""
        self._policy = make_policy(policy)
        self._slow = policy != "none"
        self._dispatcher.set_lending(policy != "none")

    def period_ended(
        self, classes: Mapping[str, ServiceClass], measurements: Mapping[str, Measurement]
    ) -> Mapping[str, Balance]:
        """What was decided, when a cycle has ended; otherwise nothing."""
        for name, measurement in measurements.items():
            self._shed[name] = self._shed.get(name, 0) + measurement.shed_tuples
            if measurement.delay_s is not None:
                self._used[name] = _used(measurement.delay_s, measurement.target)
        self._busy_s += sum(m.busy_s for m in measurements.values())
        self._elapsed_s += max((m.period_s for m in measurements.values()), default=0.0)
        self._make_room(measurements)
        self._periods += 1
        if self._periods < self._cycle_periods:
            return {}
        shed, self._shed, self._periods = self._shed, {}, 0
        machine = self._batch_time()
        self._busy_s = self._elapsed_s = 0.0
        return self._redistribute(classes, shed, machine)

    def _batch_time(self) -> float:
        """Seconds of batches that the machine gives per second.

        Batches that run side by side take longer, and so do their tuples: loads are compared with
        the batch time that was really given, which is more than the cores when more batches run.
        """
        given = self._busy_s / self._elapsed_s if self._elapsed_s > 0.0 else 0.0
        return max(self._machine, given)

    def _make_room(self, measurements: Mapping[str, Measurement]) -> None:
        """Fewer batches of the classes that are not spared while one that is comes late.

        One slot is withheld in a period in which it is late, and one is given back in a period in
        which all such classes are early. A target below the fixed price of a batch counts for
        nothing: room would not help.
        """
        used = [
            _used(measurement.delay_s, measurement.target)
            for name, measurement in measurements.items()
            if self._plant.classes[name].spared and measurement.delay_s is not None
            if all(g.fixed_s < measurement.target.delay_s for g in self._plant.loads(name))
        ]
        if used and max(used) > 1.0:
            self._dispatcher.withhold(self._dispatcher.withheld + 1)
        elif not used or max(used) < EARLY:
            self._dispatcher.withhold(self._dispatcher.withheld - 1)

    def _redistribute(
        self, classes: Mapping[str, ServiceClass], shed: Mapping[str, int], machine: float
    ) -> Mapping[str, Balance]:
        originals = original_shares({name: c.priority for name, c in classes.items()})
        loads = [
            ClassLoad(
                name=name,
                priority=c.priority,
                target=self._plant.classes[name].target,
                quota=self._dispatcher.quotas[name],
                original=originals[name],
                sheds=shed.get(name, 0) > 0,
                late=self._used.get(name, 0.0) > 1.0,
                gates=self._plant.loads(name),
                lend=c.lend,
            )
            for name, c in classes.items()
        ]
        decided = balance(loads, self._policy, machine, slow=self._slow)
        for load in loads:
            state, new = self._plant.classes[load.name], decided[load.name]
            state.interval_s = new.interval_s
            state.spared = new.spared
            headroom = state.headroom or load.quota * machine
            state.headroom = new_headroom(headroom, max(load.quota, 1e-9), new.quota)
        self._dispatcher.set_quotas({name: d.quota for name, d in decided.items()})
        self._dispatcher.spare([name for name, d in decided.items() if d.spared])
        return decided


def _used(delay_s: float, target: Target) -> float:
    return delay_s / (LATE[target.statistic] * target.delay_s)
