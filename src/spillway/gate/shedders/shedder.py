"""What a shedder is, what it is asked for, and what it can promise."""

from collections.abc import Iterator, Mapping
from dataclasses import Field, dataclass, replace
from typing import Any, ClassVar, Protocol, Self

from spillway.gate.shedders.kept import Kept
from spillway.model import parse_duration_s
from spillway.options import Option


@dataclass(frozen=True, kw_only=True, slots=True)
class WholeKeys:
    """In an epoch a key has one place, and a batch keeps the keys placed below its limit.

    So a kept key is complete within the batch and stands for 1 / limit keys, and two gates with
    the same seed, epoch and limit keep the same ones.
    """

    column: str
    time_column: str
    epoch_us: int
    limit_ppm: int


@dataclass(frozen=True, kw_only=True, slots=True)
class WholeWindows:
    """[n length, (n + 1) length) of event time stays or goes as a whole, over all batches.

    A range that is skipped unread would leave holes in it. What stays says since when everything
    did (`Kept.kept_from_us`).
    """

    column: str
    length_us: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Batch:
    """A batch whose share is decided, for a shedder that must count before it runs."""

    tuples: int  # that are read
    keep_ppm: int
    seed: int
    limit_ppm: int | None  # of whole keys, when another gate of the query has decided it
    blocks: Iterator[Any]  # Arrow tables with the shedder's columns, read as they are asked for


class Shedder(Protocol):
    """Which tuples of a batch stay. The load manager says how many.

    To be inherited by frozen dataclasses. Their fields (integers, strings, tuples of them) go into
    the offset, so a replay, an audit and the simulator find the same tuples again. What has a value
    here suits a shedder that keeps exactly its share of every block and decides nothing for later.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    name: ClassVar[str]
    options: ClassVar[tuple[Option, ...]]  # each with an example: the contract suite runs it
    no_sample: ClassVar[str] = ""  # why what it keeps is no random sample of the tuples

    @property
    def columns(self) -> tuple[str, ...]:
        """The only columns that it looks at."""
        ...

    @property
    def kept_tuples(self) -> int | None:
        """Of the batch at hand, as `decided` counted them; None: exactly the share."""
        return None

    @property
    def whole_keys(self) -> WholeKeys | None:
        return None

    @property
    def whole_windows(self) -> WholeWindows | None:
        return None

    @classmethod
    def asked(cls, options: Mapping[str, str], event_time: str | None) -> Self:
        """As the user wants it; `options` has a value for each of its own."""
        ...

    def keep(self, rows: Any, *, share: int, seed: int, block: int) -> Kept:
        """Which rows of a block stay: the same wherever and whenever it is read."""
        ...

    def decided(self, batch: Batch) -> Self:
        """For this batch, after those before it. Only where kept tuples must be counted."""
        return self

    def at_rest(self) -> Self:
        """For a batch without tuples: what was decided stays."""
        return self if self.kept_tuples is None else replace(self, kept_tuples=0)


def asked_us(options: Mapping[str, str], option: str) -> int:
    """A duration among the options, in microseconds."""
    return round(parse_duration_s(options[option], f"option '{option}'") * 1e6)
