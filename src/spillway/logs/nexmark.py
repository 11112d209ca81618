"""Nexmark's online auction: persons, auctions and bids in the proportion 1 : 3 : 46.

As in the synthetic log, every value is a pure function of its position. What refers to another
stream refers to something that exists: at any time the streams have grown in proportion, so bid b
may name every auction up to 3 b / 46, and prefers recent and hot ones. The queries and the
proportions are Nexmark's (Tucker et al., "NEXMark: a benchmark for queries over data streams");
values and skew are our own.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from spillway.logs.generated import (
    GeneratedColumn,
    Positions,
    Rows,
    Words,
    make_column,
    random_words,
)
from spillway.logs.rates import RATE
from spillway.logs.schema import conformed
from spillway.logs.synthetic import SHARED, SyntheticLog
from spillway.options import Option

OPTIONS: tuple[Option, ...] = (
    Option(
        "stream",
        "choice",
        "which of the three streams",
        default="bid",
        choices=("person", "auction", "bid"),
    ),
    replace(RATE, meaning="tuples per second of this stream; keep 1 : 3 : 46"),
    *SHARED,
)
PERSONS, AUCTIONS, BIDS = 1, 3, 46  # of every 50 events
RECENT_AUCTIONS, RECENT_PERSONS = 100, 1000
HOT_EVERY = 20  # every 20th auction is hot: half of all bids go to such a one
STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
CITIES = ("Phoenix", "Los Angeles", "Boise", "Portland", "Seattle", "Cheyenne")
CATEGORIES = 5  # numbered from 10


def open_log(options: Mapping[str, str], schema: pa.Schema | None = None) -> "NexmarkLog":
    return NexmarkLog(options, schema)


class NexmarkLog(SyntheticLog):
    declared = OPTIONS

    def __reduce__(self) -> tuple[Any, ...]:
        return open_log, (dict(self._options), self._wanted_schema)

    @cached_property
    def _columns(self) -> tuple[GeneratedColumn, ...]:
        stream: str = self._given["stream"]
        made = STREAMS[stream]()
        by_name = {column.name: column for column in made}
        have = pa.schema([(column.name, column.type) for column in made])
        delivered = conformed(have, self._wanted_schema, f"the Nexmark stream '{stream}'")
        return tuple(by_name[name] for name in delivered.names)


def _persons() -> tuple[GeneratedColumn, ...]:
    return (
        make_column("id", "position", "", 0),
        _text("name", lambda rows: _numbered("person", rows.positions)),
        _text("city", lambda rows: _chosen(CITIES, rows, 1)),
        _text("state", lambda rows: _chosen(STATES, rows, 1)),
        make_column("event_time", "time", "", 2),
    )


def _auctions() -> tuple[GeneratedColumn, ...]:
    return (
        make_column("id", "position", "", 0),
        _text("item", lambda rows: _numbered("item", rows.positions)),
        make_column("initial_bid", "int", "100, 10000", 1),
        make_column("category", "int", f"10, {10 + CATEGORIES}", 2),
        _whole("seller", lambda rows: _recent(rows, PERSONS, AUCTIONS, RECENT_PERSONS, 3)),
        make_column("event_time", "time", "", 4),
    )


def _bids() -> tuple[GeneratedColumn, ...]:
    return (
        _whole("auction", _auction_of_bid),
        _whole("bidder", lambda rows: _recent(rows, PERSONS, BIDS, RECENT_PERSONS, 1)),
        make_column("price", "int", "100, 100000", 2),
        make_column("event_time", "time", "", 3),
    )


STREAMS: Mapping[str, Callable[[], tuple[GeneratedColumn, ...]]] = {
    "person": _persons,
    "auction": _auctions,
    "bid": _bids,
}


def _auction_of_bid(rows: Rows) -> Positions:
    recent = _recent(rows, AUCTIONS, BIDS, RECENT_AUCTIONS, 0)
    hot = (_bits(rows, 5) & np.uint64(1)).astype(bool)
    return np.where(hot, recent // HOT_EVERY * HOT_EVERY, recent)


def _recent(rows: Rows, theirs: int, ours: int, reach: int, index: int) -> Positions:
    """One of the last `reach` positions of a stream that grows `theirs` : `ours` to this one.

    The newest that may be named is the one before this row's own moment, so that it has arrived.
    """
    newest = np.maximum(rows.positions * theirs // ours - 1, 0)
    back: Positions = (_bits(rows, index) % np.uint64(reach)).astype(np.int64)
    return np.maximum(newest - back, 0)


def _bits(rows: Rows, index: int) -> Words:
    return random_words(rows.words.view(np.int64), 1000 + index)


def _chosen(names: tuple[str, ...], rows: Rows, index: int) -> pa.Array:
    places = (_bits(rows, index) % np.uint64(len(names))).astype(np.int64)
    return pa.array(names).take(pa.array(places))


def _numbered(name: str, positions: Positions) -> pa.Array:
    return pa.array([f"{name} {position}" for position in positions.tolist()], pa.string())


def _text(name: str, values: Callable[[Rows], Any]) -> GeneratedColumn:
    return GeneratedColumn(name=name, type=pa.string(), values=values)


def _whole(name: str, values: Callable[[Rows], Any]) -> GeneratedColumn:
    return GeneratedColumn(name=name, type=pa.int64(), values=values)
