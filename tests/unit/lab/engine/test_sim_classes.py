"""Several classes on one engine, and a scheduler that knows them."""

from collections.abc import Sequence

import numpy as np
import pytest

from spillway.errors import SpillwayError
from spillway.load.laws import make
from spillway.model import Target
from spillway_lab.engine.engine import NetworkPlant
from spillway_lab.engine.network import Network, Operator, Stream, chain
from spillway_lab.engine.run import simulate, simulate_classes
from spillway_lab.engine.scheduling import RoundRobin, Turn
from spillway_lab.engine.settings import Engine


class ClassShares(RoundRobin):
    """Next is the class that has had the least of its share; inside a class, in turn."""

    def __init__(self, shares: dict[str, float]) -> None:
        super().__init__()
        self._shares = shares
        self._spent_s = dict.fromkeys(shares, 0.0)

    def plan(self, network: Network, batch_tuples: int) -> Sequence[Turn]:
        self._class_of = [operator.class_name for operator in network.operators]
        self._bits = {
            name: sum(1 << i for i, own in enumerate(self._class_of) if own == name)
            for name in self._shares
        }
        return super().plan(network, batch_tuples)

    def pick(self, ready: int) -> int:
        waiting = [name for name in self._shares if ready & self._bits[name]]
        name = min(waiting, key=lambda n: self._spent_s[n] / self._shares[n])
        return super().pick(ready & self._bits[name])

    def charge(self, bit: int, spent_s: float) -> None:
        self._spent_s[self._class_of[bit]] += spent_s


def two_classes() -> Network:
    return Network(
        operators=(
            *chain([2e-3] * 3, stream="a", prefix="a", class_name="gold"),
            *chain([2e-3] * 3, stream="b", prefix="b", class_name="bronze"),
        ),
        streams=(Stream(name="a", class_name="gold"), Stream(name="b", class_name="bronze")),
    )


def plant(engine: Engine | None = None) -> NetworkPlant:
    times_s = np.arange(0.0, 60.0, 1.0 / 150.0)  # 0.9 of the machine for each class
    targets = {"gold": Target(delay_s=1.0), "bronze": Target(delay_s=2.0)}
    return NetworkPlant(two_classes(), {"a": times_s, "b": times_s}, target=targets, engine=engine)


def test_each_class_has_its_own_target_and_its_own_load_manager() -> None:
    managers = {name: make("seamless", headroom=0.5) for name in ("gold", "bronze")}
    runs = simulate_classes(plant(), managers, 60.0, 0.5)
    assert np.nanmean(runs["gold"].delay_s[60:]) == pytest.approx(1.0, rel=0.25)
    assert np.nanmean(runs["bronze"].delay_s[60:]) == pytest.approx(2.0, rel=0.25)
    assert all(found.totals.balanced for found in runs.values())


def test_a_scheduler_gives_classes_their_shares() -> None:
    managers = {name: make("none") for name in ("gold", "bronze")}
    engine = Engine(scheduler=lambda: ClassShares({"gold": 3.0, "bronze": 1.0}))
    runs = simulate_classes(plant(engine), managers, 60.0, 0.5)
    kept = {name: found.completed[60:].sum() for name, found in runs.items()}
    assert kept["gold"] / kept["bronze"] == pytest.approx(3.0, rel=0.02)


def test_a_class_without_a_load_manager_or_a_target_is_refused() -> None:
    with pytest.raises(SpillwayError, match="class 'bronze' has no load manager"):
        simulate_classes(plant(), {"gold": make("none")}, 1.0, 0.5)
    with pytest.raises(SpillwayError, match="give one for each"):
        simulate(plant(), make("none"), 1.0, 0.5)
    with pytest.raises(SpillwayError, match="class 'bronze' has no delay target"):
        NetworkPlant(two_classes(), {}, target={"gold": Target(delay_s=1.0)})


def test_a_class_sheds_what_another_class_hands_to_it() -> None:
    """Thesis 3.2.2: with a load manager of its own the low class no longer blocks the high one."""
    shared = Operator(name="shared", cost_s=1e-4, class_name="one")
    high = Operator(name="high", cost_s=1e-4, inputs=("shared",), class_name="one")
    low = Operator(name="low", cost_s=2e-2, inputs=("shared",), class_name="three")
    network = Network(operators=(shared, high, low), streams=(Stream(class_name="one"),))
    targets = {"one": Target(delay_s=0.3), "three": Target(delay_s=0.5)}
    engine = Engine(queue_tuples=60, batch_tuples=1, scheduler="highest-rate")
    times_s = np.arange(0.0, 60.0, 0.01)
    mean_s, lost = {}, {}
    for law in ("none", "seamless"):
        plant = NetworkPlant(network, times_s, target=targets, engine=engine, delay="output")
        managers = {"one": make("none"), "three": make(law)}
        runs = simulate_classes(plant, managers, 60.0, 0.25)
        mean_s[law], lost[law] = runs["one"].mean_delay_s, runs["three"].loss_ratio
        assert runs["one"].loss_ratio == 0.0
        assert runs["one"].totals.balanced
    assert mean_s["none"] > 5.0
    assert mean_s["seamless"] < 0.1
    assert lost["seamless"] == pytest.approx(0.5, abs=0.05)  # 50 of 100 tuples/s fit
