"""The migration timestamp: where the origin stops and the destination starts (thesis 7.2.4).

A query moves at a window boundary. The origin finishes the last window that starts before the
first tuple that the destination has; the destination begins with the next one. Both see the overlap
of the two windows, so that no state travels.

Eq. 7.1 (time) and eq. 7.2 (tuples) are one law in two coordinates: timestamps, or the index of a
tuple. With N tuples strictly between the last window's start and the first tuple t that the
destination can count, t is N + 1 after that start, and eq. 7.2 is eq. 7.1 on indices.
"""

from collections.abc import Sequence

from spillway.errors import require


def slides_back(start: int, last_window: int, slide: int) -> int:
    """delta of eq. 7.1 and 7.2: how far the last window start before `start` lies behind it."""
    return (start - last_window) % slide or slide


def migration_start(start: int, last_window: int, slide: int) -> int:
    """Eq. 7.1: the start of the last window that the origin processes.

    start <= last window: last window (the destination already has all of the next one);
    otherwise: start - delta, the last window start strictly before `start`.
    """
    require(slide >= 1, "window slide", slide, "1 or more")
    if start <= last_window:
        return last_window
    return start - slides_back(start, last_window, slide)


def time_migration_ts(start_ts: Sequence[int], last_window_ts: int, slide: int) -> int:
    """Time-based windows, any number of inputs: eq. 7.1 with the latest of the inputs' starts."""
    return migration_start(max(start_ts), last_window_ts, slide)


def activation_ts(migration_ts: int, slide: int) -> int:
    """Time-based windows: the destination starts with tuples of this timestamp (7.2.5.2)."""
    return migration_ts + slide


def tuple_delta(between_tuples: Sequence[int], slide: int) -> int:
    """Eq. 7.2's delta: t's distance from the last window start before it, for N = max(N_i)."""
    return slides_back(max(between_tuples) + 1, 0, slide)


def tuples_to_discard(between_tuples: Sequence[int], slide: int) -> tuple[int, ...]:
    """Tuple-based windows: how many tuples the destination's window discards, per input.

    From the first one on that the destination can count. The thesis says s - delta; that is right
    for the input with the largest N, the others discard the difference on top.
    """
    most = max(between_tuples)
    rest = slide - tuple_delta(between_tuples, slide)
    return tuple(most - between + rest for between in between_tuples)


def complete_from_ts(
    first_read_ts: int, strictly_increasing: bool = False, late_by: int = 0
) -> int:
    """The first timestamp of which the destination surely has every tuple.

    That is the first one it read when timestamps never repeat (the thesis assumes so). Where they
    do, an equal one may have passed before the destination connected: take the next tick. Where
    tuples come late, newer ones may have passed.
    """
    if strictly_increasing and late_by == 0:
        return first_read_ts
    return first_read_ts + late_by + 1
