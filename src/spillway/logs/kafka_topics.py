"""Several topics as one log: those of a list, of a pattern, or some partitions of some."""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from confluent_kafka import KafkaException

from spillway.errors import SpillwayError
from spillway.logs.kafka_options import Config
from spillway.logs.kafka_watch import PARTITIONS_EVERY_S, REQUEST_TIMEOUT_S, admin_of
from spillway.logs.topics import ORDER, Choice, ids_of, number_of, place_of
from spillway.ports import ArrivalCurve, Identified, Log, Span


class TopicLog(Identified, Log, Protocol):
    """The log of one topic."""

    def starts(self, extent: tuple[Span, ...]) -> Mapping[int, int] | None: ...


class KafkaTopics:
    """`open_one` opens the log of a topic, given its name, the number of its first partition and
    Kafka's id of it, which may be empty; `again` makes this log anew from its options."""

    def __init__(
        self,
        choice: Choice,
        order: str | None,
        config: Config,
        open_one: Callable[[str, int, str], TopicLog],
        again: tuple[Any, ...],
    ) -> None:
        self._choice, self._config = choice, config
        self._open_one, self._again = open_one, again
        self._ids = ids_of(order) if order else dict.fromkeys(choice.names, "")
        self._logs: dict[str, TopicLog] = {}
        self._looked_s: float | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return self._again

    def columns(self) -> pa.Schema:
        return self._log(next(iter(self._ids), "")).columns()  # the same for every topic

    def extent(self, now_s: float) -> tuple[Span, ...]:
        return tuple(
            replace(span, partition=number_of(place, span.partition))
            for place, topic in enumerate(self._ids)
            for span in self._log(topic).extent(now_s)
            if self._choice.takes(topic, span.partition)
        )

    def starts(self, extent: tuple[Span, ...]) -> Mapping[int, int] | None:
        found: dict[int, int] = {}
        for place, topic in enumerate(self._ids):
            own = tuple(_own(span) for span in extent if place_of(span.partition)[0] == place)
            starts = self._log(topic).starts(own)
            if starts is None:
                return None
            found |= {number_of(place, partition): at for partition, at in starts.items()}
        return found

    def arrivals(self, span: Span) -> ArrivalCurve:
        return self._of(span).arrivals(_own(span))

    def read(self, span: Span, wanted: npt.NDArray[np.int64] | None) -> Iterator[pa.RecordBatch]:
        return self._of(span).read(_own(span), wanted)

    def commit(self, stops: Mapping[int, int]) -> None:
        for place, topic in enumerate(self._ids):
            own = {p: stop for (at, p), stop in _placed(stops).items() if at == place}
            if own:
                self._log(topic).commit(own)

    def identity(self) -> Mapping[str, str]:
        """The topics in the order of their numbers, with Kafka's ids of them."""
        self._discover()
        for topic in self._ids:
            found = self._log(topic).identity().values()
            self._ids[topic] = next(iter(found), self._ids[topic])
        return {ORDER.name: json.dumps(self._ids)}

    def grown(self) -> Mapping[str, str]:
        """What the pattern matches by now."""
        known = len(self._ids)
        if self._choice.pattern is not None and self._is_due():
            self._discover()
        return self.identity() if len(self._ids) > known else {}

    def _is_due(self) -> bool:
        return self._looked_s is None or time.monotonic() - self._looked_s > PARTITIONS_EVERY_S

    def _discover(self) -> None:
        """New topics of a pattern come after those that are known."""
        if self._choice.pattern is None:
            return
        self._looked_s = time.monotonic()
        try:
            there = self._admin.list_topics(timeout=REQUEST_TIMEOUT_S).topics
        except KafkaException as error:
            if self._ids:
                return  # an outage: what is known stands, and its logs know how long
            raise SpillwayError(
                f"no answer from Kafka at {dict(self._config)['bootstrap.servers']}"
                f" ({error.args[0].str()}): are the brokers up, and is option"
                " 'kafka.bootstrap.servers' right?"
            ) from error
        for topic in sorted(there):
            if self._choice.matches(topic):
                self._ids.setdefault(topic, "")
        if not self._ids:
            raise SpillwayError(
                f"no topic matches option 'subscribePattern', '{self._choice.pattern.pattern}':"
                f" Kafka has {len(there)} topics; correct the pattern, or create one"
            )

    def _of(self, span: Span) -> TopicLog:
        return self._log(list(self._ids)[place_of(span.partition)[0]])

    def _log(self, topic: str) -> TopicLog:
        if topic not in self._logs:
            place = list(self._ids).index(topic) if topic in self._ids else 0
            first, topic_id = number_of(place, 0), self._ids.get(topic, "")
            self._logs[topic] = self._open_one(topic, first, topic_id)
        return self._logs[topic]

    @cached_property
    def _admin(self) -> Any:
        return admin_of(self._config)


def _own(span: Span) -> Span:
    return replace(span, partition=place_of(span.partition)[1])


def _placed(stops: Mapping[int, int]) -> dict[tuple[int, int], int]:
    return {place_of(number): stop for number, stop in stops.items()}
