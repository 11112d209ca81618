"""One Kafka broker (KRaft, a single node) on loopback, for tests and benchmarks.

The jars come from Maven; `UnavailableError` says in one line why there is no broker here.
"""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

HERE = Path(__file__).parent
CLUSTER_ID = "c3BpbGx3YXktdGVzdHMtMQ"
START_TIMEOUT_S = 90.0
USER, PASSWORD = "reader", "open-sesame"

PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller_port}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:{port},SECURE://127.0.0.1:{secure_port},\
CONTROLLER://127.0.0.1:{controller_port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SECURE:SASL_SSL,CONTROLLER:PLAINTEXT
listener.name.secure.ssl.keystore.location={keystore}
listener.name.secure.ssl.keystore.type=PKCS12
listener.name.secure.ssl.keystore.password={password}
listener.name.secure.sasl.enabled.mechanisms=PLAIN
listener.name.secure.plain.sasl.jaas.config=\
org.apache.kafka.common.security.plain.PlainLoginModule required user_{user}="{password}";
log.dirs={data}
num.partitions=1
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
log.retention.check.interval.ms=1000
log.segment.delete.delay.ms=0
log.cleaner.backoff.ms=500
"""


class UnavailableError(Exception):
    """Why a broker cannot be started here."""


class Broker:
    """A broker process that can be stopped and started again on the same port and data."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port, self._secure_port, self._controller_port = _free_ports(3)
        self._process: subprocess.Popen[bytes] | None = None
        self.bootstrap = f"127.0.0.1:{self._port}"
        self.secure_bootstrap = f"127.0.0.1:{self._secure_port}"  # TLS, and a password
        self.certificate = folder / "certificate.pem"

    def start(self) -> None:
        config = self._folder / "server.properties"
        if not config.exists():
            self._format(config)
        with (self._folder / "broker.log").open("ab") as log:
            command = _java("kafka.Kafka", str(config))
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        self._wait_until_up()

    def stop(self) -> None:
        """Ends the broker at once: its log is on disk, and a test of an outage wants it abrupt."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def create_topic(
        self, name: str, partitions: int = 1, config: Mapping[str, str] | None = None
    ) -> None:
        topic = NewTopic(name, partitions, 1, config=dict(config or {}))
        admin = self.admin()
        for done in admin.create_topics([topic]).values():
            done.result(30)

    def data(self, topic: str) -> Path:
        """Where the first partition of a topic lies."""
        return self._folder / "data" / f"{topic}-0"

    def admin(self) -> Any:
        return AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})

    def _certify(self, keystore: Path) -> None:
        """A key of the broker's own, signed by itself, and its certificate for clients."""
        store = ("-keystore", str(keystore), "-storepass", PASSWORD, "-alias", "broker")
        key = ("-keyalg", "EC", "-dname", "CN=127.0.0.1", "-ext", "san=ip:127.0.0.1")
        made = ("-genkeypair", "-storetype", "PKCS12", "-validity", "3650", *key)
        shown = ("-exportcert", "-rfc", "-file", str(self.certificate))
        for arguments in (made, shown):
            command = [_tool("keytool"), *arguments, *store]
            subprocess.run(command, capture_output=True, check=True, timeout=60)

    def _format(self, config: Path) -> None:
        keystore = self._folder / "keystore.p12"
        self._certify(keystore)
        config.write_text(
            PROPERTIES.format(
                port=self._port,
                secure_port=self._secure_port,
                keystore=keystore,
                user=USER,
                password=PASSWORD,
                controller_port=self._controller_port,
                data=self._folder / "data",
            )
        )
        command = _java("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(config))
        done = subprocess.run(command, capture_output=True, text=True, timeout=START_TIMEOUT_S)
        if done.returncode != 0:
            raise RuntimeError(f"the broker's folder cannot be formatted: {done.stderr[-2000:]}")

    def _wait_until_up(self) -> None:
        admin = self.admin()
        deadline_s = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline_s:
            if self._process is None or self._process.poll() is not None:
                break
            try:
                if admin.list_topics(timeout=1.0).brokers:
                    return
            except Exception:  # not up yet
                time.sleep(0.1)
        log = (self._folder / "broker.log").read_text()
        self.stop()
        raise RuntimeError(f"the broker did not start in {START_TIMEOUT_S:g} s: {log[-2000:]}")


def classpath() -> str:
    """The broker's jars."""
    return _resolved("classpath.txt")


def spark_source_jars() -> list[str]:
    """The jars of Spark's own Kafka source, as far as Spark does not bring them."""
    parts = ("spark-sql-kafka", "spark-token-provider", "kafka-clients", "commons-pool2")
    jars = _resolved("spark-source.txt", "-Pspark-source").split(os.pathsep)
    return [jar for jar in jars if Path(jar).name.startswith(parts)]


def spark_avro_jars() -> list[str]:
    """The jar of Spark's functions for Avro."""
    jars = _resolved("spark-avro.txt", "-Pspark-avro").split(os.pathsep)
    return [jar for jar in jars if Path(jar).name.startswith("spark-avro")]


def _resolved(file: str, *arguments: str) -> str:
    """A class path, resolved by Maven once and remembered under target/."""
    remembered = HERE / "target" / file
    if remembered.exists() and remembered.stat().st_mtime > (HERE / "pom.xml").stat().st_mtime:
        known = remembered.read_text()
        if all(Path(jar).exists() for jar in known.split(os.pathsep)):
            return known
    maven = shutil.which("mvn")
    if maven is None:
        raise UnavailableError("no Kafka here: Maven ('mvn') is not on the PATH")
    remembered.parent.mkdir(exist_ok=True)
    goal = ["dependency:build-classpath", f"-Dmdep.outputFile={remembered}"]
    try:
        command = [maven, "-q", "-B", *arguments, "-f", str(HERE / "pom.xml"), *goal]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    except subprocess.TimeoutExpired:
        raise UnavailableError("no Kafka here: Maven did not resolve its jars in 240 s") from None
    if done.returncode != 0:
        errors = [line for line in done.stdout.splitlines() if "ERROR" in line]
        reason = errors[0] if errors else f"exit code {done.returncode}"
        raise UnavailableError(f"no Kafka here: Maven cannot resolve its jars: {reason}")
    return remembered.read_text()


def _tool(name: str) -> str:
    """One of Java's programs."""
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home, "bin", name)) if home else shutil.which(name)
    if found is None:
        raise UnavailableError(f"no Kafka broker: Java's '{name}' is not on the PATH")
    return found


def _java(main: str, *arguments: str) -> list[str]:
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
    memory = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
    return [_tool("java"), *memory, quiet, "-cp", classpath(), main, *arguments]


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()
