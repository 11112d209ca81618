"""Priorities across nodes: what a class owns of each node.

A class owns P_k / sum(P) of the cluster, not of every single node. Where its load L_k is within
that share it deserves to shed nowhere, however unevenly its queries lie; where it is above, its
claim on each node shrinks by share / L_k. On one node, claims are served highest priority first,
then what is left goes to loads still unserved in the same order, and the rest by priority.
With even loads this is the class scheduler's split; with uneven ones it lends across nodes.
"""

from collections.abc import Mapping, Sequence

from spillway.cluster.views import ClassView, ClusterView, HostView

Quotas = dict[tuple[str, str], float]  # (node, class) -> share of the node


def global_quotas(view: ClusterView) -> Quotas:
    """Quotas of every running node; those of one node sum to 1."""
    within = _claim_factors(view.running)
    return {
        (host.name, name): quota
        for host in view.running
        if host.classes
        for name, quota in node_quotas(host.classes, within).items()
    }


def node_quotas(classes: Sequence[ClassView], within: Mapping[str, float]) -> dict[str, float]:
    """One node's split, given which part of its load each class may claim."""
    ranked = sorted(classes, key=lambda c: (-c.priority, c.name))
    quotas = dict.fromkeys((c.name for c in ranked), 0.0)
    left = 1.0
    for wanted in (
        {c.name: c.load * within[c.name] for c in ranked},
        {c.name: c.load for c in ranked},
    ):
        for c in ranked:
            part = min(left, max(0.0, wanted[c.name] - quotas[c.name]))
            quotas[c.name] += part
            left -= part
    weight = sum(c.priority for c in ranked)
    return {c.name: quotas[c.name] + left * c.priority / weight for c in ranked}


def _claim_factors(hosts: Sequence[HostView]) -> dict[str, float]:
    """min(1, share of the cluster / load over the cluster), by class; capacity in cores."""
    total = sum(host.capacity.cpu_cores for host in hosts)
    load: dict[str, float] = {}
    priority: dict[str, int] = {}
    for host in hosts:
        for c in host.classes:
            load[c.name] = load.get(c.name, 0.0) + c.load * host.capacity.cpu_cores
            priority[c.name] = c.priority
    weight = sum(priority.values())
    return {
        name: min(1.0, priority[name] / weight * total / asked) if asked > 0.0 else 1.0
        for name, asked in load.items()
    }
