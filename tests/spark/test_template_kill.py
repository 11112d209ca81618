"""SIGKILL between the planning of a batch and its end, while the instances change."""

import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import numpy as np
import psutil
import pyarrow.parquet as pq
import pytest
from gates import committed_files
from tally import count, kills

from spillway.gate.offsets import Offset
from spillway.hosts.spark.files import Folder, chains
from spillway.templates.instance_store import InstanceStore

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(3600)]

DRIVER = Path(__file__).with_name("template_driver.py")
KILLS = kills("templates", otherwise=1)


def start_driver(root: Path) -> subprocess.Popen[bytes]:
    with (root / "driver.log").open("ab") as log:
        return subprocess.Popen([sys.executable, str(DRIVER), str(root)], stdout=log, stderr=log)


def newest(folder: Path) -> int:
    names = [f.name for f in folder.iterdir() if f.name.isdigit()] if folder.exists() else []
    return max(map(int, names), default=-1)


def wait_for_offset(folder: Folder, number: int, driver: subprocess.Popen[bytes]) -> None:
    deadline_s = time.monotonic() + 300.0
    while newest(folder.checkpoint("q") / "offsets") < number:
        assert driver.poll() is None, (folder.root / "driver.log").read_text()[-2000:]
        assert time.monotonic() < deadline_s, "the driver makes no batches"
        time.sleep(0.001)


def kill_tree(driver: subprocess.Popen[bytes]) -> None:
    parent = psutil.Process(driver.pid)
    for process in [*parent.children(recursive=True), parent]:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    driver.wait()


def expected_rows(batch: Offset, store: InstanceStore) -> Counter[tuple[int, int]]:
    """What a batch delivers to the instances of the version in its own offset."""
    positions = np.concatenate([s.kept_positions(batch.rule) for s in batch.stretches])
    rows: Counter[tuple[int, int]] = Counter()
    for instance in store.instances():
        if instance.added <= batch.instances < instance.removed:
            matching = positions[positions % 100 == instance.values["rest"]]
            rows.update((instance.query_id, int(position)) for position in matching)
    return rows


def test_a_replayed_batch_sees_the_instances_that_it_was_planned_with(tmp_path: Path) -> None:
    folder = Folder(root=tmp_path)
    store, checkpoint = InstanceStore(folder.instances("q")), folder.checkpoint("q")
    replayed = 0
    for number in range(KILLS):
        driver = start_driver(tmp_path)
        reached = newest(checkpoint / "offsets")
        wait_for_offset(folder, reached + 3, driver)
        store.add([{"rest": (10 + 3 * number) % 100}])
        wait_for_offset(folder, newest(checkpoint / "offsets") + 2, driver)
        kill_tree(driver)
        replayed += newest(checkpoint / "offsets") - newest(checkpoint / "commits")
        store.remove([store.active()[0].query_id])
        store.add([{"rest": (11 + 3 * number + n) % 100} for n in range(2)])
    driver = start_driver(tmp_path)
    wait_for_offset(folder, newest(checkpoint / "offsets") + 4, driver)
    (tmp_path / "stop").touch()
    assert driver.wait(60) == 0
    assert replayed > 0, "no kill hit a batch that was planned and had not ended"
    [batches] = chains(folder.ledger("q", "ticks"), checkpoint).values()
    expected: Counter[tuple[int, int]] = Counter()
    for batch in batches:
        expected += expected_rows(batch, store)
    delivered: Counter[tuple[int, int]] = Counter()
    for path in committed_files(tmp_path / "sink"):
        table = pq.read_table(path, columns=["query_id", "id"])
        delivered.update(zip(table["query_id"].to_pylist(), table["id"].to_pylist(), strict=True))
    assert delivered == expected
    assert {query_id for query_id, _ in delivered} == {i.query_id for i in store.instances()}
    assert len({batch.instances for batch in batches}) >= 2 * KILLS
    count(killed=KILLS, replayed=replayed, compared=sum(delivered.values()))
