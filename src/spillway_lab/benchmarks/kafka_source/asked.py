"""What runs in the benchmark, and the options of a gate that say the same."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from spillway.hosts.spark.driver.progress import BatchProgress
from spillway_lab.benchmarks.kafka_source.records import AVRO_NUMBER

SPARK, PYTHON, NATIVE = "spark", "python", "native"
DELAY = "10m"  # bounds no batch

OnBatch = Callable[[BatchProgress], None]


@dataclass(frozen=True, kw_only=True)
class Place:
    servers: str
    topic: str
    records: int
    jars: str
    core: int | None  # None: no core can be set apart
    avro: str | None = None  # the file with the schema of its records; None: they are JSON


@dataclass(frozen=True, kw_only=True)
class Asked:
    """Batches of so many kept records, a share of what is scanned."""

    source: str
    shape: str
    batch: int
    share: float = 1.0


def options_of(asked: Asked, place: Place) -> dict[str, str]:
    """Of log and gate, apart from the load manager."""
    avro = {"decode": "avro", "avro_schemas": f"{AVRO_NUMBER}={place.avro}"}
    return {
        **(avro if place.avro is not None else {}),
        "topic": place.topic,
        "kafka.bootstrap.servers": place.servers,
        "reader": asked.source,
        "startingOffsets": "earliest",
        "first_batch": str(asked.batch),
        "max_batch": str(asked.batch),
        "parallelism": "1",
    }


def manager_of(asked: Asked) -> tuple[str, Mapping[str, float]]:
    """Its name and its parameters."""
    return ("fixed", {"keep_fraction": asked.share}) if asked.share < 1.0 else ("none", {})
