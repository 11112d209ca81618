"""JSON records into a Kafka topic at a constant rate, by a process of its own."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import numpy as np

PARTITIONS = 2
SCHEMA = "key BIGINT, value DOUBLE, event_time TIMESTAMP"
_STEP_S = 0.05
_KINDS = 1000  # different records per second of event time


@contextmanager
def producing(servers: str, rate_per_s: int) -> Iterator[str]:
    """A new topic that fills at this rate until the end of the block; its name."""
    topic = f"spillway-bench-{uuid4().hex[:8]}"
    admin = _admin(servers)
    with _made(admin, topic):
        command = [sys.executable, "-m", __name__, servers, topic, str(rate_per_s)]
        process = subprocess.Popen(command)
        try:
            yield topic
        finally:
            process.terminate()
            process.wait()


@contextmanager
def _made(admin: Any, topic: str) -> Iterator[None]:
    from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]

    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(30)
    try:
        yield
    finally:
        with suppress(Exception):  # the broker may be gone
            admin.delete_topics([topic])[topic].result(30)


def _admin(servers: str) -> Any:
    from confluent_kafka.admin import AdminClient

    return AdminClient({"bootstrap.servers": servers})


def produce(servers: str, topic: str, rate_per_s: int) -> None:
    """Until it is terminated; what a slow moment left out is made up for."""
    from confluent_kafka import Producer

    producer = Producer(
        {"bootstrap.servers": servers, "linger.ms": 20, "queue.buffering.max.messages": 2_000_000}
    )
    rng, begun_s, sent = np.random.default_rng(1), time.time(), 0
    values: list[dict[str, bytes]] = []
    second = 0
    while True:
        now_s = time.time()
        if int(now_s) != second:
            second = int(now_s)
            values = _records(rng, second)
        due = int((now_s - begun_s) * rate_per_s) - sent
        for partition in range(PARTITIONS):
            count = due // PARTITIONS
            producer.produce_batch(topic, (values * (count // _KINDS + 1))[:count], partition)
        sent += due // PARTITIONS * PARTITIONS
        producer.poll(0)
        time.sleep(max(0.0, now_s + _STEP_S - time.time()))


def _records(rng: np.random.Generator, second: int) -> list[dict[str, bytes]]:
    at = datetime.fromtimestamp(second, UTC).isoformat()
    rows = zip(rng.integers(0, 1000, _KINDS).tolist(), rng.random(_KINDS).tolist(), strict=True)
    return [
        {"value": json.dumps({"key": key, "value": value, "event_time": at}).encode()}
        for key, value in rows
    ]


if __name__ == "__main__":
    produce(sys.argv[1], sys.argv[2], int(sys.argv[3]))
