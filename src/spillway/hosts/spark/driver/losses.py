"""What a query never gets to see although nobody decided to shed it, for the journal."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from spillway.hosts.spark.driver.delays import end_offsets
from spillway.hosts.spark.driver.monitor import BatchProgress
from spillway.logs.dead_letters import dead_letter_totals


@dataclass(frozen=True, kw_only=True)
class Losses:
    """Totals of one gate since its first batch."""

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
