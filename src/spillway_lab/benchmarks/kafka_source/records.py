"""Topics of bids, as JSON of about 90 bytes or as Avro, filled once and then only read."""

import json
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any
from uuid import uuid4

import numpy as np
import numpy.typing as npt

READ = "price DOUBLE, at TIMESTAMP"  # the columns that the queries read
_START_S = 1_767_225_600  # 2026-01-01
_PER_S = 100_000  # records for each second of event time
_BLOCK = 50_000


AVRO_NUMBER = 1  # of the schema
AVRO_SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "Bid",
        "fields": [
            {"name": "auction", "type": "long"},
            {"name": "bidder", "type": "long"},
            {"name": "price", "type": "double"},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {"name": "channel", "type": "string"},
        ],
    }
)

Column = npt.NDArray[Any]
Bids = Callable[[int, int, np.random.Generator], list[bytes]]


@contextmanager
def filled_topic(servers: str, records: int, seed: int, bids: Bids) -> Iterator[str]:
    """The name of a new topic of one partition with so many bids."""
    from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

    topic = f"spillway-bench-{uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
    try:
        _fill(servers, topic, records, np.random.default_rng(seed), bids)
        yield topic
    finally:
        with suppress(Exception):  # the broker may be gone
            admin.delete_topics([topic])[topic].result(30)


def _fill(servers: str, topic: str, records: int, rng: np.random.Generator, bids: Bids) -> None:
    from confluent_kafka import Producer

    queue = {"linger.ms": 50, "queue.buffering.max.messages": 1_000_000}
    producer = Producer({"bootstrap.servers": servers, **queue})
    for first in range(0, records, _BLOCK):
        block = [{"value": value} for value in bids(first, min(_BLOCK, records - first), rng)]
        while block:  # what the queue did not take comes again
            producer.produce_batch(topic, block, 0)
            block = [{"value": bid["value"]} for bid in block if "_error" in bid]
            producer.poll(0.05 if block else 0)
    if producer.flush(120):
        raise RuntimeError("the broker did not take the records in 120 s")


def as_json(first: int, count: int, rng: np.random.Generator) -> list[bytes]:
    auctions, bidders, prices, at_ms = _values(first, count, rng)
    times = np.datetime_as_string(at_ms.astype("datetime64[ms]"))
    rows = zip(auctions.tolist(), bidders.tolist(), prices.tolist(), times.tolist(), strict=True)
    return [
        f'{{"auction":{a},"bidder":{b},"price":{p:.2f},"at":"{at}Z","channel":"web"}}'.encode()
        for a, b, p, at in rows
    ]


def as_avro(first: int, count: int, rng: np.random.Generator) -> list[bytes]:
    """In the Confluent wire format."""
    rows = zip(*(column.tolist() for column in _values(first, count, rng)), strict=True)
    begin, end = b"\0" + AVRO_NUMBER.to_bytes(4, "big"), _long(3) + b"web"
    return [
        b"".join((begin, _long(a), _long(b), struct.pack("<d", p), _long(at), end))
        for a, b, p, at in rows
    ]


def _values(first: int, count: int, rng: np.random.Generator) -> tuple[Column, ...]:
    auctions, bidders = rng.integers(1000, 2000, count), rng.integers(10_000, 99_999, count)
    prices = (rng.random(count) * 10_000).round(2)
    at_ms = _START_S * 1000 + (first + np.arange(count)) * 1000 // _PER_S
    return auctions, bidders, prices, at_ms


@lru_cache(maxsize=200_000)
def _long(value: int) -> bytes:
    """A whole number that is not negative, as Avro has it."""
    left, found = value << 1, bytearray()
    while left > 0x7F:
        found.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*found, left])
