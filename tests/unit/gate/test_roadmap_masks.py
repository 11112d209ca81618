"""Masks: nested samples, exact counts, the same answer every time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillway.errors import SpillwayError
from spillway.gate.masks import (
    QueryShare,
    count_seen,
    masks_of,
    parse_shares,
    possible_masks,
    predicate,
    query_rules,
    shares_of,
    text_of,
)
from spillway.gate.sampling import PPM, UniformRule, keep_mask

PPMS = st.one_of(st.integers(0, PPM), st.integers(0, 3000))


@st.composite
def shares(draw: st.DrawFn) -> tuple[QueryShare, ...]:
    ppms = [*draw(st.lists(PPMS, max_size=5)), PPM]
    return tuple(QueryShare(name=f"q{i}", keep_ppm=ppm) for i, ppm in enumerate(ppms))


@given(
    queries=shares(),
    keep_ppm=PPMS,
    seed=st.integers(0, 2**40),
    start=st.integers(0, 10**12),
    tuples=st.integers(0, 5000),
)
def test_samples_are_nested_inside_the_gates_own_and_counts_are_exact(
    queries: tuple[QueryShare, ...], keep_ppm: int, seed: int, start: int, tuples: int
) -> None:
    gate = UniformRule(keep_ppm=keep_ppm, seed=seed)
    masks = masks_of(start, start + tuples, gate, queries, partition=3)
    np.testing.assert_array_equal(masks != 0, keep_mask(start, start + tuples, gate, 3))
    assert set(masks.tolist()) <= {0, *possible_masks(gate, queries)}
    counts = count_seen(start, start + tuples, gate, queries, partition=3)
    seen = {share.name: (masks >> bit) & 1 == 1 for bit, share in enumerate(queries)}
    assert {name: int(rows.sum()) for name, rows in seen.items()} == counts
    for low in queries:
        for high in queries:
            if low.keep_ppm <= high.keep_ppm:
                assert not (seen[low.name] & ~seen[high.name]).any()


@given(queries=shares(), keep_ppm=PPMS)
def test_a_query_gets_its_share_to_within_a_slot_of_a_block(
    queries: tuple[QueryShare, ...], keep_ppm: int
) -> None:
    rules = query_rules(UniformRule(keep_ppm=keep_ppm), queries)
    for share, rule in zip(queries, rules, strict=True):
        wanted = keep_ppm * share.keep_ppm // PPM
        assert wanted <= rule.keep_ppm < wanted + 977
        assert rule.keep_ppm > 0 or wanted == 0


def test_a_query_without_a_share_sees_nothing() -> None:
    masks = masks_of(0, 4096, UniformRule(keep_ppm=PPM), parse_shares("a:1000000,b:0"))
    assert set(masks.tolist()) == {1}


def test_there_are_no_more_masks_than_different_shares() -> None:
    queries = parse_shares("a:250000,b:1000000,c:250000,d:0")
    assert possible_masks(UniformRule(keep_ppm=PPM), queries) == (0b0010, 0b0111)


def test_shares_survive_being_written_and_read() -> None:
    text = "alerts:1000000,report:250000"
    assert text_of(parse_shares(text)) == text
    assert parse_shares("") == ()


def test_fractions_of_a_roadmap_become_shares_of_what_the_gate_keeps() -> None:
    assert text_of(shares_of({"a": 0.5, "b": 0.125})) == "a:1000000,b:250000"


def test_the_predicate_names_the_bit() -> None:
    assert predicate(3) == "(_queries >> 3) & 1 = 1"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("alerts", "name:ppm"),
        ("alerts:1.5", "name:ppm"),
        (":1000000", "name:ppm"),
        ("alerts:2000000", "0 to 1000000"),
        ("a:1000000,a:1", "named once"),
        ("a:500000,b:1", "largest share must be 1000000"),
        (",".join(f"q{i}:1000000" for i in range(64)), "at most 63"),
    ],
)
def test_masks_that_make_no_sense_are_refused(text: str, problem: str) -> None:
    with pytest.raises(SpillwayError, match=problem):
        parse_shares(text)


def test_nothing_to_share_is_refused() -> None:
    with pytest.raises(SpillwayError, match="nothing is left"):
        shares_of({"a": 0.0})
