"""Spark's own Python processes import PySpark from where it is installed, not from a zip."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from spillway.hosts.spark.session.interpreter import program_for

ZIPS = "/home/spark/python/lib/pyspark.zip:/home/spark/python/lib/py4j-0.10.9.9-src.zip:"
SHOW = "import os; print(os.environ['PYTHONPATH'])"


@pytest.mark.skipif(os.name != "posix", reason="a shell script")
@pytest.mark.parametrize(
    ("given", "left"),
    [
        (f"{ZIPS}/spark/core.jar:{ZIPS}/a folder:/own", "/spark/core.jar:/a folder:/own"),
        ("/users/own", "/users/own"),
        ("", ""),
    ],
)
def test_only_sparks_zips_leave_the_path(given: str, left: str, tmp_path: Path) -> None:
    program = tmp_path / "python"
    program.write_text(program_for(sys.executable))
    program.chmod(0o700)
    shown = subprocess.run(
        [str(program), "-c", SHOW],
        env={**os.environ, "PYTHONPATH": given},
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout.strip() == left
