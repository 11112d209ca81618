"""Random numbers of one operator: the i-th tuple it processes always meets the i-th number.

So a run does not depend on how the work is cut into activations, and two load managers on the same
seed see the same operators.
"""

import numpy as np

_CHUNK = 512


class Draws:
    """Uniform numbers in [0, 1)."""

    def __init__(self, seed: int, operator: int) -> None:
        self._rng = np.random.default_rng([seed, operator])
        self._numbers: list[float] = []
        self._next = 0

    def take(self, count: int) -> list[float]:
        stop = self._next + count
        if stop > len(self._numbers):
            fresh: list[float] = self._rng.random(max(_CHUNK, count)).tolist()
            self._numbers = self._numbers[self._next :] + fresh
            self._next, stop = 0, count
        taken = self._numbers[self._next : stop]
        self._next = stop
        return taken


class Coins:
    """Heads with a fixed probability, as a list of heads and the matching list of tails."""

    def __init__(self, seed: int, operator: int, probability: float) -> None:
        self._rng = np.random.default_rng([seed, operator])
        self._probability = probability
        self._heads: list[bool] = []
        self._tails: list[bool] = []
        self._next = 0

    def take(self, count: int) -> tuple[list[bool], list[bool]]:
        start, stop = self._next, self._next + count
        if stop > len(self._heads):
            fresh = self._rng.random(max(_CHUNK, count)) < self._probability
            self._heads = self._heads[start:] + fresh.tolist()
            self._tails = self._tails[start:] + (~fresh).tolist()
            start, stop = 0, count
        self._next = stop
        return self._heads[start:stop], self._tails[start:stop]
