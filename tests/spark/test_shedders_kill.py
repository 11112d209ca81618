"""SIGKILL while gates run whose choice depends on the data, or that mark rows for each query."""

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from drivers import in_flight, kill_tree, offsets
from gates import Place, committed_files, difference
from shedder_driver import GATES, LOG
from tally import count, kills

from spillway.gate.masks import masks_of
from spillway.gate.offsets import Offset
from spillway.gate.shedders.blocks import kept_positions
from spillway.hosts.spark.files import logged_batches
from spillway.logs import catalog

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(3600)]

KILLS = kills("shedders", otherwise=1)

DRIVER = Path(__file__).with_name("shedder_driver.py")


def start_driver(root: Path) -> subprocess.Popen[bytes]:
    with (root / "driver.log").open("ab") as log:
        return subprocess.Popen([sys.executable, str(DRIVER), str(root)], stdout=log, stderr=log)


def wait_for(places: list[Place], batches: int, driver: subprocess.Popen[bytes]) -> None:
    """Until all have this many more batches, and are all in the middle of one."""
    wanted = {place.root: offsets(place) + batches for place in places}
    deadline_s = time.monotonic() + 300.0
    while not all(offsets(p) >= wanted[p.root] and in_flight(p) for p in places):
        assert driver.poll() is None, (places[0].root.parent / "driver.log").read_text()[-2000:]
        assert time.monotonic() < deadline_s, "the driver makes no batches"
        time.sleep(0.002)


def planned(place: Place) -> Offset:
    """The newest batch in Spark's log."""
    [offset] = list(logged_batches(place.checkpoint))[-1].gates()
    return offset


def admitted(chain: list[Offset]) -> np.ndarray:
    """Ids that the offsets keep, found by reading the log again, ascending."""
    found = [np.empty(0, dtype=np.int64)]
    for offset in chain:
        log = catalog.open_log({**LOG, **offset.pinned}, None)
        found += [
            kept_positions(s, offset.rule, log) * len(offset.stretches) + s.partition
            for s in offset.stretches
        ]
    return np.sort(np.concatenate(found))


def test_a_killed_driver_loses_and_doubles_nothing_whatever_the_shedder(tmp_path: Path) -> None:
    places = {name: Place(root=tmp_path / name) for name in GATES}
    replayed: list[tuple[str, Offset]] = []
    for _ in range(KILLS):
        driver = start_driver(tmp_path)
        wait_for(list(places.values()), 2, driver)
        kill_tree(driver)
        replayed += [(name, planned(place)) for name, place in places.items() if in_flight(place)]
    assert replayed, "the kill must hit a batch that was planned and had not ended"
    driver = start_driver(tmp_path)
    wait_for(list(places.values()), 2, driver)
    (tmp_path / "stop").touch()
    assert driver.wait(60) == 0
    for name, place in places.items():
        chain, audit = place.chain(), place.audit()
        assert audit.exact, (name, audit.problems, audit.missing)
        sink = pa.concat_tables([pq.read_table(path) for path in committed_files(place.sink)])
        delivered = np.sort(sink["id"].to_numpy())
        kept = admitted(chain)
        assert np.array_equal(delivered, kept), (name, difference(delivered, kept))
        assert len(kept) == audit.totals.admitted
        assert audit.totals.shed > 0 or name == "split", "a split may drop behind the gate alone"
        assert all(offset in chain for of, offset in replayed if of == name)
        count(killed=0, replayed=0, compared=len(kept))
        if name == "split":
            require_masks(chain, sink)
    count(killed=KILLS, replayed=len(replayed), compared=0)


def require_masks(chain: list[Offset], sink: pa.Table) -> None:
    """Every row carries the mask that its batch's offset gives to its position."""
    found = dict(zip(sink["id"].to_pylist(), sink["_queries"].to_pylist(), strict=True))
    masks = set()
    for offset in chain:
        rule, partitions = offset.rule, len(offset.stretches)
        for s in offset.stretches:
            if not rule.shares:
                continue
            expected = masks_of(s.read, s.stop, rule.sampling, rule.shares, s.partition)
            for position in np.flatnonzero(expected):
                mask = int(expected[position])
                assert found[(s.read + int(position)) * partitions + s.partition] == mask
                masks.add(mask)
    assert len(masks) > 1, "some rows are seen by one query, some by both"
