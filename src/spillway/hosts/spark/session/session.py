"""The Spark session: fast settings on one machine, nothing changed on a cluster.

A micro-batch has a fixed price, and every millisecond of it is goodput. docs/session.md lists what
each setting gains and when not to use it.
"""

import atexit
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

import pyspark_spillway
import spillway
from spillway.hosts.spark.session.interpreter import use_installed_pyspark
from spillway.hosts.spark.session.local_files import use_fast_local_files
from spillway.hosts.spark.session.output import SparkOutput
from spillway.hosts.spark.session.pools import task_slots
from spillway.redaction import FOR_SPARK, is_secret, remember

# All cores of this machine; a task may fail three times, so a killed Python worker is survived.
DEFAULT_MASTER = "local[*,4]"

_CHECKPOINTING = "org.apache.spark.sql.execution.streaming.checkpointing"

# The JVM's heap in pages of 2 MB instead of 4 kB. Linux only, and without effect where the system's
# own setting is "never".
LARGE_PAGES = " -XX:+UseTransparentHugePages" if sys.platform == "linux" else ""
_QUIET = Path(__file__).parent / "log4j2.properties"
JAVA_OPTIONS = f"-Dlog4j2.configurationFile=file:{_QUIET}{LARGE_PAGES}"

_SOCKETS = "spark.python.unix.domain.socket.enabled"
_SOCKETS_IN = "spark.python.unix.domain.socket.dir"
_LOCAL_FILES = "spark.hadoop.fs.file.impl"
_STATE_STORE = "spark.sql.streaming.stateStore.providerClass"

LOCAL_PROFILE: Mapping[str, str] = {
    # No .crc file beside every small file, no rename through the file context.
    _LOCAL_FILES: "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.sql.streaming.checkpointFileManagerClass": (
        f"{_CHECKPOINTING}.FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    # Over TCP a Python worker's answer waits for a delayed acknowledgement: 40 ms a task.
    _SOCKETS: "true",
    # Passwords among the options of a source are in no plan that is printed.
    "spark.sql.redaction.options.regex": FOR_SPARK,
    # A busy machine takes its time to connect; where Spark's limit is fixed, it is 10 s.
    "spark.python.authenticate.socketTimeout": "120s",
    # The gate's heartbeats take the place of no-data batches.
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    # The same plan every batch: nothing to adapt, class names that hit the code cache, and no
    # long plan text for a user interface that is off.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.useIdInClassName": "false",
    # Stages take their functions as they are, instead of analysing the byte code of each closure.
    "spark.sql.execution.usePartitionEvaluator": "true",
    "spark.sql.maxPlanStringLength": "1000",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.extraJavaOptions": JAVA_OPTIONS,
}


def open_session(
    master: str | None = None,
    config: Mapping[str, str] | None = None,
    name: str = "spillway",
    *,
    use_profile: bool = True,
    output: SparkOutput | None = None,
) -> SparkSession:
    """A session on `master`. Settings in `config` win over the profile.

    With `output` all that Spark and its processes print goes there.
    """
    chosen = master or DEFAULT_MASTER
    if is_local(chosen):
        use_installed_pyspark()
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    is_ours = SparkSession.getActiveSession() is None and SparkContext._active_spark_context is None
    given = config or {}
    cores = given.get("spark.default.parallelism")
    base = dict(profile(chosen, int(cores) if cores else None)) if use_profile else {}
    if is_ours and base.get(_SOCKETS) == "true":
        base[_SOCKETS_IN] = _private_folder()
    remember(given)
    settings = _compatible(base, given)
    if output is not None:
        output.launch({"spark.master": chosen, "spark.app.name": name, **settings})
    elif is_ours and any(map(is_secret, settings)):
        _launch_without_secrets(settings)
    builder = SparkSession.builder.master(chosen).appName(name)
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    if is_ours and os.name == "posix" and settings.get(_LOCAL_FILES) == LOCAL_PROFILE[_LOCAL_FILES]:
        use_fast_local_files(session)
    if is_local(chosen):
        session.sparkContext.setLogLevel("ERROR")
    else:
        session.sparkContext.addPyFile(str(_packed()))
    return session


def _launch_without_secrets(settings: Mapping[str, str]) -> None:
    """A JVM's command line is for everybody to see; the session gets its secrets afterwards."""
    public = [(name, value) for name, value in settings.items() if not is_secret(name)]
    SparkContext._ensure_initialized(conf=SparkConf().setAll(public))


def profile(master: str, cores: int | None = None) -> Mapping[str, str]:
    """The settings that a master gets by default; `cores` where the master names more slots."""
    if not is_local(master):
        return {}
    return {
        **LOCAL_PROFILE,
        "spark.sql.shuffle.partitions": str(cores or task_slots(master) or 1),
        "spark.driver.memory": f"{_heap_mib()}m",
    }


def _private_folder() -> str:
    """For the sockets between Spark and its Python processes: in the temporary folder anybody could
    connect to them. Short, because a socket's path is."""
    folder = tempfile.mkdtemp(prefix="spillway-")  # mode 0700
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _heap_mib() -> int:
    """An eighth of the machine's memory, from one to eight GiB."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min(max(1024, pages // 8 // 2**20), 8192)


def _compatible(base: Mapping[str, str], config: Mapping[str, str]) -> Mapping[str, str]:
    """Both, without what the user's choices rule out: RocksDB needs Hadoop's checksummed files."""
    settings = {**base, **config}
    if "RocksDB" in settings.get(_STATE_STORE, "") and _LOCAL_FILES not in config:
        settings.pop(_LOCAL_FILES, None)
    return settings


def is_local(master: str) -> bool:
    return master == "local" or master.startswith("local[")


def _packed() -> Path:
    """Both packages as a zip: executors need nothing installed but PySpark, NumPy and PyArrow.

    And confluent-kafka, where they read Kafka.
    """
    target = Path(tempfile.mkdtemp(prefix="spillway-")) / "spillway.zip"
    with zipfile.ZipFile(target, "w") as archive:
        for package in (spillway, pyspark_spillway):
            assert package.__file__ is not None
            root = Path(package.__file__).parent
            for source in root.rglob("*.py"):
                archive.write(source, source.relative_to(root.parent))
    return target
