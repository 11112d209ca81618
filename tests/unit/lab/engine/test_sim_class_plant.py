"""Service classes on the operator engine: quotas, redistribution, sharing, parts."""

import numpy as np
import pytest

from spillway.classes.capacity import Policy
from spillway.classes.dilos import Dilos
from spillway.classes.parts import spare_shared
from spillway.classes.policies import fixed, make_policy
from spillway.errors import SpillwayError
from spillway.load.laws import make
from spillway.model import Target
from spillway_lab.engine.class_networks import CLASSES, STREAMS, qn_a, qn_b
from spillway_lab.engine.class_turns import ClassTurns
from spillway_lab.engine.classes import ClassPlant, ClassScheduling, ServiceClass
from spillway_lab.engine.common_manager import CommonManager, CommonPlant
from spillway_lab.engine.network import Network, Operator, Stream, chain, load_coefficient
from spillway_lab.engine.run import Run, simulate_classes
from spillway_lab.engine.settings import Engine

GOLD = ServiceClass(priority=3, target=Target(delay_s=1.0))
BRONZE = ServiceClass(priority=1, target=Target(delay_s=2.0))


def two_classes() -> Network:
    return Network(
        operators=(
            *chain([1e-3] * 3, stream="a", prefix="a", class_name="gold"),
            *chain([1e-3] * 3, stream="b", prefix="b", class_name="bronze"),
        ),
        streams=(Stream(name="a", class_name="gold"), Stream(name="b", class_name="bronze")),
    )


def every(rate_per_s: float, duration_s: float = 30.0) -> np.ndarray:
    return np.arange(0.0, duration_s, 1.0 / rate_per_s)


def plant(
    gold_per_s: float,
    bronze_per_s: float,
    policy: Policy | None = None,
    gold: ServiceClass = GOLD,
) -> ClassPlant:
    arrivals = {"a": every(gold_per_s), "b": every(bronze_per_s)}
    classes = {"gold": gold, "bronze": BRONZE}
    scheduling = ClassScheduling(policy=policy)
    return ClassPlant(two_classes(), arrivals, classes, scheduling=scheduling)


def run(of: ClassPlant, law: str = "predictive", duration_s: float = 30.0) -> dict[str, Run]:
    managers = {name: make(law) for name in of.classes}
    return simulate_classes(of, managers, duration_s, 0.25)


def test_overloaded_classes_get_the_machine_in_proportion_to_priority() -> None:
    runs = run(plant(1000.0, 1000.0))
    done = {name: found.completed[40:].sum() for name, found in runs.items()}
    assert done["gold"] / done["bronze"] == pytest.approx(3.0, rel=0.03)
    assert all(found.totals.balanced for found in runs.values())


def test_without_a_policy_quotas_stay_and_idle_time_is_still_used() -> None:
    made = plant(100.0, 400.0)  # gold needs 0.3 of its 0.75
    runs = run(made)
    assert made.quotas == {"gold": 0.75, "bronze": 0.25}
    assert runs["gold"].loss_ratio == 0.0
    kept_per_s = runs["bronze"].completed[40:].sum() / 20.0
    assert kept_per_s == pytest.approx((1.0 - 0.3) / 3e-3, rel=0.03)


def test_load_managers_are_told_their_share_and_its_changes() -> None:
    made = plant(100.0, 400.0, policy=Dilos())
    told = [made.classes[name].assigned_headroom for name in ("gold", "bronze")]
    assert told == [0.75, 0.25]
    run(made, duration_s=3.0)
    assert made.quotas["gold"] == pytest.approx(0.3 * 1.05 + 0.05 * 0.75, abs=0.02)
    assert sum(made.quotas.values()) == pytest.approx(1.0)
    assert made.classes["gold"].assigned_headroom == pytest.approx(made.quotas["gold"], rel=0.05)


def test_a_class_that_lends_nothing_keeps_its_share() -> None:
    thrifty = ServiceClass(priority=3, target=Target(delay_s=1.0), lend=0.0)
    made = plant(100.0, 400.0, policy=Dilos(), gold=thrifty)
    run(made, duration_s=6.0)
    assert made.quotas["gold"] == pytest.approx(0.75)


def test_a_lender_gets_its_share_back_when_its_load_rises() -> None:
    times_s = np.concatenate((every(50.0, 15.0), 15.0 + every(230.0, 15.0)))
    made = ClassPlant(
        two_classes(),
        {"a": times_s, "b": every(400.0)},
        {"gold": GOLD, "bronze": BRONZE},
        scheduling=ClassScheduling(policy=Dilos()),
    )
    run(made)
    lent = [quotas["gold"] for time_s, quotas in made.quota_history if 5.0 < time_s < 15.0]
    back = [quotas["gold"] for time_s, quotas in made.quota_history if time_s > 20.0]
    assert max(lent) < 0.3
    assert min(back) > 0.65


def test_one_common_load_manager_sheds_from_all_classes_alike() -> None:
    made = CommonPlant(
        two_classes(),
        {"a": every(100.0), "b": every(400.0)},
        {"gold": GOLD, "bronze": BRONZE},
    )
    shared = CommonManager(make("aloma", headroom=1.0))
    runs = simulate_classes(made, dict.fromkeys(made.classes, shared), 30.0, 0.25)
    assert runs["gold"].loss_ratio > 0.1
    assert runs["gold"].loss_ratio == pytest.approx(runs["bronze"].loss_ratio, abs=0.01)


def test_priority_and_policy_can_change_while_it_runs() -> None:
    made = plant(1000.0, 1000.0)
    made.set_priority("bronze", 3)
    made.set_policy(fixed)
    runs = run(made)
    done = [found.completed[40:].sum() for found in runs.values()]
    assert done[0] / done[1] == pytest.approx(1.0, rel=0.03)


@pytest.mark.parametrize("name", ["dilos", "absolute", "hybrid", "guaranteed", "none"])
def test_every_policy_keeps_the_whole_machine_in_use(name: str) -> None:
    made = plant(200.0, 400.0, policy=make_policy(name))
    runs = run(made)
    assert sum(made.quotas.values()) == pytest.approx(1.0)
    done_per_s = sum(found.completed[40:].sum() for found in runs.values()) / 20.0
    assert done_per_s == pytest.approx(1.0 / 3e-3, rel=0.05)


def test_inside_a_class_the_highest_rate_goes_first_and_nobody_starves() -> None:
    """The cheap query alone could fill the machine; the costly one still gets its turns."""
    cheap = Operator(name="cheap", cost_s=1e-3, inputs=("a",), class_name="gold")
    costly = Operator(name="costly", cost_s=4e-3, inputs=("b",), class_name="gold")
    network = Network(
        operators=(costly, cheap),
        streams=(Stream(name="a", class_name="gold"), Stream(name="b", class_name="gold")),
    )
    turns = ClassTurns({"gold": 1.0})
    order = [network.operators[index].name for index, _ in turns.plan(network, 50)]
    assert order == ["cheap", "costly"]
    made = ClassPlant(network, {"a": every(1500.0), "b": every(100.0)}, {"gold": GOLD})
    simulate_classes(made, {"gold": make("none")}, 30.0, 0.25)
    assert len(made.nodes[0].queue) < 100  # 100 tuples/s in, and a turn of up to 50 in each sweep


def test_shared_tuples_enter_the_lower_class_through_its_own_gate() -> None:
    built = qn_a(sharing=True)
    crossing = {(op.name, op.inputs) for op in built.network.operators if op.class_name == "3"}
    assert ("3.select-1.out", ("1.select-1",)) in crossing
    assert sum(s.class_name == "3" for s in built.network.streams) == STREAMS - 2


def test_qn_a_has_eleven_queries_and_thirteen_streams_a_class_and_qn_b_three_times_class_1() -> (
    None
):
    small, large = qn_a().network, qn_b().network
    for name in CLASSES:
        assert sum(s.class_name == name for s in small.streams) == 13
        outputs = [op for op in small.operators if not small.readers(op.name)]
        assert sum(op.class_name == name for op in outputs) == 11
    assert sum(s.class_name == "1" for s in large.streams) == 39
    first, second = small.streams[0].name, large.streams[0].name
    assert load_coefficient(small, first) == pytest.approx(load_coefficient(large, second))


def shared_segment() -> Network:
    """Gold reads two streams; bronze reads what gold makes of the first one."""
    operators = (
        Operator(name="segment", cost_s=1e-3, inputs=("a",), class_name="gold"),
        Operator(name="gold-end", cost_s=1e-3, inputs=("segment",), class_name="gold"),
        Operator(name="own", cost_s=2e-3, inputs=("b",), class_name="gold"),
        Operator(name="bronze-end", cost_s=1e-4, inputs=("segment",), class_name="bronze"),
    )
    streams = (Stream(name="a", class_name="gold"), Stream(name="b", class_name="gold"))
    return Network(operators=operators, streams=streams)


def test_a_class_that_sheds_in_parts_spares_what_lower_classes_read() -> None:
    shed, lost = {}, {}
    for parts in (False, True):
        made = ClassPlant(
            shared_segment(),
            {"a": every(300.0), "b": every(300.0)},
            {"gold": GOLD, "bronze": BRONZE},
            engine=Engine(),
            scheduling=ClassScheduling(spare_shared=parts),
        )
        runs = run(made)
        shed[parts] = {source.name: source.shed for source in made.inputs}
        lost[parts] = runs["gold"].loss_ratio
        assert all(found.totals.balanced for found in runs.values())
    assert shed[False]["a"] == pytest.approx(shed[False]["b"], rel=0.05)
    assert shed[True]["a"] < 0.1 * shed[True]["b"]
    assert lost[True] == pytest.approx(lost[False], abs=0.03)  # at the same price for gold


def test_parts_are_kept_at_the_same_total_load() -> None:
    own, shared = spare_shared(0.8, 2.0, 1.0)
    assert (own, shared) == (pytest.approx(0.7), 1.0)
    own, shared = spare_shared(0.2, 2.0, 1.0)
    assert own == pytest.approx(0.01)
    assert 2.0 * own + shared == pytest.approx(0.6)
    assert spare_shared(0.5, 1.0, 0.0) == (0.5, 0.5)


def test_a_class_without_priority_and_bad_numbers_are_refused() -> None:
    with pytest.raises(SpillwayError, match="class 'bronze' has no priority"):
        ClassPlant(two_classes(), {}, {"gold": GOLD})
    with pytest.raises(SpillwayError, match="priority of a class is 0"):
        ServiceClass(priority=0, target=Target(delay_s=1.0))
    with pytest.raises(SpillwayError, match="lends"):
        ServiceClass(priority=1, target=Target(delay_s=1.0), lend=1.5)
    with pytest.raises(SpillwayError, match="control periods of a cycle"):
        ClassScheduling(cycle_periods=0)
