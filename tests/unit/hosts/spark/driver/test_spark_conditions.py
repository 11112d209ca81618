from dataclasses import replace

from spillway.classes.balance import QueryLoad
from spillway.hosts.spark.driver.supervision import GIVES_WAY, NO_DATA, QUIET, condition_of
from spillway.model import Target

TARGET = Target.parse("p99 300ms")


def query(fixed_s: float) -> QueryLoad:
    return QueryLoad(rate_per_s=100.0, fixed_s=fixed_s, cost_s=1e-6)


def test_a_class_that_never_had_a_tuple_lends_its_share() -> None:
    assert condition_of(TARGET, [], None) == NO_DATA


def test_a_class_with_a_tuple_an_hour_is_called_quiet() -> None:
    assert condition_of(TARGET, [query(0.1)], 1800.0) == QUIET


def test_an_impossible_target_is_named_with_what_a_batch_takes() -> None:
    said = condition_of(TARGET, [query(0.1), query(0.45)], 0.5)
    assert said is not None
    assert "p99 0.3s" in said
    assert "0.45 s" in said


def test_nothing_is_said_when_all_is_as_usual() -> None:
    assert condition_of(TARGET, [query(0.1)], 0.5) is None


def test_no_tuple_is_called_missing_before_the_gates_were_asked_or_while_tuples_wait() -> None:
    assert condition_of(TARGET, [], None, waiting_tuples=None) is None
    assert condition_of(TARGET, [], None, waiting_tuples=117_000_000) is None
    assert condition_of(TARGET, [], None, waiting_tuples=0, busy=True) is None


def test_a_class_whose_batch_takes_long_is_not_called_quiet() -> None:
    assert condition_of(TARGET, [query(0.1)], 60.0, waiting_tuples=0, busy=True) is None


def test_a_limit_of_what_may_go_is_named_where_it_binds() -> None:
    assert condition_of(TARGET, [query(0.1), replace(query(0.1), gives_way=True)], 0.5) == GIVES_WAY
