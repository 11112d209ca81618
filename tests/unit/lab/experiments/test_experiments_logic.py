"""What the checks are made of, on numbers that are known."""

from dataclasses import replace

import numpy as np
import pytest

from spillway.load import laws
from spillway_lab.experiments import managers
from spillway_lab.experiments.ctrl import identification, longterm
from spillway_lab.experiments.ctrl.setting import BASELINE_NOTE, Spec, run
from spillway_lab.experiments.managers import Score, best_law, best_paper_law
from spillway_lab.experiments.outcomes import Outcome, numbers, ratio
from spillway_lab.experiments.pham import environment, worst
from spillway_lab.experiments.pham.setting import spark_spec
from spillway_lab.experiments.pool import run_all
from spillway_lab.experiments.report import Setup
from spillway_lab.experiments.traces import shared_folder, web_trace


def outcome(delay_s: list[float], **changes: object) -> Outcome:
    """A run with these period means, one a second."""
    delays = np.array(delay_s)
    flat = np.ones(len(delays))
    plain = Outcome(
        accumulated_violation_s=0.0,
        delayed_tuples=0,
        max_overshoot_s=0.0,
        loss_ratio=0.3,
        mean_delay_s=1.0,
        mean_violation_s=0.0,
        completed_tuples=100,
        period_s=1.0,
        time_s=np.arange(1.0, len(delays) + 1.0),
        delay_s=delays,
        delay_by_arrival_s=delays,
        keep_fraction=flat,
        headroom=flat,
        offered_per_s=100.0 * flat,
        queued_tuples=flat,
        cost_s=0.005 * flat,
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


def square(value: int) -> int:
    return value * value


def test_a_pool_gives_the_same_results_in_the_same_order_as_one_process() -> None:
    assert run_all(square, range(5), workers=1) == run_all(square, range(5), workers=2)


def test_a_run_depends_on_its_spec_alone() -> None:
    spec = Spec(law="ctrl", duration_s=15.0, seed=4)
    assert run(spec).summary() == run(spec).summary()


def test_checks_do_not_hold_when_baseline_violates_less_than_ctrl() -> None:
    runs = {
        "ctrl": outcome([2.0], accumulated_violation_s=100.0),
        "baseline": outcome([2.0], accumulated_violation_s=60.0),
        "aurora": outcome([2.0], accumulated_violation_s=900.0),
    }
    checks = {check.name: check for check in longterm._longterm_checks("web", runs)}
    baseline = checks["web: BASELINE accumulates many times CTRL's delay violations"]
    aurora = checks["web: AURORA accumulates many times CTRL's delay violations"]
    assert not baseline.holds
    assert baseline.remark == BASELINE_NOTE
    assert aurora.holds
    assert aurora.here == "9.00 times"


def test_the_model_of_equation_2_recovers_the_headroom_it_was_made_with() -> None:
    queue = np.arange(0.0, 500.0, 5.0)
    before = np.concatenate(([0.0], queue[:-1]))
    made = outcome(
        (0.005 / 0.93 * (before + 1.0)).tolist(), queued_tuples=queue, cost_s=0.005 + 0 * queue
    )
    errors = {h: identification.error_s(made, h) for h in identification.HEADROOMS}
    assert min(errors, key=lambda h: errors[h]) == 0.93


def test_returning_to_the_target_is_judged_on_the_last_half() -> None:
    back = outcome([2.0] * 10 + [9.0] * 10 + [2.0] * 20)
    lost = outcome([2.0] * 20 + [4.0] * 20)
    runs = {"ctrl": lost, "seamless": back, "aloma": back}
    after = {law: environment._settled_s(o) for law, o in runs.items()}
    assert after == {"ctrl": 4.0, "seamless": 2.0, "aloma": 2.0}
    checks = environment._environment_checks(runs, after, "sim")
    assert [check.holds for check in checks[:3]] == [True, True, True]
    after["seamless"] = 3.0
    assert not environment._environment_checks(runs, after, "sim")[1].holds
    after["ctrl"] = 2.0
    on_spark = environment._environment_checks(runs, after, "spark")[0]
    assert on_spark.remark == environment.COST_HOLDS_THE_JOB
    assert environment._environment_checks(runs, after, "sim")[0].remark == ""


def test_a_level_without_any_output_is_not_held() -> None:
    held = worst.last_held_per_s(outcome([1.0] * 50 + [float("nan")] * 40))
    assert held == worst.FIRST_PER_S + worst.RISE_PER_S


def score(late: int, loss: float) -> Score:
    return Score(
        accumulated_violation_s=0.0,
        delayed_tuples=late,
        max_overshoot_s=0.0,
        loss_ratio=loss,
        mean_delay_s=1.0,
        p95_delay_s=1.0,
    )


def test_the_best_law_may_not_lose_more_than_the_best_paper_law() -> None:
    by_law = {law: score(1000, 0.4) for law in laws.LAWS}
    by_law |= {"ctrl": score(100, 0.5), "pid": score(0, 0.9), "predictive": score(10, 0.45)}
    assert best_paper_law(by_law) == "ctrl"
    assert best_law(by_law) == "predictive"
    assert managers._versus("x", "ctrl", by_law["ctrl"], by_law["predictive"]).holds
    greedy = managers._versus("x", "ctrl", by_law["ctrl"], by_law["pid"])
    assert not greedy.holds
    assert "+40.0 points" in greedy.note


def test_json_numbers_have_no_nan_and_ratios_no_infinity() -> None:
    assert numbers([1.23456, float("nan")], 2) == [1.23, None]
    assert ratio(1.0, 0.0) == 1e9
    assert ratio(0.0, 0.0) == 1.0


def test_without_real_traces_the_web_load_is_generated(
    monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    monkeypatch.setenv("SPILLWAY_SHARED", str(tmp_path))
    trace = web_trace(1, 20.0, 200.0)
    assert "generated" in trace.origin
    assert len(trace.times_s) == pytest.approx(4000, rel=0.1)


def test_the_seed_picks_another_stretch_of_the_real_trace() -> None:
    folder = shared_folder()
    if folder is None or not (folder / "traces" / "bcaug89_ts_us.npy").is_file():
        pytest.skip("the Bellcore trace is not there")
    one, other = web_trace(1, 20.0, 200.0), web_trace(2, 20.0, 200.0)
    assert "Bellcore" in one.origin
    assert len(one.times_s) == len(other.times_s) == 4000
    assert not np.array_equal(one.times_s, other.times_s)


def test_a_paper_s_load_on_spark_is_the_same_multiple_of_the_capacity_every_second() -> None:
    spec = spark_spec(environment._spec("aloma", Setup(), 40.0))
    assert len(spec.offered) == 40
    assert np.mean(spec.offered[:10]) == pytest.approx(200 / 208, rel=0.05)
    assert np.mean(spec.offered[11:]) == pytest.approx(350 / 208, rel=0.05)
    assert spec.background == ((10.0, environment.JOB_SHARE),)
