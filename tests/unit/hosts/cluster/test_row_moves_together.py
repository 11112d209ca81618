"""Moves of queries without state in virtual time, with leaders and nodes that freeze, die and come
back: every row comes out once and in order, and every move comes to an end.

A stream has one row a second. What a checkpoint holds outlives its node, as files do.
"""

import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import pytest
import test_control_together
from test_control_together import FLOW, LEASE_S, QUERIES, Leader
from test_moves_together import MovingWorld, elsewhere
from toys import MemoryLog, ToyNode

from spillway.handover import Positions, furthest
from spillway.hosts.cluster.duties import Duty
from spillway.hosts.cluster.messages import Reached, Request, Successor

SQL = "SELECT id FROM ticks"
OTHER_SQL = "SELECT id, id + 1 AS next FROM ticks"
SINK = {"type": "kafka", "brokers": "b:1", "topic": "t"}


@dataclass
class Checkpoint:
    """Durable. Rows before `stop` have been read; as long as it is silent none of them came out."""

    stop: int
    silent: bool = False

    @property
    def stands(self) -> Positions:
        return {"ticks": {0: self.stop}}


class Stored:
    def __init__(self) -> None:
        self.checkpoints: dict[tuple[str, int], Checkpoint] = {}
        self.came: dict[str, list[tuple[int, int]]] = defaultdict(list)  # row, generation

    def batch(self, key: tuple[str, int], now_s: int, until: Positions | None = None) -> None:
        at, (name, generation) = self.checkpoints[key], key
        end = now_s if until is None else min(now_s, until["ticks"][0])
        if not at.silent:
            self.came[name] += [(row, generation) for row in range(at.stop, end)]
        at.stop = max(at.stop, end)


class RowNode(ToyNode):
    """Runs batches of whatever it may run, once a second."""

    def __init__(
        self, name: str, reports: MemoryLog, assignments: MemoryLog, stored: Stored
    ) -> None:
        super().__init__(name, reports, assignments, LEASE_S)
        self._stored = stored
        self._until: dict[str, Positions] = {}

    def batches(self, now_s: int) -> None:
        self.reached = {run: at for run, at in self.reached.items() if run in self.busy}
        self._until = {run: at for run, at in self._until.items() if run in self.busy}
        if self.duties.order.state == "stops" and not self.busy:
            self.state = "ended"
        for run in list(self.busy):
            duty = self.duties.queries.get(run)
            if duty is not None and self.lease.holds(now_s):
                self._batch(run, duty, now_s)

    def _batch(self, run: str, duty: Duty, now_s: int) -> None:
        key, move = (duty.name, duty.generation), duty.move
        if key not in self._stored.checkpoints:
            self._stored.checkpoints[key] = self._new(duty, now_s)
        at = self._stored.checkpoints[key]
        if duty.from_at is not None and at.silent:
            self.reached.pop(run, None)
            if at.stop >= duty.from_at["ticks"][0]:
                at.silent = False
            self._stored.batch(key, now_s, duty.from_at if at.silent else None)
        elif move is not None and duty.follows is not None:
            self._follow(run, key, move, now_s)
        elif move is not None and move.state == "cuts":
            until = self._until.setdefault(run, furthest(at.stands, move.read_at or {}))
            self._stored.batch(key, now_s, until)
            done = at.stop >= until["ticks"][0]
            self.reached[run] = Reached(until_at=until, finished=done)
        else:
            self._stored.batch(key, now_s)

    def _follow(self, run: str, key: tuple[str, int], move: Successor, now_s: int) -> None:
        at = self._stored.checkpoints[key]
        if move.state == "cuts" or run in self.reached:
            return  # it stands still
        self._stored.batch(key, now_s)
        if at.stop >= now_s - 1:
            self.reached[run] = Reached(read_at=at.stands)

    def _new(self, duty: Duty, now_s: int) -> Checkpoint:
        if duty.follows is None:
            return Checkpoint(stop=now_s)
        return Checkpoint(stop=self._stored.checkpoints[duty.name, duty.follows].stop, silent=True)


class RowWorld(MovingWorld):
    def __init__(self) -> None:
        self.rows = Stored()
        super().__init__()

    def node(self, name: str) -> RowNode:  # type: ignore[override]
        return RowNode(name, self.reports, self.assignments, self.rows)

    def second(self) -> None:
        self.now_s += 1.0
        for node in self.nodes:
            if node not in self.frozen:
                node.beat(self.now_s)
                node.carry_out(self.now_s)
                assert isinstance(node, RowNode)
                node.batches(int(self.now_s))
        for leader in self.leaders:
            if leader not in self.frozen:
                leader.step(self.now_s)

    def lost_or_doubled(self) -> Iterator[str]:
        for query in QUERIES:
            rows = [row for row, _ in self.rows.came[query]]
            for row, following in pairwise(rows):
                if following != row + 1:
                    yield f"{query}: row {following} came behind {row}"


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> RowWorld:
    given = FLOW.model_dump(by_alias=True)
    for query in given["queries"].values():
        query |= {"sql": SQL, "sink": SINK}
    flow = type(FLOW).model_validate(given)
    monkeypatch.setattr(test_control_together, "FLOW", flow)
    return RowWorld()


def test_a_move_on_and_on_and_a_change_and_back(world: RowWorld) -> None:
    world.run(20)
    for generation in (2, 3, 4):
        world.wish(Request(kind="move", name="q0", value=elsewhere(world, "q0")))
        world.run(20)
        assert world.assigned()["q0"].generation == generation
        assert world.assigned()["q0"].came_by == "moved while it ran"
    world.wish(Request(kind="change", name="q0", query={"sql": OTHER_SQL}))
    world.run(20)
    assert world.assigned()["q0"].query["sql"] == OTHER_SQL
    world.wish(Request(kind="back", name="q0"))
    world.run(20)
    assert (world.assigned()["q0"].query["sql"], world.assigned()["q0"].generation) == (SQL, 6)
    assert list(world.lost_or_doubled()) == []
    assert {generation for _, generation in world.rows.came["q0"]} == {1, 2, 3, 4, 5, 6}


def test_a_cluster_that_ends_in_the_middle_of_a_move_goes_on_with_it(world: RowWorld) -> None:
    for seconds in range(2, 9):
        world.run(20)
        world.wish(Request(kind="move", name="q0", value=elsewhere(world, "q0")))
        world.run(seconds)
        world.wish(Request(kind="end"))
        world.run(40)
        world.nodes = [world.node(node.name) for node in world.nodes]
        world.leaders = [Leader(f"{n}{seconds}", world.reports, world.assignments) for n in "xy"]
        world.run(60)
        assert world.assigned()["q0"].next is None
    assert list(world.lost_or_doubled()) == []


@pytest.mark.parametrize("seed", range(8))
def test_whatever_freezes_or_dies_every_row_comes_out_once_and_in_order(
    world: RowWorld, seed: int
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
        assert world.rows.came[query][-1][0] > world.now_s - 10
