from collections import defaultdict

import pytest

from spillway.classes.scheduler import ClassScheduler

QUOTAS = {"one": 0.6, "two": 0.3, "three": 0.1}


def run(
    scheduler: ClassScheduler, ready: list[str], costs: dict[str, float], units: int
) -> dict[str, float]:
    used_s: dict[str, float] = defaultdict(float)
    for _ in range(units):
        name = scheduler.next(ready)
        assert name is not None
        scheduler.charge(name, costs[name])
        used_s[name] += costs[name]
    return used_s


def test_busy_classes_get_time_in_proportion_to_their_quotas() -> None:
    costs = {"one": 0.05, "two": 0.2, "three": 0.11}
    used_s = run(ClassScheduler(QUOTAS), list(QUOTAS), costs, 20_000)
    total_s = sum(used_s.values())
    for name, quota in QUOTAS.items():
        assert used_s[name] / total_s == pytest.approx(quota, abs=0.01)


def test_no_time_is_lost_while_a_class_is_ready() -> None:
    scheduler = ClassScheduler(QUOTAS)
    used_s = run(scheduler, ["three"], {"three": 1.0}, 100)
    assert used_s["three"] == 100.0


def test_an_idle_class_cannot_save_up_time() -> None:
    scheduler = ClassScheduler(QUOTAS)
    costs = dict.fromkeys(QUOTAS, 0.1)
    run(scheduler, ["three"], costs, 1_000)
    used_s = run(scheduler, ["one", "three"], costs, 700)
    assert used_s["three"] > 0.0
    assert used_s["one"] / sum(used_s.values()) == pytest.approx(6 / 7, abs=0.02)


def test_a_long_unit_of_work_is_paid_back_later() -> None:
    scheduler = ClassScheduler(QUOTAS)
    scheduler.charge("three", 10.0)
    used_s = run(scheduler, ["one", "three"], dict.fromkeys(QUOTAS, 0.1), 500)
    assert used_s["three"] == 0.0


def test_new_quotas_count_from_the_next_round_on() -> None:
    scheduler = ClassScheduler(QUOTAS)
    costs = dict.fromkeys(QUOTAS, 0.1)
    run(scheduler, list(QUOTAS), costs, 100)
    scheduler.set_quotas({"one": 0.1, "two": 0.1, "three": 0.8})
    used_s = run(scheduler, list(QUOTAS), costs, 10_000)
    assert used_s["three"] / sum(used_s.values()) == pytest.approx(0.8, abs=0.01)


def test_nobody_ready_means_nobody_runs_and_a_zero_quota_still_uses_an_idle_machine() -> None:
    scheduler = ClassScheduler({"one": 1.0, "two": 0.0})
    assert scheduler.next([]) is None
    assert scheduler.next(["two"]) == "two"


def test_an_account_that_rounding_leaves_at_zero_is_paid_once_more() -> None:
    scheduler = ClassScheduler({"a": 0.25}, round_s=0.02)
    for _ in range(5):
        assert scheduler.next(["a"]) == "a"
        scheduler.charge("a", 0.02)  # four rounds of 0.005 s bring it back to exactly zero
