"""What the driver does about executors: it hears of batches, looks, asks, and says so."""

import time
from collections.abc import Callable, Collection
from typing import Any

import numpy as np
import pytest

from spillway.clock import ManualClock
from spillway.cluster.scaling.executors import Executor
from spillway.cluster.scaling.usage import Terms
from spillway.flow.scale import Scale
from spillway.hosts.spark.driver.progress import BatchProgress, DeliveredBatch
from spillway.hosts.spark.driver.scaling import Scaling
from spillway.model import Target

TERMS = {"q": Terms(class_name="gold", priority=1, target=Target.parse("5s"))}
PERIOD_S = 2.0


class Cluster:
    """Gives what is asked for at once."""

    def __init__(self) -> None:
        self.names = ["0"]
        self.task_s = 0.0
        self.fails = False
        self.requests: list[tuple[int, tuple[str, ...]]] = []

    def executors(self) -> tuple[Executor, ...]:
        if self.fails:
            raise ConnectionError("the JVM does not answer")
        return tuple(Executor(name=name, cores=1) for name in self.names)

    def resize(self, total: int, leaving: Collection[str]) -> None:
        self.requests.append((total, tuple(leaving)))
        self.names = [name for name in self.names if name not in leaving]
        while len(self.names) < total:
            self.names.append(str(max(map(int, self.names)) + 1))


class World:
    """A driver with one query, of a core and a half at its usual rate."""

    def __init__(self) -> None:
        self.cluster, self.clock, self.said = Cluster(), ManualClock(100.0), list[tuple[str, Any]]()
        scale = Scale(min=1, max=4, period=f"{PERIOD_S:g}s")
        note = lambda event, **values: self.said.append((event, values))  # noqa: E731
        self.scaling = Scaling(
            self.cluster, scale, lambda: TERMS, note, self.clock, shortest_target_s=5.0
        )

    def period(self, cores_of_work: float) -> None:
        """One batch, that takes all of it, and one look."""
        planned_s = self.clock.now_s()
        self.clock.advance(PERIOD_S)
        cores = max(1, len(self.cluster.names))
        done = min(cores_of_work, 0.9 * cores)
        self.cluster.task_s += done * PERIOD_S
        kept = round(done * PERIOD_S * 1000)
        progress = BatchProgress(
            query="q",
            run_id="r",
            batch_id=1,
            started_s=planned_s,
            duration_s=PERIOD_S,
            input_rows=kept,
            phases_s={},
            sources=(),
        )
        batch = DeliveredBatch(
            gate="q/s",
            seq=1,
            planned_s=planned_s,
            ended_s=self.clock.now_s(),
            duration_s=PERIOD_S,
            offered_tuples=round(cores_of_work * PERIOD_S * 1000),
            kept_tuples=kept,
            mean_delay_s=2.0,
            quantile_delays_s=np.zeros(4),
        )
        self.scaling.batch(progress, [batch])
        self.scaling.look()

    def events(self, kind: str) -> list[Any]:
        return [values for event, values in self.said if event == kind]


@pytest.fixture
def world() -> World:
    return World()


def test_it_asks_for_what_is_wanted_and_says_by_what_figures(world: World) -> None:
    for _ in range(8):
        world.period(2.0)
    ((total, leaving),) = world.cluster.requests
    assert (total, leaving) == (3, ())
    (said,) = world.events("executors")
    assert said["total"] == 3
    assert said["wanted_cores"]["q"] == pytest.approx(2.0, rel=0.2)
    assert said["core_us_per_tuple"]["q"] == pytest.approx(1000.0, rel=0.1)


def test_it_lets_go_what_is_too_much_but_never_the_last(world: World) -> None:
    world.cluster.names = ["0", "1", "2"]
    for _ in range(40):
        world.period(0.2)
    assert len(world.cluster.names) == 1
    assert all(total >= 1 for total, _ in world.cluster.requests)


def test_it_names_an_executor_that_is_lost_and_asks_for_its_place(world: World) -> None:
    world.cluster.names = ["0", "1"]
    world.scaling.fleet.begin(world.cluster.executors())
    world.period(1.5)
    world.cluster.names = ["0"]
    world.period(1.5)
    assert world.events("executors lost") == [{"names": ["1"]}]
    assert world.cluster.requests == [(2, ())]


def test_without_a_batch_nothing_is_known_and_nothing_asked_for(world: World) -> None:
    for _ in range(10):
        world.clock.advance(PERIOD_S)
        world.scaling.look()
    assert world.cluster.requests == []


def test_a_look_that_fails_is_said_and_not_the_last_one() -> None:
    world = World()
    quick = Scale(min=1, max=4, period="5ms")
    note = lambda event, **values: world.said.append((event, values))  # noqa: E731
    scaling = Scaling(world.cluster, quick, lambda: TERMS, note, world.clock, shortest_target_s=5.0)
    scaling.start()
    try:
        world.cluster.fails = True
        _until(lambda: world.events("failed"))
        world.cluster.fails = False
        world.cluster.names = []
        _until(lambda: world.events("executors lost"))
    finally:
        scaling.stop()


def _until(holds: Callable[[], object]) -> None:
    ends_s = time.monotonic() + 60.0
    while not holds():
        assert time.monotonic() < ends_s
        time.sleep(0.01)
