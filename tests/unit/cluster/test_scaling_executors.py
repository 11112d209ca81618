"""Executors as hosts: what queries want of them, and how a total follows the load."""

from collections.abc import Collection
from dataclasses import dataclass, field, replace

import pytest

from spillway.cluster.prices import Prices
from spillway.cluster.scaling.bridge import Bridge
from spillway.cluster.scaling.catalog import POLICIES
from spillway.cluster.scaling.demand import demand_cores, host_demand
from spillway.cluster.scaling.executors import Executor, view_of
from spillway.cluster.scaling.fleet import Fleet, Request
from spillway.cluster.scaling.policy import ScalingSettings
from spillway.cluster.scaling.scaler import Scaler
from spillway.cluster.scaling.usage import QueryUse, RanBatch, Terms, Usage
from spillway.model import Target

TARGET = Target.parse("5s")
TERMS = {"q": Terms(class_name="gold", priority=1, target=TARGET)}
COST_S = 60e-6
FIXED_S = 0.4
PERIOD_S = 4.0
STARTS_S, COLD_S = 20.0, 15.0
SETTINGS = ScalingSettings(lower=0.5, target=0.85, upper=0.95, grace_s=20.0, max_hosts=8)


@dataclass
class Machine:
    """A query on executors of one core: batches of o + r k D / n, shed beyond what the target
    leaves. Executors register some time after they were asked for."""

    gives: int = 8  # executors at most
    names: list[str] = field(default_factory=lambda: ["0", "1"])
    coming: list[tuple[float, str]] = field(default_factory=list)
    wanted: int = 2
    made: int = 2
    now_s: float = 0.0
    task_s: float = 0.0
    planned_s: float = 0.0
    shed: float = 0.0
    cost_s: float = COST_S
    came_s: float = -100.0
    cold: float = 1.0  # what tuples cost beside executors that have just come, over the usual

    def executors(self) -> tuple[Executor, ...]:
        return tuple(Executor(name=name, cores=1) for name in self.names)

    def resize(self, total: int, leaving: Collection[str]) -> None:
        self.wanted = total
        self.names = [name for name in self.names if name not in leaving]
        self._start()

    def kill(self, name: str) -> None:
        self.names.remove(name)
        self._start()

    def _start(self) -> None:
        """What a cluster does by itself: as many as were asked for, as far as there are."""
        while len(self.names) + len(self.coming) < min(self.wanted, self.gives):
            self.coming.append((self.now_s + STARTS_S, str(self.made)))
            self.made += 1

    def batch(self, rate_per_s: float) -> RanBatch:
        """The next one: what has arrived since the last one was planned."""
        if any(at_s <= self.now_s for at_s, _ in self.coming):
            self.came_s = self.now_s
        self.names += [name for at_s, name in self.coming if at_s <= self.now_s]
        self.coming = [(at_s, name) for at_s, name in self.coming if at_s > self.now_s]
        begun_s, since_s = self.now_s, max(0.1, self.now_s - self.planned_s)
        cores = max(1, len(self.names))
        most = (2.0 * TARGET.delay_s / 3.0 - FIXED_S) * cores / self.cost_s
        offered = rate_per_s * since_s
        kept = min(offered, most)
        self.shed += offered - kept
        work_s = kept * self.cost_s * (self.cold if self.now_s < self.came_s + COLD_S else 1.0)
        self.now_s += FIXED_S + work_s / cores
        self.task_s += work_s
        self.planned_s = begun_s
        return RanBatch(
            query="q",
            planned_s=begun_s,
            ended_s=self.now_s,
            offered_tuples=round(offered),
            kept_tuples=round(kept),
            waiting_tuples=0,
            mean_delay_s=since_s / 2.0 + self.now_s - begun_s,
            task_s=self.task_s,
            cores=cores,
        )


@dataclass
class Run:
    machine: Machine
    scaler: Scaler
    fleet: Fleet
    usage: Usage = field(default_factory=Usage)
    requests: list[tuple[float, Request]] = field(default_factory=list)
    missing: list[float] = field(default_factory=list)
    look_s: float = 0.0

    def until(self, end_s: float, rate_per_s: float) -> None:
        while self.machine.now_s < end_s:
            batch = self.machine.batch(rate_per_s)
            cold = self.fleet.is_cold(self.machine.executors(), self.machine.now_s)
            self.usage.heard(replace(batch, cold=cold))
            if self.machine.now_s >= self.look_s:
                self.look_s = self.machine.now_s + PERIOD_S
                self._look(self.machine.now_s)

    def _look(self, now_s: float) -> None:
        there = self.machine.executors()
        seen = self.fleet.observe(there, now_s)
        if seen.missing:
            self.missing.append(now_s)
        if seen.request is not None:
            self.machine.resize(seen.request.total, seen.request.leaving)
        warm = self.fleet.warm(there, now_s)
        uses = self.usage.uses(TERMS, now_s)
        view = view_of(warm, self.fleet.coming(len(warm)), uses, now_s)
        request = self.fleet.decide(self.scaler.tick(view, self.fleet.most), now_s)
        if request is not None:
            self.requests.append((now_s, request))
            self.machine.resize(request.total, request.leaving)

    def decided(self, from_s: float, to_s: float) -> list[Request]:
        return [request for at_s, request in self.requests if from_s <= at_s < to_s]


def run_of(policy: str = "true-rate", prices: Prices | None = None, gives: int = 8) -> Run:
    machine = Machine(gives=gives)
    bridge = None if prices is None else Bridge(prices)
    scaler = Scaler(POLICIES[policy](SETTINGS, TARGET.delay_s), SETTINGS, bridge=bridge)
    fleet = Fleet(1, 8, patience_s=60.0, retry_s=300.0, warm_s=SETTINGS.grace_s)
    fleet.begin(machine.executors())
    return Run(machine=machine, scaler=scaler, fleet=fleet)


def stepped(run: Run) -> Run:
    run.until(60.0, 20_000.0)
    run.until(140.0, 60_000.0)
    run.until(220.0, 20_000.0)
    return run


def test_true_rate_follows_a_step_up_and_a_step_down_in_one_decision_each() -> None:
    run = stepped(run_of())
    up, down = run.decided(60.0, 140.0), run.decided(140.0, 220.0)
    assert [request.total for request in up] == [5]
    assert [request.total for request in down] == [2]
    assert len(down[0].leaving) == 3
    assert not run.decided(0.0, 60.0)


def test_what_tuples_cost_beside_cold_executors_starts_no_others() -> None:
    run = run_of()
    run.machine.cold = 2.0
    run.until(60.0, 20_000.0)
    run.until(200.0, 60_000.0)
    assert [request.total for _, request in run.requests] == [5]


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_every_policy_grows_under_overload_and_shrinks_again(policy: str) -> None:
    run = run_of(policy)
    run.until(60.0, 20_000.0)
    run.until(400.0, 60_000.0)
    grown = len(run.machine.names)
    run.until(900.0, 10_000.0)
    assert grown >= 4
    assert len(run.machine.names) < grown


def test_what_is_wanted_is_known_beyond_saturation_and_while_idle() -> None:
    run = run_of(gives=2)
    run.until(40.0, 60_000.0)  # two cores for a load of more than four
    (use,) = run.usage.uses(TERMS, run.machine.now_s)
    expected = 60_000.0 * COST_S / (1.0 - 1.5 * FIXED_S / TARGET.delay_s)
    assert use.wanted_cores == pytest.approx(expected, rel=0.05)
    assert use.keep_fraction < 0.7
    assert run.usage.fixed_s("q") == pytest.approx(FIXED_S, rel=0.1)
    assert run.usage.core_s_per_tuple("q") == pytest.approx(COST_S, rel=0.1)


def test_a_query_that_has_gone_silent_wants_nothing() -> None:
    run = run_of()
    run.until(40.0, 20_000.0)
    (now,) = run.usage.uses(TERMS, run.machine.now_s)
    (later,) = run.usage.uses(TERMS, run.machine.now_s + 60.0)
    assert now.wanted_cores > 1.0
    assert later.wanted_cores == 0.0


def test_queries_side_by_side_share_the_task_time_by_batch_time() -> None:
    usage, task_s = Usage(), 0.0
    for turn in range(20):
        for place, name in enumerate(("a", "b")):
            task_s += 2.0  # of four cores, both queries always running
            usage.heard(
                RanBatch(
                    query=name,
                    planned_s=float(turn),
                    ended_s=turn + 1.0 + 0.001 * place,
                    offered_tuples=1000 * (place + 1),
                    kept_tuples=1000 * (place + 1),
                    waiting_tuples=0,
                    mean_delay_s=1.0,
                    task_s=task_s,
                    cores=4,
                )
            )
    uses = usage.uses(dict.fromkeys(("a", "b"), TERMS["q"]), 20.0)
    assert [use.wanted_cores for use in uses] == pytest.approx([2.0, 2.0], rel=0.15)


def test_the_view_holds_what_queries_want_however_many_executors_there_are() -> None:
    use = QueryUse(name="q", offered_rate_per_s=1000.0, core_s_per_tuple=3e-3)
    executors = [Executor(name=str(place), cores=place + 1) for place in range(2)]
    view = view_of(executors, 1, [use], 0.0)
    demand = demand_cores(view)
    assert sum(demand.values()) == pytest.approx(3.0)
    assert host_demand(view, demand) == pytest.approx({"0": 1.0, "1": 1.0})
    assert [host.state for host in view.hosts] == ["running", "running", "starting"]


def test_a_request_that_the_cluster_cannot_fulfil_is_said_once_and_withdrawn() -> None:
    run = run_of(gives=3)
    run.until(60.0, 20_000.0)
    run.until(300.0, 60_000.0)
    assert len(run.missing) == 1
    assert run.machine.wanted == 3
    assert [request.total for _, request in run.requests] == [5]


def test_more_is_asked_for_again_when_the_cluster_has_grown() -> None:
    run = run_of(gives=3)
    run.until(60.0, 20_000.0)
    run.until(200.0, 60_000.0)
    run.machine.gives = 8
    run.until(600.0, 60_000.0)
    assert len(run.machine.names) >= 5


def test_an_executor_that_dies_is_replaced_and_no_decision_of_the_policy() -> None:
    run = run_of()
    run.until(60.0, 20_000.0)
    run.machine.kill("1")
    run.until(100.0, 20_000.0)
    assert run.machine.names == ["0", "2"]
    assert not run.requests


def test_a_lost_executor_is_named_and_its_place_asked_for() -> None:
    fleet = Fleet(1, 8, patience_s=60.0, retry_s=300.0)
    fleet.begin([Executor(name="0", cores=1), Executor(name="1", cores=1)])
    seen = fleet.observe([Executor(name="0", cores=1)], 1.0)
    assert seen.lost == ("1",)
    assert seen.request == Request(total=2, reason="what was lost is replaced")
    assert fleet.observe([Executor(name="0", cores=1)], 2.0).lost == ()


def test_those_that_come_late_at_the_start_stay_as_far_as_they_are_allowed() -> None:
    fleet = Fleet(1, 2, patience_s=60.0, retry_s=300.0)
    executors = [Executor(name=str(place), cores=1) for place in range(4)]
    assert fleet.begin(executors[:1]).total == 1
    request = fleet.observe(executors, 1.0).request
    assert request is not None
    assert (request.total, request.leaving) == (2, ("2", "3"))


def test_with_dear_executors_a_short_overload_is_shed_and_a_long_one_is_not() -> None:
    prices = Prices(per_million_tuples=1.0, per_node_hour=6.0)  # a start costs a million tuples
    short, long = run_of(prices=prices), run_of(prices=prices)
    for run in (short, long):
        run.until(60.0, 20_000.0)
    short.until(75.0, 60_000.0)
    short.until(140.0, 20_000.0)
    long.until(400.0, 60_000.0)
    assert short.machine.made == 2
    assert long.machine.made >= 4
    assert long.machine.shed > 1e6
