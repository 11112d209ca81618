"""Dropping behind a split: which queries of a fused plan may see a row.

Every query has a share of what the gate keeps. A row carries the answer for all of them as a bit
mask; query k reads the rows with bit k set. Bits are a pure function of (position, rule): query k
samples with the gate's own seed and keep_ppm x share, and ranks are shared, so samples are nested:
a row that a small share keeps is kept by every larger one, and no row is read for one query alone
that another could have used as well. Counts per query are exact, in constant time.

Rounding could break the nesting: a block's share is a whole number of slots, and two fractions less
than a slot of a block apart may round either way. Such fractions are made one, the larger one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spillway.errors import SpillwayError
from spillway.gate.sampling import BLOCK, PPM, UniformRule, count_kept, keep_mask

COLUMN = "_queries"
EVERY_QUERY = -1  # all bits set
MOST_QUERIES = 63  # bits of a BIGINT without its sign
_SLOT_PPM = -(-PPM // BLOCK)

Masks = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, slots=True)
class QueryShare:
    """How much of what the gate keeps one query sees."""

    name: str
    keep_ppm: int

    def __post_init__(self) -> None:
        if not 0 <= self.keep_ppm <= PPM:
            raise SpillwayError(
                f"share of query '{self.name}' is {self.keep_ppm} ppm: it must be 0 to {PPM}"
            )


def parse_shares(text: str) -> tuple[QueryShare, ...]:
    """'a:1000000,b:250000': query a (bit 0) sees what the gate keeps, b (bit 1) a quarter of it."""
    shares = tuple(_parse_share(item) for item in text.split(",")) if text else ()
    names = [share.name for share in shares]
    if len(set(names)) < len(names):
        raise SpillwayError(f"masks are '{text}': every query may be named once")
    if len(shares) > MOST_QUERIES:
        raise SpillwayError(f"masks name {len(shares)} queries: at most {MOST_QUERIES} have a bit")
    if shares and max(share.keep_ppm for share in shares) < PPM:
        raise SpillwayError(
            f"masks are '{text}': the largest share must be {PPM}, because what no query sees is"
            " dropped by the gate itself"
        )
    return shares


def _parse_share(item: str) -> QueryShare:
    name, found, ppm = item.strip().rpartition(":")
    if not found or not name or not ppm.isdecimal():
        raise SpillwayError(
            f"masks hold '{item}': each query is written name:ppm, for example 'alerts:1000000'"
        )
    return QueryShare(name=name, keep_ppm=int(ppm))


def text_of(shares: Sequence[QueryShare]) -> str:
    """What `parse_shares` reads."""
    return ",".join(f"{share.name}:{share.keep_ppm}" for share in shares)


def shares_of(keep: Mapping[str, float]) -> tuple[QueryShare, ...]:
    """Shares from what a roadmap keeps: the gate itself drops what even the largest lacks."""
    largest = max(keep.values(), default=0.0)
    if largest <= 0.0:
        raise SpillwayError("every query's keep fraction is zero: nothing is left to share")
    return tuple(
        QueryShare(name=name, keep_ppm=round(fraction / largest * PPM))
        for name, fraction in keep.items()
    )


def predicate(bit: int | str, column: str = COLUMN) -> str:
    """Spark SQL: may the query with this bit (a number or a column) see the row?"""
    return f"({column} >> {bit}) & 1 = 1"


def query_rules(gate: UniformRule, shares: Sequence[QueryShare]) -> tuple[UniformRule, ...]:
    """What each query keeps of all positions, nested and inside what the gate keeps."""
    level, levels = gate.keep_ppm, {}
    for ppm in sorted({share.keep_ppm for share in shares}, reverse=True):
        wanted = gate.keep_ppm * ppm // PPM
        if wanted == 0 or level - wanted >= _SLOT_PPM:
            level = wanted
        levels[ppm] = level
    return tuple(UniformRule(keep_ppm=levels[s.keep_ppm], seed=gate.seed) for s in shares)


def masks_of(
    start: int, stop: int, gate: UniformRule, shares: Sequence[QueryShare], partition: int = 0
) -> Masks:
    """The mask of every position in [start, stop); zero: the gate drops it."""
    masks = np.zeros(max(0, stop - start), dtype=np.int64)
    for rule, bits in _bits(gate, shares).items():
        masks |= keep_mask(start, stop, rule, partition) * np.int64(bits)
    return masks


def possible_masks(gate: UniformRule, shares: Sequence[QueryShare]) -> tuple[int, ...]:
    """All masks that rows can have: samples are nested, so no more than there are queries."""
    found, bits = [], 0
    for rule, own in sorted(_bits(gate, shares).items(), key=lambda item: -item[0].keep_ppm):
        bits |= own
        if rule.keep_ppm > 0:
            found.append(bits)
    return tuple(found)


def _bits(gate: UniformRule, shares: Sequence[QueryShare]) -> dict[UniformRule, int]:
    """Queries with one rule are one sample: their bits together."""
    bits: dict[UniformRule, int] = {}
    for bit, rule in enumerate(query_rules(gate, shares)):
        bits[rule] = bits.get(rule, 0) | 1 << bit
    return bits


def count_seen(
    start: int, stop: int, gate: UniformRule, shares: Sequence[QueryShare], partition: int = 0
) -> dict[str, int]:
    """How many of [start, stop) each query sees, without touching one of them."""
    rules = query_rules(gate, shares)
    return {
        share.name: count_kept(start, stop, rule, partition)
        for share, rule in zip(shares, rules, strict=True)
    }
