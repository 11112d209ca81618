"""Service classes on the operator engine: the class scheduler, and its redistribution cycle."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from spillway.classes.balance import ClassLoad, QueryLoad, balance
from spillway.classes.capacity import Policy, original_shares
from spillway.classes.dilos import new_headroom
from spillway.classes.parts import spare_shared as spared_parts
from spillway.errors import SpillwayError, require
from spillway.model import Decision, Measurement, Target
from spillway_lab.engine.class_turns import ROUND_S, ClassTurns
from spillway_lab.engine.engine import NetworkPlant
from spillway_lab.engine.inputs import Input
from spillway_lab.engine.network import Network
from spillway_lab.engine.settings import DelayOf, Engine
from spillway_lab.engine.statistics import Floats

MARGIN = 1.05  # on a class's need: with a quota of exactly its need it never recovers from a burst
LEAST_QUOTA = 1e-6  # of the machine: a quota is divided by


@dataclass(frozen=True, kw_only=True, slots=True)
class ServiceClass:
    """Priority and delay target of a class, and the part of its share that it lends at most."""

    priority: int
    target: Target
    lend: float = 1.0

    def __post_init__(self) -> None:
        require(self.priority >= 1, "priority of a class", self.priority, "at least 1")
        require(0.0 <= self.lend <= 1.0, "part of its share that a class lends", self.lend, "0..1")


@dataclass(frozen=True, kw_only=True)
class ClassScheduling:
    """How the machine is divided among the classes.

    Without a policy the shares stay as the priorities make them. With one, they move every
    `cycle_periods` control periods, by the usage u = L / L_C of every class (L is the mean load
    offered in the cycle, L_C the class's quota). With `batching`, a class is taken to need what it
    would in full batches: it is slowed until its batches are that long, as far as its target
    allows. With `spare_shared`, a class sheds what lower classes read as well only after its own
    part.
    """

    policy: Policy | None = None
    cycle_periods: int = 10
    batching: bool = True
    spare_shared: bool = False
    round_s: float = ROUND_S

    def __post_init__(self) -> None:
        periods = self.cycle_periods
        require(periods >= 1, "control periods of a cycle", periods, "at least 1")


class ClassPlant(NetworkPlant):
    """A network of several classes under one class scheduler.

    At the start every load manager is told its class's share as headroom, and its new headroom
    whenever the shares move (thesis eq. 6.1).
    """

    def __init__(
        self,
        network: Network,
        arrivals: Mapping[str, Floats],
        classes: Mapping[str, ServiceClass],
        *,
        scheduling: ClassScheduling | None = None,
        engine: Engine | None = None,
        delay: DelayOf = "every-tuple",
        seed: int = 0,
    ) -> None:
        missing = set(network.class_names) - set(classes)
        if missing:
            raise SpillwayError(f"class '{min(missing)}' has no priority and no target: give both")
        self._service = dict(classes)
        self._scheduling = scheduling or ClassScheduling()
        self._turns = ClassTurns(self._originals(), round_s=self._scheduling.round_s)
        super().__init__(
            network,
            arrivals,
            target={name: c.target for name, c in classes.items()},
            engine=replace(engine or Engine(), scheduler=lambda: self._turns),
            delay=delay,
            seed=seed,
        )
        self._believed: dict[str, float] = {}
        self._cycle = {name: _Cycle() for name in classes}
        self._unanswered: set[str] = set()
        self._tell(self.quotas)
        self._part_inputs = self._shared_inputs() if self._scheduling.spare_shared else []
        for source in self._part_inputs:
            source.gate = f"{source.class_name} shared"
            self._keep(source.gate, 1.0)
        self.quota_history: list[tuple[float, Mapping[str, float]]] = [(0.0, dict(self.quotas))]

    @property
    def quotas(self) -> Mapping[str, float]:
        """Shares of the machine in force."""
        return self._turns.classes.quotas

    def _originals(self) -> dict[str, float]:
        return original_shares({name: c.priority for name, c in self._service.items()})

    def _tell(self, headrooms: Mapping[str, float]) -> None:
        for name, headroom in headrooms.items():
            self.classes[name].assigned_headroom = headroom

    # -- the control loop passes through here

    def observe(self) -> Iterator[Measurement]:
        measured = list(super().observe())
        for m in measured:
            self._cycle[m.class_name].add(m, self.classes[m.class_name].full_batch_load)
        self._unanswered = {measurement.class_name for measurement in measured}
        return iter(measured)

    def act(self, measurement: Measurement, decision: Decision) -> None:
        super().act(measurement, decision)
        class_name = measurement.class_name
        self._keep_in_parts(class_name)
        if decision.headroom is not None:
            self._believed[class_name] = decision.headroom
        self._unanswered.discard(class_name)
        policy = self._scheduling.policy
        cycle_ended = self._cycle[class_name].periods >= self._scheduling.cycle_periods
        if cycle_ended and not self._unanswered and policy is not None:
            self._redistribute(policy)

    def _shared_inputs(self) -> list[Input]:
        """Streams from which something reaches another class."""
        operators, shared = self.network.operators, set[str]()
        for operator in reversed(operators):
            readers = self.network.readers(operator.name)
            if any(
                operators[r].class_name != operator.class_name or operators[r].name in shared
                for r in readers
            ):
                shared.add(operator.name)
        return [
            source
            for source in self.inputs
            if any(operators[r].name in shared for r in self.network.readers(source.name))
        ]

    def _keep_in_parts(self, class_name: str) -> None:
        """A class that sheds in parts sheds first what nobody else reads."""
        shared = [source for source in self._part_inputs if source.class_name == class_name]
        if not shared:
            return
        shared_s = sum(source.load_s for source in shared)
        all_s = sum(source.load_s for source in self.inputs if source.class_name == class_name)
        keep = self.classes[class_name].keep_fraction
        own, common = spared_parts(keep, all_s - shared_s, shared_s, 1.0 - self.engine.max_shed)
        self._keep(class_name, own)
        self._keep(shared[0].gate, common)

    def _redistribute(self, policy: Policy) -> None:
        old, originals = dict(self.quotas), self._originals()
        loads = [
            ClassLoad(
                name=name,
                priority=c.priority,
                target=c.target,
                quota=old[name],
                original=originals[name],
                sheds=self._cycle[name].shed_tuples > 0,
                queries=(self._class_load(name),),
                lend=c.lend,
            )
            for name, c in self._service.items()
        ]
        decided = balance(loads, policy, self.engine.headroom)
        new = {name: max(LEAST_QUOTA, decision.quota) for name, decision in decided.items()}
        # What a class got beyond its quota was somebody's idle time, which is now given away.
        # A law scales what it believes by every change of what it is told.
        told = {name: self.classes[name].assigned_headroom or old[name] for name in old}
        believed = {name: self._believed.get(name, old[name]) for name in old}
        counted = {n: told[n] * min(old[n], believed[n]) / believed[n] for n in old}
        self._turns.classes.set_quotas(new)
        self._tell({n: new_headroom(counted[n], old[n], new[n]) for n in new if new[n] != old[n]})
        self._cycle = {name: _Cycle() for name in new}
        self.quota_history.append((self._time_s, new))

    def _class_load(self, name: str) -> QueryLoad:
        """The class as one query: a sweep over its operators is its batch."""
        cycle = self._cycle[name]
        load = cycle.load_s / cycle.time_s
        rate_per_s = cycle.offered_tuples / cycle.time_s
        if self._scheduling.batching:
            operators = sum(op.class_name == name for op in self.network.operators)
            fixed_s = operators * self.engine.activation_s
            load = MARGIN * cycle.full_batch_load_s / cycle.time_s
        else:
            fixed_s = 0.0
        return QueryLoad(
            rate_per_s=rate_per_s,
            fixed_s=fixed_s,
            cost_s=load / rate_per_s if rate_per_s > 0.0 else 0.0,
        )

    # -- changes while it runs

    def set_target(self, class_name: str, target: Target) -> None:
        super().set_target(class_name, target)
        self._service[class_name] = replace(self._service[class_name], target=target)

    def set_priority(self, class_name: str, priority: int) -> None:
        """New original shares for all; everybody starts again from them."""
        self._service[class_name] = replace(self._service[class_name], priority=priority)
        self._turns.classes.set_quotas(self._originals())
        self._tell(self.quotas)

    def set_policy(self, policy: Policy | None) -> None:
        self._scheduling = replace(self._scheduling, policy=policy)


@dataclass
class _Cycle:
    """What one class was offered since the last redistribution."""

    periods: int = 0
    time_s: float = 0.0
    offered_tuples: int = 0
    shed_tuples: int = 0
    load_s: float = 0.0
    full_batch_load_s: float = 0.0

    def add(self, measurement: Measurement, full_batch_load: float) -> None:
        self.periods += 1
        self.time_s += measurement.period_s
        self.offered_tuples += measurement.offered_tuples
        self.shed_tuples += measurement.shed_tuples
        self.load_s += measurement.offered_load * measurement.period_s
        self.full_batch_load_s += full_batch_load * measurement.period_s
