"""Data-dependent shedding, block by block: alike in a worker, in the planner and in an audit.

A stretch is cut at multiples of 16,384 positions. Each block is read whole and judged on its own,
so that it does not matter which worker gets it; the shares of adjacent blocks add up exactly.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spillway.gate.rules import Rule, Stretch, share_of
from spillway.gate.sampling import PPM
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
    kept = rule.selection.keep(rows, share=share, seed=rule.seed, block=block)
    if rule.selection.kept_tuples is None and not rule.selection.no_sample:
        kept = replace(kept, weights=kept.weights / _chance_of_a_place(rows, span, rule.keep_ppm))
    return kept


def _chance_of_a_place(rows: Any, span: Span, keep_ppm: int) -> float:
    """How often a block of this length has a place at all, wherever it begins.

    The few rows of a small batch may have a share of less than one tuple: most such blocks keep
    none, and those that keep one speak for the others as well. Elsewhere this is 1.
    """
    floor, over_ppm = divmod(span.tuples * keep_ppm, PPM)
    shares = ((floor, PPM - over_ppm), (floor + 1, over_ppm))
    ppm = sum(ppm for share, ppm in shares if share * rows.num_rows >= span.tuples)
    return max(1, ppm) / PPM


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
