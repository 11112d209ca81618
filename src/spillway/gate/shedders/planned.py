"""The last step of planning with a shedder that looks at the data: what it decides, and counts."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from spillway.gate.offsets import Offset
from spillway.gate.rules import Stretch
from spillway.gate.shedders.blocks import read_block, spans
from spillway.gate.shedders.shedder import Batch, Shedder
from spillway.ports import Log


def selected(
    offset: Offset, previous: Offset, wanted: Shedder, log: Log, *, limit_ppm: int | None = None
) -> Offset:
    """The planned offset with the shedder in its rule and the totals that follow from it.

    `wanted` is the shedder as the options say; what it has decided so far stands in `previous`.
    `log` needs to deliver the shedder's columns only. A `limit_ppm` was decided by another gate of
    a join: both keep the same keys.
    """
    so_far = previous.rule.selection
    if so_far is None or type(so_far) is not type(wanted) or wanted.kept_tuples is None:
        so_far = wanted
    batch = Batch(
        tuples=offset.scanned_tuples,
        keep_ppm=offset.rule.keep_ppm,
        seed=offset.rule.seed,
        limit_ppm=limit_ppm,
        blocks=_blocks(offset.stretches, log),
    )
    offset = replace(offset, rule=replace(offset.rule, selection=so_far.decided(batch)))
    kept, before = offset.kept_tuples(), previous.totals
    totals = replace(
        offset.totals,
        admitted=before.admitted + kept,
        shed=before.shed + offset.offered_tuples - kept,
    )
    arrived = offset.arrived if kept else None
    return replace(offset, totals=totals, arrived=arrived)


def _blocks(stretches: tuple[Stretch, ...], log: Log) -> Iterator[Any]:
    for stretch in stretches:
        for span in spans(stretch):
            rows = read_block(log, span)
            if rows is not None:
                yield rows
