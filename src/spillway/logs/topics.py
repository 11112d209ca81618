"""Which topics a gate reads, and one number for each partition of each of them.

A partition's number is that of its topic, then its own. Topics are numbered in the order in which
they were met, and the order is pinned in the offset. A single topic's partitions keep their own.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spillway.errors import SpillwayError, shown
from spillway.options import Option, read

_SHIFT = 20  # bits of a partition's own number: more partitions than a topic can have
_MOST_TOPICS = 1 << 12
_INTERNAL = "__"  # what such names begin with

TOPIC = Option(
    "topic",
    "text",
    "the topics to read, separated by commas: all partitions, also those added later (found within"
    " 5 s)",
    also=("subscribe",),
)
PATTERN = Option(
    "subscribePattern",
    "text",
    "instead of `topic`: a regular expression for whole names of topics, also of later ones",
)
ASSIGN = Option(
    "assign", "text", 'instead of `topic`: partitions of topics, {"orders": [0, 1], "clicks": [4]}'
)
ORDER = Option("topics", "text", "the topics met so far with Kafka's ids of them", set_by="run")
CHOICES = (TOPIC, PATTERN, ASSIGN)


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What the options ask for: names, with partitions if only some are meant, or a pattern."""

    names: tuple[str, ...] = ()
    pattern: re.Pattern[str] | None = None
    partitions: Mapping[str, frozenset[int]] | None = None

    @property
    def only(self) -> str | None:
        """The one topic, of which everything is read."""
        return self.names[0] if len(self.names) == 1 and self.partitions is None else None

    def takes(self, topic: str, partition: int) -> bool:
        return self.partitions is None or partition in self.partitions[topic]

    def matches(self, topic: str) -> bool:
        assert self.pattern is not None
        return not topic.startswith(_INTERNAL) and self.pattern.fullmatch(topic) is not None


def choice(options: Mapping[str, Any]) -> Choice:
    """Raises where not exactly one of the options is given, or one cannot be read."""
    given = read(CHOICES, options)
    there = [name for name, value in given.items() if value is not None]
    if not there:
        raise SpillwayError(
            "option 'topic' is missing: name the topics to read (also as 'subscribe'), or give"
            " 'subscribePattern' or 'assign'"
        )
    if len(there) > 1:
        raise SpillwayError(
            f"options '{there[0]}' and '{there[1]}' exclude each other: leave one of them out"
        )
    if given[PATTERN.name] is not None:
        return Choice(pattern=_pattern(given[PATTERN.name]))
    if given[ASSIGN.name] is not None:
        partitions = _assigned(given[ASSIGN.name])
        return Choice(names=tuple(sorted(partitions)), partitions=partitions)
    names = [name.strip() for name in str(given[TOPIC.name]).split(",")]
    if not all(names) or len(set(names)) < len(names) or len(names) > _MOST_TOPICS:
        raise SpillwayError(
            f"option 'topic' is '{shown(given[TOPIC.name])}': it must be names of topics, each"
            " once, separated by commas"
        )
    return Choice(names=tuple(sorted(names)))


def number_of(place: int, partition: int) -> int:
    """Of a partition of the topic that stands at this place in the order."""
    return place << _SHIFT | partition


def place_of(number: int) -> tuple[int, int]:
    """(place of the topic, partition)"""
    return number >> _SHIFT, number & ((1 << _SHIFT) - 1)


def order_of(pinned: Mapping[str, Any]) -> tuple[str, ...]:
    """The topics of a log as they are numbered; none where nothing says so."""
    if ORDER.name in pinned:
        return tuple(ids_of(str(pinned[ORDER.name])))
    return (str(pinned[TOPIC.name]),) if pinned.get(TOPIC.name) else ()


def ids_of(text: str) -> dict[str, str]:
    """Kafka's id of each topic, empty where it is not known, in the order of the numbers."""
    return {str(name): str(topic_id) for name, topic_id in json.loads(text).items()}


def said(number: int, topics: Sequence[str]) -> str:
    """A partition as a user knows it."""
    if len(topics) < 2:
        return str(number)
    place, partition = place_of(number)
    return f"{partition} of topic '{topics[place]}'"


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise SpillwayError(
            f"option 'subscribePattern' is '{shown(text)}': it must be a regular expression,"
            f" for example 'orders-.*' ({error})"
        ) from None


def _assigned(text: str) -> dict[str, frozenset[int]]:
    try:
        given = json.loads(text)
        found = {name: frozenset(partitions) for name, partitions in given.items()}
        if not found or not all(found.values()):
            raise ValueError
        if any(type(p) is not int or not 0 <= p < 1 << _SHIFT for ps in found.values() for p in ps):
            raise ValueError
    except (ValueError, AttributeError, TypeError, RecursionError):
        raise SpillwayError(
            f"option 'assign' is '{shown(text)}': it must be the partitions of each topic, for"
            ' example {"orders": [0, 1]}'
        ) from None
    return found
