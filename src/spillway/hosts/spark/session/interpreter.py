"""The Python of Spark's own processes: PySpark from where it is installed.

Spark puts a zip of PySpark first on their path. Nothing compiled is kept for a zip: every planner
and every worker compiles PySpark again before it connects, 1.2 s of CPU instead of 0.35 s.
"""

import atexit
import os
import shlex
import shutil
import sys
import tempfile
from pathlib import Path

import pyspark

_NAME = "PYSPARK_PYTHON"
_PROGRAM = """\
#!/bin/sh
# Without Spark's zips of PySpark and py4j, which come first.
set -f
IFS=:
kept=
for entry in $PYTHONPATH; do
  case "$entry" in
    */pyspark.zip | */py4j-*-src.zip) ;;
    *) kept="$kept${{kept:+:}}$entry" ;;
  esac
done
PYTHONPATH="$kept" exec {python} "$@"
"""


def use_installed_pyspark() -> None:
    """For JVMs that this process launches from now on. An interpreter that the user chose stays."""
    if _NAME in os.environ:
        return
    os.environ[_NAME] = sys.executable
    if os.name != "posix" or ".zip" in str(pyspark.__file__):
        return
    folder = Path(tempfile.mkdtemp(prefix="spillway-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    program = folder / "python"
    program.write_text(program_for(sys.executable))
    program.chmod(0o700)
    os.environ[_NAME] = str(program)


def program_for(python: str) -> str:
    return _PROGRAM.format(python=shlex.quote(python))
