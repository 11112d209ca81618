"""Records whose ids, times and partitions are a formula, and the process that produces them.

Record i has id i, key i % KEYS and the event time at which it is due. What a job must deliver
follows from that alone, without asking the broker or the job.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

KEYS = 50
COLUMNS = {"id": "BIGINT", "key": "BIGINT", "event_time": "TIMESTAMP"}
SCHEMA = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
_STEP_S = 0.05

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Records:
    """So many a second for so long: `steps` are (from which second on, rate)."""

    seconds: float
    steps: tuple[tuple[float, float], ...]
    partitions: int = 2
    grows_at_s: float | None = None  # then there are twice as many partitions

    @classmethod
    def even(cls, rate_per_s: float, seconds: float) -> "Records":
        return cls(seconds=seconds, steps=((0.0, rate_per_s),))

    @property
    def count(self) -> int:
        return self.due(self.seconds)

    def due(self, age_s: float) -> int:
        """How many are due by that age."""
        ages_s, counts = self._curve()
        return int(np.interp(age_s, ages_s, counts))

    def due_us(self, ids: Ids) -> Ids:
        """When each is due, since the begin."""
        ages_s, counts = self._curve()
        return (np.interp(ids, counts, ages_s) * 1e6).astype(np.int64)

    def ids_of(self, partition: int, start: int, stop: int) -> Ids:
        """The ids at these positions of a partition."""
        grown, few, many = self.grown_at, self.partitions, 2 * self.partitions
        before = len(range(partition, grown, few)) if partition < few else 0
        first_after = grown + (partition - grown) % many
        positions = np.arange(start, stop)
        after = first_after + (positions - before) * many
        return np.where(positions < before, partition + positions * few, after)

    @property
    def grown_at(self) -> int:
        """The first id that goes to more partitions."""
        return self.count if self.grows_at_s is None else self.due(self.grows_at_s)

    def _curve(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        ages_s = np.array([*(at_s for at_s, _ in self.steps), self.seconds])
        rates = np.array([rate for _, rate in self.steps])
        return ages_s, np.concatenate([[0.0], np.cumsum(np.diff(ages_s) * rates)])


@contextmanager
def topic_for(servers: str, name: str, records: Records) -> Iterator[None]:
    from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]

    admin = _admin(servers)
    admin.create_topics([NewTopic(name, records.partitions, 1)])[name].result(30)
    try:
        yield
    finally:
        with suppress(Exception):  # the broker may be gone
            admin.delete_topics([name])[name].result(30)


@contextmanager
def produced(servers: str, topic: str, records: Records, begun_s: float) -> Iterator[None]:
    """A process that produces them from `begun_s` (epoch) on."""
    given = json.dumps([servers, topic, asdict(records), begun_s])
    process = subprocess.Popen([sys.executable, "-m", __name__, given])
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def produce(servers: str, topic: str, records: Records, begun_s: float) -> None:
    """What a slow moment left out is made up for."""
    producer, sent, partitions = _producer(servers), 0, records.partitions
    while sent < records.count:
        now_s = time.time()
        if sent == records.grown_at and partitions == records.partitions:
            partitions *= 2
            producer.flush(30)
            _more_partitions(servers, topic, partitions)
            producer = _producer(servers)  # a new one knows them at once
        limit = records.grown_at if partitions == records.partitions else records.count
        due = min(records.due(now_s - begun_s), limit)
        values = _values(records, np.arange(sent, due), begun_s)
        for offset in range(min(partitions, len(values))):
            producer.produce_batch(topic, values[offset::partitions], (sent + offset) % partitions)
        sent = max(sent, due)
        producer.poll(0)
        time.sleep(max(0.0, now_s + _STEP_S - time.time()))
    producer.flush(30)


def _values(records: Records, ids: Ids, begun_s: float) -> list[dict[str, bytes]]:
    at_us = round(begun_s * 1e6) + records.due_us(ids)
    times = np.datetime_as_string(at_us.astype("datetime64[us]"))
    rows = zip(ids.tolist(), times.tolist(), strict=True)
    return [
        {"value": f'{{"id":{i},"key":{i % KEYS},"event_time":"{at}Z"}}'.encode()} for i, at in rows
    ]


def _more_partitions(servers: str, topic: str, partitions: int) -> None:
    from confluent_kafka.admin import NewPartitions  # type: ignore[attr-defined]

    _admin(servers).create_partitions([NewPartitions(topic, partitions)])[topic].result(30)


def _producer(servers: str) -> Any:
    from confluent_kafka import Producer

    queue = {"linger.ms": 20, "queue.buffering.max.messages": 2_000_000}
    return Producer({"bootstrap.servers": servers, **queue})


def _admin(servers: str) -> Any:
    from confluent_kafka.admin import AdminClient

    return AdminClient({"bootstrap.servers": servers})


if __name__ == "__main__":
    _servers, _topic, _records, _begun_s = json.loads(sys.argv[1])
    _records["steps"] = tuple(tuple(step) for step in _records["steps"])
    produce(_servers, _topic, Records(**_records), _begun_s)
