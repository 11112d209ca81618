"""A topic of bids as JSON of about 90 bytes, filled once and then only read."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from uuid import uuid4

import numpy as np

READ = "price DOUBLE, at TIMESTAMP"  # the columns that the queries read
_START_S = 1_767_225_600  # 2026-01-01
_PER_S = 100_000  # records for each second of event time
_BLOCK = 50_000


@contextmanager
def filled_topic(servers: str, records: int, seed: int) -> Iterator[str]:
    """The name of a new topic of one partition with so many bids."""
    from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

    topic = f"spillway-bench-{uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
    try:
        _fill(servers, topic, records, np.random.default_rng(seed))
        yield topic
    finally:
        with suppress(Exception):  # the broker may be gone
            admin.delete_topics([topic])[topic].result(30)


def _fill(servers: str, topic: str, records: int, rng: np.random.Generator) -> None:
    from confluent_kafka import Producer

    queue = {"linger.ms": 50, "queue.buffering.max.messages": 1_000_000}
    producer = Producer({"bootstrap.servers": servers, **queue})
    for first in range(0, records, _BLOCK):
        block = [{"value": value} for value in _bids(first, min(_BLOCK, records - first), rng)]
        while block:  # what the queue did not take comes again
            producer.produce_batch(topic, block, 0)
            block = [{"value": bid["value"]} for bid in block if "_error" in bid]
            producer.poll(0.05 if block else 0)
    if producer.flush(120):
        raise RuntimeError("the broker did not take the records in 120 s")


def _bids(first: int, count: int, rng: np.random.Generator) -> list[bytes]:
    auctions, bidders = rng.integers(1000, 2000, count), rng.integers(10_000, 99_999, count)
    prices = rng.random(count) * 10_000
    at_ms = _START_S * 1000 + (first + np.arange(count)) * 1000 // _PER_S
    times = np.datetime_as_string(at_ms.astype("datetime64[ms]"))
    rows = zip(auctions.tolist(), bidders.tolist(), prices.tolist(), times.tolist(), strict=True)
    return [
        f'{{"auction":{a},"bidder":{b},"price":{p:.2f},"at":"{at}Z","channel":"web"}}'.encode()
        for a, b, p, at in rows
    ]
