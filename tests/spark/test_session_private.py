"""What other users of the machine can see of a session: no password, no socket."""

import os
import stat
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spillway.hosts.spark.session.local_files import use_fast_local_files

PROGRAM = """
import os, sys
from pathlib import Path
from spillway.hosts.spark.session.output import SparkOutput
from spillway.hosts.spark.session.session import open_session

folder = Path(sys.argv[1])
output = SparkOutput(folder / "run" / "spark.log") if sys.argv[2] == "logged" else None
secret = os.environ["SECRET"]
config = {"spark.hadoop.fs.s3a.secret.key": secret, "spark.sql.shuffle.partitions": "3"}
spark = open_session("local[1]", config, output=output)
assert spark._jsc.hadoopConfiguration().get("fs.s3a.secret.key") == secret
assert spark.conf.get("spark.sql.shuffle.partitions") == "3"
for path in Path("/proc").glob("[0-9]*/cmdline"):
    try:
        assert secret.encode() not in path.read_bytes(), path
    except OSError:
        pass
sockets = spark.conf.get("spark.python.unix.domain.socket.dir")
spark.range(1).mapInArrow(lambda rows: rows, "id long").collect()
print(sockets)
"""


@pytest.mark.spark
@pytest.mark.parametrize("how", ["logged", "plain"])
def test_a_password_is_in_no_command_line_and_sockets_are_in_a_folder_of_our_own(
    how: str, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path), how],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "SECRET": "hunter2"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    sockets = Path(done.stdout.split()[-1])
    assert sockets.name.startswith("spillway-")
    assert not sockets.exists(), "it is removed at the end"
    if how == "logged":
        assert stat.S_IMODE((tmp_path / "run").stat().st_mode) == 0o700
        assert stat.S_IMODE((tmp_path / "run" / "spark.log").stat().st_mode) == 0o600
        assert "hunter2" not in (tmp_path / "run" / "spark.log").read_text()


def test_a_spark_without_the_compiler_keeps_hadoops_own_files(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    nowhere = jvm.not_there  # as py4j gives a package that is not on the class path
    org = SimpleNamespace(apache=jvm.org.apache, codehaus=nowhere.codehaus)
    without: Any = SimpleNamespace(_jvm=SimpleNamespace(org=org, java=jvm.java), _jsc=spark._jsc)
    files = jvm.org.apache.hadoop.fs.FileSystem
    root = jvm.java.net.URI("file:///")
    files.get(root, spark._jsc.hadoopConfiguration()).close()  # as in a new session
    assert not use_fast_local_files(without)
    found = files.get(root, spark._jsc.hadoopConfiguration()).getClass().getSimpleName()
    assert found == "RawLocalFileSystem"
    assert use_fast_local_files(spark)
