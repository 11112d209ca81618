"""What a query that can move without its state looks like: inputs, windows, output timestamps.

Only windows matter to a move: operators without state pass through it unnoticed, so a query is its
chain of window operators. A query with none is stateless.
"""

from dataclasses import dataclass
from typing import Literal

from spillway.errors import SpillwayError, require

Basis = Literal["time", "tuples"]
Label = Literal["start", "end"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Window:
    """A sliding window: [start, start + length), a start every `slide`.

    Time-based windows count in timestamp ticks and start at `anchor` + k slide. Tuple-based windows
    count tuples of their input from its first one; with several inputs, window k covers the same
    index range of each.
    """

    basis: Basis
    length: int
    slide: int = 1
    anchor: int = 0

    def __post_init__(self) -> None:
        require(self.length >= 1, "window length", self.length, "1 or more")
        require(self.slide >= 1, "window slide", self.slide, "1 or more")
        no_anchor = self.basis == "time" or self.anchor == 0
        require(no_anchor, "anchor of a tuple-based window", self.anchor, "0")

    def start_at_or_before(self, coordinate: int) -> int:
        """The last window start that is not after a timestamp (or tuple index)."""
        return coordinate - (coordinate - self.anchor) % self.slide

    def start_at_or_after(self, coordinate: int) -> int:
        """The first window start that is not before a timestamp (or tuple index)."""
        return coordinate + (self.anchor - coordinate) % self.slide


@dataclass(frozen=True, kw_only=True, slots=True)
class Aggregate:
    """One result per non-empty window, when it closes.

    `label`: a result's timestamp is its window's start (for tuple-based windows: the first tuple's)
    or its end (the last tuple's).
    """

    window: Window
    label: Label = "start"


@dataclass(frozen=True, kw_only=True, slots=True)
class Join:
    """Pairs of equal key that share a window, each pair once.

    Label "end": a pair comes out as soon as its later tuple arrives and carries that timestamp.
    Label "start": it carries the earlier timestamp, and pairs come out in that order, when the last
    window that holds them closes.
    """

    window: Window
    label: Label = "end"

    @property
    def eager(self) -> bool:
        return self.label == "end"


Operator = Aggregate | Join


@dataclass(frozen=True, kw_only=True, slots=True)
class Query:
    """Window operators from the inputs to the output; the last one is the controlling one.

    `late_by`: ticks that a tuple may come behind newer ones (the watermark's delay). What is later
    still is dropped and counted.
    """

    operators: tuple[Operator, ...] = ()
    inputs: int = 1
    late_by: int = 0

    def __post_init__(self) -> None:
        joins = [i for i, op in enumerate(self.operators) if isinstance(op, Join)]
        if joins not in ([], [0]):
            raise SpillwayError(
                f"joins stand at {joins} of the window operators: only the first one can be a join"
            )
        require(self.inputs >= 1, "number of inputs", self.inputs, "1 or more")
        if self.operators:
            needed = 2 if joins else 1
            require(self.inputs == needed, "number of inputs", self.inputs, str(needed))
        for join in (op for op in self.operators if isinstance(op, Join)):
            _check_tuple_join(join, controlling=join is self.operators[-1])
        require(self.late_by >= 0, "ticks that a tuple may be late", self.late_by, "0 or more")
        if self.late_by:
            _check_order(self.operators)

    @property
    def stateless(self) -> bool:
        return not self.operators


def _check_tuple_join(join: Join, controlling: bool) -> None:
    if join.window.basis == "tuples" and not (join.eager and controlling):
        raise SpillwayError(
            "a join over tuple-based windows must be the last window operator and label its pairs"
            " by their end: give it a time-based window, or move it to the end of the query"
        )


def _check_order(operators: tuple[Operator, ...]) -> None:
    """What counts tuples in their order of arrival cannot wait for late ones."""
    if operators and operators[0].window.basis == "tuples":
        raise SpillwayError("tuple-based windows take no late tuples: sort the stream before them")
    if len(operators) > 1 and isinstance(operators[0], Join) and operators[0].eager:
        raise SpillwayError(
            "a join that labels its pairs by their end hands late tuples on out of order: label"
            " them by their start, or make the join the last window operator"
        )
