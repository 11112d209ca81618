"""A ledger on S3-compatible storage, a driver that is killed, storage that goes away meanwhile.

SPILLWAY_KILLS sets how often the driver is killed. Needs moto.
"""

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from drivers import kill_tree, offsets, start_driver, stop_driver, wait_for_offset
from gates import THIRD, Place

from spillway import storage
from spillway.hosts.spark.segments import segments_of
from spillway.storage import Remote

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(3600)]

BUCKET = "state"
KILLS = int(os.environ.get("SPILLWAY_KILLS", "2"))


class StoredPlace(Place):
    @property
    def ledger(self) -> Remote:  # type: ignore[override]
        return Remote(f"s3a://{BUCKET}/ledgers/{self.root.name}")


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    pytest.importorskip("moto.moto_server")
    from s3 import Storage

    server = Storage()
    server.make_bucket()
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    storage._s3.cache_clear()
    yield server
    server.stop()
    storage._s3.cache_clear()


def test_a_killed_driver_loses_and_doubles_no_line_of_a_ledger_on_s3(
    s3: Any, tmp_path: Path
) -> None:
    place, generator = StoredPlace(root=tmp_path), random.Random(KILLS)
    options = {"rate": "200000", "delay": "400ms", "partitions": "2", **THIRD}
    options |= {"ledger": str(place.ledger), "checkpoint": str(place.checkpoint)}
    for _ in range(KILLS):
        driver = start_driver(place, options)
        wait_for_offset(place, offsets(place) + 3, driver)
        with s3.away():  # and the kill comes while lines wait
            wait_for_offset(place, offsets(place) + generator.randrange(2, 6), driver)
            kill_tree(driver)
    driver = start_driver(place, options)
    wait_for_offset(place, offsets(place) + 6, driver)
    stop_driver(place, driver)
    result = place.require_exact()
    assert result.totals.shed > 0
    assert 1 <= len(segments_of(place.ledger)) <= KILLS + 1
