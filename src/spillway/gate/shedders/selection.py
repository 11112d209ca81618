"""What the offset says about a shedder that looks at the data, beside the share and the seed.

Together with the stretches of a batch it makes shedding a pure function of the log: a replay, an
audit and the simulator find the same tuples again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

ShedderName = Literal["uniform", "key", "utility", "windows", "strata"]
SHEDDERS: tuple[ShedderName, ...] = get_args(ShedderName)
COUNTED: tuple[ShedderName, ...] = ("utility", "strata")  # exact counts before a row is read


@dataclass(frozen=True, kw_only=True, slots=True)
class Selection:
    """One shedder and what it has decided so far.

    `utility` and `strata` keep an exact number of every block, so positions alone give the counts.
    What `key` and `windows` keep depends on the data: the planner counts it (`kept_tuples`) from
    the one column that they look at, before the offset is written.
    """

    shedder: ShedderName
    column: str  # the key, the group, the event time; or the utility expression
    time_column: str = ""  # key: whose time turns the epochs
    length_us: int = 0  # key: an epoch; windows: a window
    limit_ppm: int = 1_000_000  # key: keys placed below this are kept
    windows: tuple[tuple[int, int], ...] = ()  # decided windows and their chance in ppm; 0: gone
    window_tuples: int = 0  # what a window holds, about
    kept_tuples: int = 0  # of this batch, where it was counted
    owed_tuples: int = 0  # decided minus kept, of all batches so far

    @property
    def counted(self) -> bool:
        return self.shedder in COUNTED

    def at_rest(self) -> "Selection":
        """For a batch without tuples: what was decided stays."""
        return replace(self, kept_tuples=0)


def encode_selection(selection: Selection) -> dict[str, Any]:
    """Integers and strings only."""
    return {
        "shedder": selection.shedder,
        "column": selection.column,
        "time_column": selection.time_column,
        "length_us": selection.length_us,
        "limit_ppm": selection.limit_ppm,
        "windows": [list(window) for window in selection.windows],
        "window_tuples": selection.window_tuples,
        "kept_tuples": selection.kept_tuples,
        "owed_tuples": selection.owed_tuples,
    }


def decode_selection(value: Mapping[str, Any]) -> Selection:
    if value["shedder"] not in SHEDDERS:
        raise ValueError(f"unknown shedder {value['shedder']}")
    found = Selection(**{name: part for name, part in value.items() if name != "windows"})
    return replace(found, windows=tuple((w, ppm) for w, ppm in value["windows"]))
