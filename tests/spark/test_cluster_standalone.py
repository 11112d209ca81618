"""The same flow on a real standalone cluster: one master, two workers, nothing installed there."""

import json
import os
import shutil
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
FLOW = """\
streams:
  readings: {source: synthetic, options: {rate: 20000}, event_time: event_time, watermark: 5s}
classes:
  gold: {delay: 5s}
queries:
  by_key:
    class: gold
    mode: update
    sink: {type: noop}
    sql: SELECT window(event_time, '5 seconds') AS w, key, count(*) AS n FROM readings
         GROUP BY window(event_time, '5 seconds'), key
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def bare_python(folder: Path) -> Path:
    """This Python with its libraries but without editable installs: it cannot import spillway."""
    path = folder / "python"
    libraries = sysconfig.get_paths()["purelib"]
    path.write_text(
        f'#!/bin/sh\nexport PYTHONPATH="{libraries}:$PYTHONPATH"\nexec "{sys.executable}" -S "$@"\n'
    )
    path.chmod(0o755)
    return path


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    """The address of a master with two workers of one core each; stopped by process id."""
    port = free_port()
    address = f"spark://127.0.0.1:{port}"
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOG_DIR": str(tmp_path)}
    master = ["org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", str(port)]
    worker = [
        *("org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--cores", "1"),
        *("--memory", "1g", "--webui-port", "0", "--work-dir", str(tmp_path / "work"), address),
    ]
    log = (tmp_path / "cluster.log").open("w")
    processes = [
        subprocess.Popen(
            [str(SPARK_CLASS), *arguments], env=environment, stdout=log, stderr=subprocess.STDOUT
        )
        for arguments in ([*master, "--webui-port", "0"], worker, worker)
    ]
    try:
        _wait_for(tmp_path / "cluster.log", "Registered worker", times=0, seconds=1.0)
        yield address
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(20)
        log.close()


def _wait_for(path: Path, words: str, times: int, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while path.read_text().count(words) < times and time.monotonic() < deadline:
        time.sleep(0.1)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(240)
def test_a_flow_runs_on_workers_that_do_not_have_the_package(cluster: str, tmp_path: Path) -> None:
    python = bare_python(tmp_path)
    missing = subprocess.run(
        [python, "-c", "import numpy, pyarrow, pyspark; import spillway"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "No module named 'spillway'" in missing.stderr
    flow = tmp_path / "flow.yaml"
    flow.write_text(
        FLOW + f"spark:\n  config:\n    spark.pyspark.python: {python}\n"
        f"    spark.pyspark.driver.python: {sys.executable}\n"
        "    spark.driver.host: 127.0.0.1\n    spark.executor.memory: 512m\n"
        "    spark.sql.shuffle.partitions: 2\n"
    )
    spillway = shutil.which("spillway", path=str(Path(sys.executable).parent))
    assert spillway is not None
    command = [spillway, "run", str(flow), "--master", cluster, "--duration", "30s"]
    ran = subprocess.run(
        [*command, "--folder", str(tmp_path / "run"), "--json"],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
        env={k: v for k, v in os.environ.items() if k != "PYSPARK_PYTHON"},
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    delivered = json.loads(ran.stdout)["queries"]["by_key"]["delivered"]
    assert delivered["kept_tuples"] > 10_000
    ledger = tmp_path / "run" / "ledgers" / "by_key.readings.jsonl"
    checkpoint = tmp_path / "run" / "checkpoints" / "by_key"
    audit = subprocess.run(
        [spillway, "ledger", str(ledger), "--checkpoint", str(checkpoint), "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert audit.returncode == 0, audit.stdout[-2000:] + audit.stderr[-2000:]
