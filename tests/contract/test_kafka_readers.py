"""Both readers of Kafka: same rows, same malformed and lost records, same refusals."""

import json
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from broker import PASSWORD, USER
from reader_cases import Records, alike, options_of, outcome, produce, whole

from fuzz.mutations import bytes_of, json_of
from spillway.errors import SpillwayError
from spillway.logs import kafka_client
from spillway.logs.catalog import open_log
from spillway.logs.dead_letters import dead_letter_totals
from spillway.logs.kafka_native import NativeClient
from spillway.logs.kafka_python import PythonClient
from spillway.ports import Span

pytestmark = pytest.mark.kafka
pytest.importorskip("spillway_native", reason="no native reader: run make native")

SCHEMA = pa.schema([("n", pa.int64()), ("s", pa.string()), ("at", pa.timestamp("us", tz="UTC"))])
GOOD = {"n": 1, "s": "text", "at": "2026-01-31T12:00:00.5Z", "more": [1, {"a": None}]}


@pytest.fixture(scope="module")
def odd_records() -> Records:
    rng, found = random.Random(3), []
    seed = json.dumps(GOOD)
    for number in range(6000):
        changed = json.dumps(json_of(rng, GOOD)).encode()
        value = rng.choice((seed.encode(), changed, bytes_of(rng, (seed,))))
        found.append((str(number).encode(), value))
    found[100] = found[101] = (None, None)
    found[102] = (b"", b"")
    return found


@pytest.fixture(scope="module")
def odd_topic(kafka_broker: Any, odd_records: Records) -> str:
    produce(kafka_broker, "odd", odd_records)
    return "odd"


WANTED = {
    "all": None,
    "every third": np.arange(0, 6000, 3),
    "few": np.array([0, 100, 101, 5998]),
    "a mask of a half": np.flatnonzero(np.random.default_rng(1).random(6000) < 0.5),
    "none": np.array([], dtype=np.int64),
}


@pytest.mark.parametrize("kept", WANTED)
def test_odd_records(
    kafka_broker: Any, odd_topic: str, odd_records: Records, tmp_path: Path, kept: str
) -> None:
    options = options_of(kafka_broker, odd_topic)
    found = alike(tmp_path, options, SCHEMA, whole(odd_records), WANTED[kept])
    if kept == "all":
        assert found.totals["malformed"] + len(found.rows) == 6000
        assert found.totals["malformed"] > 500


@pytest.mark.parametrize("kept", WANTED)
def test_raw_records(
    kafka_broker: Any, odd_topic: str, odd_records: Records, tmp_path: Path, kept: str
) -> None:
    options = options_of(kafka_broker, odd_topic)
    found = alike(tmp_path, options, None, whole(odd_records), WANTED[kept])
    assert len(found.rows) == (6000 if kept == "all" else len(WANTED[kept]))
    few = pa.schema([("offset", pa.int64()), ("key", pa.binary())])
    options = options_of(kafka_broker, odd_topic, decode="raw")
    alike(tmp_path, options, few, whole(odd_records), WANTED[kept])


def test_the_first_malformed_record_is_named(
    kafka_broker: Any, odd_topic: str, odd_records: Records, tmp_path: Path
) -> None:
    options = options_of(kafka_broker, odd_topic, mode="FAILFAST")
    found = alike(tmp_path, options, SCHEMA, whole(odd_records), None)
    assert "option 'mode' is FAILFAST" in found.said


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed_records(kafka_broker: Any, tmp_path: Path, codec: str) -> None:
    records: Records = [(None, json.dumps({"n": n}).encode()) for n in range(5000)]
    produce(kafka_broker, f"packed-{codec}", records, **{"compression.type": codec})
    options = options_of(kafka_broker, f"packed-{codec}")
    assert len(alike(tmp_path, options, SCHEMA, whole(records), None).rows) == 5000


def test_records_of_ten_megabytes_and_of_nothing(kafka_broker: Any, tmp_path: Path) -> None:
    long = json.dumps({"n": 1, "s": "x" * 10_000_000}).encode()
    records: Records = [(None, long), (None, b""), (b"", None), (None, b'{"n": 2}')] * 6
    produce(kafka_broker, "long", records)
    found = alike(tmp_path, options_of(kafka_broker, "long"), SCHEMA, whole(records), None)
    assert len(found.rows) == 12
    assert found.totals["malformed"] == 12


def test_through_tls_with_a_password(kafka_broker: Any, tmp_path: Path) -> None:
    records: Records = [(None, b'{"n": 1}')] * 100
    produce(kafka_broker, "safe", records)
    security = {
        "kafka.bootstrap.servers": kafka_broker.secure_bootstrap,
        "kafka.security.protocol": "SASL_SSL",
        "kafka.ssl.ca.location": str(kafka_broker.certificate),
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.username": USER,
        "kafka.sasl.password": PASSWORD,
    }
    options = options_of(kafka_broker, "safe", **security)
    assert len(alike(tmp_path, options, SCHEMA, whole(records), None).rows) == 100
    wrong = options | {"kafka.sasl.password": "guess"}
    for reader in ("native", "python"):
        found = outcome(reader, tmp_path / "wrong", wrong, SCHEMA, whole(records), None)
        assert "no records from Kafka" in found.said
        assert "partition 0, offset 0" in found.said


def test_a_topic_truncated_below_a_fetch(kafka_broker: Any, tmp_path: Path) -> None:
    from confluent_kafka import TopicPartition

    records: Records = [(None, b'{"n": 1}')] * 1000
    produce(kafka_broker, "cut", records)
    admin = kafka_broker.admin()
    for done in admin.delete_records([TopicPartition("cut", 0, 600)]).values():
        done.result(30)
    wanted = np.arange(0, 1000, 2)
    counted = options_of(kafka_broker, "cut", failOnDataLoss="false")
    found = alike(tmp_path, counted, SCHEMA, whole(records), wanted)
    assert (len(found.rows), found.totals["lost"]) == (200, 300)
    beyond = Span(partition=0, start=900, stop=1200)
    assert alike(tmp_path, counted, SCHEMA, beyond, None).totals["lost"] == 500
    refused = alike(tmp_path, options_of(kafka_broker, "cut"), SCHEMA, whole(records), None)
    assert "no longer has 600 records" in refused.said


def test_a_topic_truncated_while_it_is_read(kafka_broker: Any, tmp_path: Path) -> None:
    """The rows that had been fetched come out, then what is left; in between are the lost ones."""
    from confluent_kafka import TopicPartition

    records: Records = [(None, json.dumps({"n": n}).encode()) for n in range(60_000)]
    produce(kafka_broker, "cut-later", records)
    options = options_of(kafka_broker, "cut-later", failOnDataLoss="false")
    log = open_log({**options, "dead_letter": str(tmp_path), "reader": "native"}, SCHEMA)
    batches = log.read(whole(records), None)
    seen = next(batches).column("n").to_pylist()
    admin = kafka_broker.admin()
    for done in admin.delete_records([TopicPartition("cut-later", 0, 59_000)]).values():
        done.result(30)
    seen += [n for batch in batches for n in batch.column("n").to_pylist()]
    assert seen == sorted(set(seen))
    assert seen[-1000:] == list(range(59_000, 60_000))
    assert len(seen) + dead_letter_totals(tmp_path)["lost"] == 60_000


def test_transactions_that_were_aborted(kafka_broker: Any, tmp_path: Path) -> None:
    from confluent_kafka import Producer

    kafka_broker.create_topic("aborted")
    config = {"bootstrap.servers": kafka_broker.bootstrap, "transactional.id": "readers"}
    producer = Producer(config)
    producer.init_transactions(30)
    for number in range(4):
        producer.begin_transaction()
        producer.produce("aborted", json.dumps({"n": number}).encode())
        producer.flush()
        _ = producer.abort_transaction() if number % 2 else producer.commit_transaction()
    span = Span(partition=0, start=0, stop=8)
    for isolation, rows in (("read_committed", 2), ("read_uncommitted", 4)):
        options = options_of(kafka_broker, "aborted", **{"kafka.isolation.level": isolation})
        assert len(alike(tmp_path, options, SCHEMA, span, None).rows) == rows


def led(log: Any) -> Any:
    """The extent, as soon as every new partition has a leader."""
    deadline_s = time.monotonic() + 120
    while True:
        try:
            return log.extent(time.time())
        except SpillwayError:
            assert time.monotonic() < deadline_s
            time.sleep(0.5)


def test_a_thousand_partitions(kafka_broker: Any, tmp_path: Path) -> None:
    from confluent_kafka import Producer

    kafka_broker.create_topic("wide", partitions=1000)
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap})
    for partition in range(0, 1000, 100):
        producer.produce("wide", json.dumps({"n": partition}).encode(), partition=partition)
    assert producer.flush(60) == 0
    options = options_of(kafka_broker, "wide", reader="native")
    log = open_log(options, SCHEMA)
    held = [span for span in led(log) if span.tuples]
    rows = [n for s in held for batch in log.read(s, None) for n in batch.column("n").to_pylist()]
    assert rows == list(range(0, 1000, 100))
    admin = kafka_broker.admin()  # its answers come as long as it lives
    admin.delete_topics(["wide"])["wide"].result(60)


@pytest.fixture
def new_readers() -> Iterator[None]:
    """What is kept from here on is not used by other tests, nor the other way round."""
    kept = dict(kafka_client._idle)
    kafka_client._idle.clear()
    yield
    kafka_client._idle.clear()
    kafka_client._idle.update(kept)


@pytest.mark.usefixtures("new_readers")
def test_a_native_reader_that_breaks_midway_is_replaced(
    kafka_broker: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    records: Records = [(None, json.dumps({"n": n}).encode()) for n in range(50_000)]
    produce(kafka_broker, "broken", records)
    calls, piece = [], NativeClient.piece

    def breaking(self: NativeClient, *given: Any) -> Any:
        calls.append(given)
        if len(calls) > 1:
            raise kafka_client.BrokenReaderError("it hit a wall")
        return piece(self, *given)

    monkeypatch.setattr(NativeClient, "piece", breaking)
    log = open_log(options_of(kafka_broker, "broken", dead_letter=str(tmp_path)), SCHEMA)
    for _ in range(2):
        rows = [n for b in log.read(whole(records), None) for n in b.column("n").to_pylist()]
        assert rows == list(range(50_000))
    assert len(calls) == 2, "it is not tried again"
    assert "it hit a wall): the query goes on without it" in capfd.readouterr().err


@pytest.mark.usefixtures("new_readers")
def test_a_native_part_of_another_version_is_left_alone(
    kafka_broker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import spillway_native

    from spillway.logs.kafka_native import native_part

    monkeypatch.setattr(spillway_native, "INTERFACE", -1)
    native_part.cache_clear()
    try:
        config = kafka_client.client_config({"bootstrap.servers": kafka_broker.bootstrap})
        assert isinstance(kafka_client.Reader(config, native=True)._client, PythonClient)
    finally:
        native_part.cache_clear()
