import pytest

from spillway.classes.balance import (
    ClassLoad,
    QueryLoad,
    balance,
    is_within_share,
    longest_interval_s,
    need,
)
from spillway.classes.dilos import Dilos
from spillway.model import Target

MEAN, P99 = Target(delay_s=2.0), Target(delay_s=2.0, statistic="p99")
LIGHT = QueryLoad(rate_per_s=1_000.0, fixed_s=0.2, cost_s=1e-6)


def service_class(
    name: str, quota: float, *, sheds: bool, gate: QueryLoad, target: Target = MEAN
) -> ClassLoad:
    return ClassLoad(
        name=name,
        priority=1,
        target=target,
        quota=quota,
        original=quota,
        sheds=sheds,
        gates=(gate,),
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
    assert need([LIGHT], MEAN) == pytest.approx(0.2 / interval_s + 0.001)


def test_an_idle_gate_needs_nothing() -> None:
    idle = QueryLoad(rate_per_s=0.0, fixed_s=0.2, cost_s=1e-6)
    assert need([idle], MEAN) == 0.0


def test_an_impossible_target_needs_batches_back_to_back() -> None:
    assert longest_interval_s(LIGHT, Target(delay_s=0.1)) == 0.0
    assert need([LIGHT], Target(delay_s=0.1)) == pytest.approx(1.001)


def test_nobody_is_slowed_while_nobody_sheds() -> None:
    light = service_class("light", 0.6, sheds=False, gate=LIGHT)
    other = service_class("other", 0.4, sheds=False, gate=LIGHT)
    decided = balance([light, other], Dilos(), machine=1.0)
    assert decided["light"].interval_s == 0.0


def test_a_light_class_is_slowed_and_lends_while_another_sheds() -> None:
    light = service_class("light", 0.6, sheds=False, gate=LIGHT)
    heavy_gate = QueryLoad(rate_per_s=1e6, fixed_s=0.2, cost_s=1e-6)
    heavy = service_class("heavy", 0.4, sheds=True, gate=heavy_gate)
    decided = balance([light, heavy], Dilos(), machine=1.0)
    assert decided["light"].interval_s == pytest.approx(longest_interval_s(LIGHT, MEAN))
    assert decided["heavy"].interval_s == 0.0
    assert decided["heavy"].quota > 0.8
    assert decided["light"].quota >= need([LIGHT], MEAN)
    assert "slowed" in decided["light"].reason
    assert sum(d.quota for d in decided.values()) == pytest.approx(1.0)


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
    gate = QueryLoad(
        rate_per_s=1e6, fixed_s=fixed_s, cost_s=tuples / 1e6, least_cost_s=tuples / 1e6
    )
    silver = service_class("silver", 0.75, sheds=False, gate=gate)
    assert is_within_share(silver, 1.0) is spared
    assert is_within_share(silver, 10.0)
