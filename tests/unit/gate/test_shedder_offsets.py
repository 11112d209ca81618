"""What offsets say of shedders: checkpoints and ledgers outlive the code that wrote them."""

import json
from typing import Any

import pytest

from spillway.errors import SpillwayError
from spillway.gate.offsets import Offset, decode, encode
from spillway.gate.rules import Stretch

WRITTEN = [  # as release 0.1.0 has them, byte for byte
    '{"shedder": "key", "column": "key", "time_column": "event_time", "length_us": 5000000,'
    ' "limit_ppm": 412377, "windows": [], "window_tuples": 0, "kept_tuples": 3, "owed_tuples": -8}',
    '{"shedder": "utility", "column": "value * 2", "time_column": "", "length_us": 0,'
    ' "limit_ppm": 1000000, "windows": [], "window_tuples": 0, "kept_tuples": 0,'
    ' "owed_tuples": 0}',
    '{"shedder": "windows", "column": "event_time", "time_column": "", "length_us": 500000,'
    ' "limit_ppm": 1000000, "windows": [[1999999, 0], [2000001, 776456]],'
    ' "window_tuples": 9372, "kept_tuples": 12, "owed_tuples": -7}',
    '{"shedder": "strata", "column": "key", "time_column": "", "length_us": 0,'
    ' "limit_ppm": 1000000, "windows": [], "window_tuples": 0, "kept_tuples": 0,'
    ' "owed_tuples": 0}',
]


def offset_with(selection: str) -> dict[str, Any]:
    stretch = Stretch(partition=0, start=0, read=0, stop=1000)
    value = encode(Offset(gate="g", began_us=1, seq=2, planned_us=3, stretches=(stretch,)))
    value["rule"] |= {"keep_ppm": 300_000, "selection": json.loads(selection)}
    return value


@pytest.mark.parametrize("text", WRITTEN)
def test_what_was_written_is_read_and_written_again_byte_for_byte(text: str) -> None:
    value = offset_with(text)
    again = encode(decode(value))
    assert json.dumps(again["rule"]["selection"]) == text
    assert again == value


@pytest.mark.parametrize(("text", "kept"), [*zip(WRITTEN, [3, 300, 12, 300], strict=True)])
def test_counts_follow_from_the_offset_alone(text: str, kept: int) -> None:
    assert decode(offset_with(text)).kept_tuples() == kept


@pytest.mark.parametrize("text", WRITTEN)
def test_a_batch_without_tuples_keeps_none_and_forgets_nothing(text: str) -> None:
    selection = decode(offset_with(text)).rule.selection
    assert selection is not None
    value, rested = json.loads(text), selection.at_rest()
    assert rested == decode(offset_with(json.dumps({**value, "kept_tuples": 0}))).rule.selection


@pytest.mark.parametrize("change", [{"shedder": "nobody"}, {"colour": 1}])
def test_a_shedder_that_this_release_does_not_know_is_refused(change: dict[str, Any]) -> None:
    damaged = json.dumps({**json.loads(WRITTEN[0]), **change})
    with pytest.raises(SpillwayError, match="offset is damaged"):
        decode(offset_with(damaged))
