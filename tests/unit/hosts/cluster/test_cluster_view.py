"""What the coordinator's decisions are shown: queries where they are assigned, with known loads."""

from spillway.cluster.views import HostView, OperatorView, QueryView, Resources
from spillway.hosts.cluster.assigning import Standing
from spillway.hosts.cluster.cluster_view import Measured, cluster_view
from spillway.hosts.cluster.messages import Assignment, NodeOrder, NodeReport


def report(name: str, *queries: str, running: tuple[str, ...] = ()) -> NodeReport:
    operators = tuple(
        OperatorView(name=query, queries=(query,), use=Resources(cpu_cores=0.4))
        for query in queries
    )
    host = HostView(name=name, capacity=Resources(cpu_cores=2.0), operators=operators)
    views = tuple(
        QueryView(name=query, class_name="default", priority=1, operators=(query,))
        for query in queries
    )
    return NodeReport(
        life=f"{name}#1",
        lease_s=1.0,
        state="running",
        applied=0,
        running=dict.fromkeys((*queries, *running), 1),
        host=host,
        queries=views,
    )


def runs(node: str, to: str | None = None) -> Assignment:
    return Assignment(query={}, state="runs", node=node, to=to)


def test_a_query_that_moves_counts_where_it_is_assigned_with_what_was_known_of_it() -> None:
    measured = Measured()
    measured.read([report("a", "q")])
    now = Standing(reports={"a": report("a"), "b": report("b")}, over=frozenset())
    view = cluster_view(now, {"q": runs("b")}, {}, measured, 1, 5.0)
    assert [op.name for op in view.host("b").operators] == ["q"]
    assert view.host("a").operators == ()
    assert view.query("q").migrating
    now = Standing(reports={"a": report("a"), "b": report("b", running=("q",))}, over=frozenset())
    view = cluster_view(now, {"q": runs("b")}, {}, measured, 1, 6.0)
    assert not view.query("q").migrating
    assert view.host("b").utilisation == 0.2


def test_nodes_that_are_gone_are_not_there_and_those_asked_for_come() -> None:
    measured = Measured()
    measured.read([report("a", "q")])
    now = Standing(reports={"a": report("a", "q"), "b": report("b")}, over=frozenset({"a#1"}))
    orders = {"b": NodeOrder(state="stops", life="b#1"), "c": NodeOrder()}
    view = cluster_view(now, {"q": runs("a")}, orders, measured, 1, 5.0)
    assert [(host.name, host.state) for host in view.hosts] == [
        ("b", "draining"),
        ("c", "starting"),
    ]
    assert view.queries == ()
    assert view.host_template is not None
    assert view.host_template.cpu_cores == 2.0
