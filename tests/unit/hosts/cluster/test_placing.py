"""Where queries without a node go."""

from spillway.cluster.views import HostView, Resources
from spillway.hosts.cluster.assigning import Standing
from spillway.hosts.cluster.messages import Assignment, NodeOrder, NodeReport
from spillway.hosts.cluster.placing import Placing

QUERY = Assignment(query={})


def report(name: str, cores: float = 1.0) -> NodeReport:
    host = HostView(name=name, capacity=Resources(cpu_cores=cores))
    life = f"{name}#1"
    return NodeReport(life=life, lease_s=1.0, state="running", applied=0, running={}, host=host)


def placing(
    nodes: dict[str, NodeReport], *, on: dict[str, str] | None = None, fewest: int = 1
) -> Placing:
    queries = {q: Assignment(query={}, state="runs", node=n) for q, n in (on or {}).items()}
    orders = {name: NodeOrder(life=given.life) for name, given in nodes.items()}
    now = Standing(reports=nodes, over=frozenset())
    cores = {"heavy": 0.9, "light": 0.1}
    return Placing(now, orders, queries, cores, fewest)


def test_the_node_with_most_room_takes_the_next_query() -> None:
    place = placing({n: report(n) for n in "ab"}, on={"heavy": "a", "light": "b"})
    assert place("new", QUERY) == "b"


def test_what_was_placed_a_moment_ago_counts() -> None:
    place = placing({n: report(n) for n in "abc"})
    assert [place(query, QUERY) for query in ("x", "y", "z", "heavy")] == ["a", "b", "c", "a"]
    assert place("last", QUERY) == "b"


def test_room_is_by_capacity() -> None:
    place = placing({"a": report("a"), "b": report("b", 16.0)}, on={"light": "a", "heavy": "b"})
    assert place("new", QUERY) == "b"


def test_a_first_start_waits_for_the_fewest_nodes_a_take_over_does_not() -> None:
    place = placing({"a": report("a")}, fewest=2)
    assert place("new", Assignment(query={}, held_back=True)) is None
    assert place("orphan", QUERY) == "a"
