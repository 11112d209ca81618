"""Moves and changes of running queries in virtual time, with leaders and nodes that freeze, die and
come back: every window comes out once and whole, and every move comes to an end.

A stream has one row a second, windows are two seconds long. What a checkpoint holds outlives its
node, as files do.
"""

import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import test_control_together
from test_control_together import CLUSTER, FLOW, LEASE_S, QUERIES, Leader, World
from toys import MemoryLog, ToyNode

from spillway.coding import to_json
from spillway.handover import FOREVER
from spillway.hosts.cluster.draft import Draft
from spillway.hosts.cluster.duties import Duty
from spillway.hosts.cluster.messages import REQUEST, Assignment, Reached, Request
from spillway.hosts.cluster.records import Record

LENGTH, LATE, AHEAD = 2, 1, 5
SQL = "SELECT count(*) AS n FROM ticks GROUP BY window(event_time, '2 seconds')"
OTHER_SQL = SQL.replace("count(*)", "max(id)")
SINK = {"type": "kafka", "brokers": "b:1", "topic": "t"}


@dataclass
class Checkpoint:
    """Durable. `read` is the newest row; windows that start before `closed` have been computed."""

    began: int
    read: int
    closed: int
    from_s: int = 0
    until_s: int = FOREVER

    @property
    def watermark(self) -> int:
        return self.read - LATE


class Stored:
    """All checkpoints, and what has come out of them."""

    def __init__(self) -> None:
        self.checkpoints: dict[tuple[str, int], Checkpoint] = {}
        self.came: dict[tuple[str, int], list[int]] = defaultdict(list)  # window -> generations

    def batch(self, key: tuple[str, int], now_s: int) -> None:
        name, generation = key
        at = self.checkpoints[key]
        at.read = max(at.read, now_s)
        while at.closed + LENGTH <= at.watermark:
            if at.from_s <= at.closed < at.until_s:
                assert at.closed >= at.began, f"{name} puts out a window of which it missed a part"
                self.came[name, at.closed].append(generation)
            at.closed += LENGTH


class MovingNode(ToyNode):
    """Runs batches of whatever it may run, once a second."""

    def __init__(
        self, name: str, reports: MemoryLog, assignments: MemoryLog, stored: Stored
    ) -> None:
        super().__init__(name, reports, assignments, LEASE_S)
        self._stored = stored

    def batches(self, now_s: int) -> None:
        self.reached = {run: at for run, at in self.reached.items() if run in self.busy}
        if self.duties.order.state == "stops" and not self.busy:
            self.state = "ended"
        for run in list(self.busy):
            duty = self.duties.queries.get(run)
            if duty is not None and self.lease.holds(now_s):
                self._batch(run, duty, now_s)

    def _batch(self, run: str, duty: Duty, now_s: int) -> None:
        key = duty.name, duty.generation
        if key not in self._stored.checkpoints:
            self._stored.checkpoints[key] = self._new(duty, now_s)
        at, move = self._stored.checkpoints[key], duty.move
        if duty.from_us is not None:
            at.from_s = duty.from_us
        if move is not None and duty.follows is not None:
            if move.from_us is not None:
                self.reached.pop(run, None)
            elif move.state == "cuts" or run in self.reached:
                return  # it stands still
            elif at.read >= now_s - 1:
                self.reached[run] = Reached(read_us=at.read)
                return
        if move is not None and duty.follows is None and move.state != "follows":
            if at.until_s == FOREVER:
                at.until_s = max(at.read, move.read_us) + AHEAD
            self._stored.batch(key, now_s)
            done = at.watermark >= at.until_s + LENGTH
            self.reached[run] = Reached(until_us=at.until_s, finished=done)
            return
        self._stored.batch(key, now_s)

    def _new(self, duty: Duty, now_s: int) -> Checkpoint:
        if duty.follows is None:
            closed = now_s - now_s % LENGTH + LENGTH
            return Checkpoint(began=now_s, read=now_s, closed=closed)
        origin = self._stored.checkpoints[duty.name, duty.follows]
        closed = origin.read - origin.read % LENGTH
        return Checkpoint(began=origin.read + 1, read=origin.read, closed=closed, from_s=FOREVER)


class MovingWorld(World):
    def __init__(self) -> None:
        self.stored = Stored()
        super().__init__()

    def node(self, name: str) -> MovingNode:
        return MovingNode(name, self.reports, self.assignments, self.stored)

    def second(self) -> None:
        self.now_s += 1.0
        for node in self.nodes:
            if node not in self.frozen:
                node.beat(self.now_s)
                node.carry_out(self.now_s)
                assert isinstance(node, MovingNode)
                node.batches(int(self.now_s))
        for leader in self.leaders:
            if leader not in self.frozen:
                leader.step(self.now_s)

    def wish(self, request: Request) -> None:
        key = f"{REQUEST}{len(self.reports.records)}"
        body = to_json(Request, request)
        self.reports.append(Record(cluster=CLUSTER, key=key, epoch=1, writer="user", body=body))

    def assigned(self) -> dict[str, Assignment]:
        leader = next(leader for leader in self.leaders if leader.leads)
        return Draft(leader.assignments, CLUSTER, "test").queries

    def lost_or_doubled(self) -> Iterator[str]:
        for query in QUERIES:
            starts = sorted(start for name, start in self.stored.came if name == query)
            for start in range(starts[0], starts[-1] + 1, LENGTH):
                found = self.stored.came[query, start]
                if len(found) != 1:
                    yield f"{query}: window {start} came out of {found}"


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> MovingWorld:
    given = FLOW.model_dump(by_alias=True)
    given["streams"]["ticks"]["event_time"] = "event_time"
    for query in given["queries"].values():
        query |= {"sql": SQL, "sink": SINK}
    flow = type(FLOW).model_validate(given)
    monkeypatch.setattr(test_control_together, "FLOW", flow)
    return MovingWorld()


def elsewhere(world: MovingWorld, query: str) -> str:
    return next(n.name for n in world.nodes if n.name != world.assigned()[query].node)


def test_a_move_there_and_back_and_a_change(world: MovingWorld) -> None:
    world.run(20)
    for generation in (2, 3):
        world.wish(Request(kind="move", name="q0", value=elsewhere(world, "q0")))
        world.run(30)
        assert world.assigned()["q0"].generation == generation
    world.wish(Request(kind="change", name="q0", query={"sql": OTHER_SQL}))
    world.run(30)
    assert world.assigned()["q0"].query["sql"] == OTHER_SQL
    world.wish(Request(kind="back", name="q0"))
    world.run(30)
    assert (world.assigned()["q0"].query["sql"], world.assigned()["q0"].generation) == (SQL, 5)
    assert list(world.lost_or_doubled()) == []
    generations = [found for (name, _), found in sorted(world.stored.came.items()) if name == "q0"]
    assert {one for found in generations for one in found} == {1, 2, 3, 4, 5}


def test_what_moves_is_not_moved_or_changed_again_meanwhile(world: MovingWorld) -> None:
    world.run(20)
    there = elsewhere(world, "q0")
    world.ask(kind="move", name="q0", value=there)
    assert "moves or changes already" in world.ask(kind="move", name="q0", value=there)
    assert "never changed" in world.ask(kind="back", name="q1")


def test_a_cluster_that_ends_in_the_middle_of_a_move_goes_on_with_it(world: MovingWorld) -> None:
    for seconds in range(3, 12, 2):
        world.run(20)
        before = world.assigned()["q0"].generation
        world.wish(Request(kind="move", name="q0", value=elsewhere(world, "q0")))
        world.run(seconds)
        world.wish(Request(kind="end"))
        world.run(40)
        world.nodes = [world.node(node.name) for node in world.nodes]
        world.leaders = [Leader(f"{n}{seconds}", world.reports, world.assignments) for n in "xy"]
        world.run(60)
        assert world.assigned()["q0"].next is None
        assert world.assigned()["q0"].generation >= before
    assert list(world.lost_or_doubled()) == []


@pytest.mark.parametrize("seed", range(5))
def test_whatever_freezes_or_dies_every_window_comes_out_once(
    world: MovingWorld, seed: int
) -> None:
    chance = random.Random(seed)
    world.run(20)
    for _ in range(25):
        match chance.randrange(6):
            case 0:
                world.frozen.add(chance.choice([*world.nodes, *world.leaders]))
            case 1:
                world.frozen.clear()
            case 2 | 3:
                there = chance.choice(world.nodes).name
                world.wish(Request(kind="move", name=chance.choice(QUERIES), value=there))
            case 4:
                lost = chance.randrange(len(world.nodes))
                world.nodes[lost] = world.node(world.nodes[lost].name)  # killed, started anew
            case 5:
                lost = chance.randrange(2)
                name = f"leader {chance.random()}"
                world.leaders[lost] = Leader(name, world.reports, world.assignments)
        world.run(chance.choice([1, 2, 3, 12, 30]))
    world.frozen.clear()
    world.run(120)
    assert list(world.lost_or_doubled()) == []
    for query in QUERIES:
        given = world.assigned()[query]
        assert (given.state, given.next, given.to) == ("runs", None, None), given
        newest = max(start for name, start in world.stored.came if name == query)
        assert newest > world.now_s - 10
