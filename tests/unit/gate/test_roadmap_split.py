"""A gate before a split: the same load, spent where it is worth most."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillway.errors import SpillwayError
from spillway.gate.masks import count_seen, text_of
from spillway.gate.sampling import PPM, UniformRule, count_kept
from spillway.gate.split import Split

SPLIT = Split.parse("shared:1, alerts:1:10, scores:8:1")


def test_with_room_for_all_every_query_sees_all() -> None:
    spending = SPLIT.spend(1.0)
    assert spending.keep_fraction == 1.0
    assert text_of(spending.shares) == "alerts:1000000,scores:1000000"


def test_half_of_the_load_keeps_all_alerts_and_what_is_left_for_scores() -> None:
    spending = SPLIT.spend(0.5)
    assert spending.keep_fraction == 1.0
    assert text_of(spending.shares) == "alerts:1000000,scores:375000"
    assert spending.reason == "alerts 100 %, scores 37.5 %"


def test_a_tenth_of_the_load_is_all_for_alerts() -> None:
    spending = SPLIT.spend(0.1)
    assert spending.keep_fraction == pytest.approx(0.5)
    assert text_of(spending.shares) == "alerts:1000000,scores:0"


def test_nothing_granted_keeps_nothing() -> None:
    assert SPLIT.spend(0.0).keep_fraction == 0.0


def test_a_split_survives_being_written_and_read() -> None:
    split = Split(shared_cost=1.5e-7, costs={"a": 2e-8, "b": 1 / 3}, weights={"a": 1.0, "b": 7.0})
    assert Split.parse(split.text) == split


POSITIVE = st.floats(0.01, 100.0)


@given(
    shared=st.floats(0.0, 100.0),
    queries=st.lists(st.tuples(POSITIVE, st.floats(0.0, 100.0)), min_size=1, max_size=5),
    fraction=st.floats(0.0, 1.0),
)
def test_what_a_batch_costs_is_what_was_granted(
    shared: float, queries: list[tuple[float, float]], fraction: float
) -> None:
    split = Split(
        shared_cost=shared,
        costs={f"q{i}": cost for i, (cost, _) in enumerate(queries)},
        weights={f"q{i}": weight for i, (_, weight) in enumerate(queries)},
    )
    spending = split.spend(fraction)
    tuples = 1024 * 1000
    gate = UniformRule(keep_ppm=round(spending.keep_fraction * PPM))
    kept = count_kept(0, tuples, gate)
    seen = count_seen(0, tuples, gate, spending.shares)
    # Shares less than a slot of a block apart are made one: at most 1/1024 each.
    assert split.whole_tuples(kept, seen) == pytest.approx(fraction * tuples, abs=1100.0)


def test_a_batch_without_shares_cost_whole_tuples() -> None:
    assert SPLIT.whole_tuples(1234, {}) == 1234


@pytest.mark.parametrize(
    "text",
    ["", "alerts:1", "alerts", "shared:1:2,a:1:1", "a:x:1", "a:1:1,a:1:1", "shared:1", "a:-1:1"],
)
def test_a_split_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(SpillwayError):
        _ = Split.parse(text).spend(0.5)


def test_the_error_shows_how_a_split_is_written() -> None:
    with pytest.raises(SpillwayError, match="shared:cost,query:cost:weight"):
        Split.parse("alerts=1")
