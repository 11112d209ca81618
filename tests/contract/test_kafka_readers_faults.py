"""Both readers of Kafka where things break: brokers that go away, batches whose bytes changed."""

import json
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from reader_cases import Records, alike, options_of, produce, whole

from spillway.logs.catalog import open_log

pytestmark = pytest.mark.kafka
pytest.importorskip("spillway_native", reason="no native reader: run make native")

SCHEMA = pa.schema([("n", pa.int64()), ("s", pa.string())])
LONG = "x" * 200


def numbered(count: int) -> Records:
    return [(None, json.dumps({"n": n, "s": LONG}).encode()) for n in range(count)]


@pytest.mark.parametrize("reader", ["native", "python"])
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
@pytest.mark.parametrize("checks", ["false", "true"])
def test_a_batch_whose_bytes_changed_leads_both_to_the_same(
    kafka_broker: Any, tmp_path: Path, codec: str, checks: str
) -> None:
    topic, records = f"corrupt-{codec}-{checks}", numbered(300)
    for part in (records[:100], records[100:200], records[200:]):
        produce(kafka_broker, topic, part, **{"compression.type": codec})
    corrupted(kafka_broker, topic, 100)
    options = options_of(kafka_broker, topic, **{"kafka.check.crcs": checks})
    found = alike(tmp_path, options, SCHEMA, whole(records), None)
    before = [repr({"n": n, "s": LONG}) for n in range(100)]
    assert [row.split(", '_arrival'")[0] + "}" for row in found.rows[:100]] == before
    assert len(found.rows) < 300 or found.totals["malformed"]
