"""`spillway.api.progress`: what the gates said, from whatever Spark hands out."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from spillway.api import progress
from spillway.clock import ManualClock
from spillway.errors import SpillwayError
from spillway.gate.offsets import SENTINEL, encode
from spillway.testing import ToyLog, ToySpark, toy_source


@pytest.fixture
def told() -> dict[str, Any]:
    """As Spark has it: offsets are dicts or text, other sources are not ours."""
    with toy_source(ToyLog(rate_per_s=2e6)):
        batches = ToySpark.over(ToyLog(), ManualClock(1000.0), delay="2s", gate="g").batches(30)
    before, last = (encode(batch) for batch in batches[-2:])
    ours = {
        "startOffset": before,
        "endOffset": json.dumps(last),
        "latestOffset": {"partitions": {"0": 123}},
    }
    return {"sources": [ours, {"endOffset": '{"t":{"0":5}}'}, {"endOffset": "7"}]}


def test_a_gate_says_what_it_was_offered_and_kept_and_why(told: dict[str, Any]) -> None:
    [gate] = progress(told)
    assert gate.gate == "g"
    assert gate.offered_tuples == gate.kept_tuples + gate.shed_tuples > 0
    assert gate.totals.admitted > gate.kept_tuples
    assert gate.reason
    assert gate.prices is not None
    assert gate.log_ends == {0: 123}


def test_it_takes_a_query_an_event_and_a_text(told: dict[str, Any]) -> None:
    text = json.dumps(told)
    event = SimpleNamespace(progress=SimpleNamespace(json=text))
    java = SimpleNamespace(json=lambda: text)
    for form in (SimpleNamespace(lastProgress=told), event, java, text):
        assert progress(form) == progress(told)


def test_before_the_first_batch_there_is_none(told: dict[str, Any]) -> None:
    assert progress(SimpleNamespace(lastProgress=None)) == ()
    told["sources"][0]["endOffset"] = dict(SENTINEL)
    assert progress(told) == ()


def test_what_is_no_progress_is_refused() -> None:
    with pytest.raises(SpillwayError, match="give a StreamingQuery"):
        progress(42)
