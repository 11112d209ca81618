import pytest

from spillway.errors import SpillwayError
from spillway_lab.engine.network import (
    Network,
    Operator,
    Stream,
    chain,
    load_coefficient,
    load_coefficients,
)
from spillway_lab.engine.networks import SETTINGS, make_setting, qn_complex
from spillway_lab.engine.scheduling import (
    HighestRate,
    RoundRobin,
    WeightedRoundRobin,
    make_scheduler,
)
from spillway_lab.engine.steps import Steps


def test_the_load_coefficient_of_a_chain_weighs_costs_by_what_reaches_them() -> None:
    network = Network(operators=chain([1.0, 2.0, 4.0], [0.5, 0.25, 1.0]))
    assert load_coefficient(network, "1") == pytest.approx(1.0 + 0.5 * 2.0 + 0.125 * 4.0)
    assert load_coefficient(network, "input") == load_coefficient(network, "1")


def test_a_shared_operator_counts_once_and_each_branch_in_full() -> None:
    shared = Operator(name="shared", cost_s=1.0, selectivity=0.5)
    left = Operator(name="left", cost_s=2.0, inputs=("shared",))
    right = Operator(name="right", cost_s=3.0, inputs=("shared",))
    network = Network(operators=(shared, left, right))
    assert load_coefficients(network) == pytest.approx([1.0 + 0.5 * 5.0, 2.0, 3.0])


def test_what_another_class_does_with_a_tuple_is_not_this_classs_load() -> None:
    shared = Operator(name="shared", cost_s=1.0, class_name="gold")
    own = Operator(name="own", cost_s=2.0, inputs=("shared",), class_name="gold")
    other = Operator(name="other", cost_s=5.0, inputs=("shared",), class_name="bronze")
    network = Network(operators=(shared, own, other), streams=(Stream(class_name="gold"),))
    assert load_coefficient(network, "shared") == pytest.approx(3.0)
    assert load_coefficient(network, "other") == pytest.approx(5.0)


def test_qn_complex_has_1140_operators_and_one_tuple_gives_several_results() -> None:
    network = qn_complex()
    assert len(network.operators) == 1140
    outputs = [op for op in network.operators if not network.readers(op.name)]
    assert len(outputs) == 240


@pytest.mark.parametrize("name", ["ctrl", "qn-flat"])
def test_flat_networks_sustain_exactly_their_stated_rate(name: str) -> None:
    setting = make_setting(name)
    coefficient_s = load_coefficient(setting.network, "input")
    assert setting.engine.headroom / coefficient_s == pytest.approx(setting.rate_per_s)


@pytest.mark.parametrize("name", SETTINGS)
def test_every_named_network_can_be_made(name: str) -> None:
    assert make_setting(name).network.operators


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Operator(name="x", cost_s=-1.0), "cost of operator 'x' is -1.0"),
        (lambda: Operator(name="x", cost_s=1.0, selectivity=-0.1), "selectivity of operator 'x'"),
        (lambda: Network(operators=chain([1.0], stream="inptu")), "did you mean 'input'"),
        (lambda: Network(operators=()), "number of operators"),
        (lambda: Steps(times_s=[2.0, 1.0], values=[1.0, 1.0]), "goes back in time"),
        (lambda: Steps(times_s=[1.0], values=[-1.0]), "from zero up"),
        (lambda: make_scheduler("round-robbin"), "did you mean 'round-robin'"),
        (lambda: make_setting("qn-flatt"), "did you mean 'qn-flat'"),
    ],
)
def test_bad_descriptions_are_refused_in_one_line(make: object, says: str) -> None:
    with pytest.raises(SpillwayError) as caught:
        make()  # type: ignore[operator]
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_round_robin_takes_everyone_in_turn() -> None:
    scheduler = RoundRobin()
    ready = 0b10110
    assert [scheduler.pick(ready) for _ in range(5)] == [1, 2, 4, 1, 2]


def test_weights_make_turns_longer() -> None:
    network = Network(
        operators=(
            Operator(name="a", cost_s=1.0, weight=1.5),
            Operator(name="b", cost_s=1.0),
        )
    )
    assert WeightedRoundRobin().plan(network, 50) == [(0, 75), (1, 50)]


def test_highest_rate_prefers_what_gives_results_soonest() -> None:
    network = Network(
        operators=(
            Operator(name="slow", cost_s=1.0),
            Operator(name="fast", cost_s=0.1),
            Operator(name="selective", cost_s=0.1, selectivity=0.01),
        )
    )
    scheduler = HighestRate()
    assert [index for index, _ in scheduler.plan(network, 50)] == [1, 0, 2]
    assert scheduler.pick(0b110) == 1
