"""What operators asked for lately: nodes are filled and released by the peak, not by the moment."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

PARTS = 12  # of the span
BRIEF_S = (
    300.0  # means over so long at most: a spike is no peak, a short period is not averaged out
)


class Recent:
    """Cores by operator over a sliding span: of each part the largest brief mean. New ones: now."""

    def __init__(self) -> None:
        self._names: Sequence[str] = ()
        self._parts = np.zeros((0, 0))
        self._started_s: list[float] = []
        self._sum, self._count, self._since_s = np.zeros(0), 0, 0.0

    def add(self, time_s: float, names: Sequence[str], cores: Floats, span_s: float) -> Floats:
        """One more measurement. Rows of the answer: now, the mean under way, the parts before."""
        if names != self._names:
            self._rename(names, cores)
        part_s = span_s / PARTS
        if self._count and time_s - self._since_s >= min(part_s, BRIEF_S):
            mean = self._sum / self._count
            if self._started_s and time_s - self._started_s[0] <= part_s:
                self._parts[0] = np.maximum(self._parts[0], mean)
            else:
                self._parts = np.vstack([mean, self._parts])
                self._started_s.insert(0, self._since_s)
            self._sum, self._count = np.zeros(len(names)), 0
        if not self._count:
            self._since_s = time_s
        kept = sum(time_s - started_s <= span_s + part_s for started_s in self._started_s)
        self._parts, self._started_s = self._parts[:kept], self._started_s[:kept]
        self._sum, self._count = self._sum + cores, self._count + 1
        return np.vstack([cores, self._sum / self._count, self._parts])

    def _rename(self, names: Sequence[str], cores: Floats) -> None:
        known = {name: i for i, name in enumerate(self._names)}
        before = np.array([known.get(name, -1) for name in names], dtype=np.int64)
        is_new = before < 0
        wide = np.vstack([self._sum, self._parts])
        moved = wide[:, before] if wide.size else np.zeros((len(wide), len(names)))
        moved[:, is_new] = cores[is_new]
        moved[0, is_new] *= self._count
        self._names, self._sum, self._parts = names, moved[0], moved[1:]
