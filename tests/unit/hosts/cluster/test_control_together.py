"""Leaders, nodes and the log together in virtual time: no query ever runs twice, none is stuck."""

import random
from itertools import pairwise

import pytest
from toys import CLUSTER, MemoryLog, ToyNode

from spillway.cluster.coordinator.coordinator import Coordinator
from spillway.cluster.coordinator.directive import CoordinatorSettings
from spillway.coding import from_json, to_json
from spillway.flow.flow import Flow
from spillway.hosts.cluster.chief import Chief, Orders
from spillway.hosts.cluster.control_log import Latest, OvertakenError
from spillway.hosts.cluster.draft import Draft
from spillway.hosts.cluster.election import Election
from spillway.hosts.cluster.messages import ANSWER, REQUEST, Answer, FlowGiven, Request
from spillway.hosts.cluster.records import Record
from spillway.hosts.cluster.roster import Roster

LEASE_S = 10.0
QUERIES = [f"q{number}" for number in range(6)]
FLOW = Flow.model_validate(
    {
        "streams": {"ticks": {"source": "synthetic", "options": {"rate": 10}}},
        "classes": {"gold": {"delay": "1s", "priority": 3}, "default": {"delay": "2s"}},
        "queries": {
            name: {
                "sql": "SELECT * FROM ticks",
                "sink": {"type": "parquet", "path": "results"},  # moves by stop and start
                "class": "gold" if name == "q5" else "default",
            }
            for name in QUERIES
        },
        "cluster": {"fewest": 3, "most": 3, "launcher": "none"},
    }
)


class Leader:
    def __init__(self, name: str, reports: MemoryLog, assignments: MemoryLog) -> None:
        assert FLOW.cluster is not None
        self.name = name
        self._reports, self.assignments = Latest(reports), Latest(assignments)
        self._election = Election(name, CLUSTER, LEASE_S)
        self._roster = Roster(LEASE_S)
        flow = FLOW.model_dump(by_alias=True, exclude={"queries", "cluster"})
        given = FlowGiven(flow=flow, folder="", lease_s=LEASE_S, cores=1)
        settings = CoordinatorSettings(min_nodes=3, max_nodes=3)
        self._chief = Chief(FLOW, given, Coordinator(settings))
        self.leads = False
        self.orders = Orders(records=())

    def step(self, now_s: float, *, freeze_before_write: float = 0.0) -> float:
        """Returns the time at which it has written; others may act while it is frozen."""
        try:
            entries = self._reports.read_on()
            self.assignments.read_on()
            draft = Draft(self.assignments, CLUSTER, self.name)
            self._roster.read(entries, now_s, now_s, draft.lives)
            word = self._election.next_record(self.assignments, now_s, now_s)
            if word is not None:
                self.assignments.append(word)
                self._election.sent(now_s)
            led, self.leads = self.leads, self._election.role(self.assignments) == "leads"
            if self.leads and not led:
                draft = Draft(self.assignments, CLUSTER, self.name)
                self._chief.begin(draft)
                self._write(draft.records())
            if self.leads:
                requests = {
                    key: from_json(Request, placed.record.body or {})
                    for key, placed in self._reports.of(REQUEST).items()
                }
                draft = Draft(self.assignments, CLUSTER, self.name)
                due = int(now_s) % 5 == 0
                self.orders = self._chief.decide(draft, self._roster, requests, now_s, due=due)
                self._write(list(self.orders.records))
        except OvertakenError:
            self.leads = False
        return now_s

    def _write(self, records: list[Record]) -> None:
        for record in records:
            self.assignments.append(record)


class World:
    def __init__(self, nodes: int = 3) -> None:
        self.reports, self.assignments = MemoryLog(), MemoryLog()
        self.nodes = [self.node(f"n{number}") for number in range(nodes)]
        self.leaders = [Leader(name, self.reports, self.assignments) for name in ("x", "y")]
        self.frozen: set[object] = set()
        self.now_s = 0.0

    def node(self, name: str) -> ToyNode:
        return ToyNode(name, self.reports, self.assignments, LEASE_S)

    def second(self) -> None:
        self.now_s += 1.0
        for node in self.nodes:
            if node not in self.frozen:
                if int(self.now_s) % 2 == 0:
                    node.beat(self.now_s)
                node.carry_out(self.now_s)
        for leader in self.leaders:
            if leader not in self.frozen:
                leader.step(self.now_s)
        for query in QUERIES:
            where = [node.name for node in self.nodes if node.runs(query, self.now_s)]
            assert len(where) <= 1, f"{query} runs on {where} at {self.now_s} s"

    def run(self, seconds: float) -> None:
        for _ in range(int(seconds)):
            self.second()

    def where(self) -> dict[str, str]:
        return {
            query: node.name
            for query in QUERIES
            for node in self.nodes
            if node.runs(query, self.now_s)
        }

    def ask(self, **request: str) -> str:
        body = to_json(Request, Request(**request))  # type: ignore[arg-type]
        key = f"{len(self.reports.records)}"
        self.reports.append(
            Record(cluster=CLUSTER, key=REQUEST + key, epoch=1, writer="user", body=body)
        )
        self.run(2)
        known = Latest(self.assignments)
        known.read_on()
        answer = from_json(Answer, known.by_key[ANSWER + key].record.body or {})
        return answer.done or f"refused: {answer.error}"


def test_a_first_start_waits_for_all_nodes_and_spreads_the_queries() -> None:
    world = World(2)
    world.run(10)
    assert world.where() == {}
    world.nodes.append(world.node("n2"))
    world.run(10)
    nodes = list(world.where().values())
    assert sorted(nodes.count(name) for name in ("n0", "n1", "n2")) == [2, 2, 2]


def test_a_move_is_a_stop_here_and_then_a_start_there() -> None:
    world = World()
    world.run(15)
    there = next(name for name in ("n0", "n1", "n2") if name != world.where()["q0"])
    said = world.ask(kind="move", name="q0", value=there)
    assert "moves from" in said
    assert "by stop and start, because" in said
    assert "files of one checkpoint" in said
    world.run(10)
    assert world.where()["q0"] == there
    assert len(world.where()) == 6


def test_a_node_that_dies_gives_its_queries_up_after_its_lease_the_highest_class_first() -> None:
    world = World()
    world.run(15)
    dead = world.where()["q5"]
    [node] = [node for node in world.nodes if node.name == dead]
    world.nodes.remove(node)
    world.run(LEASE_S)
    assert "q5" not in world.where()
    before = len(world.assignments.records)
    world.run(8)
    assert len(world.where()) == 6
    given = [r.key for r in world.assignments.records[before:] if r.key.startswith("query/")]
    assert given[0] == "query/q5"


def test_a_frozen_node_stops_by_itself_and_comes_back_with_nothing() -> None:
    world = World()
    world.run(15)
    node = world.nodes[0]
    world.frozen = {node}
    world.run(30)
    assert len(world.where()) == 6
    assert "n0" not in world.where().values()
    world.frozen = set()
    world.run(20)
    assert len(world.where()) == 6
    assert not node.superseded


def test_a_log_that_was_away_for_longer_than_a_lease_gives_everything_back() -> None:
    """All freeze: leases lapse, lives begin anew, the leader gives the queries again."""
    world = World()
    world.run(15)
    world.frozen = {*world.nodes, *world.leaders}
    world.run(40)
    world.frozen = set()
    world.run(30)
    assert len(world.where()) == 6


def test_of_two_processes_with_one_name_the_newer_one_has_it() -> None:
    world = World()
    world.run(15)
    old = world.nodes[0]
    world.frozen = {old}
    world.run(20)
    world.nodes.append(world.node("n0"))
    world.run(10)
    world.frozen = set()
    world.run(20)
    assert old.superseded
    assert len(world.where()) == 6


def test_requests_that_cannot_be_carried_out_are_refused_in_a_line() -> None:
    world = World()
    world.run(15)
    assert "unknown query 'nosuch'" in world.ask(kind="stop", name="nosuch")
    assert "unknown running node 'n9'" in world.ask(kind="move", name="q0", value="n9")
    assert "unknown class 'iron'" in world.ask(kind="set", name="iron.delay", value="1s")
    assert world.ask(kind="set", name="gold.delay", value="3s") == "gold.delay is 3s now"


def test_a_stopped_query_is_gone_and_one_added_again_has_a_new_generation() -> None:
    world = World()
    world.run(15)
    world.ask(kind="stop", name="q0")
    world.run(10)
    assert "q0" not in world.where()
    query = FLOW.queries["q1"].model_dump(by_alias=True)
    world.ask(kind="add", name="q0", query=query)  # type: ignore[arg-type]
    world.run(10)
    assert "q0" in world.where()
    draft = Draft(world.leaders[0].assignments, CLUSTER, "test")
    assert draft.queries["q0"].generation == 2


def test_a_drained_node_gives_its_queries_away() -> None:
    world = World()
    world.run(15)
    world.ask(kind="drain", name="n1")
    world.run(15)
    assert len(world.where()) == 6
    assert "n1" not in world.where().values()


def test_an_application_that_has_attached_is_given_nothing_and_no_node_is_missed_for_it() -> None:
    world = World()
    world.nodes.append(world.node("app"))
    world.nodes[-1].pinned = True
    world.run(15)
    assert len(world.where()) == 6
    assert "app" not in world.where().values()
    assert "unknown running node 'app'" in world.ask(kind="move", name="q0", value="app")
    assert "its queries are its own" in world.ask(kind="drain", name="app")
    world.nodes.pop(0)
    world.run(30)
    assert len(world.where()) == 6
    assert "app" not in world.where().values()
    draft = Draft(world.leaders[0].assignments, CLUSTER, "test")
    assert draft.orders["app"].state == "runs"
    world.nodes[-1].state = "ended"
    world.run(10)
    assert "app" not in Draft(world.leaders[0].assignments, CLUSTER, "test").orders
    world.ask(kind="end")
    world.run(10)
    assert world.where() == {}


def test_a_cluster_that_is_stopped_ends_and_goes_on_later() -> None:
    world = World()
    world.run(15)
    world.ask(kind="end")
    world.run(10)
    assert world.where() == {}


@pytest.mark.parametrize("seed", range(12))
def test_whatever_freezes_dies_and_returns_no_query_runs_twice_and_all_run_in_the_end(
    seed: int,
) -> None:
    world, chance = World(), random.Random(seed)
    world.run(15)
    for _ in range(40):
        everybody = [*world.nodes, *world.leaders]
        match chance.randrange(5):
            case 0:
                world.frozen.add(chance.choice(everybody))
            case 1:
                world.frozen.clear()
            case 2:
                there = chance.choice(world.nodes).name
                body = Request(kind="move", name=chance.choice(QUERIES), value=there)
                world.reports.append(
                    Record(
                        cluster=CLUSTER,
                        key=f"{REQUEST}{len(world.reports.records)}",
                        epoch=1,
                        writer="user",
                        body=to_json(Request, body),
                    )
                )
            case 3:
                lost = chance.randrange(len(world.nodes))
                world.nodes[lost] = world.node(world.nodes[lost].name)  # killed, started anew
            case 4:
                lost = chance.randrange(2)
                name = f"leader {chance.random()}"
                world.leaders[lost] = Leader(name, world.reports, world.assignments)
        world.run(chance.choice([1, 3, 12, 30]))
    world.frozen.clear()
    world.run(90)
    assert sorted(world.where()) == QUERIES


def test_nodes_that_end_before_they_serve_are_started_ever_more_seldom(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert FLOW.cluster is not None
    launched = FLOW.cluster.model_copy(update={"launcher": "process", "fewest": 1})
    monkeypatch.setattr("test_control_together.FLOW", FLOW.model_copy(update={"cluster": launched}))
    world = World(0)
    world.leaders = world.leaders[:1]
    starts: list[float] = []
    for _ in range(600):
        world.second()
        for name in world.leaders[0].orders.launch:
            starts.append(world.now_s)
            node = world.node(name)
            node.state = "ended"
            node.beat(world.now_s)  # its only one
    waits = [later - earlier for earlier, later in pairwise(starts)]
    assert 4 <= len(waits) <= 8
    assert waits == sorted(waits)
