"""What commands show: tables, and the progress of long work."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

Progress = Callable[[str, float], None]  # (what is being done, fraction done)


def silent(what: str, fraction: float) -> None:
    """The progress of a caller who does not look."""


@dataclass(frozen=True, kw_only=True)
class Table:
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
