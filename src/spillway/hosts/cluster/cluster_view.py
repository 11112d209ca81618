"""The cluster as the coordinator's decisions see it: reports and assignments in one view.

A query is where it is assigned, also while it moves: there its load will be. What it wants was
learned where it ran last; a node that has just been given it knows nothing of it yet.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from spillway.cluster.views import ClusterView, HostView, OperatorView, QueryView, Resources
from spillway.hosts.cluster.assigning import Standing
from spillway.hosts.cluster.messages import Assignment, NodeOrder, NodeReport, run_name

_PLENTY_MB = 1e6


@dataclass(frozen=True, kw_only=True)
class Known:
    """A query as it was measured last."""

    operator: OperatorView
    view: QueryView


class Measured:
    """What a leader remembers of the queries."""

    def __init__(self) -> None:
        self.of: dict[str, Known] = {}

    def read(self, reports: Iterable[NodeReport]) -> None:
        for report in (report for report in reports if not report.is_pinned):
            operators = {} if report.host is None else {op.name: op for op in report.host.operators}
            for view in report.queries:
                if view.name in operators:
                    self.of[view.name] = Known(operator=operators[view.name], view=view)

    @property
    def cores(self) -> Mapping[str, float]:
        return {name: known.operator.use.cpu_cores for name, known in self.of.items()}


def cluster_view(
    now: Standing,
    queries: Mapping[str, Assignment],
    orders: Mapping[str, NodeOrder],
    measured: Measured,
    cores: int,
    time_s: float,
) -> ClusterView:
    """`time_s` is of the leader's monotonic clock."""
    placed = {n: given for n, given in queries.items() if given.node and n in measured.of}
    on: dict[str, list[OperatorView]] = {}
    for name, given in placed.items():
        on.setdefault(given.node or "", []).append(measured.of[name].operator)
    reported = [
        _host(report.host, on.get(name, []), orders.get(name))
        for name, report in now.reports.items()
        if report.host is not None and report.life not in now.over
    ]
    sizes = [host.capacity.cpu_cores for host in reported if host.state != "pinned"]
    largest = max(sizes, default=float(cores))
    capacity = Resources(cpu_cores=largest, memory_mb=_PLENTY_MB, network_mb_per_s=_PLENTY_MB)
    to_come = [
        HostView(name=name, capacity=capacity, state="starting")
        for name, order in orders.items()
        if order.state == "runs" and order.life is None and name not in now.reports
    ]
    hosts = sorted([*reported, *to_come], key=lambda host: host.name)
    there = {host.name for host in hosts}
    return ClusterView(
        time_s=time_s,
        hosts=tuple(hosts),
        queries=tuple(
            _query(measured.of[name].view, given, now)
            for name, given in placed.items()
            if given.node in there
        ),
        host_template=capacity,
    )


def _host(host: HostView, operators: list[OperatorView], order: NodeOrder | None) -> HostView:
    draining = order is not None and order.state != "runs" and host.state != "pinned"
    state = "draining" if draining else host.state
    return replace(host, operators=tuple(operators), state=state)


def _query(view: QueryView, given: Assignment, now: Standing) -> QueryView:
    report = now.reports.get(given.node or "")
    is_there = report is not None and run_name(view.name, given.generation) in report.running
    moves = given.state != "runs" or given.to is not None or given.next is not None or not is_there
    return replace(view, migrating=moves)
