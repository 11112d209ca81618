"""The last step of planning with a shedder that looks at the data: its selection and its counts."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from spillway.gate.offsets import Offset
from spillway.gate.rules import Stretch
from spillway.gate.sampling import PPM
from spillway.gate.shedders import key, windows
from spillway.gate.shedders.blocks import read_block, spans
from spillway.gate.shedders.selection import Selection
from spillway.gate.shedders.windows import Held
from spillway.ports import Log

_OWED_BATCHES = 1.0  # what a batch may owe the next: a key can be larger than a whole batch


def selected(
    offset: Offset, previous: Offset, wanted: Selection, log: Log, *, limit_ppm: int | None = None
) -> Offset:
    """The planned offset with the selection in its rule and the totals that follow from it.

    `wanted` names the shedder and its columns; what it has decided so far stands in `previous`.
    `log` needs to deliver the shedder's columns only. A `limit_ppm` was decided by another gate of
    a join: both keep the same keys.
    """
    so_far = previous.rule.selection
    if so_far is None or so_far.shedder != wanted.shedder:
        so_far = wanted
    if wanted.counted:
        return _with(offset, previous, wanted)
    if wanted.shedder == "key":
        return _with(offset, previous, _keys(offset, so_far, log, limit_ppm))
    held = _held(offset, so_far, log)
    rule = offset.rule
    return _with(offset, previous, windows.decided(so_far, held, rule.keep_ppm, rule.seed))


def _keys(offset: Offset, so_far: Selection, log: Log, limit_ppm: int | None) -> Selection:
    """The limit whose keys hold what was decided, and what earlier batches still owe."""
    rule = offset.rule
    if limit_ppm == PPM or (limit_ppm is None and rule.keep_ppm == PPM):
        return replace(so_far, limit_ppm=PPM, kept_tuples=offset.scanned_tuples, owed_tuples=0)
    blocks = _blocks(offset.stretches, log)
    found = [np.empty(0, dtype=np.int64)]
    found += [key.places(rows, so_far, rule.seed) for rows in blocks]
    places = np.concatenate(found)
    decided = offset.scanned_tuples * rule.keep_ppm / PPM
    if limit_ppm is None:
        limit_ppm = key.limit_ppm(places, decided + so_far.owed_tuples)
    kept = int((places < limit_ppm).sum())
    most = _OWED_BATCHES * offset.scanned_tuples
    owed = max(-most, min(most, so_far.owed_tuples + decided - kept))
    return replace(so_far, limit_ppm=limit_ppm, kept_tuples=kept, owed_tuples=round(owed))


def _held(offset: Offset, selection: Selection, log: Log) -> list[Held]:
    counts: Counter[int] = Counter()
    for rows in _blocks(offset.stretches, log):
        found, null = windows.numbers(rows, selection)
        numbers, tuples = np.unique(found[~null], return_counts=True)
        counts.update(dict(zip(numbers.tolist(), tuples.tolist(), strict=True)))
    return [Held(window=window, tuples=tuples) for window, tuples in counts.items()]


def _blocks(stretches: tuple[Stretch, ...], log: Log) -> Iterator[Any]:
    for stretch in stretches:
        for span in spans(stretch):
            rows = read_block(log, span)
            if rows is not None:
                yield rows


def _with(offset: Offset, previous: Offset, selection: Selection) -> Offset:
    offset = replace(offset, rule=replace(offset.rule, selection=selection))
    kept, before = offset.kept_tuples(), previous.totals
    totals = replace(
        offset.totals,
        admitted=before.admitted + kept,
        shed=before.shed + offset.offered_tuples - kept,
    )
    arrived = offset.arrived if kept else None
    return replace(offset, totals=totals, arrived=arrived)
