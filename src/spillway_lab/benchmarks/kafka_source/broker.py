"""The broker of a benchmark: the one that is named, or one that is started for it."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

from spillway.errors import SpillwayError
from spillway_lab.benchmarks.logs import KAFKA_JARS_VARIABLE, KAFKA_VARIABLE
from spillway_lab.benchmarks.memory import set_cores

_TESTS = Path(__file__).parents[4] / "tests" / "kafka"


@dataclass(frozen=True, kw_only=True)
class Served:
    servers: str
    jars: str  # of Spark's own source and of its functions for Avro, with commas between them
    core: int | None  # that the system under test has for itself


@contextmanager
def served() -> Iterator[Served]:
    """One core is for the system under test, where there are more; a broker of ours takes the
    others."""
    cores = sorted(os.sched_getaffinity(0))
    core = cores[0] if len(cores) > 1 else None
    given, jars = os.environ.get(KAFKA_VARIABLE), os.environ.get(KAFKA_JARS_VARIABLE)
    if given is not None and jars is not None:
        yield Served(servers=given, jars=jars, core=core)
        return
    if not _TESTS.exists():
        raise SpillwayError(
            f"'kafka-source' needs a Kafka broker: set {KAFKA_VARIABLE}=host:port and"
            f" {KAFKA_JARS_VARIABLE}, or run it in the project's folder, which can start one"
        )
    sys.path.append(str(_TESTS))
    tests = import_module("broker")
    with TemporaryDirectory(prefix="spillway-broker-") as folder:
        broker = tests.Broker(Path(folder))
        try:
            jars = ",".join([*tests.spark_source_jars(), *tests.spark_avro_jars()])
            broker.start()
            if core is not None:
                set_cores(set(cores) - {core})
            yield Served(servers=broker.bootstrap, jars=jars, core=core)
        except tests.UnavailableError as error:
            raise SpillwayError(str(error)) from error
        finally:
            broker.stop()
