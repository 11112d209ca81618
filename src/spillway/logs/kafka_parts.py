"""Which parts of a span are fetched, where not all of it is wanted."""

import numpy as np
import numpy.typing as npt

from spillway.ports import Span

SEEK_TUPLES = 5_000  # a longer hole in `wanted` is not fetched: about where a seek gets cheaper


def parts_of(span: Span, wanted: npt.NDArray[np.int64] | None) -> list[Span]:
    """What to fetch: all of the span, or what lies between the long holes of `wanted`."""
    if wanted is None or len(wanted) == 0:
        return [span] if wanted is None and span.tuples else []
    breaks = np.flatnonzero(np.diff(wanted) > SEEK_TUPLES)
    starts = wanted[np.concatenate(([0], breaks + 1))].tolist()
    stops = (wanted[np.concatenate((breaks, [len(wanted) - 1]))] + 1).tolist()
    return [
        Span(partition=span.partition, start=start, stop=stop)
        for start, stop in zip(starts, stops, strict=True)
    ]
