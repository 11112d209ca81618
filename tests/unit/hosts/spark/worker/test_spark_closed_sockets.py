import subprocess
import sys

import pytest

PROGRAM = """
import sys, traceback
from importlib.machinery import ModuleSpec
from spillway.hosts.spark.worker.closed_sockets import pass_over_closed_sockets
sys.modules["__main__"].__spec__ = ModuleSpec({process!r}, None)
pass_over_closed_sockets()
try:
    raise {error}("gone")
except Exception:
    traceback.print_exc()
raise {error}("gone")
"""


@pytest.mark.parametrize(
    ("process", "error", "tracebacks"),
    [
        ("pyspark.daemon", "BrokenPipeError", 0),
        ("pyspark.daemon", "ValueError", 2),
        ("a_users_program", "BrokenPipeError", 2),
    ],
)
def test_only_closed_sockets_of_pysparks_own_processes_are_passed_over(
    process: str, error: str, tracebacks: int
) -> None:
    program = PROGRAM.format(process=process, error=error)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.count("Traceback") == tracebacks
