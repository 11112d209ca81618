"""A plain Spark job's checkpoint, with its state, taken over by the gate and given back."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from typer.testing import CliRunner

from spillway.cli.app import app

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow]

BEGIN_MS = 1_767_225_600_000
EVERY_MS = 700
PARTITIONS = {"bought": 2, "returned": 1}
CHECKSUMS = "spark.sql.streaming.checkpoint.fileChecksum.enabled"
GATE = {"delay": "60 seconds"}


class Shop:
    """Records whose number is their time; every tenth comes again in the part after."""

    def __init__(self, broker: Any) -> None:
        self.servers = broker.bootstrap
        self._producer = Producer({"bootstrap.servers": self.servers, "log_level": 0})
        own = uuid4().hex[:6]
        self.topics = {f"{name}-{own}": partitions for name, partitions in PARTITIONS.items()}
        self.ids: dict[str, int] = dict.fromkeys(self.topics, 0)
        for topic, partitions in self.topics.items():
            broker.create_topic(topic, partitions=partitions, config={"retention.ms": "-1"})

    def sell(self, records: int) -> None:
        for topic, partitions in self.topics.items():
            first = self.ids[topic]
            for number in [*range(max(0, first - 60), first, 10), *range(first, first + records)]:
                self._producer.produce(
                    topic,
                    json.dumps({"id": number}).encode(),
                    partition=number % partitions,
                    timestamp=BEGIN_MS + number * EVERY_MS,
                )
            self.ids[topic] += records
        assert self._producer.flush(60) == 0

    def expected(self) -> dict[tuple[str, int], int]:
        """Records of each topic and minute, each once."""
        found: dict[tuple[str, int], int] = {}
        for topic, count in self.ids.items():
            for number in range(count):
                minute = (BEGIN_MS + number * EVERY_MS) // 60_000
                found[topic, minute] = found.get((topic, minute), 0) + 1
        return found


@pytest.fixture
def shop(kafka_broker: Any) -> Shop:
    return Shop(kafka_broker)


@pytest.fixture
def plain(spark_with_kafka: SparkSession) -> Iterator[SparkSession]:
    """With the checksums that Spark has where nobody asks otherwise."""
    spark_with_kafka.conf.set(CHECKSUMS, "true")
    yield spark_with_kafka
    spark_with_kafka.conf.unset(CHECKSUMS)


class Job:
    """Two topics, counted by minute without doubles: wrong without what was read before."""

    def __init__(self, spark: SparkSession, shop: Shop, folder: Path) -> None:
        self._spark, self._shop, self.checkpoint = spark, shop, folder / "checkpoint"
        self.counts: dict[tuple[str, int], int] = {}
        self.rows: dict[int, list[str]] = {}

    def run(self, source: str, **options: str) -> None:
        read = self._spark.readStream.format(source).options(**options)
        read = read.option("kafka.bootstrap.servers", self._shop.servers)
        frame = read.option("subscribe", ",".join(self._shop.topics)).option(
            "startingOffsets", "earliest"
        )
        order = F.from_json(F.col("value").cast("string"), "id long").alias("order")
        orders = frame.load().select("topic", "timestamp", order)
        minute = F.window("timestamp", "1 minute").alias("minute")
        counted = (
            orders.withWatermark("timestamp", "1 hour")
            .groupBy("topic", minute)
            .agg(F.size(F.collect_set("order.id")).alias("count"))
        )
        writer = counted.writeStream.foreachBatch(self._keep).outputMode("update")
        place = writer.option("checkpointLocation", str(self.checkpoint))
        query = place.trigger(availableNow=True).start()
        assert query.awaitTermination(180)

    def _keep(self, rows: DataFrame, batch: int) -> None:
        found = rows.select("topic", F.col("minute.start").cast("long").alias("at"), "count")
        self.rows[batch] = sorted(map(str, kept := found.collect()))
        for row in kept:
            self.counts[row["topic"], row["at"] // 60] = row["count"]


@pytest.fixture
def job(plain: SparkSession, shop: Shop, tmp_path: Path) -> Job:
    return Job(plain, shop, tmp_path)


@pytest.fixture
def adopt(job: Job) -> Callable[..., str]:
    def command(*words: str) -> str:
        result = CliRunner().invoke(app, ["adopt", str(job.checkpoint), *words])
        assert result.exit_code == 0, result.exception
        return result.output

    return command


def test_state_and_positions_go_on_through_the_gate_and_back(
    shop: Shop, job: Job, adopt: Callable[..., str]
) -> None:
    shop.sell(200)
    job.run("kafka")
    assert "a gate goes on there" in adopt("--dry-run")
    shop.sell(150)
    job.run("spillway", **GATE)
    assert job.counts == shop.expected()
    shop.sell(120)
    assert "written anew" in adopt("--back")
    job.run("kafka")
    assert job.counts == shop.expected()
    shop.sell(90)
    job.run("spillway", **GATE)
    assert job.counts == shop.expected()
    assert sorted(job.rows) == list(range(max(job.rows) + 1))


def test_a_batch_that_was_begun_is_run_again_as_it_was_cut(
    shop: Shop, job: Job, adopt: Callable[..., str]
) -> None:
    shop.sell(200)
    job.run("kafka", maxOffsetsPerTrigger="120")
    last = max(job.rows)
    for name in (str(last), f".{last}.crc", f"{last}.crc"):
        (job.checkpoint / "commits" / name).unlink(missing_ok=True)  # killed before it was done
    before = job.rows.pop(last)
    assert f"batch {last} will be run again first" in adopt()
    shop.sell(100)
    job.run("spillway", **GATE)
    assert job.rows[last] == before
    assert job.counts == shop.expected()
