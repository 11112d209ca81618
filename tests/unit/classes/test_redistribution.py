from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillway.classes.capacity import ClassUsage, original_shares
from spillway.classes.dilos import Dilos, new_headroom
from spillway.classes.policies import POLICIES, make_policy
from spillway.errors import SpillwayError

PRIORITIES = {"one": 6, "two": 3, "three": 1}


def usage(name: str, need: float, capacity: float | None = None, lend: float = 1.0) -> ClassUsage:
    original = original_shares(PRIORITIES)[name]
    capacity = original if capacity is None else capacity
    return ClassUsage(
        name=name,
        priority=PRIORITIES[name],
        capacity=capacity,
        original=original,
        usage=need / capacity,
        lend=lend,
    )


def test_the_thesis_example_drops_four_and_none_and_three_after_the_move() -> None:
    """Q1 runs 10 of 15 tuples/s and Q2 5, both are offered 9: drop 0 and 4, then 0 and 3."""
    q1 = ClassUsage(name="q1", priority=2, capacity=10, original=10, usage=9 / 10)
    q2 = ClassUsage(name="q2", priority=1, capacity=5, original=5, usage=9 / 5)
    assert q1.demand() == 0.0
    assert q2.demand() == pytest.approx(4.0)
    shares = Dilos(reserve=0.0)([q1, q2])
    assert shares == {"q1": pytest.approx(9.0), "q2": pytest.approx(6.0)}
    assert 9 - shares["q2"] == pytest.approx(3.0)


def test_a_lender_keeps_five_percent_of_its_original_share() -> None:
    shares = Dilos()([usage("one", 0.2), usage("two", 0.3), usage("three", 0.9)])
    assert shares["one"] == pytest.approx(0.2 + 0.05 * 0.6)
    assert shares["two"] == pytest.approx(0.3)
    assert shares["three"] == pytest.approx(0.1 + 0.37)


def test_the_higher_class_is_served_first() -> None:
    shares = Dilos()([usage("one", 0.5), usage("two", 0.5), usage("three", 0.5)])
    assert shares["two"] == pytest.approx(0.3 + 0.07)
    assert shares["three"] == pytest.approx(0.1)


def test_a_class_in_demand_regains_its_original_share_from_overloaded_borrowers() -> None:
    classes = [usage("one", 0.7, 0.3), usage("two", 0.4, 0.3), usage("three", 0.9, 0.4)]
    shares = Dilos()(classes)
    assert shares["one"] == pytest.approx(0.6)
    assert shares["three"] == pytest.approx(0.1)


def test_what_nobody_needs_returns_to_the_lender() -> None:
    classes = [usage("one", 0.1, 0.3), usage("two", 0.1, 0.3), usage("three", 0.05, 0.4)]
    shares = Dilos()(classes)
    assert shares["one"] == pytest.approx(0.6)
    assert shares["three"] == pytest.approx(0.1)


def test_what_returns_makes_nobody_larger_than_it_was() -> None:
    """The highest is served first, up to its own share and no further."""
    classes = [usage("one", 0.1, 0.5), usage("two", 0.1, 0.2), usage("three", 0.05, 0.3)]
    shares = Dilos()(classes)
    assert shares == pytest.approx({"one": 0.6, "two": 0.3, "three": 0.1})


@pytest.mark.parametrize("name", POLICIES)
def test_shares_may_be_of_any_total(name: str) -> None:
    """Tuples a second, as in the thesis, or parts of one machine."""
    q1 = ClassUsage(name="q1", priority=2, capacity=10, original=10, usage=0.3)
    q2 = ClassUsage(name="q2", priority=1, capacity=5, original=5, usage=0.6)
    shares = make_policy(name)([q1, q2])
    assert sum(shares.values()) == pytest.approx(15.0)
    parts = [replace(q, capacity=q.capacity / 15, original=q.original / 15) for q in (q1, q2)]
    assert {n: 15 * part for n, part in make_policy(name)(parts).items()} == pytest.approx(shares)


def test_a_class_lends_no_more_than_its_cap() -> None:
    shares = Dilos()([usage("one", 0.1, lend=0.25), usage("two", 0.3), usage("three", 0.9)])
    assert shares["one"] == pytest.approx(0.6 * 0.75)


def test_a_load_manager_is_told_its_headroom_in_proportion() -> None:
    assert new_headroom(0.58, old_quota=0.6, new_quota=0.3) == pytest.approx(0.29)


def test_absolute_priority_lets_the_first_class_take_everything() -> None:
    shares = make_policy("absolute")([usage("one", 1.5), usage("two", 0.3), usage("three", 0.1)])
    assert shares == {"one": pytest.approx(1.0), "two": 0.0, "three": 0.0}


def test_hybrid_shares_the_rest_in_proportion_to_priority() -> None:
    shares = make_policy("hybrid")([usage("one", 0.77), usage("two", 0.9), usage("three", 0.9)])
    assert shares["one"] == pytest.approx(0.8)
    assert shares["two"] == pytest.approx(0.15)
    assert shares["three"] == pytest.approx(0.05)


def test_guaranteed_never_lets_a_higher_class_lose_a_larger_fraction() -> None:
    """Class one is overloaded, class three is not: plain DILoS would let one lose alone."""
    shares = make_policy("guaranteed")([usage("one", 1.2), usage("two", 0.3), usage("three", 0.1)])
    losses = [1 - shares["one"] / 1.2, 1 - shares["two"] / 0.3, 1 - shares["three"] / 0.1]
    assert losses[0] <= losses[1] + 1e-9
    assert losses[1] <= losses[2] + 1e-9


def test_an_unknown_policy_is_named() -> None:
    with pytest.raises(SpillwayError, match="did you mean 'dilos'"):
        make_policy("dilso")


@st.composite
def machines(draw: st.DrawFn) -> list[ClassUsage]:
    size = draw(st.integers(1, 6))
    priorities = {f"c{i}": draw(st.integers(1, 10)) for i in range(size)}
    originals = original_shares(priorities)
    weights = [draw(st.floats(0.01, 1.0)) for _ in range(size)]
    return [
        ClassUsage(
            name=name,
            priority=priorities[name],
            capacity=weight / sum(weights),
            original=originals[name],
            usage=draw(st.floats(0.0, 5.0)),
            lend=draw(st.sampled_from([0.0, 0.5, 1.0])),
        )
        for name, weight in zip(priorities, weights, strict=True)
    ]


@pytest.mark.parametrize("name", POLICIES)
@given(classes=machines())
def test_capacity_is_neither_made_nor_lost(name: str, classes: list[ClassUsage]) -> None:
    shares = make_policy(name)(classes)
    assert sum(shares.values()) == pytest.approx(1.0)
    assert min(shares.values()) >= -1e-9


@given(machines())
def test_a_class_in_demand_is_satisfied_or_has_its_original_share(
    classes: list[ClassUsage],
) -> None:
    shares = Dilos()(classes)
    for c in classes:
        if c.demand() > 0.0:
            assert shares[c.name] >= min(c.need, c.original) - 1e-9


@given(machines())
def test_no_capacity_lies_idle_while_a_class_sheds(classes: list[ClassUsage]) -> None:
    shares = Dilos()(classes)
    short = [c for c in classes if shares[c.name] < c.need - 1e-9]
    spare = [c for c in classes if c.supply(0.05) > 0.0 and shares[c.name] > c.need + 1e-6]
    for lender in spare:
        kept = shares[lender.name] - lender.need
        capped = shares[lender.name] <= (1 - lender.lend) * lender.original + 1e-9
        assert not short or capped or kept <= 0.05 * lender.original + 1e-9


@given(machines())
def test_a_lender_is_never_pushed_below_its_own_need(classes: list[ClassUsage]) -> None:
    shares = Dilos()(classes)
    for c in classes:
        if c.usage <= 1.0 and c.capacity <= c.original:
            assert shares[c.name] >= c.need - 1e-9
