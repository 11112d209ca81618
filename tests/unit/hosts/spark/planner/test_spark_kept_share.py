import pytest
from spillway.hosts.spark.planner.kept_share import KeptShare


def test_gates_that_plan_at_different_moments_keep_the_same_in_the_long_run() -> None:
    shares, kept = KeptShare(), {"often": 0.0, "seldom": 0.0}
    shares.set(1.0, 0.0)
    for gate in kept:
        shares.since_last_batch(gate, 0.0)
    for second in range(1, 13):
        kept["often"] += shares.since_last_batch("often", float(second))
        if second % 3 == 0:
            kept["seldom"] += 3.0 * shares.since_last_batch("seldom", float(second))
        shares.set(0.2 if second % 3 == 0 else 0.8, float(second))
    assert kept["often"] == pytest.approx(kept["seldom"])


def test_the_first_batch_of_a_gate_gets_the_share_of_the_moment() -> None:
    shares = KeptShare()
    shares.set(0.5, 10.0)
    assert shares.since_last_batch("q/s", 12.0) == 0.5


def test_a_clock_that_stands_or_jumps_back_gives_the_share_of_the_moment() -> None:
    shares = KeptShare()
    shares.set(0.5, 10.0)
    shares.since_last_batch("q/s", 12.0)
    assert shares.since_last_batch("q/s", 12.0) == 0.5
    assert shares.since_last_batch("q/s", 3.0) == 0.5
