"""Where a first start begins by time, in the words of Spark's Kafka source."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from spillway.errors import SpillwayError, shown
from spillway.options import Option, read
from spillway.ports import Span

WHEN: tuple[Option, ...] = (
    Option(
        "startingTimestamp",
        "whole",
        "first start: at the first record of that time or later; wins over the others",
        unit="ms since 1970",
        at_least=0,
    ),
    Option(
        "startingOffsetsByTimestamp",
        "text",
        'first start: a time in ms since 1970 for each partition, {"orders": {"0": 1767225600000}};'
        " wins over `startingOffsets`",
    ),
    Option(
        "startingOffsetsByTimestampStrategy",
        "choice",
        "where no record is as late as that: the query ends, or starts at the latest",
        default="error",
        choices=("error", "latest"),
        any_case=True,
    ),
)
_EXAMPLE = '{"orders": {"0": 1767225600000}}'

PositionAt = Callable[[int, int], int | None]  # of a partition, at a time in ms


class Starts:
    def __init__(self, options: Mapping[str, Any]) -> None:
        given = read(WHEN, options)
        self._everywhere_ms: int | None = given["startingTimestamp"]
        by_partition = given["startingOffsetsByTimestamp"]
        self._by_partition = None if by_partition is None else _times(by_partition)
        self._else_latest = given["startingOffsetsByTimestampStrategy"] == "latest"

    def of(
        self, topic: str, extent: tuple[Span, ...], position_at: PositionAt
    ) -> Mapping[int, int] | None:
        """The first position of every partition; None where no option names a time."""
        if self._everywhere_ms is None and self._by_partition is None:
            return None
        return {span.partition: self._start(topic, span, position_at) for span in extent}

    def _start(self, topic: str, span: Span, position_at: PositionAt) -> int:
        time_ms = self._time_ms(topic, span.partition)
        at = position_at(span.partition, time_ms)
        if at is not None:
            return at
        if self._else_latest:
            return span.stop
        raise SpillwayError(
            f"topic '{topic}', partition {span.partition}, has no record of {time_ms} ms or later:"
            " name an earlier time, or set option 'startingOffsetsByTimestampStrategy' to latest"
        )

    def _time_ms(self, topic: str, partition: int) -> int:
        if self._everywhere_ms is not None:
            return self._everywhere_ms
        assert self._by_partition is not None
        time_ms = self._by_partition.get(topic, {}).get(partition)
        if time_ms is None:
            raise SpillwayError(
                f"option 'startingOffsetsByTimestamp' has no time for partition {partition} of"
                f" topic '{topic}': name all of them, as in {_EXAMPLE}, or give 'startingTimestamp'"
            )
        return time_ms


def _times(text: str) -> dict[str, dict[int, int]]:
    try:
        given = json.loads(text)
        found = {t: {int(p): ms for p, ms in times.items()} for t, times in given.items()}
        if not all(
            type(ms) is int and ms >= 0 for times in found.values() for ms in times.values()
        ):
            raise ValueError
    except (ValueError, AttributeError, TypeError, RecursionError):
        raise SpillwayError(
            f"option 'startingOffsetsByTimestamp' is '{shown(text)}': it must be a time in ms since"
            f" 1970 for each partition, for example {_EXAMPLE}"
        ) from None
    return found
