"""What only a broker can show: growth, gaps, truncation, outages, malformed records."""

import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from broker import PASSWORD, USER

from spillway.errors import SpillwayError
from spillway.logs import kafka_watch
from spillway.logs.catalog import open_log
from spillway.logs.dead_letters import dead_letter_totals
from spillway.ports import Span

pytestmark = pytest.mark.kafka

SCHEMA = pa.schema([("n", pa.int64())])


def produce(broker: Any, topic: str, values: list[bytes | None], **config: str) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0} | config)
    for number, value in enumerate(values):
        producer.produce(topic, value, key=str(number % 5).encode(), partition=0)
    assert producer.flush(30) == 0


def numbers(first: int, last: int) -> list[bytes | None]:
    return [json.dumps({"n": n}).encode() for n in range(first, last)]


def options_of(broker: Any, topic: str, **more: str) -> dict[str, str]:
    return {
        "source": "kafka",
        "topic": topic,
        "kafka.bootstrap.servers": broker.bootstrap,
        "outage_timeout": "20s",
    } | more


def read(log: Any, span: Span, wanted: np.ndarray | None = None) -> list[int]:
    return [n for batch in log.read(span, wanted) for n in batch.column("n").to_pylist()]


def eventually(holds: Callable[[], bool], within_s: float = 120.0) -> None:
    deadline_s = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline_s, f"not within {within_s} s"
        time.sleep(0.1)


def test_malformed_records_are_counted_once_sampled_and_left_out(
    kafka_broker: Any, tmp_path: Any
) -> None:
    kafka_broker.create_topic("malformed")
    values = numbers(0, 100)
    values[10:15] = [b"not json", b'{"n": "text"}', None, b"\xff\xfe", b'{"n": 1}{"n": 2}']
    produce(kafka_broker, "malformed", values)
    log = open_log(options_of(kafka_broker, "malformed", dead_letter=str(tmp_path)), SCHEMA)
    span = Span(partition=0, start=0, stop=100)
    assert read(log, span) == [*range(10), *range(15, 100)]
    assert read(log, span) == [*range(10), *range(15, 100)]
    assert dead_letter_totals(tmp_path) == {"malformed": 5, "lost": 0}
    samples = [json.loads(line) for line in (tmp_path / "samples-0.jsonl").open()]
    assert {sample["position"] for sample in samples} == {10, 11, 12, 13, 14}


def test_new_partitions_are_found(kafka_broker: Any) -> None:
    from confluent_kafka.admin import NewPartitions

    kafka_broker.create_topic("growing")
    log = open_log(options_of(kafka_broker, "growing"))
    assert len(log.extent(time.time())) == 1
    admin = kafka_broker.admin()
    for done in admin.create_partitions([NewPartitions("growing", 3)]).values():
        done.result(30)
    eventually(lambda: len(log.extent(time.time() + kafka_watch.PARTITIONS_EVERY_S)) == 3)


def secured(broker: Any, **more: str) -> dict[str, str]:
    """TLS with the broker's certificate, and a user with a password."""
    return {
        "kafka.bootstrap.servers": broker.secure_bootstrap,
        "kafka.security.protocol": "SASL_SSL",
        "kafka.ssl.ca.location": str(broker.certificate),
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.username": USER,
        "kafka.sasl.password": PASSWORD,
    } | {f"kafka.{name}": value for name, value in more.items()}


def test_security_options_reach_the_client(kafka_broker: Any) -> None:
    kafka_broker.create_topic("secured")
    produce(kafka_broker, "secured", numbers(0, 50))
    log = open_log(options_of(kafka_broker, "secured", **secured(kafka_broker)), SCHEMA)
    [span] = log.extent(time.time())
    assert span.stop == 50
    assert read(log, span) == list(range(50))


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"sasl.password": "guess"}, "uthentication"),
        ({"ssl.ca.location": ""}, "certificate"),
    ],
)
def test_a_refused_login_is_told(
    kafka_broker: Any, wrong: dict[str, str], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_watch, "REQUEST_TIMEOUT_S", 2.0)
    given = options_of(kafka_broker, "secured", **secured(kafka_broker, **wrong))
    log = open_log(given, SCHEMA)
    with pytest.raises(SpillwayError, match=told):
        eventually(lambda: bool(log.extent(time.time())))


def test_long_holes_are_jumped_over(kafka_broker: Any) -> None:
    kafka_broker.create_topic("holes")
    produce(kafka_broker, "holes", numbers(0, 30_000), **{"linger.ms": "20"})
    log = open_log(options_of(kafka_broker, "holes"), SCHEMA)
    wanted = np.array([0, 1, 12_000, 12_007, 29_999])
    assert read(log, Span(partition=0, start=0, stop=30_000), wanted) == wanted.tolist()


def test_offsets_of_aborted_transactions_are_positions_without_rows(kafka_broker: Any) -> None:
    from confluent_kafka import Producer

    kafka_broker.create_topic("transactions")
    config = {"bootstrap.servers": kafka_broker.bootstrap, "transactional.id": "t"}
    producer = Producer(config)
    producer.init_transactions(30)
    for number in range(6):
        producer.begin_transaction()
        producer.produce("transactions", json.dumps({"n": number}).encode())
        producer.flush()
        if number % 2:
            producer.abort_transaction()
        else:
            producer.commit_transaction()
    log = open_log(options_of(kafka_broker, "transactions"), SCHEMA)
    (span,) = log.extent(time.time())
    assert span.stop == 12, "six records and six markers"
    assert read(log, span) == [0, 2, 4]
    parts = [Span(partition=0, start=at, stop=at + 3) for at in range(0, 12, 3)]
    assert [n for part in parts for n in read(log, part)] == [0, 2, 4]


def test_a_truncated_log_shows_in_the_extent_and_what_is_left_is_read(
    kafka_broker: Any, tmp_path: Any
) -> None:
    from confluent_kafka import TopicPartition

    kafka_broker.create_topic("truncated")
    produce(kafka_broker, "truncated", numbers(0, 100))
    options = options_of(kafka_broker, "truncated", dead_letter=str(tmp_path))
    options["failOnDataLoss"] = "false"
    log = open_log(options, SCHEMA)
    now_s = time.time()
    (planned,) = log.extent(now_s)
    admin = kafka_broker.admin()
    for done in admin.delete_records([TopicPartition("truncated", 0, 60)]).values():
        done.result(30)
    assert read(log, planned) == list(range(60, 100))
    assert dead_letter_totals(tmp_path) == {"malformed": 0, "lost": 60}
    (after,) = log.extent(now_s + kafka_watch.EARLIEST_EVERY_S)
    assert (after.start, after.stop) == (60, 100)
    gone = Span(partition=0, start=0, stop=50)
    assert read(log, gone, np.array([1, 2, 3])) == []
    assert dead_letter_totals(tmp_path)["lost"] == 60, "each position counts once"


def test_what_has_gone_ends_the_read_unless_it_is_to_be_counted(kafka_broker: Any) -> None:
    kafka_broker.create_topic("gone")
    produce(kafka_broker, "gone", numbers(0, 100))
    truncate(kafka_broker, "gone", 60)
    log = open_log(options_of(kafka_broker, "gone"), SCHEMA)
    with pytest.raises(SpillwayError, match=r"no longer has 55 records of a planned batch.* at 5:"):
        read(log, Span(partition=0, start=5, stop=100))


def truncate(broker: Any, topic: str, first: int) -> None:
    from confluent_kafka import TopicPartition

    admin = broker.admin()
    for done in admin.delete_records([TopicPartition(topic, 0, first)]).values():
        done.result(30)


def made_anew(broker: Any, topic: str, records: int) -> None:
    """Deleted and created again: other records at the same offsets."""
    admin = broker.admin()
    admin.delete_topics([topic])[topic].result(30)
    eventually(lambda: topic not in admin.list_topics(timeout=5).topics)
    broker.create_topic(topic)
    produce(broker, topic, numbers(1000, 1000 + records))


def test_what_lies_outside_of_a_planned_batch_never_comes_out(
    kafka_broker: Any, tmp_path: Any
) -> None:
    """The log ends before the batch by now: reading from its start would give other records."""
    kafka_broker.create_topic("ends-before")
    made_anew(kafka_broker, "ends-before", 20)
    options = options_of(kafka_broker, "ends-before", dead_letter=str(tmp_path))
    span = Span(partition=0, start=50, stop=100)
    assert read(open_log(options | {"failOnDataLoss": "false"}, SCHEMA), span) == []
    assert dead_letter_totals(tmp_path) == {"malformed": 0, "lost": 50}
    with pytest.raises(SpillwayError, match="no longer has 50 records of a planned batch"):
        read(open_log(options, SCHEMA), span)


def test_a_log_that_ends_within_a_planned_batch_has_lost_the_rest(
    kafka_broker: Any, tmp_path: Any
) -> None:
    kafka_broker.create_topic("ends-within")
    produce(kafka_broker, "ends-within", numbers(0, 70))
    options = options_of(
        kafka_broker,
        "ends-within",
        dead_letter=str(tmp_path),
        failOnDataLoss="false",
        outage_timeout="2s",
    )
    wanted = np.arange(50, 100, 2)
    span = Span(partition=0, start=50, stop=100)
    assert read(open_log(options, SCHEMA), span, wanted) == list(range(50, 70, 2))
    assert dead_letter_totals(tmp_path) == {"malformed": 0, "lost": 15}


def test_a_topic_that_was_made_anew_is_noticed_however_long_it_is(kafka_broker: Any) -> None:
    kafka_broker.create_topic("anew")
    produce(kafka_broker, "anew", numbers(0, 50))
    options = options_of(kafka_broker, "anew")
    pinned = dict(open_log(options, SCHEMA).identity())
    running, later = (open_log(options | pinned, SCHEMA) for _ in range(2))
    now_s = time.time()
    assert running.extent(now_s) == (Span(partition=0, start=0, stop=50),)
    assert dict(running.identity()) == pinned
    made_anew(kafka_broker, "anew", 80)
    for log in (running, later):
        with pytest.raises(SpillwayError, match=r"topic 'anew' was made anew: .* new checkpoint"):
            log.extent(now_s + kafka_watch.PARTITIONS_EVERY_S + 0.1)
    with pytest.raises(SpillwayError, match="made anew"):
        later.identity()


def test_a_log_that_becomes_shorter_is_looked_at_again_at_once(kafka_broker: Any) -> None:
    kafka_broker.create_topic("shorter")
    produce(kafka_broker, "shorter", numbers(0, 50))
    options = options_of(kafka_broker, "shorter")
    log = open_log(options | dict(open_log(options, SCHEMA).identity()), SCHEMA)
    now_s = time.time()
    log.extent(now_s)
    made_anew(kafka_broker, "shorter", 10)
    with pytest.raises(SpillwayError, match="made anew"):
        log.extent(now_s + 0.1)


@pytest.mark.parametrize("mode", ["FAILFAST", "failfast"])
def test_a_malformed_record_ends_a_query_that_is_to_fail_fast(
    kafka_broker: Any, tmp_path: Any, mode: str
) -> None:
    topic = f"strict-{mode}"
    kafka_broker.create_topic(topic)
    values = numbers(0, 100)
    values[40] = b'{"n": "text"}'
    produce(kafka_broker, topic, values)
    options = options_of(kafka_broker, topic, dead_letter=str(tmp_path), mode=mode)
    span, at = Span(partition=0, start=0, stop=100), f"topic '{topic}', partition 0, offset 40"
    for _ in range(2):
        with pytest.raises(
            SpillwayError, match=rf"{at} is malformed \(.*\): option 'mode' is FAIL"
        ):
            read(open_log(options, SCHEMA), span)
    assert dead_letter_totals(tmp_path) == {"malformed": 1, "lost": 0}
    kept = np.array([n for n in range(100) if n != 40])
    assert read(open_log(options, SCHEMA), span, kept) == kept.tolist(), "of what is kept, none is"


def test_a_mode_that_gives_rows_of_nulls_is_refused_with_the_reason() -> None:
    options = {"source": "kafka", "topic": "t", "kafka.bootstrap.servers": "h:1"}
    with pytest.raises(SpillwayError, match=r"'mode' is 'permissive': a row of nulls .* FAILFAST"):
        open_log(options | {"mode": "permissive"})
    with pytest.raises(SpillwayError, match="it must be DROPMALFORMED or FAILFAST"):
        open_log(options | {"mode": "strict"})


def test_lag_tools_see_the_group(kafka_broker: Any) -> None:
    from confluent_kafka import ConsumerGroupTopicPartitions

    kafka_broker.create_topic("lag")
    produce(kafka_broker, "lag", numbers(0, 50))
    log = open_log(options_of(kafka_broker, "lag", group="spillway-lag"), SCHEMA)
    log.commit({0: 20})
    admin = kafka_broker.admin()

    def committed() -> int:
        asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions("spillway-lag")])
        places = asked["spillway-lag"].result(10).topic_partitions
        return places[0].offset if places else -1

    eventually(lambda: committed() == 20)


def test_a_topic_that_does_not_exist_is_named(kafka_broker: Any) -> None:
    with pytest.raises(SpillwayError, match="no topic 'nowhere'"):
        open_log(options_of(kafka_broker, "nowhere")).extent(time.time())


def test_an_outage_is_waited_for_then_named_and_recovered_from(
    kafka_broker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_watch, "REQUEST_TIMEOUT_S", 1.0)
    kafka_broker.create_topic("outage")
    produce(kafka_broker, "outage", numbers(0, 10))
    log = open_log(options_of(kafka_broker, "outage", outage_timeout="2s"), SCHEMA)
    now_s = time.time()
    (span,) = log.extent(now_s)
    assert read(log, span) == list(range(10))
    kafka_broker.stop()
    try:
        assert log.extent(now_s + 1.0) == (span,), "the last known extent stands"
        assert log.extent(now_s + 2.0) == (span,)
        with pytest.raises(SpillwayError, match=r"no answer from Kafka at 127\.0\.0\.1"):
            log.extent(now_s + 10.0)
        with pytest.raises(SpillwayError, match="no records from Kafka"):
            read(log, span)
    finally:
        kafka_broker.start()
    eventually(lambda: _extent_is(log, span))
    assert read(log, span) == list(range(10))


def _extent_is(log: Any, span: Span) -> bool:
    try:
        return bool(log.extent(time.time()) == (span,))
    except SpillwayError:
        return False


def test_raw_rows_have_the_columns_of_sparks_own_source(kafka_broker: Any) -> None:
    from confluent_kafka import Producer

    kafka_broker.create_topic("raw", partitions=2)
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap})
    headers = [("trace", b"7")]
    producer.produce("raw", b"v", key=b"k", partition=1, timestamp=5000, headers=headers)
    producer.produce("raw", None, partition=1, timestamp=6000)
    producer.flush()
    log = open_log(options_of(kafka_broker, "raw", headers="true"))
    (batch,) = log.read(Span(partition=1, start=0, stop=2), None)
    rows = batch.to_pylist()
    seconds = [row.pop("timestamp").timestamp() for row in rows]
    assert seconds == [row.pop("_arrival").timestamp() for row in rows] == [5.0, 6.0]
    place = {"topic": "raw", "partition": 1, "timestampType": 0}
    assert rows == [
        {"key": b"k", "value": b"v", "offset": 0, "headers": [{"key": "trace", "value": b"7"}]}
        | place,
        {"key": None, "value": None, "offset": 1, "headers": None} | place,
    ]
