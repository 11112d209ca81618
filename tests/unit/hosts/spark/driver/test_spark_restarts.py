"""Restarts of queries that ended by themselves, and the line that says why they did."""

import pytest

from spillway.errors import SpillwayError
from spillway.hosts.spark.driver.supervision import (
    WAITS_S,
    WINDOW_S,
    Restarts,
    cause_of,
    is_ours,
    is_passing,
)
from spillway.hosts.spark.planner.around import require_leased

SPARK = """[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: Error
Traceback (most recent call last):
  File "worker.py", line 1, in main
    raise ValueError
spillway.errors.SpillwayError: column 'price' is int64: the log has double
\tat org.apache.spark.sql.execution.python.streaming.Runner(Runner.scala:1)
"""
EOF = """[STREAM_FAILED] Query terminated with exception: null
java.io.EOFException
\tat java.base/java.io.DataInputStream.readInt(DataInputStream.java:1)
"""


def test_a_first_end_is_followed_at_once_and_later_ones_after_longer_waits() -> None:
    restarts, now_s, waits = Restarts(), 0.0, []
    for _ in WAITS_S:
        ended_s = now_s
        while not restarts.due("q", now_s, "gone"):
            now_s += 0.5
        waits.append(now_s - ended_s)
    assert waits == list(WAITS_S)
    assert restarts.counts["q"] == len(WAITS_S)
    with pytest.raises(SpillwayError, match=r"'q' ended 6 times within 300 s .* error: gone"):
        restarts.due("q", now_s, "gone")


def test_ends_that_are_long_ago_do_not_count() -> None:
    restarts = Restarts()
    for number in range(20):
        assert restarts.due("q", number * WINDOW_S, "gone")


def test_queries_are_counted_apart() -> None:
    restarts = Restarts()
    assert restarts.due("a", 0.0, "gone")
    assert not restarts.due("a", 0.0, "gone")
    assert restarts.due("b", 0.0, "gone")


def test_the_cause_is_our_own_line_else_the_last_error() -> None:
    assert cause_of(SPARK) == "column 'price' is int64: the log has double"
    assert is_ours(SPARK)
    assert cause_of(EOF) == "java.io.EOFException"
    assert not is_ours(EOF)
    assert cause_of("ended without an error") == "ended without an error"
    assert cause_of("") == "no message"


def test_a_lease_that_ran_out_and_a_slow_start_are_of_the_moment_only() -> None:
    class Lapsed:
        holds = False

    with pytest.raises(SpillwayError) as refused:
        require_leased(Lapsed())  # type: ignore[arg-type]
    assert is_passing(f"spillway.errors.SpillwayError: {refused.value}")
    assert is_passing("Python worker failed to connect back.")
    assert not is_passing(SPARK)


def test_a_query_that_left_and_comes_again_has_never_ended() -> None:
    restarts, now_s = Restarts(), 0.0
    assert restarts.due("q", now_s, "gone")
    assert not restarts.due("q", now_s, "gone")
    restarts.forget("q")
    assert restarts.counts["q"] == 0
    assert restarts.due("q", now_s, "gone")
