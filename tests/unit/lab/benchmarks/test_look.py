"""The look's two logs hold the same tuples, so both must lead to the same decision."""

import pytest

from spillway.gate.shedders.catalog import asked_shedder
from spillway.gate.shedders.planned import selected
from spillway_lab.benchmarks.look import SHEDDERS, _batch, _generated, _records

TUPLES = 40_000


@pytest.mark.parametrize("name", SHEDDERS)
def test_json_records_and_the_generator_are_decided_alike(name: str) -> None:
    shedder, batch, records = (
        asked_shedder(SHEDDERS[name], "at"),
        _batch(TUPLES, 1),
        _records(TUPLES),
    )
    assert shedder is not None
    found = [selected(batch, batch, shedder, log(shedder.columns)) for log in (_generated, records)]
    assert found[0] == found[1]
    assert 0 < found[0].kept_tuples() < TUPLES
