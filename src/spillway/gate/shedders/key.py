"""By key: all tuples of a key stay or all go, and time turns the wheel.

A key's place in [0, 1) is a hash of (key, epoch, seed); keys placed below the limit are kept. In
the next epoch all places are drawn anew, so that no key starves. Two gates with the same seed,
epoch length and limit keep the same keys: that is what a join needs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from spillway.gate.sampling import PPM
from spillway.gate.shedders.hashing import Indexes, key_words, microseconds, salted
from spillway.gate.shedders.hashing import places_ppm as spread
from spillway.gate.shedders.kept import Kept, alike
from spillway.gate.shedders.shedder import Batch, Shedder, WholeKeys, asked_us
from spillway.options import Option

_OWED_BATCHES = 1.0  # what a batch may owe the next: a key can be larger than a whole batch


@dataclass(frozen=True, kw_only=True, slots=True)
class Key(Shedder):
    name: ClassVar[str] = "key"
    options: ClassVar[tuple[Option, ...]] = (
        Option("key", "text", "column of the keys that stay or go as a whole", example="symbol"),
        Option("epoch", "duration", "how long the same keys stay", example="1m", default="1m"),
    )
    no_sample: ClassVar[str] = "whole keys stay or go, so tuples are no random sample"

    column: str
    time_column: str = ""  # whose time turns the epochs
    length_us: int = 0  # of an epoch; 0: one for ever
    limit_ppm: int = PPM
    kept_tuples: int = 0
    owed_tuples: int = 0  # decided minus kept, of all batches so far

    @classmethod
    def asked(cls, options: Mapping[str, str], event_time: str | None) -> "Key":
        return cls(
            column=options["key"],
            time_column=event_time or "_arrival",
            length_us=asked_us(options, "epoch"),
        )

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column, self.time_column) if self.time_column else (self.column,)

    @property
    def whole_keys(self) -> WholeKeys:
        return WholeKeys(
            column=self.column,
            time_column=self.time_column,
            epoch_us=self.length_us,
            limit_ppm=self.limit_ppm,
        )

    def keep(self, rows: Any, *, share: int, seed: int, block: int) -> Kept:
        return alike(self.places(rows, seed) < self.limit_ppm, self.limit_ppm / PPM)

    def places(self, rows: Any, seed: int) -> Indexes:
        """Where each row's key stands in its epoch, in parts per million."""
        words = salted(key_words(rows.column(self.column)), seed)
        if self.length_us > 0:
            times_us, _ = microseconds(rows.column(self.time_column))
            words = salted(words ^ (times_us // self.length_us).astype(np.uint64), seed)
        return spread(words)

    def decided(self, batch: Batch) -> "Key":
        """The limit whose keys hold what was decided, and what earlier batches still owe."""
        limit = batch.limit_ppm
        if limit == PPM or (limit is None and batch.keep_ppm == PPM):
            return replace(self, limit_ppm=PPM, kept_tuples=batch.tuples, owed_tuples=0)
        found = [self.places(rows, batch.seed) for rows in batch.blocks]
        places = np.concatenate([np.empty(0, dtype=np.int64), *found])
        decided = batch.tuples * batch.keep_ppm / PPM
        if limit is None:
            limit = fitting_limit_ppm(places, decided + self.owed_tuples)
        kept = int((places < limit).sum())
        most = _OWED_BATCHES * batch.tuples
        owed = max(-most, min(most, self.owed_tuples + decided - kept))
        return replace(self, limit_ppm=limit, kept_tuples=kept, owed_tuples=round(owed))


def fitting_limit_ppm(places_ppm: Indexes, wanted_tuples: float) -> int:
    """The largest limit whose keys fit into `wanted_tuples`: one selection pass.

    It is the place of the first key that does not fit: a threshold that would be the same
    wherever the kept keys stood below it, which is what makes 1 / limit an honest weight.
    """
    if wanted_tuples >= len(places_ppm):
        return PPM
    first_out = max(0, int(wanted_tuples))
    return int(np.partition(places_ppm, first_out)[first_out])
