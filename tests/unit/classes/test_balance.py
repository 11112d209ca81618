from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from spillway.classes.balance import (
    LEAST_TURN,
    ClassLoad,
    QueryLoad,
    balance,
    is_within_share,
    longest_interval_s,
    need,
    turns,
)
from spillway.classes.dilos import Dilos
from spillway.model import Target

MEAN, P99 = Target(delay_s=2.0), Target(delay_s=2.0, statistic="p99")
LIGHT = QueryLoad(rate_per_s=1_000.0, fixed_s=0.2, cost_s=1e-6)


def service_class(
    name: str, quota: float, *, sheds: bool, query: QueryLoad, target: Target = MEAN
) -> ClassLoad:
    return ClassLoad(
        name=name,
        priority=1,
        target=target,
        quota=quota,
        original=quota,
        sheds=sheds,
        queries=(query,),
    )


@pytest.mark.parametrize(("target", "wait"), [(MEAN, 0.5), (P99, 0.99)])
def test_the_longest_interval_uses_up_the_slack_of_the_target(target: Target, wait: float) -> None:
    interval_s = longest_interval_s(LIGHT, target)
    batch_s = LIGHT.fixed_s + LIGHT.cost_s * LIGHT.rate_per_s * interval_s
    delay_s = wait * interval_s + batch_s
    assert delay_s < target.delay_s
    assert delay_s == pytest.approx((0.8 if target is MEAN else 0.5) * 2.0)


def test_a_percentile_target_is_slowed_less_than_a_mean() -> None:
    assert longest_interval_s(LIGHT, P99) < 0.5 * longest_interval_s(LIGHT, MEAN)


def test_need_is_the_fixed_price_once_per_interval_and_the_cost_of_every_tuple() -> None:
    interval_s = longest_interval_s(LIGHT, MEAN)
    assert need(LIGHT, MEAN) == pytest.approx(0.2 / interval_s + 0.001)


def test_an_idle_query_needs_nothing() -> None:
    idle = QueryLoad(rate_per_s=0.0, fixed_s=0.2, cost_s=1e-6)
    assert need(idle, MEAN) == 0.0


def test_an_impossible_target_needs_batches_back_to_back() -> None:
    assert longest_interval_s(LIGHT, Target(delay_s=0.1)) == 0.0
    assert need(LIGHT, Target(delay_s=0.1)) == pytest.approx(1.001)


def test_nobody_is_slowed_while_nobody_sheds() -> None:
    light = service_class("light", 0.6, sheds=False, query=LIGHT)
    other = service_class("other", 0.4, sheds=False, query=LIGHT)
    decided = balance([light, other], Dilos(), machine=1.0)
    assert decided["light"].interval_s == 0.0


def test_a_light_class_is_slowed_and_lends_while_another_sheds() -> None:
    light = service_class("light", 0.6, sheds=False, query=LIGHT)
    heavy_query = QueryLoad(rate_per_s=1e6, fixed_s=0.2, cost_s=1e-6)
    heavy = service_class("heavy", 0.4, sheds=True, query=heavy_query)
    decided = balance([light, heavy], Dilos(), machine=1.0)
    assert decided["light"].interval_s == pytest.approx(longest_interval_s(LIGHT, MEAN))
    assert decided["heavy"].interval_s == 0.0
    assert decided["heavy"].quota > 0.8
    assert decided["light"].quota >= need(LIGHT, MEAN)
    assert "slowed" in decided["light"].reason
    assert "lends: " in decided["light"].reason
    assert "gets: " in decided["heavy"].reason
    assert sum(d.quota for d in decided.values()) == pytest.approx(1.0)


def test_a_light_class_is_slowed_while_another_comes_late() -> None:
    """What comes late is no proof that something has to go: it must not first be shed for help."""
    light = service_class("light", 0.6, sheds=False, query=LIGHT)
    late = replace(service_class("late", 0.4, sheds=False, query=LIGHT), late=True)
    decided = balance([light, late], Dilos(), machine=1.0)
    assert decided["light"].interval_s == pytest.approx(longest_interval_s(LIGHT, MEAN))
    assert decided["late"].interval_s == 0.0
    hopeless = replace(late, target=Target(delay_s=0.1))
    assert balance([light, hopeless], Dilos(), machine=1.0)["light"].interval_s == 0.0


@pytest.mark.parametrize(
    ("tuples", "fixed_s", "spared"),
    [
        (0.45, 0.2, True),  # 0.6 of the share for tuples, 0.2 for the fixed price
        (0.45, 0.5, False),  # together more than the share
        (0.30, 1.5, True),  # the fixed price alone is more: shedding would not shorten it
        (0.80, 0.01, False),  # the tuples alone are more
    ],
)
def test_a_class_is_within_its_share_by_its_tuples_and_what_shedding_could_save(
    tuples: float, fixed_s: float, spared: bool
) -> None:
    query = QueryLoad(
        rate_per_s=1e6, fixed_s=fixed_s, cost_s=tuples / 1e6, least_cost_s=tuples / 1e6
    )
    silver = service_class("silver", 0.75, sheds=False, query=query)
    assert is_within_share(silver, 1.0) is spared
    assert is_within_share(silver, 10.0)


def test_who_has_nobody_below_is_not_spared() -> None:
    """Somebody must give way when all that is known is not so; among equals that is everybody."""
    gold, bronze = (
        replace(service_class(name, 0.5, sheds=False, query=LIGHT), priority=priority)
        for name, priority in (("gold", 3), ("bronze", 1))
    )
    decided = balance([gold, bronze], Dilos(), machine=1.0)
    assert decided["gold"].spared
    assert not decided["bronze"].spared
    equals = balance([gold, replace(bronze, priority=3)], Dilos(), machine=1.0)
    assert not any(one.spared for one in equals.values())


def test_a_query_needs_no_more_than_it_can_use() -> None:
    """One query runs one batch at a time: the cores beyond the first are nothing to it."""
    heavy = loaded(3.0)
    assert need(heavy, MEAN) == 1.0
    assert need(replace(heavy, at_most=2.0), MEAN) == 2.0
    [alone] = balance(
        [service_class("alone", 1.0, sheds=True, query=heavy)], Dilos(), machine=8.0
    ).values()
    assert "uses 12% of 100%" in alone.reason


def test_a_query_whose_tuples_fill_one_batch_after_the_other_is_beyond_any_share() -> None:
    fits, beyond = (
        QueryLoad(rate_per_s=1e6, fixed_s=0.01, cost_s=c, least_cost_s=c, at_most=1.0)
        for c in (0.9e-6, 1.0e-6)
    )
    assert is_within_share(service_class("gold", 0.75, sheds=False, query=fits), 100.0)
    assert not is_within_share(service_class("gold", 0.75, sheds=False, query=beyond), 100.0)


def test_a_query_that_its_batches_show_to_be_too_much_is_judged_by_its_gate() -> None:
    """Nothing is certain of what its tuples take, but its own batches have shown an overload."""
    light, heavy = (
        QueryLoad(rate_per_s=1e6, fixed_s=0.1, cost_s=c, at_most=1.0, overloaded=True)
        for c in (0.5e-6, 1.2e-6)
    )
    assert is_within_share(service_class("gold", 0.75, sheds=False, query=light), 4.0)
    assert not is_within_share(service_class("gold", 0.75, sheds=False, query=heavy), 4.0)
    doubtful = replace(heavy, overloaded=False)
    assert is_within_share(service_class("gold", 0.75, sheds=False, query=doubtful), 4.0)


def loaded(load: float, at_most: float = 1.0) -> QueryLoad:
    """A query that takes `load` batch-seconds per second, for tuples alone."""
    return QueryLoad(rate_per_s=1e6, fixed_s=0.0, cost_s=load / 1e6, at_most=at_most)


def test_nobody_is_held_back_while_all_needs_fit() -> None:
    assert turns({"a": loaded(0.5), "b": loaded(0.1)}, MEAN, 0.6) == {"a": 1.0, "b": 1.0}
    assert turns({}, MEAN, 0.0) == {}


def test_what_fits_is_what_queries_can_use_not_what_they_are_offered() -> None:
    assert turns({"a": loaded(5.0), "b": loaded(0.5)}, MEAN, 1.5) == {"a": 1.0, "b": 1.0}


def test_the_queries_of_a_class_lose_alike() -> None:
    found = turns({"a": loaded(0.9), "b": loaded(0.6), "c": loaded(0.3)}, MEAN, 0.6)
    assert found == pytest.approx({"a": 0.3, "b": 0.2, "c": 0.1})


def test_what_a_query_cannot_use_goes_to_the_others() -> None:
    """Evenly by load the first would get 1.8; it can use 1, and the others share what it leaves."""
    found = turns({"a": loaded(3.0), "b": loaded(0.8), "c": loaded(0.4)}, MEAN, 1.9)
    assert found == pytest.approx({"a": 1.0, "b": 0.6, "c": 0.3})


def test_whoever_asks_gets_a_batch_now_and_then() -> None:
    found = turns({"a": loaded(0.9), "idle": loaded(0.0)}, MEAN, 0.5)
    assert found == pytest.approx({"a": 0.5, "idle": LEAST_TURN})
    assert turns({"a": loaded(0.9)}, MEAN, 0.0) == {"a": LEAST_TURN}


LOADS = st.builds(loaded, st.just(0.0) | st.floats(0.05, 5.0), st.floats(0.2, 4.0))


@given(queries=st.lists(LOADS, min_size=1, max_size=6), capacity=st.floats(0.01, 8.0))
def test_a_capacity_is_used_up_and_whoever_can_use_more_keeps_the_same_part(
    queries: list[QueryLoad], capacity: float
) -> None:
    named = {str(i): query for i, query in enumerate(queries)}
    found = turns(named, MEAN, capacity)
    assert all(LEAST_TURN <= found[name] <= query.at_most for name, query in named.items())
    if sum(need(query, MEAN) for query in queries) <= capacity:
        assert found == {name: query.at_most for name, query in named.items()}
        return
    given_out = sum(found.values())
    assert capacity - 1e-9 <= given_out <= capacity + LEAST_TURN * len(queries) + 1e-9
    kept = {n: found[n] / (q.cost_s * q.rate_per_s) for n, q in named.items() if q.cost_s > 0.0}
    assume(all(found[name] > LEAST_TURN for name in kept))
    part = max(kept.values())
    for name, mine in kept.items():
        assert mine == pytest.approx(part) or found[name] == named[name].at_most


def test_the_fixed_price_counts_up_to_half_of_what_a_query_can_use() -> None:
    """Its batches have shown that something has to go; half a core of fixed price is no proof."""
    for rate_per_s, is_within in ((200_000.0, True), (260_000.0, False)):
        dear = QueryLoad(
            rate_per_s=rate_per_s, fixed_s=5.0, cost_s=1e-6, at_most=0.5, overloaded=True
        )
        light = service_class("gold", 0.9, sheds=False, query=dear)
        assert is_within_share(light, machine=2.0) is is_within
