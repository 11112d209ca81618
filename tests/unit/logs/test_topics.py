"""Which topics are read, how their partitions are numbered, and where they start."""

import json

import pytest

from spillway.errors import SpillwayError
from spillway.hosts.spark.planner.starts import first_positions, starting_offsets
from spillway.logs.kafka_starts import Starts
from spillway.logs.topics import choice, number_of, order_of, place_of, said
from spillway.ports import Span


def test_a_single_topic_keeps_its_partitions_numbers() -> None:
    assert number_of(0, 17) == 17
    assert place_of(number_of(3, 17)) == (3, 17)
    assert said(number_of(1, 4), ["a", "b"]) == "4 of topic 'b'"
    assert said(4, ["a"]) == "4"


def test_topics_are_named_listed_matched_or_assigned() -> None:
    assert choice({"topic": "orders"}).only == "orders"
    several = choice({"subscribe": "b, a"})
    assert (several.only, several.names) == (None, ("a", "b"))
    pattern = choice({"subscribePattern": "orders-.*"})
    assert [t for t in ("orders-1", "my-orders-1", "__orders-1") if pattern.matches(t)] == [
        "orders-1"
    ]
    assigned = choice({"assign": '{"orders": [0, 2]}'})
    assert assigned.only is None
    assert [p for p in range(4) if assigned.takes("orders", p)] == [0, 2]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, "option 'topic' is missing"),
        ({"topic": "a", "assign": '{"a": [0]}'}, "'topic' and 'assign' exclude each other"),
        ({"topic": "a,,b"}, "names of topics, each once"),
        ({"topic": "a,a"}, "names of topics, each once"),
        ({"subscribePattern": "orders-("}, "it must be a regular expression"),
        ({"assign": "orders"}, "it must be the partitions of each topic"),
        ({"assign": '{"orders": []}'}, "it must be the partitions of each topic"),
        ({"assign": '{"orders": [-1]}'}, "it must be the partitions of each topic"),
    ],
)
def test_what_cannot_be_read_is_refused(options: dict[str, str], told: str) -> None:
    with pytest.raises(SpillwayError, match=told):
        choice(options)


def extent(*partitions: int) -> tuple[Span, ...]:
    return tuple(Span(partition=p, start=5, stop=50) for p in partitions)


def test_starting_offsets_of_several_topics_name_each_ones_partitions() -> None:
    there, topics = extent(0, number_of(1, 0), number_of(1, 1)), ("a", "b")
    text = json.dumps({"b": {"0": 7, "1": -1}, "a": {"0": -2}})
    assert first_positions(text, there, topics) == {0: 5, number_of(1, 0): 7, number_of(1, 1): 50}
    with pytest.raises(SpillwayError, match="names partition 3 of topic 'b'"):
        first_positions('{"b": {"3": 1}}', there, topics)
    with pytest.raises(SpillwayError, match="is of topic 'c', but option 'topic' is 'a,b'"):
        first_positions('{"c": {"0": 1}}', there, topics)


def test_the_way_back_names_every_topic() -> None:
    pinned = {"source": "kafka", "topic": "a,b", "topics": '{"a": "id1", "b": ""}'}
    assert order_of(pinned) == ("a", "b")
    assert starting_offsets({"a": {"0": 4}, "b": {"1": 9}}, "") == {"a": {"0": 4}, "b": {"1": 9}}


def test_a_start_by_time_is_asked_for_each_partition() -> None:
    asked = []

    def position_at(partition: int, time_ms: int) -> int | None:
        asked.append((partition, time_ms))
        return 20 if partition == 0 else None

    options = {"startingOffsetsByTimestamp": '{"a": {"0": 1000, "1": 2000}}'}
    with pytest.raises(SpillwayError, match="partition 1, has no record of 2000 ms or later"):
        Starts(options).of("a", extent(0, 1), position_at)
    latest = {**options, "startingOffsetsByTimestampStrategy": "latest"}
    assert Starts(latest).of("a", extent(0, 1), position_at) == {0: 20, 1: 50}
    everywhere = {**latest, "startingTimestamp": "3000"}
    assert Starts(everywhere).of("a", extent(0), position_at) == {0: 20}
    assert asked[-1] == (0, 3000)
    assert Starts({}).of("a", extent(0), position_at) is None
    with pytest.raises(SpillwayError, match="no time for partition 2"):
        Starts(options).of("a", extent(2), position_at)
    with pytest.raises(SpillwayError, match="it must be a time in ms"):
        Starts({"startingOffsetsByTimestamp": '{"a": {"0": "soon"}}'})
