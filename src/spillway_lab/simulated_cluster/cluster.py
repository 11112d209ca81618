"""The simulated cluster: hosts that start and stop, operators that move, views and actions."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from spillway.cluster.actions import ClusterAction, MoveOperator, Shed, StartNode, StopNode
from spillway.cluster.placement import empty_bin, first_fit_decreasing, neighbours_of
from spillway.cluster.views import ClusterView, HostState, HostView, OperatorView, Resources
from spillway.errors import SpillwayError
from spillway_lab.simulated_cluster.fluid import Fluid, Placement
from spillway_lab.simulated_cluster.moves import MoveProtocol, PauseAndReplay
from spillway_lab.simulated_cluster.sight import (
    operator_name,
    operator_views,
    query_views,
    stage_and_query,
)
from spillway_lab.simulated_cluster.transfers import Transfer, Transfers
from spillway_lab.simulated_cluster.workload import (
    AGGREGATE,
    AGGREGATE_SELECTIVITY,
    FILTER,
    STAGES,
    TUPLE_MB,
    ClusterWorkload,
)


@dataclass(frozen=True, kw_only=True)
class ClusterSettings:
    """The machine: identical hosts, and how long a new one takes to be ready."""

    max_hosts: int = 10
    host: Resources = field(
        default_factory=lambda: Resources(cpu_cores=1.0, memory_mb=4000.0, network_mb_per_s=100.0)
    )
    start_s: float = 10.0
    first_fill: float = 0.6  # utilisation up to which the first placement packs hosts


class SimCluster:
    """A plant for scaling: `advance` virtual time, `observe` a view, `actuate` actions."""

    def __init__(
        self,
        workload: ClusterWorkload,
        settings: ClusterSettings | None = None,
        protocol: MoveProtocol | None = None,
    ) -> None:
        self._workload = workload
        self.settings = settings or ClusterSettings()
        shape = (len(STAGES), workload.queries)
        self._fluid = Fluid(*shape, self.settings.max_hosts, workload.cost_s)
        self._step = 0
        self._names: list[str | None] = [None] * self.settings.max_hosts
        self._states: list[HostState] = ["running"] * self.settings.max_hosts
        self._ready_s = [0.0] * self.settings.max_hosts
        self._keep_on = np.ones(self.settings.max_hosts)
        self._placement = Placement.on_first_host(*shape)
        self._selectivity = np.ones(shape)
        self._selectivity[AGGREGATE] = AGGREGATE_SELECTIVITY
        self._transfers = Transfers(protocol or PauseAndReplay())
        self._window_tuples = workload.offered[0] * workload.passing[0] * workload.window_s
        self.host_seconds = 0.0
        self._place_first()

    @property
    def now_s(self) -> float:
        return self._step * self._workload.step_s

    @property
    def done(self) -> bool:
        return self._step >= self._workload.steps

    @property
    def moves(self) -> int:
        return self._transfers.finished_moves

    def advance(self, seconds: float) -> None:
        """Run for `seconds`, or to the end of the workload."""
        steps = max(1, round(seconds / self._workload.step_s))
        for _ in range(min(steps, self._workload.steps - self._step)):
            self._progress()
            self._flow()
            self._step += 1

    def observe(self) -> ClusterView:
        """The period since the last call, seen by the cluster's brain."""
        totals = self._fluid.take()
        operators = operator_views(totals, self._workload, self._window_tuples, self._fluid.queue)
        hosts = tuple(
            HostView(
                name=name,
                capacity=self.settings.host,
                state=self._states[slot],
                operators=tuple(
                    operators[s][q] for s, q in np.argwhere(self._placement.host == slot).tolist()
                ),
            )
            for slot, name in enumerate(self._names)
            if name is not None
        )
        return ClusterView(
            time_s=self.now_s,
            hosts=hosts,
            queries=query_views(totals, moving=self._transfers.queries()),
            host_template=self.settings.host,
        )

    def actuate(self, actions: Iterable[ClusterAction]) -> None:
        for action in actions:
            match action:
                case StartNode():
                    self._start(action.node)
                case StopNode():
                    self._states[self._slot(action.node)] = "draining"
                case MoveOperator():
                    self._request(action)
                case Shed():
                    self._keep_on[self._slot(action.node)] = action.keep_fraction
                case _:
                    raise SpillwayError(f"{type(action).__name__}: no action of this plant")

    # --- time -------------------------------------------------------------------------------

    def _progress(self) -> None:
        """Nodes come up, moves end and begin, emptied nodes go."""
        for slot, state in enumerate(self._states):
            if state == "starting" and self.now_s >= self._ready_s[slot]:
                self._states[slot] = "running"
        if self._transfers:
            for transfer in self._transfers.ended(self.now_s):
                self._finish(transfer)
            up = {s for s, name in enumerate(self._names) if name and self._states[s] == "running"}
            for transfer in self._transfers.startable(up):
                self._begin(transfer)
        for slot, state in enumerate(self._states):
            if state == "draining" and not (self._placement.host == slot).any():
                self._names[slot] = None
                self._states[slot] = "running"
                self._keep_on[slot] = 1.0

    def _flow(self) -> None:
        workload, step_s = self._workload, self._workload.step_s
        self._selectivity[FILTER] = workload.passing[self._step]
        alive = np.array([name is not None for name in self._names])
        processed = self._fluid.step(
            step_s=step_s,
            offered=workload.offered[self._step] * step_s,
            keep=self._keep_on[self._placement.host].min(axis=0),
            selectivity=self._selectivity,
            placement=self._placement,
            cores=alive * self.settings.host.cpu_cores,
        )
        kept = np.exp(-step_s / workload.window_s)  # a leaky window: its content, on average
        self._window_tuples = self._window_tuples * kept + processed[AGGREGATE]
        self.host_seconds += step_s * float(alive.sum())

    # --- moves ------------------------------------------------------------------------------

    def _request(self, action: MoveOperator) -> None:
        stage, query = stage_and_query(action.operator)
        source, destination = self._slot(action.source), self._slot(action.destination)
        if self._placement.host[stage, query] != source:
            raise SpillwayError(f"{action.operator} is not on {action.source}: it cannot leave it")
        if self._states[destination] == "draining":
            raise SpillwayError(f"{action.operator} cannot move to {action.destination}: it drains")
        self._transfers.request(
            Transfer(stage=stage, query=query, source=source, destination=destination)
        )

    def _begin(self, transfer: Transfer) -> None:
        stage, query = transfer.stage, transfer.query
        state_mb = float(self._window_tuples[query]) * TUPLE_MB if stage == AGGREGATE else 0.0
        window_s = float(self._workload.window_s[query]) if stage == AGGREGATE else 0.0
        protocol = self._transfers.protocol
        transfer.ends_s = self.now_s + protocol.duration_s(state_mb, window_s)
        if protocol.pauses:
            self._placement.paused[max(0, stage - 1) : stage + 1, query] = True
        else:
            self._placement.copy_on[stage, query] = transfer.destination

    def _finish(self, transfer: Transfer) -> None:
        stage, query = transfer.stage, transfer.query
        self._placement.host[stage, query] = transfer.destination
        self._placement.copy_on[stage, query] = -1
        self._placement.paused[:, query] = False

    # --- hosts ------------------------------------------------------------------------------

    def _place_first(self) -> None:
        """First placement: first fit decreasing by the first minute's mean demand."""
        first = max(1, round(60.0 / self._workload.step_s))
        wanted = self._workload.demand_cores[:, :first].mean(axis=1)
        operators = [
            OperatorView(
                name=operator_name(stage, query),
                queries=(f"q{query}",),
                use=Resources(cpu_cores=float(wanted[stage, query])),
                upstream=(operator_name(stage - 1, query),) if stage else (),
            )
            for stage in range(len(STAGES))
            for query in range(self._workload.queries)
        ]
        names = [f"host-{slot + 1}" for slot in range(self.settings.max_hosts)]
        bins = [empty_bin(name, self.settings.host, self.settings.first_fill) for name in names]
        placed = first_fit_decreasing(operators, bins, neighbours_of(operators))
        if placed.unplaced:  # more than the cluster holds: spread the rest evenly
            left = [op.name for op in placed.unplaced]
            spread = {name: names[i % len(names)] for i, name in enumerate(left)}
            assigned = {**placed.assigned, **spread}
        else:
            assigned = dict(placed.assigned)
        for operator, name in assigned.items():
            slot = names.index(name)
            self._placement.host[stage_and_query(operator)] = slot
            self._names[slot] = name

    def _start(self, name: str) -> None:
        if None not in self._names:
            raise SpillwayError(f"all {self.settings.max_hosts} hosts are in use: {name} not added")
        slot = self._names.index(None)
        self._names[slot] = name
        self._states[slot] = "starting"
        self._ready_s[slot] = self.now_s + self.settings.start_s

    def _slot(self, name: str) -> int:
        if name not in self._names:
            raise SpillwayError(f"host '{name}' does not exist")
        return self._names.index(name)
