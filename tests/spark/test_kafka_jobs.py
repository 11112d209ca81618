"""Jobs as people have them, over Spark's own Kafka source and then over the gate: one word and one
option changed, and the same columns and rows."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DoubleType, LongType, StringType, StructField, StructType

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow]

BEGIN_MS = 1_767_225_600_000  # of the records' own times
EVERY_MS = 500
ORDER = StructType(
    [
        StructField("id", LongType()),
        StructField("city", StringType()),
        StructField("price", DoubleType()),
    ]
)
Rows = list[str]
Load = Callable[..., DataFrame]


@dataclass(frozen=True)
class Job:
    options: dict[str, str]
    work: Callable[[DataFrame], DataFrame] = lambda frame: frame
    mode: str = "append"


def texts(frame: DataFrame) -> DataFrame:
    return frame.selectExpr("CAST(key AS STRING)", "CAST(value AS STRING)")


def orders(frame: DataFrame) -> DataFrame:
    parsed = F.from_json(F.col("value").cast("string"), ORDER).alias("order")
    return frame.select(parsed, "timestamp").select("order.*", "timestamp")


def per_minute(frame: DataFrame) -> DataFrame:
    late = orders(frame).withWatermark("timestamp", "10 seconds")
    return late.groupBy(F.window("timestamp", "1 minute"), "city").agg(
        F.count("*").alias("orders"), F.round(F.sum("price"), 2).alias("turnover")
    )


def once(frame: DataFrame) -> DataFrame:
    seen = orders(frame).withWatermark("timestamp", "1 hour")
    return seen.dropDuplicatesWithinWatermark(["id"]).select("id", "city")


def per_topic(frame: DataFrame) -> DataFrame:
    return frame.groupBy("topic", "partition").agg(
        F.count("*").alias("records"), F.max("offset").alias("last")
    )


def with_headers(frame: DataFrame) -> DataFrame:
    trace = F.filter("headers", lambda h: h.key == "trace")[0].value.cast("string").alias("trace")
    return frame.select(F.col("key").cast("string"), trace)


JOBS = {
    "as it comes": Job({"subscribe": "orders"}),
    "key and value as text": Job({"subscribe": "orders"}, texts),
    "JSON, filtered": Job(
        {"subscribe": "orders", "failOnDataLoss": "false"},
        lambda frame: orders(frame).where("price > 50").select("id", "city"),
    ),
    "windowed sums": Job({"subscribe": "orders", "minPartitions": "4"}, per_minute, "update"),
    "without doubles": Job({"subscribe": "orders"}, once),
    "several topics": Job({"subscribe": "orders,returns"}, per_topic, "complete"),
    "a pattern": Job({"subscribePattern": "(ord|ret).*s"}, per_topic, "complete"),
    "some partitions": Job({"assign": '{"orders": [1], "returns": [0]}'}, per_topic, "complete"),
    "headers": Job({"subscribe": "orders", "includeHeaders": "true"}, with_headers),
    "from given offsets": Job(
        {
            "subscribe": "orders,returns",
            "startingOffsets": '{"orders": {"0": 100, "1": -2}, "returns": {"0": 20, "1": -1}}',
        },
        per_topic,
        "complete",
    ),
    "from a time": Job(
        {"subscribe": "orders", "startingTimestamp": str(BEGIN_MS + 100 * EVERY_MS)},
        per_topic,
        "complete",
    ),
    "small batches": Job({"subscribe": "orders", "maxOffsetsPerTrigger": "150"}, texts),
}


@dataclass
class Result:
    columns: list[tuple[str, str]]
    rows: dict[int, Rows] = field(default_factory=dict)  # by batch

    @property
    def every(self) -> Rows:
        return sorted(row for rows in self.rows.values() for row in rows)

    @property
    def last(self) -> Rows:
        return sorted(self.rows[max(self.rows)])


def run(job: Job, reader: Any, folder: Path) -> Result:
    """The job as it stands, over everything that is there."""
    frame = job.work(reader.load())
    found = Result([(field.name, field.dataType.simpleString()) for field in frame.schema])

    def keep(rows: DataFrame, batch: int) -> None:
        found.rows[batch] = [str(row) for row in rows.collect()]

    query = (
        frame.writeStream.foreachBatch(keep)
        .outputMode(job.mode)
        .trigger(availableNow=True)
        .option("checkpointLocation", str(folder))
        .start()
    )
    assert query.awaitTermination(120)
    return found


@pytest.fixture(scope="module")
def topics(kafka_broker: Any) -> Any:
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap, "log_level": 0})
    for topic, records in (("orders", 400), ("returns", 60)):
        kafka_broker.create_topic(topic, partitions=2, config={"retention.ms": "-1"})
        for n in range(records):
            order = {"id": n // 2 * 2, "city": f"city {n % 3}", "price": float(n % 100)}
            producer.produce(
                topic,
                json.dumps(order).encode(),
                key=str(n % 7).encode(),
                partition=n % 2,
                timestamp=BEGIN_MS + n * EVERY_MS,
                headers=[("trace", str(n).encode())],
            )
    assert producer.flush(30) == 0
    return kafka_broker


@pytest.mark.parametrize("name", JOBS)
def test_a_job_changed_by_one_word_and_one_option_does_the_same(
    name: str, spark_with_kafka: SparkSession, topics: Any, tmp_path: Path
) -> None:
    spark, job = spark_with_kafka, JOBS[name]

    def reader(format_name: str) -> Any:
        return (
            spark.readStream.format(format_name)
            .option("kafka.bootstrap.servers", topics.bootstrap)
            .options(**{"startingOffsets": "earliest", **job.options})
        )

    sparks = run(job, reader("kafka"), tmp_path / "sparks")
    ours = run(job, reader("spillway").option("delay", "2 seconds"), tmp_path / "ours")
    assert ours.columns == sparks.columns
    if job.mode == "append":
        assert ours.every == sparks.every
    elif job.mode == "complete":
        assert ours.last == sparks.last
    else:
        assert set(ours.last) <= set(sparks.every) | set(sparks.last)
        assert len(ours.every) >= len(set(sparks.every)) > 0


def test_a_topic_that_comes_later_and_matches_the_pattern_is_read_and_a_restart_goes_on(
    spark: SparkSession, kafka_broker: Any, tmp_path: Path
) -> None:
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap, "log_level": 0})

    def produce(topic: str, first: int, count: int) -> None:
        for n in range(first, first + count):
            producer.produce(topic, str(n).encode())
        assert producer.flush(30) == 0

    kafka_broker.create_topic("meter-b")
    produce("meter-b", 0, 50)
    found: list[str] = []

    def start() -> Any:
        frame = (
            spark.readStream.format("spillway")
            .option("kafka.bootstrap.servers", kafka_broker.bootstrap)
            .option("subscribePattern", "meter-.*")
            .option("startingOffsets", "earliest")
            .option("delay", "2s")
            .load()
        )

        def keep(rows: DataFrame, batch: int) -> None:
            found.extend(f"{row.topic}:{bytes(row.value).decode()}" for row in rows.collect())

        location = str(tmp_path / "checkpoint")
        return frame.writeStream.foreachBatch(keep).option("checkpointLocation", location).start()

    def wait_for(rows: int) -> None:
        deadline_s = time.monotonic() + 120
        while len(found) < rows:
            assert time.monotonic() < deadline_s, f"{len(found)} of {rows} rows came"
            time.sleep(0.1)

    query = start()
    wait_for(50)
    kafka_broker.create_topic("meter-a")  # before the other one in the alphabet: a later number
    produce("meter-a", 100, 30)
    wait_for(80)
    query.stop()
    produce("meter-a", 130, 10)
    produce("meter-b", 50, 10)
    query = start()
    wait_for(100)
    query.stop()
    every = [f"meter-a:{n}" for n in range(100, 140)] + [f"meter-b:{n}" for n in range(60)]
    assert sorted(found) == sorted(every)


def test_a_missing_topic_is_told_before_the_query_starts(
    spark: SparkSession, kafka_broker: Any
) -> None:
    reader = spark.readStream.format("spillway").option("subscribe", "ordres").option("delay", "2s")
    with pytest.raises(PySparkException, match="has no topic 'ordres': create it, or correct"):
        reader.option("kafka.bootstrap.servers", kafka_broker.bootstrap).load()


def test_a_batch_read_is_answered_in_one_line(spark: SparkSession, topics: Any) -> None:
    reader = spark.read.format("spillway").option("subscribe", "orders").option("delay", "2s")
    frame = reader.option("kafka.bootstrap.servers", topics.bootstrap)
    with pytest.raises(PySparkException, match="reads streams, with"):
        frame.load().count()
