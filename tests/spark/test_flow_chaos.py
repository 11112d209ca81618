"""A whole flow as its own process: the controller stops for half a minute, the disk is full."""

import json
import os
import signal
import subprocess
import sysconfig
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from drivers import PLANNER, kill_tree, processes
from gates import wait_until
from test_gate_faults import full_disk

from spillway.gate.offsets import Offset
from spillway.hosts.spark.files import audits, read_ledger

pytestmark = [pytest.mark.spark, pytest.mark.chaos, pytest.mark.timeout(600)]

STOPPED_S = 30.0
TARGET_S = 2.0
FLOW = """\
streams:
  readings: {source: synthetic, options: {rate: 20000}}
classes:
  gold: {delay: 2s}
queries:
  all: {class: gold, sink: {type: noop}, sql: SELECT * FROM readings}
"""
ALONE = "no control loop"


def test_a_stopped_controller_and_a_full_disk_do_not_stop_the_query(tmp_path: Path) -> None:
    (tmp_path / "flow.yaml").write_text(FLOW)
    folder, command = tmp_path / "run", [sysconfig.get_path("scripts") + "/spillway", "run"]
    ledger, journal = folder / "ledgers" / "all.readings.jsonl", folder / "journal.jsonl"
    with (tmp_path / "log").open("wb") as log:
        flow = subprocess.Popen(
            [*command, str(tmp_path / "flow.yaml"), "--folder", str(folder), "--json"],
            stdout=log,
            stderr=log,
        )

    def batches() -> list[Offset]:
        return read_ledger(ledger) if ledger.exists() else []

    def more(count: int) -> Callable[[], bool]:
        goal = len(batches()) + count
        return lambda: len(batches()) >= goal

    try:
        wait_until(more(10))
        os.kill(flow.pid, signal.SIGSTOP)
        stopped_s = time.time()
        time.sleep(STOPPED_S)
        os.kill(flow.pid, signal.SIGCONT)
        continued_s = time.time()
        wait_until(more(8))
        driver = psutil.Process(flow.pid)
        [planner] = processes(PLANNER, driver)
        with full_disk(driver, journal), full_disk(planner, ledger):
            sizes = journal.stat().st_size, ledger.stat().st_size
            time.sleep(6.0)
            assert (journal.stat().st_size, ledger.stat().st_size) == sizes
        wait_until(more(6))
        flow.send_signal(signal.SIGINT)
        assert flow.wait(60) == 0, (tmp_path / "log").read_text()[-2000:]
    finally:
        if flow.poll() is None:
            kill_tree(flow)

    [audit] = audits(ledger, folder / "checkpoints" / "all")
    assert audit.exact
    during = [b for b in batches() if stopped_s + 2.0 < b.planned_us / 1e6 < continued_s]
    after = [b for b in batches() if b.planned_us / 1e6 > continued_s]
    ages_s = [(b.planned_us - b.arrived.mean_us) / 1e6 for b in during if b.arrived is not None]
    print(f"{len(during)} batches without the loop, mean age {sum(ages_s) / len(ages_s):.2f} s")
    assert len(during) > STOPPED_S / TARGET_S
    assert sum(ALONE in b.rule.reason for b in during) > len(during) / 2
    assert not all(ALONE in b.rule.reason for b in after[:4]), "the loop is back and not used"
    assert sum(ALONE in b.rule.reason for b in after) < len(after) / 4
    assert max(ages_s) < TARGET_S
    lines = [json.loads(line) for line in journal.open()]
    assert sum(line.get("lost_lines", 0) for line in lines) >= 4
