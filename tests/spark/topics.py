"""A Kafka topic whose records say where they are: {"id": offset * partitions + partition}."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Producer, TopicPartition


@dataclass
class Topic:
    broker: Any
    name: str
    partitions: int = 2
    counts: list[int] = field(default_factory=list)  # records of each partition

    def __post_init__(self) -> None:
        self.broker.create_topic(self.name, self.partitions)
        self.counts = [0] * self.partitions
        config = {"bootstrap.servers": self.broker.bootstrap, "linger.ms": 20, "log_level": 0}
        config["queue.buffering.max.messages"] = 1_000_000
        self._producer = Producer(config)

    @property
    def options(self) -> dict[str, str]:
        """What a gate needs to read it."""
        return {
            "source": "kafka",
            "topic": self.name,
            "kafka.bootstrap.servers": self.broker.bootstrap,
            "schema": "id long",
            "startingOffsets": "earliest",
        }

    @property
    def ids(self) -> set[int]:
        every = enumerate(self.counts)
        return {place * self.partitions + p for p, count in every for place in range(count)}

    def produce(self, records: int) -> None:
        """Evenly over the partitions."""
        for partition in range(self.partitions):
            for _ in range(records // self.partitions):
                place = self.counts[partition]
                value = json.dumps({"id": place * self.partitions + partition})
                self.put(partition, value.encode())
        self.flush()

    def put(self, partition: int, value: bytes | None) -> None:
        self._producer.produce(self.name, value, partition=partition)
        self.counts[partition] += 1

    def flush(self) -> None:
        assert self._producer.flush(30) == 0

    def truncate(self, partition: int, first: int) -> None:
        """Records below `first` go, as retention takes them."""
        admin = self.broker.admin()
        for done in admin.delete_records([TopicPartition(self.name, partition, first)]).values():
            done.result(30)

    @contextmanager
    def producing(self, rate_per_s: int) -> Iterator[None]:
        """A thread that produces ten times a second for as long as the block runs."""
        stopping = threading.Event()

        def run() -> None:
            while not stopping.wait(0.1):
                self.produce(rate_per_s // 10)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        try:
            yield
        finally:
            stopping.set()
            thread.join()
