"""What both readers of Kafka have to agree on, and topics to try it on."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from spillway.errors import SpillwayError
from spillway.logs.catalog import open_log
from spillway.logs.dead_letters import dead_letter_totals
from spillway.ports import Span

Records = list[tuple[bytes | None, bytes | None]]  # key, value


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Everything that a read can lead to."""

    rows: list[str]
    schema: pa.Schema | None
    said: str
    totals: dict[str, int]
    samples: list[str]


def produce(broker: Any, topic: str, records: Records, **config: str) -> None:
    from confluent_kafka import Producer

    if topic not in broker.admin().list_topics(timeout=30).topics:
        broker.create_topic(topic, config={"max.message.bytes": "20000000"})
    given = {"bootstrap.servers": broker.bootstrap, "message.max.bytes": 20_000_000, "linger.ms": 5}
    producer = Producer({**given, **config})
    now_ms = int(time.time() * 1000)  # older ones retention would take
    for number, (key, value) in enumerate(records):
        producer.produce(topic, value, key=key, partition=0, timestamp=now_ms + number)
    assert producer.flush(60) == 0


def outcome(
    reader: str, folder: Path, options: dict[str, str], schema: pa.Schema | None, *asked: Any
) -> Outcome:
    place = folder / reader
    log = open_log({**options, "reader": reader, "dead_letter": str(place)}, schema)
    batches, said = [], ""
    try:
        for batch in log.read(*asked):
            batches.append(batch)
    except SpillwayError as error:
        said = str(error)
    samples = place / "samples-0.jsonl"
    return Outcome(
        rows=[repr(row) for batch in batches for row in batch.to_pylist()],
        schema=batches[0].schema if batches else None,
        said=said,
        totals=dict(dead_letter_totals(place)),
        samples=samples.read_text().splitlines() if samples.exists() else [],
    )


def alike(folder: Path, options: dict[str, str], schema: pa.Schema | None, *asked: Any) -> Outcome:
    """What the native reader leads to, which is what the other one does."""
    native, python = (outcome(r, folder, options, schema, *asked) for r in ("native", "python"))
    assert native == python
    return native


def options_of(broker: Any, topic: str, **more: str) -> dict[str, str]:
    servers = {"kafka.bootstrap.servers": broker.bootstrap, "outage_timeout": "3s"}
    return {"source": "kafka", "topic": topic, **servers, **more}


def whole(records: Records) -> Span:
    return Span(partition=0, start=0, stop=len(records))
