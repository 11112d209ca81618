"""How far apart a table's points lie (paper section 3.2, "Determining Spread").

Along input i the score falls by at most s_i x Sel_i when the rate is rounded down to a multiple of
the spread s_i, where Sel_i is the weighted selectivity of all its outputs together. The error of a
table is the sum of that over its inputs, so for a maximum error e and m inputs
s_i = e / (m Sel_i), and for a table of B points the B_i are chosen so that R_i Sel_i / (B_i - 1)
is the same along all inputs and the product of the B_i is at most B.

Size. A table has at most prod(floor(R_i / s_i) + 1) rows: it grows with the power m of 1 / e. Both
kinds of resolution therefore carry a bound on the rows. A maximum error that needs more rows than
the bound is replaced by the spreads of a table of that size; the table then states the larger
error. An input needs at least two points, so a node of m inputs needs a bound of 2^m rows or more.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor, prod

from spillway.errors import SpillwayError, require


@dataclass(frozen=True, kw_only=True, slots=True)
class MaxError:
    """The score lost at a node's own outputs is at most this; at most `rows` rows are kept."""

    score: Fraction
    rows: int = 4096

    def __post_init__(self) -> None:
        require(self.score > 0, "maximum error of a table", self.score, "above zero")
        require(self.rows >= 2, "rows of a table", self.rows, "2 or more")


@dataclass(frozen=True, kw_only=True, slots=True)
class TableSize:
    """At most this many rows; the error follows."""

    rows: int = 64

    def __post_init__(self) -> None:
        require(self.rows >= 2, "rows of a table", self.rows, "2 or more")


Resolution = MaxError | TableSize


@dataclass(frozen=True, kw_only=True, slots=True)
class Axis:
    """One input of a table: useful rates 0 .. `upper`, and the score that each tuple is worth."""

    upper: Fraction  # R_i
    value: Fraction  # Sel_i: weight x selectivity, summed over the input's outputs


def check_inputs(node: str, inputs: int, rows: int) -> None:
    """Refuse a node whose inputs cannot have two points each."""
    if 2**inputs > rows:
        raise SpillwayError(
            f"node '{node}' has {inputs} inputs and a table of {rows} rows: a table of m inputs"
            f" needs 2^m rows or more, here {2**inputs}; allow more rows or split the node"
        )


def spreads_of_error(axes: Sequence[Axis], error: MaxError) -> tuple[Fraction, ...]:
    """s_i = e / (m Sel_i)."""
    return tuple(error.score / (len(axes) * axis.value) for axis in axes)


def grid_points(axes: Sequence[Axis], steps: Sequence[Fraction]) -> int:
    """Multiples of the spreads from 0 to R_i, all combinations."""
    return prod(int(axis.upper // s) + 1 for axis, s in zip(axes, steps, strict=True))


def spreads_of_size(axes: Sequence[Axis], rows: int) -> tuple[Fraction, ...]:
    """Spreads of equal error along all inputs, with at most `rows` points on the whole grid."""
    if not axes:
        return ()
    spans = [float(axis.upper * axis.value) for axis in axes]
    points = _points_of_equal_error(spans, rows)
    return tuple(
        axis.upper / (count - 1) if axis.upper > 0 else Fraction(1)
        for axis, count in zip(axes, points, strict=True)
    )


def _points_of_equal_error(spans: Sequence[float], rows: int) -> list[int]:
    """B_i = 1 + span_i / e for the smallest e whose product of whole B_i is within `rows`."""
    low, high = 0.0, max(spans)
    for _ in range(40):
        error = (low + high) / 2
        if error > 0 and prod(_points(spans, error)) <= rows:
            high = error
        else:
            low = error
    points = _points(spans, high) if high > 0 else [2] * len(spans)
    while prod(points) > rows:  # the floor of two points pushed it over
        points[points.index(max(points))] -= 1
    return points


def _points(spans: Sequence[float], error: float) -> list[int]:
    return [max(2, floor(1 + min(span / error, 1e9))) for span in spans]
