"""What this machine has of what a run needs: each finding with its fix. Starts no Spark."""

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from spillway.errors import SpillwayError

JAVA = (17, 21)
LEAST_SPARK = (4, 2)
LEAST_FREE_BYTES = 1 << 30
_ANSWER_S = 5.0
_BORN_S = 1_767_225_600.0  # 2026: an earlier clock was never set
EXTRAS = {
    "kafka": ("confluent_kafka", "log and sink kafka"),
    "watch": ("starlette", "the page, its API and the metrics"),
    "postgres": ("psycopg", "sink postgres"),
    "cluster": ("scipy", "tables for shedding across nodes"),
}


@dataclass(frozen=True, kw_only=True)
class Finding:
    about: str
    found: str
    fix: str = ""  # none: it is as it should be
    needed: bool = True  # without it nothing runs


def findings(brokers: str | None, folder: Path) -> Iterator[Finding]:
    yield _python()
    yield _java()
    yield _spark()
    yield _pandas()
    for extra, (module, purpose) in EXTRAS.items():
        yield _extra(extra, module, purpose)
    yield _sockets()
    yield from _storage(folder)
    yield _clock(time.time())
    if brokers is not None:
        yield _brokers(brokers)


def _python() -> Finding:
    found = ".".join(map(str, sys.version_info[:3]))
    fix = "" if sys.version_info >= (3, 11) else "install Python 3.11 or newer"
    return Finding(about="Python", found=found, fix=fix)


def _java() -> Finding:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    said = _said_by(java)
    number = re.search(r'version "(\d+)', said)
    if java is None or number is None:
        where = f"JAVA_HOME is {home}, which has no bin/java" if home else "none on the PATH"
        return Finding(
            about="Java", found=where, fix="install Java 17 or 21, or set JAVA_HOME to it"
        )
    known = ", ".join(map(str, JAVA))
    fix = "" if int(number[1]) in JAVA else f"Spark runs on Java {known}: set JAVA_HOME to one"
    return Finding(about="Java", found=f"{number[1]} at {java}", fix=fix)


def _said_by(java: str | None) -> str:
    if java is None:
        return ""
    try:
        command = [java, "-version"]
        return subprocess.run(command, capture_output=True, text=True, timeout=30).stderr
    except (OSError, subprocess.TimeoutExpired):
        return ""


def _spark() -> Finding:
    found = _installed("pyspark")
    newest = "pip install 'pyspark>=4.2'"
    if found is None:
        return Finding(about="PySpark", found="not installed", fix=newest)
    numbers = tuple(int(n) for n in re.findall(r"\d+", found)[:2])
    fix = "" if numbers >= LEAST_SPARK else f"the gate needs 4.2 or newer: {newest}"
    return Finding(about="PySpark", found=found, fix=fix)


def _pandas() -> Finding:
    found = _installed("pandas")
    fix = ""
    if found is None or int(found.partition(".")[0]) >= 3:
        fix = "PySpark needs one below 3: pip install 'pandas<3'"
    return Finding(about="pandas", found=found or "not installed", fix=fix)


def _extra(extra: str, module: str, purpose: str) -> Finding:
    if find_spec(module) is not None:
        return Finding(about=f"extra '{extra}'", found=f"installed: {purpose}")
    fix = f"for {purpose}: pip install 'spillway-spark[{extra}]'"
    return Finding(about=f"extra '{extra}'", found="not installed", fix=fix, needed=False)


def _installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _sockets() -> Finding:
    """Gates and driver talk over one in the temporary directory."""
    folder = tempfile.gettempdir()
    try:
        with (
            tempfile.TemporaryDirectory(prefix="spillway-") as place,
            socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door,
        ):
            door.bind(str(Path(place, "control")))
    except OSError as error:
        fix = "set TMPDIR to a short path on a local disk that this user may write to"
        return Finding(about="sockets", found=f"none in {folder} ({error})", fix=fix)
    return Finding(about="sockets", found=f"in {folder}")


def _storage(folder: Path) -> Iterator[Finding]:
    """The nearest folder above that is there, as the run would find it."""
    there = next(path for path in (folder, *folder.absolute().parents) if path.is_dir())
    if not os.access(there, os.W_OK | os.X_OK):
        fix = "give it to this user, or name another with --folder"
        yield Finding(about="storage", found=f"{there} cannot be written", fix=fix)
        return
    yield Finding(about="storage", found=f"{folder} can be written")
    free = shutil.disk_usage(there).free
    fix = "" if free >= LEAST_FREE_BYTES else "make room: Spark's shuffles and state need a GB"
    yield Finding(about="disk", found=f"{free / 1e9:.1f} GB free under {there}", fix=fix)


def _clock(now_s: float) -> Finding:
    """Delays are differences to records' timestamps: a wrong clock makes wrong delays."""
    told = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(now_s))
    fix = "" if now_s >= _BORN_S else "set it, and keep it with NTP (chrony, systemd-timesyncd)"
    return Finding(about="clock", found=told, fix=fix)


def _brokers(servers: str) -> Finding:
    answer, fix = "", ""
    try:
        answer = _asked(servers)
    except SpillwayError as error:
        answer, fix = str(error), "pip install 'spillway-spark[kafka]'"
    except Exception as error:  # the client library's own
        answer = f"{servers} does not answer ({_short(error)})"
        fix = "are the brokers up, and does a firewall let this machine reach them?"
    return Finding(about="brokers", found=answer, fix=fix)


def _asked(servers: str) -> str:
    if find_spec("confluent_kafka") is None:
        raise SpillwayError("there is no Kafka client to ask them with")
    from spillway.logs.kafka_watch import admin_of

    complaints: list[object] = []
    admin = admin_of((("bootstrap.servers", servers), ("log_level", "2")), complaints.append)
    there = admin.list_topics(timeout=_ANSWER_S)
    return f"{len(there.brokers)} at {servers} with {len(there.topics)} topics"


def _short(error: Exception) -> str:
    said: Callable[[], str] | None = getattr(error.args[0] if error.args else None, "str", None)
    return said() if said is not None else type(error).__name__
