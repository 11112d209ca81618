"""Both readers of Kafka where things break: brokers that go away, batches whose bytes changed."""

import json
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from reader_cases import Records, options_of, outcome, produce, whole

from spillway.logs.catalog import open_log

pytestmark = pytest.mark.kafka
pytest.importorskip("spillway_native", reason="no native reader: run make native")

SCHEMA = pa.schema([("n", pa.int64()), ("s", pa.string())])
LONG = "x" * 200
READERS = ("native", "python")


def numbered(count: int) -> Records:
    return [(None, json.dumps({"n": n, "s": LONG}).encode()) for n in range(count)]


@pytest.mark.parametrize("reader", READERS)
def test_a_broker_that_goes_away_in_mid_fetch_costs_nothing_but_time(
    kafka_broker: Any, tmp_path: Path, reader: str
) -> None:
    records = numbered(200_000)  # more than a client fetches ahead
    topic = f"away-{reader}"
    produce(kafka_broker, topic, records, **{"queue.buffering.max.messages": "1000000"})
    options = options_of(kafka_broker, topic, outage_timeout="120s", reader=reader)
    batches = open_log({**options, "dead_letter": str(tmp_path)}, SCHEMA).read(whole(records), None)
    seen = next(batches).column("n").to_pylist()
    kafka_broker.stop()
    back = threading.Timer(2.0, kafka_broker.start)
    back.start()
    try:
        seen += [n for batch in batches for n in batch.column("n").to_pylist()]
    finally:
        back.join()
    assert seen == list(range(len(records)))


def corrupted(broker: Any, topic: str, first: int) -> None:
    """A byte in the middle of the batch that begins with this offset is another one now."""
    [segment] = broker.data(topic).glob("*.log")
    written, place = bytearray(segment.read_bytes()), 0
    while int.from_bytes(written[place : place + 8], "big") != first:
        place += 12 + int.from_bytes(written[place + 8 : place + 12], "big")
    length = 12 + int.from_bytes(written[place + 8 : place + 12], "big")
    with segment.open("r+b") as file:
        file.seek(place + length // 2)
        file.write(bytes([written[place + length // 2] ^ 0xFF]))


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_a_batch_whose_bytes_changed_ends_both_at_its_first_record(
    kafka_broker: Any, tmp_path: Path, codec: str
) -> None:
    topic, records = f"corrupt-{codec}", numbered(300)
    for part in (records[:100], records[100:200], records[200:]):
        produce(kafka_broker, topic, part, **{"compression.type": codec})
    corrupted(kafka_broker, topic, 100)
    options = options_of(kafka_broker, topic)
    found = [outcome(r, tmp_path, options, SCHEMA, whole(records), None) for r in READERS]
    assert found[0].rows == found[1].rows
    numbers = [int(row.split("'n': ")[1].split(",")[0]) for row in found[0].rows]
    assert numbers == list(range(100))
    for one in found:
        assert "partition 0, offset 100" in one.said
        assert one.totals == {"malformed": 0, "lost": 0}
