"""Spark's engine among the simulated ones: the virtual host, seen as a plant of classes."""

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from spillway.classes.control import ClassTerms
from spillway.errors import require
from spillway.gate.options import GateOptions
from spillway.gate.rules import Policy
from spillway.gate.sampling import PPM
from spillway.hosts.virtual.host import VirtualHost, VirtualQuery
from spillway.hosts.virtual.machine import BatchCost
from spillway.hosts.virtual.trace import TraceLog
from spillway.model import Decision, Measurement, Target
from spillway.ports import LoadManager
from spillway_lab.engine.inputs import checked_arrivals
from spillway_lab.engine.state import Counts, classes_of
from spillway_lab.engine.statistics import DelayRecord, Floats, Totals
from spillway_lab.engine.steps import Disturbances


@dataclass(frozen=True, kw_only=True)
class Query:
    """One query over a stream of its own."""

    name: str = "query"
    class_name: str = "default"
    cost: BatchCost = field(default_factory=BatchCost)
    policy: Policy = "uniform"


class MicroBatchPlant:
    """Queries that share cores. Their gates decide by themselves, each with a law of its own: a
    copy of its class's."""

    def __init__(
        self,
        queries: Sequence[Query] | Query,
        arrivals: Mapping[str, Floats] | Floats,
        *,
        target: Target | Mapping[str, Target],
        cores: int = 1,
        disturbances: Disturbances | None = None,
        seed: int = 0,
    ) -> None:
        self._queries = [queries] if isinstance(queries, Query) else list(queries)
        require(len(self._queries) > 0, "number of queries", 0, "at least 1")
        require(cores >= 1, "number of cores", cores, "at least 1")
        if not isinstance(arrivals, Mapping):
            arrivals = {self._queries[0].name: arrivals}
        names = [query.name for query in self._queries]
        self._times_s = checked_arrivals(names, arrivals)
        self.classes = classes_of([query.class_name for query in self._queries], target)
        self._cores, self._seed = cores, seed
        self._disturbances = disturbances or Disturbances()
        self.host: VirtualHost | None = None

    def begin(self, period_s: float, managers: Mapping[str, LoadManager]) -> None:
        """Before the first advance: statistics are kept in periods of this length."""
        for state in self.classes.values():
            state.delays = DelayRecord(period_s)
        queries = [
            VirtualQuery(
                name=query.name,
                log=TraceLog(times_s),
                options=replace(
                    GateOptions.parse({}),
                    target=self.classes[query.class_name].target,
                    period_s=period_s,
                    policy=query.policy,
                    seed=self._seed,
                    class_name=query.class_name,
                ),
                cost=query.cost,
                law=copy.deepcopy(managers[query.class_name]),
            )
            for query, times_s in zip(self._queries, self._times_s, strict=True)
        ]
        terms = {name: self._terms(state.target) for name, state in self.classes.items()}
        self.host = VirtualHost(
            queries, terms, cores=self._cores, period_s=period_s, seed=self._seed
        )
        self.host.cost_factor = self._disturbances.cost_factor.at
        self.host.speed = lambda time_s: 1.0 - self._disturbances.background.at(time_s)

    def _terms(self, target: Target) -> ClassTerms:
        return ClassTerms(priority=1, target=target)

    def advance(self, until_s: float) -> None:
        host = self._running()
        host.advance(until_s)
        for decided in host.decided:
            self.classes[decided.measurement.class_name].decision = decided.decision
        host.decided.clear()
        for place, query in enumerate(self._queries):
            state, lane = self.classes[query.class_name], host.lanes[query.name]
            for done in lane.finished:
                [stretch] = done.batch.stretches
                arrived_s = self._times_s[place][stretch.kept_positions(done.batch.rule)]
                ended_s = np.full(arrived_s.size, done.ended_s)
                state.delays.add(arrived_s, ended_s, state.target.delay_s)
                state.keep_fraction = done.batch.rule.keep_ppm / PPM
                state.finished += arrived_s.size
            lane.finished.clear()
            prices = lane.gate.prices
            state.cost_s = prices.kept_s if prices else 0.0
        for name, state in self.classes.items():
            totals = self.totals(name)
            state.queued_tuples = totals.pending_tuples + totals.in_flight_tuples
            state.queued_load_s = state.queued_tuples * state.cost_s

    def observe(self) -> Iterator[Measurement]:
        """Nobody is left to decide: the gates have."""
        return iter(())

    def act(self, measurement: Measurement, decision: Decision) -> None:
        raise AssertionError("the gates act by themselves")

    def set_target(self, class_name: str, target: Target) -> None:
        self.classes[class_name].target = target
        self._running().control.change(class_name, self._terms(target))

    def counts(self, class_name: str) -> Counts:
        totals = self.totals(class_name)
        done = totals.completed_tuples
        admitted = totals.admitted_tuples
        return Counts(totals.offered_tuples, admitted, totals.shed_tuples, done, done)

    def totals(self, class_name: str) -> Totals:
        """Where every tuple of a class is."""
        host = self._running()
        offered = admitted = shed = in_flight = 0
        for query in self._queries:
            if query.class_name == class_name:
                lane = host.lanes[query.name]
                at = lane.batch or lane.at
                offered += lane.query.log.extent(host.now_s)[0].stop
                admitted, shed = admitted + at.totals.admitted, shed + at.totals.shed
                in_flight += lane.batch.kept_tuples() if lane.batch else 0
        return Totals(
            offered_tuples=offered,
            admitted_tuples=admitted,
            shed_tuples=shed,
            pending_tuples=offered - admitted - shed,
            in_flight_tuples=in_flight,
            completed_tuples=self.classes[class_name].finished,
        )

    def _running(self) -> VirtualHost:
        assert self.host is not None, "begin comes first"
        return self.host
