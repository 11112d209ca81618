"""Random numbers of one operator: the i-th tuple it processes always meets the i-th number.

So a run does not depend on how the work is cut into activations, and two load managers on the same
seed see the same operators.
"""

import numpy as np

from spillway_lab.engine.statistics import Floats

_BLOCK = 512


class Draws:
    """Uniform numbers in [0, 1)."""

    def __init__(self, seed: int, operator: int) -> None:
        self._rng = np.random.default_rng([seed, operator])
        self._numbers: list[float] = []
        self._next = 0

    def block(self, at_least: int) -> Floats:
        return self._rng.random(max(_BLOCK, at_least))

    def take(self, count: int) -> list[float]:
        stop = self._next + count
        if stop > len(self._numbers):
            self._numbers = self._numbers[self._next :] + self.block(count).tolist()
            self._next, stop = 0, count
        taken = self._numbers[self._next : stop]
        self._next = stop
        return taken
