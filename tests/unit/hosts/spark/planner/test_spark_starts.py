"""Taking over from Spark's own Kafka source, and leaving to it."""

import pytest

from spillway.errors import SpillwayError
from spillway.hosts.spark.planner.starts import starting_offsets


def test_an_offset_of_sparks_own_source_is_taken_as_it_is() -> None:
    assert starting_offsets({"t": {"0": 4, "1": 9}}, "") == {"t": {"0": 4, "1": 9}}


@pytest.mark.parametrize("logged", [{"logOffset": 3}, {"t": 3}, {"t": {"0": "x"}}, 3, None])
def test_an_offset_of_another_source_is_refused(logged: object) -> None:
    with pytest.raises(SpillwayError, match="neither a gate's nor of Spark's Kafka source"):
        starting_offsets(logged, "")
