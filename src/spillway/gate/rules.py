"""What a batch takes of each partition, and which of its tuples are kept.

A stretch [start, stop) of a partition is consumed by a batch. Everything below `read` is shed
unread; of [read, stop) the uniform rule keeps its share. Both policies come down to this: `uniform`
samples the whole stretch, `fresh` skips all but its newest tuples. So a worker, an audit and the
simulator need nothing but the stretch and the rule. With a selection, the rule looks at the data of
[read, stop) instead (gate/shedders), and which positions stay takes the log to find out.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from spillway.errors import SpillwayError
from spillway.gate.masks import QueryShare, count_seen
from spillway.gate.sampling import PPM, UniformRule, count_kept, kept_positions
from spillway.gate.shedders.shedder import Shedder

Policy = Literal["uniform", "fresh"]
POLICIES: tuple[Policy, ...] = get_args(Policy)


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """How a batch was decided. `would_keep_ppm` differs from `keep_ppm` only in a dry run."""

    keep_ppm: int = PPM
    seed: int = 0
    policy: Policy = "uniform"
    reason: str = ""
    would_keep_ppm: int = PPM
    selection: Shedder | None = None  # None: a sample that looks at positions alone
    shares: tuple[QueryShare, ...] = ()  # of the queries that see different parts of the batch

    def __post_init__(self) -> None:
        if self.shares and self.selection is not None:
            raise ValueError("masks need a rule that does not look at the data")

    @property
    def sampling(self) -> UniformRule:
        return UniformRule(keep_ppm=self.keep_ppm, seed=self.seed)


@dataclass(frozen=True, kw_only=True, slots=True)
class Stretch:
    """Positions [start, stop) of one partition; those below `read` are shed unread."""

    partition: int
    start: int
    read: int
    stop: int

    def __post_init__(self) -> None:
        if not self.start <= self.read <= self.stop:
            raise ValueError(f"stretch is not in order: {self}")

    @property
    def tuples(self) -> int:
        return self.stop - self.start

    @property
    def scanned_tuples(self) -> int:
        return self.stop - self.read

    def kept_tuples(self, rule: Rule) -> int:
        if rule.selection is not None:
            return share_of(self.read, self.stop, rule.keep_ppm)
        return count_kept(self.read, self.stop, rule.sampling, self.partition)

    def kept_positions(self, rule: Rule) -> npt.NDArray[np.int64]:
        if rule.selection is not None:
            raise SpillwayError(
                f"shedder '{rule.selection.name}' looks at the data: which positions it kept"
                " can be told only with the log at hand"
            )
        return kept_positions(self.read, self.stop, rule.sampling, self.partition)

    def shed_positions(self, rule: Rule) -> npt.NDArray[np.int64]:
        everything = np.arange(self.start, self.stop, dtype=np.int64)
        return np.setdiff1d(everything, self.kept_positions(rule), assume_unique=True)


def kept_tuples(stretches: Iterable[Stretch], rule: Rule) -> int:
    counted = rule.selection.kept_tuples if rule.selection is not None else None
    if counted is not None:
        return counted
    return sum(stretch.kept_tuples(rule) for stretch in stretches)


def seen_tuples(stretches: Iterable[Stretch], rule: Rule) -> dict[str, int]:
    """How many tuples each query of a fused plan sees; empty when all of them see all."""
    seen = dict.fromkeys((share.name for share in rule.shares), 0)
    for s in stretches:
        counts = count_seen(s.read, s.stop, rule.sampling, rule.shares, s.partition)
        seen = {name: seen[name] + counts[name] for name in seen}
    return seen


def share_of(start: int, stop: int, keep_ppm: int) -> int:
    """How many of [start, stop) stay when adjacent ranges must add up without rounding errors."""
    return stop * keep_ppm // PPM - start * keep_ppm // PPM


def share_ppm(kept: float, tuples: int) -> int:
    """The keep_ppm that keeps about `kept` of `tuples`: all of none is all."""
    return PPM if kept >= tuples else max(0, int(kept * PPM // tuples))
