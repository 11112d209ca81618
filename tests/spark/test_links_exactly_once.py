"""The exactly-once topic: writers die and are overtaken, readers see every row once."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spillway.flow.flow import Flow, Query, Sink
from spillway.hosts.spark.driver.application import Application
from spillway.hosts.spark.files import Folder
from spillway.sinks import catalog
from spillway.sinks.fence import Fence

pytestmark = pytest.mark.kafka
LIMIT_S = 240.0
WRITER = """\
streams:
  ticks:
    source: synthetic
    options: {{rate: 2000, tuples: {tuples}, columns: "id position, key key(5)"}}
  results:
    source: kafka
    options: {{topic: {topic}, startingOffsets: earliest, kafka.bootstrap.servers: "{brokers}"}}
    columns: {{id: BIGINT, key: BIGINT}}
classes:
  default: {{delay: 2s, manager: none}}
queries:
  first:
    sink: {{type: kafka, brokers: "{brokers}", topic: {topic}}}
    sql: SELECT id, key FROM ticks
control: {{warm_up: 0s}}
spark: {{master: "local[1,4]", config: {{spark.driver.memory: 600m}}}}
"""
NEXT = """\
  second:
    sink: {{type: parquet, path: {root}/second}}
    sql: SELECT id, _arrival FROM results
"""


def committed(brokers: str, topic: str, isolation: str = "read_committed") -> list[Any]:
    """Every message of the topic that a plain consumer sees."""
    from confluent_kafka import Consumer, KafkaError, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": brokers,
            "group.id": f"test-{random.random()}",
            "isolation.level": isolation,
            "enable.partition.eof": True,
        }
    )
    _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30.0)
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[Any] = []
    try:
        while True:
            message = consumer.poll(30.0)
            assert message is not None, "the broker does not answer"
            error = message.error()
            if error is None:
                found.append(message)
                if (message.offset() or 0) >= end - 1:
                    return found
            elif error.code() == KafkaError._PARTITION_EOF:
                return found
    finally:
        consumer.close()


def ids_of(messages: list[Any]) -> list[int]:
    return [json.loads(message.value())["id"] for message in messages]


def until(holds: Any, what: str) -> None:
    begun_s = time.monotonic()
    while not holds():
        assert time.monotonic() - begun_s < LIMIT_S, what
        time.sleep(0.2)


def flow_to(brokers: str, topic: str, tuples: int) -> Flow:
    begun = str(time.time() - 60.0)  # all of it is there
    columns = "id position, key key(5)"
    stream: dict[str, Any] = {"rate": 5000, "tuples": tuples, "start": begun, "columns": columns}
    stream["startingOffsets"] = "earliest"
    return Flow.model_validate(
        {
            "streams": {"ticks": {"source": "synthetic", "options": stream}},
            "classes": {"default": {"delay": "1s", "manager": "none"}},
            "queries": {
                "first": {
                    "sql": "SELECT id, key, _arrival FROM ticks",
                    "sink": {
                        "type": "kafka",
                        "brokers": brokers,
                        "topic": topic,
                        "exactly_once": True,
                    },
                }
            },
        }
    )


def test_a_batch_that_is_run_again_is_not_sent_again(
    spark: SparkSession, tmp_path: Path, kafka_broker: Any
) -> None:
    brokers, topic, tuples = kafka_broker.bootstrap, "again", 5000
    kafka_broker.create_topic(topic)
    flow = flow_to(brokers, topic, tuples)
    for _ in range(2):
        frame = Application(flow, spark, Folder(root=tmp_path)).answers.frame("first")
        writer = frame.writeStream.outputMode("append").trigger(availableNow=True)
        aimed = catalog.aimed(writer, "first", flow.queries["first"].sink)
        query = aimed.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
        assert query.awaitTermination(round(LIMIT_S))
        commits = sorted((tmp_path / "checkpoint" / "commits").glob("[0-9]*"), key=_number)
        commits[-1].unlink()  # as a driver leaves it that died behind the transaction
    messages = committed(brokers, topic)
    assert sorted(ids_of(messages)) == list(range(tuples))
    sent_ms = {message.timestamp()[1] for message in messages}
    arrived_ms = {_ms(json.loads(message.value())["_arrival"]) for message in messages}
    assert sent_ms == arrived_ms  # the time of the first arrival


def _number(path: Path) -> int:
    return int(path.name)


def _ms(text: str) -> int:
    from datetime import datetime

    return int(datetime.fromisoformat(text).timestamp() * 1e3)


def started(spark: SparkSession, name: str, epoch: int, folder: Path, **sink: Any) -> Any:
    """A query without an end, of a node that was given it by this assignment."""
    query = Query(sql="SELECT 1", sink=Sink(**{"type": "kafka", "exactly_once": True, **sink}))
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    fence = Fence(owner="tests/q", generation=1, epoch=epoch)
    return catalog.start(rows.selectExpr("value AS id"), name, query, str(folder), fence)


def test_who_was_overtaken_commits_nothing_and_claims_nothing_back(
    spark: SparkSession, tmp_path: Path, kafka_broker: Any
) -> None:
    brokers, topic = kafka_broker.bootstrap, "overtaken"
    kafka_broker.create_topic(topic)
    given = {"brokers": brokers, "topic": topic}
    older = started(spark, "older", 3, tmp_path / "one", **given)
    until(lambda: len(committed(brokers, topic)) >= 20, "nothing was written")
    newer = started(spark, "newer", 5, tmp_path / "two", **given)
    until(lambda: not older.isActive, "the older one goes on")
    assert "runs on another node by a later assignment" in str(older.exception())
    again = started(spark, "older", 3, tmp_path / "one", **given)
    until(lambda: not again.isActive, "the older one came back")
    assert "runs on another node by a later assignment" in str(again.exception())
    assert newer.isActive
    newer.stop()


def test_one_from_before_that_comes_in_between_is_fenced_again(
    spark: SparkSession, tmp_path: Path, kafka_broker: Any
) -> None:
    """It took the transactional id and has claimed nothing: the query is still ours."""
    from confluent_kafka import Producer

    brokers, topic = kafka_broker.bootstrap, "between"
    kafka_broker.create_topic(topic)
    query = started(spark, "ours", 5, tmp_path / "one", brokers=brokers, topic=topic)
    until(lambda: len(committed(brokers, topic)) >= 20, "nothing was written")
    own = f"spillway/{topic}/tests/q/1"
    Producer({"bootstrap.servers": brokers, "transactional.id": own}).init_transactions(30.0)
    before = len(committed(brokers, topic))
    until(lambda: len(committed(brokers, topic)) >= before + 40, "it does not go on")
    assert query.isActive
    query.stop()
    ids = sorted(ids_of(committed(brokers, topic)))  # tasks run beside each other
    assert ids == list(range(len(ids)))


def test_delays_behind_a_link_count_from_the_first_arrival(
    spark: SparkSession, tmp_path: Path, kafka_broker: Any
) -> None:
    """All rows arrived a minute ago, whenever the topic got them."""
    brokers, topic = kafka_broker.bootstrap, "aged"
    kafka_broker.create_topic(topic)
    given = flow_to(brokers, topic, 5000).model_dump(by_alias=True)
    given["streams"]["results"] = {
        "source": "kafka",
        "options": {
            "topic": topic,
            "startingOffsets": "earliest",
            "kafka.bootstrap.servers": brokers,
        },
        "columns": {"id": "BIGINT"},
    }
    given["queries"]["second"] = {"sql": "SELECT id FROM results", "sink": {"type": "noop"}}
    application = Application(Flow.model_validate(given), spark, Folder(root=tmp_path))
    application.start()
    try:
        until(lambda: _kept(application, "second/") >= 5000, "not all rows came")
    finally:
        application.stop()
    behind = [b for b in application.batches if b.gate.startswith("second/") and b.kept_tuples]
    assert min(batch.mean_delay_s for batch in behind) > 50.0


def _kept(application: Application, gate: str) -> int:
    application.supervise()
    return sum(b.kept_tuples for b in application.batches if b.gate.startswith(gate))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_drivers_that_are_killed_lose_nothing_and_double_nothing_behind_the_link(
    tmp_path: Path, kafka_broker: Any
) -> None:
    """Writer and reader are processes of their own, killed and frozen at random moments."""
    brokers, topic, tuples = kafka_broker.bootstrap, f"link-{os.getpid()}", 60_000
    kafka_broker.create_topic(topic)
    text = WRITER.format(tuples=tuples, topic=topic, brokers=brokers)
    writer, reader = tmp_path / "writer.yaml", tmp_path / "reader.yaml"
    writer.write_text(text)
    head, _, tail = text.partition("  first:")
    behind = tail.partition("control:")[2]
    reader.write_text(head + NEXT.format(root=tmp_path) + "control:" + behind)
    moments = random.Random(17)
    running = {file: _run(file) for file in (writer, reader)}
    try:
        for _ in range(4):
            before = len(committed(brokers, topic))
            if before == tuples:
                break
            until(lambda b=before: len(committed(brokers, topic)) > b, "nothing is written")
            time.sleep(moments.uniform(0.0, 2.0))
            file = moments.choice((writer, reader))
            if moments.random() < 0.3:
                _signal(running[file], signal.SIGSTOP)
                time.sleep(moments.uniform(0.5, 3.0))
                _signal(running[file], signal.SIGCONT)
            _signal(running[file], signal.SIGKILL)
            running[file].wait()
            running[file] = _run(file)
        until(lambda: len(committed(brokers, topic)) >= tuples, "not all rows came")
        until(lambda: len(_rows(tmp_path / "second")) >= tuples, "not all rows came behind it")
    finally:
        for process in running.values():
            _signal(process, signal.SIGKILL)
            process.wait()
    for seen in (ids_of(committed(brokers, topic)), _rows(tmp_path / "second")):
        assert [i for i, times in Counter(seen).items() if times > 1] == []
        assert sorted(seen) == list(range(tuples))


def _run(file: Path) -> subprocess.Popen[bytes]:
    with file.with_suffix(".log").open("ab") as log:
        command = [sys.executable, "-m", "spillway.cli.app", "run", str(file), "--folder"]
        return subprocess.Popen(
            [*command, str(file.with_suffix(""))], stdout=log, stderr=log, start_new_session=True
        )


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """All of its processes at once, as when a machine dies or stands still."""
    import psutil

    try:
        tree = [psutil.Process(process.pid)]
        tree += tree[0].children(recursive=True)
    except psutil.NoSuchProcess:
        return
    for each in tree:
        try:
            each.send_signal(number)
        except psutil.NoSuchProcess:
            continue


def _rows(folder: Path) -> list[int]:
    """What Spark's own log of the folder names."""
    import pyarrow.parquet as pq

    from spillway.logs.sink_index import SinkIndex

    index = SinkIndex(str(folder))
    index.refresh()
    found: list[int] = []
    for file in index.files(0, index.rows):
        found += pq.read_table(file.path, columns=["id"])["id"].to_pylist()
    return found
