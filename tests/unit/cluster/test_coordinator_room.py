"""What is counted while a decision is made, against the cluster as it is after it."""

from dataclasses import replace

import numpy as np
import pytest
from paper_cluster import Cluster

from spillway.cluster.coordinator.directive import CoordinatorSettings
from spillway.cluster.coordinator.memory import Memory
from spillway.cluster.coordinator.recent import BRIEF_S, PARTS, Recent
from spillway.cluster.coordinator.room import Room
from spillway.cluster.views import Resources

NODES = ("a", "b", "c")
SEEDS = range(25)


def drawn(seed: int) -> Cluster:
    """Queries of one operator each, of all sizes, with memory and network of their own."""
    rng, cluster = np.random.default_rng(seed), Cluster(*NODES)
    for number in range(8):
        name, cores = f"q{number}", float(rng.uniform(0.05, 0.4))
        cluster.add(name, str(rng.choice(NODES)), cores, priority=int(rng.choice([1, 3, 6])))
        at, op = cluster.operators[f"{name}.op"]
        use = Resources(
            cpu_cores=cores,
            memory_mb=float(rng.uniform(10, 200)),
            network_mb_per_s=float(rng.uniform(1, 20)),
        )
        cluster.operators[f"{name}.op"] = at, replace(op, use=use)
    return cluster


def room_of(cluster: Cluster) -> Room:
    return Room(cluster.view(), Memory(CoordinatorSettings()))


def figures(room: Room) -> dict[str, np.ndarray]:
    levels = {f"at least {p}": cores for p, cores in room._at_least.items()}
    fixed = {"memory": room._memory_left, "network": room._network_left, "now": room.use[0]}
    return {**fixed, **levels}


def assert_alike(one: Room, other: Room) -> None:
    for what, values in figures(one).items():
        np.testing.assert_allclose(values, figures(other)[what], atol=1e-9, err_msg=what)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_move_that_is_counted_looks_like_the_cluster_after_it(seed: int) -> None:
    rng, cluster = np.random.default_rng(100 + seed), drawn(seed)
    room = room_of(cluster)
    for query in rng.choice(list(cluster.queries), 3, replace=False):
        source, op = cluster.operators[f"{query}.op"]
        to = str(rng.choice([node for node in NODES if node != source]))
        room.take(cluster.queries[query], source, to)
        cluster.operators[f"{query}.op"] = to, op
    assert_alike(room, room_of(cluster))
    for node in NODES:
        assert room.load(node) == pytest.approx(room.loads[node])


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_taken_back_was_never_taken(seed: int) -> None:
    cluster = drawn(seed)
    room, untouched = room_of(cluster), room_of(cluster)
    taken = [
        room.take(cluster.queries[query], cluster.operators[f"{query}.op"][0], to)
        for query, to in zip(("q0", "q1", "q2"), ("a", "", "c"), strict=True)
    ]
    for one in reversed(taken):
        room.take_back(one)
    assert_alike(room, untouched)


def test_a_shared_part_stays_for_the_others_and_joins_its_like() -> None:
    cluster = Cluster("a", "b").add("q1", "a", 0.2).add("q2", "a", 0.3).add("q3", "b", 0.1)
    cluster.share("parse", "a", 0.4, "q1", "q2")
    room = room_of(cluster)
    q1, q2 = cluster.queries["q1"], cluster.queries["q2"]
    assert room.relief_cores(q1, "a") == pytest.approx(0.2)
    assert room.whole_cores(q1, "a") == pytest.approx(0.2 + 0.6), "it parses as q2 asks"
    assert [op.name for op in room.shared_parts(q1, "a")] == ["parse"]
    before = room.load("a")
    first = room.take(q1, "a", "b")
    assert room.load("a") == pytest.approx(before - 0.2)
    assert room.load("b") == pytest.approx(0.1 + 0.8), "it is parsed there as well"
    assert room.relief_cores(q2, "a") == pytest.approx(0.9), "nobody else needs it now"
    assert room.shared_parts(q2, "a") == []
    second = room.take(q2, "a", "b")
    assert room.load("a") == pytest.approx(0.0)
    assert room.load("b") == pytest.approx(0.1 + 0.8 + 0.3), "once for both"
    room.take_back(second)
    room.take_back(first)
    assert room.relief_cores(q1, "a") == pytest.approx(0.2)
    assert room.load("b") == pytest.approx(0.1)


def test_the_best_place_is_the_fullest_that_still_has_room() -> None:
    cluster = Cluster("a", "b", "c", "d").add("q", "a", 0.3).add("x", "b", 0.3).add("y", "c", 0.4)
    cluster.add("z", "d", 0.6)
    room = room_of(cluster)
    nowhere = room.closed(())
    place = room.best_place(cluster.queries["q"], "a", nowhere, 0.75)
    assert place is not None
    assert place.node == "c", "d would be above 0.75, b is emptier"
    closed = room.best_place(cluster.queries["q"], "a", room.closed(("c",)), 0.75)
    assert closed is not None
    assert closed.node == "b"
    assert room.best_place(cluster.queries["q"], "a", room.closed(("b", "c")), 0.75) is None
    assert room.closed((), above=0.5).tolist() == [False, False, False, True]


@pytest.mark.parametrize("what", ["memory_mb", "network_mb_per_s"])
def test_a_place_needs_memory_and_network_too(what: str) -> None:
    cluster = Cluster("a", "b").add("q", "a", 0.1).add("x", "b", 0.1)
    for name, amount in (("q", 60.0), ("x", 50.0)):
        at, op = cluster.operators[f"{name}.op"]
        full = {"memory_mb": 1000.0, "network_mb_per_s": 100.0}[what] * amount / 100.0
        cluster.operators[f"{name}.op"] = at, replace(op, use=replace(op.use, **{what: full}))
    room = room_of(cluster)
    assert room.best_place(cluster.queries["q"], "a", room.closed(()), 0.9) is None
    del cluster.operators["x.op"], cluster.queries["x"]
    room = room_of(cluster)
    assert room.best_place(cluster.queries["q"], "a", room.closed(()), 0.9) is not None


@pytest.mark.parametrize("span_s", [60.0, 7200.0])
@pytest.mark.parametrize("seed", range(5))
def test_what_was_asked_lately_is_bounded_by_what_was_asked_and_forgets(
    seed: int, span_s: float
) -> None:
    """Every row lies between the least and the most of its span; a plateau that lasts is there."""
    rng, recent = np.random.default_rng(seed), Recent()
    step_s = span_s / 200.0
    seen: list[tuple[float, float]] = []
    for number in range(800):
        time_s = number * step_s
        cores = 3.0 if 200 <= number < 280 else float(rng.uniform(0.5, 1.0))
        seen.append((time_s, cores))
        rows = recent.add(time_s, ["x"], np.array([cores]), span_s)[:, 0]
        assert rows[0] == cores
        lately = [c for at, c in seen if time_s - at <= span_s * (1.0 + 2.0 / PARTS) + BRIEF_S]
        assert min(lately) - 1e-9 <= rows.min()
        assert rows.max() <= max(lately) + 1e-9
        if 280 <= number < 380:
            assert rows.max() == pytest.approx(3.0), "the plateau is remembered as it was"
    assert rows.max() < 1.0
    assert len(rows) <= 2 * PARTS + 4


def test_a_new_operator_has_asked_for_what_it_asks_now() -> None:
    recent = Recent()
    for number in range(100):
        recent.add(float(number), ["x"], np.array([2.0]), 60.0)
    rows = recent.add(100.0, ["y", "x"], np.array([0.5, 2.0]), 60.0)
    assert rows[:, 0] == pytest.approx(np.full(len(rows), 0.5))
    assert rows[:, 1] == pytest.approx(np.full(len(rows), 2.0))
    rows = recent.add(101.0, ["y"], np.array([0.5]), 60.0)
    assert rows[:, 0] == pytest.approx(np.full(len(rows), 0.5)), "what has left is forgotten"
