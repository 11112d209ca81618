"""What two checkpoints of a query share while it moves from one to the other: the values of a cut.

Results of windows are told apart by the windows' starts (`Owned`), rows of a query without state by
where they stand in their streams (`Positions`).
"""

from collections.abc import Mapping
from dataclasses import dataclass

Positions = Mapping[str, Mapping[int, int]]  # by stream and partition: of the next tuple

FOREVER = 1 << 62


@dataclass(frozen=True, kw_only=True, slots=True)
class Owned:
    """The windows whose results are this checkpoint's, of a query that moves while it runs: those
    that start from `from_us` on and before `until_us` (event time, epoch microseconds)."""

    from_us: int = 0
    until_us: int = FOREVER


ALL = Owned()
NOTHING_YET = Owned(from_us=FOREVER)


def furthest(a: Positions, b: Positions) -> Positions:
    """Of each partition the later one; what only one side has seen counts as well."""
    return {
        stream: {
            p: max(a.get(stream, {}).get(p, 0), b.get(stream, {}).get(p, 0))
            for p in sorted({*a.get(stream, {}), *b.get(stream, {})})
        }
        for stream in sorted({*a, *b})
    }


def has_passed(stands: Positions, until: Positions) -> bool:
    """Whether everything before `until` has been read."""
    return all(
        stands.get(stream, {}).get(partition, 0) >= at
        for stream, partitions in until.items()
        for partition, at in partitions.items()
    )
