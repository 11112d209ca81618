import json

import pytest

from spillway.errors import SpillwayError
from spillway.gate.offsets import (
    SENTINEL,
    Arrived,
    Offset,
    Totals,
    decode,
    encode,
    is_sentinel,
)
from spillway.gate.rules import Rule, Stretch
from spillway.model import Prices

OFFSET = Offset(
    gate="clicks",
    began_us=1,
    seq=7,
    planned_us=2_000_000,
    stretches=(
        Stretch(partition=0, start=0, read=100, stop=5000),
        Stretch(partition=3, start=10, read=10, stop=10),
    ),
    rule=Rule(keep_ppm=250_000, seed=4, policy="fresh", reason="why", would_keep_ppm=250_000),
    totals=Totals(offered=9000, admitted=2000, shed=6500, lost=1),
    prices=Prices(fixed_s=0.25, kept_s=3e-7, scanned_s=1e-8),
    arrived=Arrived(mean_us=5, p05_us=2, p01_us=1, first_us=0),
    pinned={"start": "12.5"},
)


def leaves(value: object) -> list[object]:
    return [x for v in value.values() for x in leaves(v)] if isinstance(value, dict) else [value]


def test_an_offset_survives_the_trip_through_json() -> None:
    assert decode(json.loads(json.dumps(encode(OFFSET)))) == OFFSET


def test_an_offset_holds_integers_strings_and_booleans_only() -> None:
    assert {type(leaf) for leaf in leaves(encode(OFFSET))} <= {int, str, bool}


def test_pending_is_what_is_neither_admitted_nor_shed() -> None:
    assert OFFSET.totals.pending == 500


def test_the_next_batch_starts_where_this_one_ends() -> None:
    assert [(s.start, s.read, s.stop) for s in OFFSET.at_rest()] == [(5000,) * 3, (10,) * 3]


def test_the_sentinel_is_told_from_a_real_offset() -> None:
    assert is_sentinel(SENTINEL)
    assert not is_sentinel(encode(OFFSET))


def test_an_offset_of_another_format_is_refused() -> None:
    with pytest.raises(SpillwayError, match="format version 99"):
        decode({**encode(OFFSET), "v": 99})


@pytest.mark.parametrize("name", ["gate", "partitions", "rule", "total", "seq"])
def test_a_damaged_offset_is_refused(name: str) -> None:
    value = encode(OFFSET)
    del value[name]
    with pytest.raises(SpillwayError, match="damaged"):
        decode(value)


def test_a_stretch_out_of_order_is_refused() -> None:
    with pytest.raises(ValueError, match="not in order"):
        Stretch(partition=0, start=5, read=4, stop=9)
