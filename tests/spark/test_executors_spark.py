"""Executors of a real standalone cluster, in a process with a Spark session of its own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

DRIVER = Path(__file__).with_name("executors_driver.py")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_they_come_go_and_are_replaced_and_a_job_grows_with_its_load(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, str(DRIVER), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=840,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-4000:]
    seen = json.loads(ran.stdout.splitlines()[-1])
    both, one, replaced = seen["resized"]
    assert one == both[1:]
    assert len(replaced) == 1
    assert replaced != one
    grown = [said for said in seen["scaled"]["said"] if "wanted_cores" in said]
    assert seen["scaled"]["wanted"] == 2
    assert [said["event"] for said in grown] == ["executors"]
