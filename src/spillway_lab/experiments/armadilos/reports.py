"""The reports of a simulated cluster's nodes, as the coordinator gets them."""

from collections import defaultdict

import numpy as np

from spillway.cluster.views import (
    ClassView,
    ClusterView,
    HostState,
    HostView,
    OperatorView,
    QueryView,
    Resources,
)
from spillway_lab.experiments.armadilos.classes import CLASSES
from spillway_lab.experiments.armadilos.cluster import Cluster, Floats

NODE = Resources(cpu_cores=1.0, memory_mb=1e6, network_mb_per_s=1e6)


class Reporter:
    """Averages over a report period and turns them into views."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._steps = 0
        self._rate: Floats = np.zeros(cluster.day.rate_per_s.shape[1])
        self._load: Floats = np.zeros_like(cluster.load)
        self._shed_before = cluster.shed.copy()
        day = cluster.day
        self._names = [f"q{query}" for query in range(day.queries)]
        self._own = [f"{name}.own" for name in self._names]
        self._streams: list[int] = day.stream.tolist()
        self._windows: list[float] = day.window_s.tolist()
        self._true_rates: list[float] = (1.0 / day.cost_s).tolist()
        self._class_of = [CLASSES[k] for k in day.klass.tolist()]

    def add(self, rate_per_s: Floats) -> None:
        self._steps += 1
        self._rate += rate_per_s
        self._load += self._cluster.load

    def take(self) -> ClusterView:
        cluster, day = self._cluster, self._cluster.day
        rate = (self._rate / self._steps)[day.stream]
        operators = self._operators(rate)
        classes = self._classes()
        states: dict[int, HostState] = {int(n): "running" for n in np.flatnonzero(cluster.running)}
        states |= {int(n): "starting" for n in np.flatnonzero(cluster.starting)}
        names = cluster.names
        hosts = tuple(
            HostView(
                name=names[node],
                capacity=NODE,
                operators=tuple(operators.get(node, ())),
                classes=classes[node],
                state=state,
            )
            for node, state in sorted(states.items())
        )
        queries = self._queries(rate)
        self._steps, self._rate, self._load = 0, self._rate * 0.0, self._load * 0.0
        self._shed_before = cluster.shed.copy()
        return ClusterView(time_s=cluster.now_s, hosts=hosts, queries=queries, host_template=NODE)

    def _operators(self, rate: Floats) -> dict[int, list[OperatorView]]:
        cluster, day = self._cluster, self._cluster.day
        on_node: dict[int, list[OperatorView]] = defaultdict(list)
        readers: dict[tuple[int, int], list[int]] = defaultdict(list)
        use = (rate * day.cost_s).tolist()
        for query, node in enumerate(cluster.where.tolist()):
            stream = self._streams[query]
            readers[node, stream].append(query)
            on_node[node].append(
                OperatorView(
                    name=self._own[query],
                    queries=(self._names[query],),
                    use=Resources(cpu_cores=use[query]),
                    upstream=(f"parse-{stream}@{node}",),
                    state_mb=self._windows[query],  # only whether it has state matters
                    true_rate_per_s=self._true_rates[query],
                )
            )
        for (node, stream), queries in readers.items():
            on_node[node].append(
                OperatorView(
                    name=f"parse-{stream}@{node}",
                    queries=tuple(self._names[query] for query in queries),
                    use=Resources(cpu_cores=float(rate[queries[0]] * day.parse_s)),
                    true_rate_per_s=1.0 / day.parse_s,
                    signature=f"parse-{stream}",
                )
            )
        return on_node

    def _classes(self) -> list[tuple[ClassView, ...]]:
        cluster, day = self._cluster, self._cluster.day
        shed = (cluster.shed - self._shed_before) / (self._steps * day.step_s)
        shed_by = cluster.by_class(cluster.where, day.klass, shed).tolist()
        load = (self._load / self._steps).tolist()
        quota, delay_s = cluster.quota.tolist(), cluster.delay_s.tolist()
        return [
            tuple(
                ClassView(
                    name=c.name,
                    priority=c.priority,
                    quota=quota[node][k],
                    load=load[node][k],
                    shed_tuples_per_s=shed_by[node][k],
                    delay_s=delay_s[node][k],
                    target_delay_s=c.target_delay_s,
                )
                for k, c in enumerate(CLASSES)
            )
            if live
            else ()
            for node, live in enumerate(cluster.running.tolist())
        ]

    def _queries(self, rate: Floats) -> tuple[QueryView, ...]:
        rates, where = rate.tolist(), self._cluster.where.tolist()
        moving = (self._cluster.copy_on >= 0).tolist()
        return tuple(
            QueryView(
                name=name,
                class_name=self._class_of[query].name,
                priority=self._class_of[query].priority,
                operators=(f"parse-{self._streams[query]}@{where[query]}", self._own[query]),
                offered_rate_per_s=rates[query],
                migrating=moving[query],
            )
            for query, name in enumerate(self._names)
        )
