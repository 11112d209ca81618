"""Priorities across nodes: what a class owns of each node.

A class owns P_k / sum(P) of the cluster, not of every single node. Where its load L_k is within
that share it deserves to shed nowhere, however unevenly its queries lie; where it is above, its
claim on each node shrinks by share / L_k. On one node, claims are served highest priority first;
what is left fills up the split by priority, and then unserved loads, in the same order. A quota
above a class's load costs nobody anything: the node lends it out, and it is there when load comes.
"""

from collections.abc import Mapping, Sequence

from spillway.cluster.views import ClassView, ClusterView, HostView

Quotas = dict[tuple[str, str], float]  # (node, class) -> share of the node


def global_quotas(view: ClusterView, above: float = 0.0) -> Quotas:
    """Quotas of the nodes whose load is above this, attached ones too; those of one sum to 1."""
    within = _claim_factors(view.sharing)
    return {
        (host.name, name): quota
        for host in view.sharing
        if host.classes and sum(c.load for c in host.classes) >= above
        for name, quota in node_quotas(host.classes, within).items()
    }


def node_quotas(classes: Sequence[ClassView], within: Mapping[str, float]) -> dict[str, float]:
    """One node's split, given which part of its load each class may claim."""
    ranked = sorted(classes, key=lambda c: (-c.priority, c.name))
    weight = sum(c.priority for c in ranked)
    claims = {c.name: c.load * within[c.name] for c in ranked}
    split = {c.name: c.priority / weight for c in ranked}
    loads = {c.name: c.load for c in ranked}
    quotas, left = dict.fromkeys(claims, 0.0), 1.0
    for wanted in (claims, split, loads):
        for name, value in wanted.items():
            part = min(left, max(0.0, value - quotas[name]))
            quotas[name] += part
            left -= part
    return quotas


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
