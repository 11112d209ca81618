"""What is unusual: about a class in one line, and what a query never gets to see."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from spillway.classes.balance import QueryLoad
from spillway.hosts.spark.driver.progress import BatchProgress, end_offsets
from spillway.logs.dead_letters import dead_letter_totals
from spillway.model import Target

QUIET_S = 10.0  # a class without a new tuple for so long is called quiet

NO_DATA = "no tuple has arrived yet: its share is lent to the others"
QUIET = (
    f"no tuple for {QUIET_S:.0f} s and more: its share is lent to the others,"
    " the next tuple gets a batch at once"
)


def condition_of(
    target: Target, queries: Collection[QueryLoad], silent_s: float | None
) -> str | None:
    """None when all is as usual; `silent_s` is the time since the last tuple, None before it."""
    if silent_s is None:
        return NO_DATA
    if silent_s > QUIET_S:
        return QUIET
    fixed_s = max((query.fixed_s for query in queries), default=0.0)
    if fixed_s >= target.delay_s:
        return (
            f"its target ({target}) cannot be met: a batch alone takes {fixed_s:.2f} s;"
            " batches run back to back, and only what would make them much longer is shed"
        )
    return None


@dataclass(frozen=True, kw_only=True)
class Losses:
    """What a query never gets to see although nobody decided to shed it: totals of one gate."""

    malformed_tuples: int = 0  # could not be read
    dropped_tuples: int = 0  # by the log, before they were planned: part of `shed`
    vanished_tuples: int = 0  # from the log between planning and reading: part of `admitted`


class LossWatch:
    """Notices when the totals of a gate have changed."""

    def __init__(self, places: Mapping[str, Path]) -> None:
        self._places = places  # of dead letters, by gate
        self._known: dict[str, Losses] = {}

    def changed(self, progress: BatchProgress) -> Iterator[tuple[str, Losses]]:
        """The gates of a finished batch whose totals are new."""
        for offset in end_offsets(progress):
            place = self._places.get(offset.gate)
            letters = dead_letter_totals(place) if place is not None and place.exists() else {}
            found = Losses(
                malformed_tuples=letters.get("malformed", 0),
                dropped_tuples=offset.totals.lost,
                vanished_tuples=letters.get("lost", 0),
            )
            if found != self._known.get(offset.gate, Losses()):
                self._known[offset.gate] = found
                yield offset.gate, found
