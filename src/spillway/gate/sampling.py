"""Which tuples a uniform rule keeps: a pure function of (position, rule).

Positions are cut into blocks of 1,024. In each block a bijection of the slots, seeded by
(seed, partition, block), ranks them; ranks below the block's share are kept. Shares come from one
exact integer formula over all blocks, so they never drift from `keep_ppm`. That gives

- exact counts in constant time: the planner knows how many tuples a range keeps without
  touching one of them;
- the same answer after a crash, on another machine, in the simulator and in an audit;
- a sample that is random inside every block and stratified over time.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

BLOCK = 1024
PPM = 1_000_000
_MASK = np.uint16(BLOCK - 1)
_HALF = np.uint16(5)  # of the ten bits of a slot
_SPARSE_PPM = 400_000  # below it what is kept is found directly, above it by a mask
AT_ONCE, _LONGEST = 1 << 20, 1 << 26  # positions
_KEPT_AT_ONCE = 1 << 18
_CHUNK_BLOCKS = 256  # of a mask: 0.5 MB of ranks stays in the cache
_CHUNK_KEPT = 1 << 17  # of a sparse sample: many, because a chunk has a price of its own

Positions = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Slots = npt.NDArray[np.uint16]


@dataclass(frozen=True, kw_only=True, slots=True)
class UniformRule:
    """Keep `keep_ppm` of every million positions, chosen by `seed`."""

    keep_ppm: int
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.keep_ppm <= PPM:
            raise ValueError(f"keep_ppm is {self.keep_ppm}: it must be 0 to {PPM}")


def keep_mask(start: int, stop: int, rule: UniformRule, partition: int = 0) -> npt.NDArray[np.bool]:
    """For every position in [start, stop): is it kept?"""
    if stop <= start or rule.keep_ppm in (0, PPM):
        return np.full(max(0, stop - start), rule.keep_ppm == PPM)
    parts = list(_block_masks(start // BLOCK, -(-stop // BLOCK), rule, partition))
    skipped = start % BLOCK
    return np.concatenate(parts)[skipped : skipped + stop - start]


def kept_positions(start: int, stop: int, rule: UniformRule, partition: int = 0) -> Positions:
    """The positions in [start, stop) that the rule keeps, ascending."""
    if not 0 < rule.keep_ppm <= _SPARSE_PPM or stop <= start:
        dense = np.flatnonzero(keep_mask(start, stop, rule, partition))
        dense += start  # in place: a second large array costs more than all the rest
        return dense
    positions = _sparse_positions(start // BLOCK, -(-stop // BLOCK), rule, partition)
    lower, upper = np.searchsorted(positions, (start, stop))
    return positions[lower:upper]


def positions_at_once(rule: UniformRule) -> int:
    """How long a stretch to ask for: a sparse sample of a short one is many small arrays."""
    if not 0 < rule.keep_ppm <= _SPARSE_PPM:
        return AT_ONCE
    return min(max(AT_ONCE, _KEPT_AT_ONCE * PPM // rule.keep_ppm), _LONGEST)


def keeps(position: int, rule: UniformRule, partition: int = 0) -> bool:
    """Whether one position is kept."""
    return bool(keep_mask(position, position + 1, rule, partition)[0])


def count_kept(start: int, stop: int, rule: UniformRule, partition: int = 0) -> int:
    """How many positions in [start, stop) are kept: whole blocks by arithmetic, edges by mask."""
    if stop <= start:
        return 0
    first, last = -(-start // BLOCK), stop // BLOCK
    if first >= last:
        return int(keep_mask(start, stop, rule, partition).sum())
    whole = int(_kept_before(last, rule) - _kept_before(first, rule))
    head = int(keep_mask(start, first * BLOCK, rule, partition).sum())
    tail = int(keep_mask(last * BLOCK, stop, rule, partition).sum())
    return head + whole + tail


def _kept_before(block: int | Positions, rule: UniformRule) -> int | Positions:
    """Kept tuples in blocks 0 .. block-1; split so that 64 bits hold every intermediate."""
    millions, rest = block * BLOCK // PPM, block * BLOCK % PPM
    return millions * rule.keep_ppm + rest * rule.keep_ppm // PPM


def _block_masks(
    first: int, last: int, rule: UniformRule, partition: int
) -> Iterator[npt.NDArray[np.bool]]:
    slots = np.arange(BLOCK, dtype=np.uint16)[None, :]
    for _, shares, bijection in _chunks(first, last, rule, partition, _CHUNK_BLOCKS):
        yield (bijection.ranks(slots) < shares[:, None]).ravel()


def _sparse_positions(first: int, last: int, rule: UniformRule, partition: int) -> Positions:
    """The kept ranks are 0, 1, 2, ...: their slots take work for what is kept, not for the rest."""
    found = np.empty(int(_kept_before(last, rule) - _kept_before(first, rule)), dtype=np.int64)
    filled, length = 0, max(1, _CHUNK_KEPT * PPM // (BLOCK * rule.keep_ppm))
    for starts, shares, bijection in _chunks(first, last, rule, partition, length):
        least, most = int(shares.min()), int(shares.max())  # they differ by one at most
        slots = bijection.slots(np.arange(most, dtype=np.uint16)[None, :])
        if least < most:
            slots[shares == least, -1] = BLOCK  # no slot: sorts to the end
        slots.sort(axis=1)
        positions = slots + starts[:, None]
        kept = positions.ravel() if least == most else positions[slots < BLOCK]
        found[filled : filled + len(kept)] = kept
        filled += len(kept)
    return found


def _chunks(
    first: int, last: int, rule: UniformRule, partition: int, length: int
) -> Iterator[tuple[Positions, npt.NDArray[np.uint16], "_Bijection"]]:
    """Blocks by the chunk: where they start, how many they keep, how they rank."""
    for lower in range(first, last, length):
        blocks = np.arange(lower, min(lower + length, last) + 1, dtype=np.int64)
        shares = np.diff(_kept_before(blocks, rule)).astype(np.uint16)
        keys = splitmix(blocks[:-1].astype(np.uint64) ^ _salt(rule.seed, partition))
        yield blocks[:-1] * BLOCK, shares, _Bijection(keys)


class _Bijection:
    """Of the slots of each block to ranks: multiply by an odd key, fold, multiply again."""

    def __init__(self, keys: Words) -> None:
        column = keys[:, None]
        self._first = column.astype(np.uint16) | np.uint16(1)
        self._second = (column >> np.uint64(16)).astype(np.uint16) | np.uint16(1)
        self._offset = (column >> np.uint64(32)).astype(np.uint16)

    def ranks(self, slots: Slots) -> Slots:
        ranks = (slots * self._first + self._offset) & _MASK
        ranks ^= ranks >> _HALF
        ranks *= self._second
        return ranks & _MASK

    def slots(self, ranks: Slots) -> Slots:
        """The inverse. Folding ten bits by five undoes itself."""
        slots = (ranks * _inverse(self._second)) & _MASK
        slots ^= slots >> _HALF
        slots -= self._offset
        slots *= _inverse(self._first)
        return slots & _MASK


def _inverse(odd: Slots) -> Slots:
    """Modulo 2^16 by Newton's steps: an odd number is its own inverse modulo 8."""
    inverse = odd.copy()
    for _ in range(3):  # 3, 6, 12, 24 bits
        inverse *= np.uint16(2) - odd * inverse
    return inverse


def _salt(seed: int, partition: int) -> np.uint64:
    words = np.array([seed & (2**64 - 1)], dtype=np.uint64)
    return np.uint64(splitmix(splitmix(words) ^ np.uint64(partition))[0])


def splitmix(values: Words) -> Words:
    """SplitMix64's finaliser: every input bit reaches every output bit."""
    z = values + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
