"""What a move did to the results: how late they came, which were lost, which came twice.

A result is due at the end of its window. The gap of a move is how much later than in the calm parts
of the same run a result came: what nobody would have seen without the move.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from spillway_lab.benchmarks.kept_results import Result

Span = tuple[float, float]


def figures(
    results: Iterable[Result], calm: Sequence[Span], move: Span, *, window_s: float, tuples: int
) -> dict[str, Any]:
    """Over windows that end in these spans; each has so many tuples, and one result."""
    came: dict[float, list[Result]] = defaultdict(list)
    for result in results:
        came[result.row["start_us"] / 1e6 + window_s].append(result)
    due = _ends(move, window_s)
    counts = {end: [found.row["n"] for found in came.get(end, [])] for end in due}
    calm_s = [_late_s(came, end) for span in calm for end in _ends(span, window_s)]
    worst_calm_s = max((late for late in calm_s if late is not None), default=0.0)
    late_s = [late for end in due if (late := _late_s(came, end)) is not None]
    return {
        "gap_s": max(0.0, max(late_s, default=0.0) - worst_calm_s),
        "lost": sum(max(0, tuples - sum(found)) for found in counts.values()),
        "doubled": sum(max(0, sum(found) - tuples) for found in counts.values()),
        "windows": len(due),
        "latest_s": max(late_s, default=0.0),
        "latest_calm_s": worst_calm_s,
    }


def _ends(span: Span, window_s: float) -> list[float]:
    first, last = (int(at // window_s) + 1 for at in span)
    return [number * window_s for number in range(first, last)]


def _late_s(came: dict[float, list[Result]], end: float) -> float | None:
    """None: nothing came for it."""
    found = came.get(end)
    return min(result.at_s for result in found) - end if found else None
