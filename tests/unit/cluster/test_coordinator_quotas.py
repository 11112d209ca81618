from dataclasses import replace

import pytest

from spillway.cluster.actions import ClusterAction, SetQuota
from spillway.cluster.coordinator.coordinator import Coordinator
from spillway.cluster.coordinator.directive import CoordinatorSettings
from spillway.cluster.coordinator.quotas import global_quotas, node_quotas
from spillway.cluster.views import ClassView, ClusterView, HostView, Resources


def attached(name: str, **loads: float) -> HostView:
    return replace(host(name, **loads), state="pinned")


def host(name: str, **loads: float) -> HostView:
    priorities = {"gold": 6, "silver": 3, "bronze": 1}
    classes = tuple(
        ClassView(name=c, priority=p, quota=p / 10, load=loads.get(c, 0.0))
        for c, p in priorities.items()
    )
    return HostView(name=name, capacity=Resources(cpu_cores=1.0), classes=classes)


def quotas(*hosts: HostView) -> dict[tuple[str, str], float]:
    return global_quotas(ClusterView(time_s=0.0, hosts=hosts))


def test_even_overload_is_split_by_priority() -> None:
    shares = quotas(host("a", gold=1.0, silver=1.0, bronze=1.0))
    assert shares["a", "gold"] == pytest.approx(0.6)
    assert shares["a", "silver"] == pytest.approx(0.3)
    assert shares["a", "bronze"] == pytest.approx(0.1)


def test_a_class_within_its_share_of_the_cluster_sheds_on_no_node() -> None:
    # gold asks 0.95 of one node and nothing of the other: 0.475 of the cluster, and it owns 0.6.
    shares = quotas(host("a", gold=0.95, bronze=1.0), host("b", bronze=0.5))
    assert shares["a", "gold"] == pytest.approx(0.95)
    assert shares["a", "bronze"] == pytest.approx(0.05)


def test_a_class_above_its_share_claims_less_everywhere() -> None:
    # bronze asks 1.6 of two nodes and owns 0.2 of them; silver is within its 0.6.
    shares = quotas(host("a", silver=0.3, bronze=0.8), host("b", silver=0.3, bronze=0.8))
    assert shares["a", "silver"] == pytest.approx(0.3)
    assert shares["a", "bronze"] == pytest.approx(0.1)


def test_a_quota_stays_open_for_load_that_may_come() -> None:
    # gold asks nothing now; its part is lent out by the node, and there when gold needs it.
    assert quotas(host("a", silver=0.3, bronze=0.8))["a", "gold"] == pytest.approx(0.6)


def test_an_application_that_has_attached_shares_its_classes_with_the_nodes() -> None:
    # bronze asks 0.15 of two machines and owns 0.1 of them: it claims two thirds where it is.
    both = quotas(host("a", gold=0.5), attached("b", bronze=0.3))
    assert both["b", "bronze"] == pytest.approx(0.2)
    assert quotas(attached("b", bronze=0.3))["b", "bronze"] == pytest.approx(0.1)


def test_an_application_that_has_attached_gets_quotas_and_nothing_else() -> None:
    settings = CoordinatorSettings(
        max_nodes=1, patience_reports=1, idle_reports=1, upper=0.2, target=0.15, lower=0.1
    )
    coordinator = Coordinator(settings)
    asked: list[ClusterAction] = []
    for second in range(0, 600, 5):
        hosts = (host("a", gold=0.05), attached("b", bronze=0.9))
        asked += coordinator.decide(ClusterView(time_s=float(second), hosts=hosts)).actions
    assert {type(action) for action in asked} == {SetQuota}
    assert {action.node for action in asked if isinstance(action, SetQuota)} == {"b"}


def test_quotas_of_a_node_sum_to_one() -> None:
    shares = quotas(host("a", gold=0.2), host("b", silver=0.4, bronze=0.9))
    assert sum(q for (node, _), q in shares.items() if node == "a") == pytest.approx(1.0)
    assert sum(q for (node, _), q in shares.items() if node == "b") == pytest.approx(1.0)


def test_claims_beyond_a_node_are_served_highest_priority_first() -> None:
    classes = host("a", gold=0.7, silver=0.6, bronze=0.5).classes
    shares = node_quotas(classes, {"gold": 1.0, "silver": 1.0, "bronze": 1.0})
    assert shares == pytest.approx({"gold": 0.7, "silver": 0.3, "bronze": 0.0})
