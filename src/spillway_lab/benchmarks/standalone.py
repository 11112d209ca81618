"""A standalone cluster on this machine: one master and workers of one core, for a while."""

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

from spillway.errors import SpillwayError

# Many JVMs on a few cores: what they do is little, so they compile little.
QUICK_START = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
_SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
_DEPLOY = "org.apache.spark.deploy"
_REGISTERED = "Registering worker "
_PATIENCE_S = 300.0


@contextmanager
def standalone(workers: int, folder: Path, memory: str = "1g") -> Iterator[str]:
    """Its address, once every worker has registered. All of it is stopped by process id."""
    address, log = f"spark://127.0.0.1:{_free_port()}", folder / "cluster.log"
    environment = {
        **os.environ,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOG_DIR": str(folder),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": QUICK_START,
    }
    port = address.rpartition(":")[2]
    master = [f"{_DEPLOY}.master.Master", "--host", "127.0.0.1", "--port", port]
    worker = [
        *(f"{_DEPLOY}.worker.Worker", "--host", "127.0.0.1", "--cores", "1", "--memory", memory),
        *("--webui-port", "0", "--work-dir", str(folder / "work"), address),
    ]
    processes: list[subprocess.Popen[bytes]] = []
    with log.open("wb") as output:
        try:
            for command in [[*master, "--webui-port", "0"], *[worker] * workers]:
                processes.append(
                    subprocess.Popen(
                        [str(_SPARK_CLASS), *command],
                        env=environment,
                        stdout=output,
                        stderr=subprocess.STDOUT,
                    )
                )
            _wait_for(log, workers)
            yield address
        finally:
            for process in processes:
                process.terminate()
            for process in processes:
                process.wait(60)


def _wait_for(log: Path, workers: int) -> None:
    """A worker that comes before its master asks again by itself."""
    deadline = time.monotonic() + _PATIENCE_S
    while (there := log.read_text(errors="replace").count(_REGISTERED)) < workers:
        if time.monotonic() > deadline:
            raise SpillwayError(f"{there} of {workers} Spark workers have registered: see {log}")
        time.sleep(0.1)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
