"""A gate on a real broker: shed, restart, truncation, malformed records, and Spark's own source."""

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from gates import (
    THIRD,
    Place,
    batches_done,
    committed_files,
    gate,
    to_files,
    wait_for_batches,
    wait_until,
)
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.query import StreamingQuery
from topics import Topic
from typer.testing import CliRunner

from spillway.cli.app import app

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(root=tmp_path)


def command(*arguments: object) -> str:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == 0, done.output
    return done.stdout


def delivered(sink: Path) -> Counter[int]:
    files = committed_files(sink)
    return Counter(
        n for file in files for n in pq.read_table(file, columns=["id"])["id"].to_pylist()
    )


def test_under_overload_and_over_a_restart_every_record_is_admitted_once_or_listed_as_shed(
    spark: SparkSession, kafka_broker: Any, place: Place
) -> None:
    topic = Topic(kafka_broker, "overloaded")
    topic.produce(2_000)
    costly = F.length(F.sha2(F.repeat(F.col("id").cast("string"), 1500), 512)).alias("cost")
    with topic.producing(60_000):
        for batches in (6, 12):
            rows = gate(spark, place, **topic.options, delay="500ms", **THIRD)
            frame = rows.select("id", costly)
            query = to_files(frame, place)
            wait_for_batches(query, batches)
            query.stop()
    audit = place.require_exact()
    assert audit.totals.shed > 10_000
    found = delivered(place.sink)
    for batch in place.chain():
        listed = command(
            "ledger",
            place.ledger,
            "--checkpoint",
            place.checkpoint,
            "--json",
            "--positions",
            batch.seq,
        )
        for partition, positions in json.loads(listed)["batches"][0]["shed"].items():
            found.update(n * topic.partitions + int(partition) for n in positions)
    consumed = {
        n * topic.partitions + stretch.partition
        for stretch in place.chain()[-1].stretches
        for n in range(stretch.stop)
    }
    assert set(found) == consumed
    assert set(found.values()) == {1}


def test_a_log_may_be_empty_and_stall_and_burst(
    spark: SparkSession, kafka_broker: Any, place: Place
) -> None:
    topic = Topic(kafka_broker, "uneven")
    query = to_files(gate(spark, place, **topic.options, delay="500ms"), place)
    wait_until(lambda: batches_done(query) == 0)
    time.sleep(1.5)
    assert batches_done(query) == 0, "an empty log makes no batches"
    topic.produce(1_000)
    wait_until(lambda: place.audit().totals.admitted == 1_000)
    wait_until(lambda: place.chain()[-1].heartbeat)
    stalled = len(place.chain())
    time.sleep(1.5)
    assert len(place.chain()) == stalled, "one empty batch closes the windows, then it waits"
    topic.produce(200_000)
    wait_until(lambda: sum(s.stop for s in place.chain()[-1].stretches) == 201_000)
    query.stop()
    totals = place.require_exact().totals
    assert (totals.offered, totals.pending) == (201_000, 0)


def to_folders(frame: DataFrame, place: Place) -> StreamingQuery:
    """A folder for each batch: a replayed batch writes its own again."""

    def write(rows: DataFrame, batch: int) -> None:
        rows.write.mode("overwrite").parquet(str(place.sink / str(batch)))

    return (
        frame.writeStream.foreachBatch(write)
        .option("checkpointLocation", str(place.checkpoint))
        .start()
    )


def rows(spark: SparkSession, place: Place) -> list[int]:
    found = spark.read.option("recursiveFileLookup", "true").schema("id long")
    return sorted(row.id for row in found.parquet(str(place.sink)).collect())


def forget_last_commit(place: Place) -> None:
    """What a kill in the middle of the last batch leaves: planned and logged, not completed."""
    commits = place.checkpoint / "commits"
    last = max(int(file.name) for file in commits.iterdir() if file.name.isdigit())
    (commits / str(last)).unlink()


def test_records_that_are_malformed_or_gone_are_counted_and_the_query_goes_on(
    spark: SparkSession, kafka_broker: Any, place: Place
) -> None:
    topic = Topic(kafka_broker, "damaged", partitions=1)
    options = {**topic.options, "manager": "none"}

    def run(until: int, **more: str) -> None:
        counted = {**options, "failOnDataLoss": "false", **more}
        query = to_folders(gate(spark, place, **counted), place)
        wait_until(lambda: place.ledger.exists() and place.audit().totals.admitted >= until)
        query.stop()

    topic.produce(500)
    for value in (b"no json", b'{"id": "text"}', None):
        topic.put(0, value)
    topic.flush()
    run(503)
    assert rows(spark, place) == list(range(500))

    # The batch that holds all 503 records is planned; 200 of them go before it is read.
    forget_last_commit(place)
    topic.truncate(0, 200)
    query = to_folders(gate(spark, place, **options), place)
    with pytest.raises(StreamingQueryException, match="no longer has 200 records of a planned"):
        query.awaitTermination(60)
    topic.produce(100)
    run(603)
    assert rows(spark, place) == [*range(200, 500), *range(503, 603)]
    totals = json.loads(command("ledger", place.ledger, "--json"))["gates"][0]
    assert totals["dead_letters"] == {"malformed": 3, "lost": 200}

    # 150 more that nobody has planned go as well.
    topic.produce(400)
    topic.truncate(0, 603 + 150)
    run(603 + 250)
    audit = place.audit()
    assert audit.exact
    assert (audit.totals.lost, audit.totals.shed) == (150, 150)
    assert any("the log dropped 150 tuples unread" in batch.reason for batch in audit.batches)
    assert rows(spark, place)[-250:] == list(range(753, 1003))
    [name] = (place.root / "dead_letters").iterdir()
    [letters] = name.iterdir()
    assert letters.name == str(audit.began_us)
    samples = [json.loads(line) for line in (letters / "samples-0.jsonl").open()]
    assert [(s["position"], s["value"]) for s in samples] == [
        (500, "no json"),
        (501, '{"id": "text"}'),
        (502, None),
    ]
    assert "3 were malformed and 200 had left the log" in command("ledger", place.ledger)


def test_a_query_ends_with_one_line_where_going_on_would_be_wrong(
    spark: SparkSession, kafka_broker: Any, place: Place
) -> None:
    """A malformed record under FAILFAST; then the topic is made anew, longer than our position."""
    topic = Topic(kafka_broker, "unforgiving", partitions=1)
    topic.produce(100)
    topic.put(0, b"no json")
    topic.flush()
    options = {**topic.options, "manager": "none"}
    query = to_folders(gate(spark, place, **options, mode="failfast"), place)
    with pytest.raises(StreamingQueryException, match="'unforgiving', partition 0, offset 100 is"):
        query.awaitTermination(60)
    query = to_folders(gate(spark, place, **options), place)
    wait_until(lambda: place.ledger.exists() and place.audit().totals.admitted >= 101)
    query.stop()
    assert rows(spark, place) == list(range(100))

    admin = kafka_broker.admin()
    admin.delete_topics([topic.name])[topic.name].result(30)
    wait_until(lambda: topic.name not in admin.list_topics(timeout=5).topics)
    Topic(kafka_broker, topic.name, partitions=1).produce(500)
    for crashed in (False, True):  # then the batch that was logged last would run again
        if crashed:
            forget_last_commit(place)
        query = to_folders(gate(spark, place, **options), place)
        with pytest.raises(StreamingQueryException, match="'unforgiving' was made anew"):
            query.awaitTermination(60)
    assert rows(spark, place) == list(range(100)), "nothing of the other topic came out"


def own_source(spark: SparkSession, topic: Topic, place: Place, starting: str) -> None:
    """Spark's own source, over everything that is there."""
    frame = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", topic.broker.bootstrap)
        .option("subscribe", topic.name)
        .option("startingOffsets", starting)
        .option("maxOffsetsPerTrigger", "700")
        .load()
        .select(F.get_json_object(F.col("value").cast("string"), "$.id").cast("long").alias("id"))
    )
    query = (
        frame.writeStream.format("parquet")
        .trigger(availableNow=True)
        .option("path", str(place.sink))
        .option("checkpointLocation", str(place.checkpoint))
        .start()
    )
    assert query.awaitTermination(60)


def test_a_gate_takes_over_from_sparks_own_kafka_source_and_hands_back(
    spark_with_kafka: SparkSession, kafka_broker: Any, tmp_path: Path
) -> None:
    spark, topic = spark_with_kafka, Topic(kafka_broker, "handed-over")
    before, during, after = (Place(root=tmp_path / name) for name in ("before", "gate", "after"))
    topic.produce(2_000)
    own_source(spark, topic, before, "earliest")
    topic.produce(1_000)

    handed = command("offsets", before.checkpoint)
    assert json.loads(handed) == {topic.name: {"0": 1_000, "1": 1_000}}
    options = {**topic.options, "startingOffsets": handed, "manager": "none"}
    during.root.mkdir()
    query = to_files(gate(spark, during, **options), during)
    wait_until(lambda: sum(delivered(during.sink).values()) == 1_000)
    topic.produce(1_000)
    wait_until(lambda: sum(delivered(during.sink).values()) == 2_000)
    query.stop()
    topic.produce(1_000)

    own_source(spark, topic, after, command("offsets", during.checkpoint))
    every = delivered(before.sink) + delivered(during.sink) + delivered(after.sink)
    assert set(every) == topic.ids
    assert set(every.values()) == {1}
