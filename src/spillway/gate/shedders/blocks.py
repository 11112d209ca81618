"""Data-dependent shedding, block by block: alike in a worker, in the planner and in an audit.

A stretch is cut at multiples of 16,384 positions. Each block is read whole and judged on its own,
so that it does not matter which worker gets it; the shares of adjacent blocks add up exactly.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spillway.gate.rules import Rule, Stretch, share_of
from spillway.gate.shedders.kept import Kept
from spillway.ports import Log, Span

DATA_BLOCK = 16_384


def spans(stretch: Stretch) -> Iterator[Span]:
    """The blocks of what a stretch reads."""
    start = stretch.read
    while start < stretch.stop:
        stop = min(stretch.stop, (start // DATA_BLOCK + 1) * DATA_BLOCK)
        yield Span(partition=stretch.partition, start=start, stop=stop)
        start = stop


def read_block(log: Log, span: Span) -> Any:
    """A block's rows as one Arrow table; None when it holds no readable row."""
    batches = [batch for batch in log.read(span, None) if batch.num_rows]
    return pa.Table.from_batches(batches) if batches else None


def keep(rows: Any, span: Span, rule: Rule) -> Kept:
    """Which rows of a block stay. Unreadable positions shrink the share in proportion."""
    assert rule.selection is not None
    share = share_of(span.start, span.stop, rule.keep_ppm) * rows.num_rows // span.tuples
    block = span.start // DATA_BLOCK * 1009 + span.partition
    return rule.selection.keep(rows, share=share, seed=rule.seed, block=block)


def kept_positions(stretch: Stretch, rule: Rule, log: Log) -> npt.NDArray[np.int64]:
    """The audit: what the rule kept of a stretch, found by reading the log again.

    Exact where every position holds a row; the log does not say which ones do not.
    """
    if rule.selection is None:
        return stretch.kept_positions(rule)
    found = [np.empty(0, dtype=np.int64)]
    for span in spans(stretch):
        rows = read_block(log, span)
        if rows is not None:
            found.append(span.start + np.flatnonzero(keep(rows, span, rule).mask))
    return np.concatenate(found)


def shed_positions(stretch: Stretch, rule: Rule, log: Log) -> npt.NDArray[np.int64]:
    """What the rule dropped of a stretch, read or unread."""
    everything = np.arange(stretch.start, stretch.stop, dtype=np.int64)
    return np.setdiff1d(everything, kept_positions(stretch, rule, log), assume_unique=True)
