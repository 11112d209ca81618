"""What both engines keep about a class while they run."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from spillway.errors import SpillwayError
from spillway.model import Decision, Target
from spillway_lab.engine.statistics import DelayRecord, Floats, statistic_of


class Counts(NamedTuple):
    """Tuples of a class since the start, or within a period."""

    offered: int = 0
    admitted: int = 0
    shed: int = 0
    completed: int = 0
    outputs: int = 0

    def since(self, earlier: "Counts") -> "Counts":
        return Counts(*(now - then for now, then in zip(self, earlier, strict=True)))


@dataclass
class ClassState:
    """Running totals and latest figures of one class.

    `departed` counts every output and every discard; `queued_tuples` is what came in minus that:
    the virtual queue that the ctrl paper's monitor counts. It is wrong as soon as one tuple has
    several results (thesis 3.3.1), and is kept that way. `finished` is exact.
    """

    name: str
    target: Target
    assigned_headroom: float | None = None  # by a class scheduler
    keep_fraction: float = 1.0
    decision: Decision | None = None
    delays: DelayRecord = field(default_factory=DelayRecord)
    outputs: int = 0
    departed: int = 0
    finished: int = 0
    cost_s: float = 0.0
    full_batch_load: float = 0.0  # the offered load of the last period, were all batches full
    queued_tuples: int = 0
    queued_load_s: float = 0.0
    _recent_s: list[Floats] = field(default_factory=list)

    def completed(self, arrived_s: Floats, done_s: Floats) -> None:
        if arrived_s.size:
            self.delays.add(arrived_s, done_s, self.target.delay_s)
            self._recent_s.append(done_s - arrived_s)

    def statistic_s(self) -> float | None:
        """The target's statistic of the delays since the last call; None when there are none."""
        if not self._recent_s:
            return None
        delays_s = np.concatenate(self._recent_s)
        self._recent_s = []
        return statistic_of(delays_s, self.target)


def classes_of(
    names: Iterable[str], target: Target | Mapping[str, Target]
) -> dict[str, ClassState]:
    """One state per class; a single target serves them all."""
    found = {}
    for name in dict.fromkeys(names):
        own = target if isinstance(target, Target) else target.get(name)
        if own is None:
            raise SpillwayError(f"class '{name}' has no delay target: give one")
        found[name] = ClassState(name=name, target=own)
    return found
