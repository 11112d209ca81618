"""The cluster as the coordinator's decisions see it: reports and assignments in one view."""

from collections.abc import Mapping
from dataclasses import replace

from spillway.cluster.views import ClusterView, HostView, QueryView, Resources
from spillway.hosts.cluster.assigning import Standing
from spillway.hosts.cluster.messages import Assignment, NodeOrder


def cluster_view(
    now: Standing,
    queries: Mapping[str, Assignment],
    orders: Mapping[str, NodeOrder],
    cores: int,
    time_s: float,
) -> ClusterView:
    """`time_s` is of the leader's monotonic clock."""
    hosts = [*_reported(now, orders), *_to_come(now, orders, cores)]
    there = {op.name for host in hosts for op in host.operators}
    return ClusterView(
        time_s=time_s,
        hosts=tuple(sorted(hosts, key=lambda host: host.name)),
        queries=tuple(_query(q, queries[q.name]) for q in _known(now, queries) if q.name in there),
        host_template=Resources(cpu_cores=float(cores), memory_mb=1e6, network_mb_per_s=1e6),
    )


def _reported(now: Standing, orders: Mapping[str, NodeOrder]) -> list[HostView]:
    found = []
    for name, report in now.reports.items():
        if report.host is None or report.life in now.over:
            continue
        order = orders.get(name)
        draining = order is not None and order.state != "runs"
        operators = tuple(op for op in report.host.operators if op.name in report.running)
        host = replace(report.host, operators=operators)
        found.append(replace(host, state="draining") if draining else host)
    return found


def _to_come(now: Standing, orders: Mapping[str, NodeOrder], cores: int) -> list[HostView]:
    """Asked for, and not heard of yet."""
    capacity = Resources(cpu_cores=float(cores), memory_mb=1e6, network_mb_per_s=1e6)
    return [
        HostView(name=name, capacity=capacity, state="starting")
        for name, order in orders.items()
        if order.state == "runs" and order.life is None and name not in now.reports
    ]


def _known(now: Standing, queries: Mapping[str, Assignment]) -> list[QueryView]:
    """Each query as the node says that has it."""
    return [
        view
        for name, report in now.reports.items()
        if report.life not in now.over
        for view in report.queries
        if view.name in queries and queries[view.name].node == name
    ]


def _query(view: QueryView, given: Assignment) -> QueryView:
    return replace(view, migrating=given.state != "runs" or given.to is not None)
