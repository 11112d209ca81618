"""The best mixture of a table's rows for given rates: a tiny linear programme, answered at once.

    maximise sum(share_k score_k)  with  sum(share_k rate_ki) <= r_i, sum(share_k) <= 1, shares >= 0

A basis that is optimal for some rates stays dual feasible for all, so each known one gives an upper
bound of the optimum, linear in r. The lowest bound is the answer if its shares are not negative;
otherwise dual simplex steps lead from there to the answer, and the basis found is kept. A node
meets few bases, so that a look-up is two small products of a matrix and a vector.
"""

from collections.abc import Sequence

import numpy as np

from spillway.cluster.fit.table import Floats

EPS = 1e-9
MOST_KNOWN = 512  # bases
MOST_STEPS = 100
SHARPNESS = 100.0  # a row's distance counts so much less than a rate that is missed


class Mixture:
    """`yields`: what comes of each row (quantities x rows); a mixture yields the mean by shares."""

    def __init__(
        self, rates: Floats, scores: Floats, yields: Floats, counts: Floats | None = None
    ) -> None:
        """`rates`: inputs x rows. `counts`: what a row takes of the one that all shares add up to,
        one each if not given."""
        inputs, self._rows = rates.shape
        size = inputs + 1
        # Rates in units of their largest, so that one tolerance serves all.
        self._scale = 1.0 / np.maximum(np.append(rates.max(axis=1), 1.0), EPS)
        self._right = np.ones(size)
        self._columns = np.zeros((size, self._rows + size))  # rows, then slack
        self._columns[:inputs, : self._rows] = rates * self._scale[:inputs, None]
        self._columns[inputs, : self._rows] = 1.0 if counts is None else counts
        self._columns[:, self._rows :] = np.eye(size)
        self._worth = np.zeros(self._rows + size)
        self._worth[: self._rows] = scores / max(float(scores.max()), EPS)
        self._yields = np.zeros((len(yields), self._rows + size))
        self._yields[:, : self._rows] = yields
        self._bases: list[list[int]] = []
        self._bounds = np.zeros((0, size))  # dual values of each basis
        self._inverses: list[Floats] = []
        self._yielded: list[Floats] = []
        self._keep(self._first_basis())

    @classmethod
    def following(cls, offered: Floats, yields: Floats) -> "Mixture":
        """The mixture of those rows whose loads mix to what comes: the nearest ones around it.

        `offered`: inputs x rows, what came in each. Of all mixtures that come as near as can be
        (both sides of a rate count) the squares of the loads choose the one between neighbours,
        because a parabola lies below its chords.
        """
        inputs, rows = offered.shape
        units = np.maximum(offered.max(axis=1), EPS)
        loads = offered / units[:, None]
        nearness = loads.sum(axis=0) - (loads**2).sum(axis=0) / SHARPNESS + 10.0 * inputs
        given_up = -np.diag(units)  # a rate that the rows exceed
        return cls(
            np.concatenate((offered, given_up), axis=1),
            np.concatenate((nearness, -np.ones(inputs))),
            np.concatenate((yields, np.zeros((len(yields), inputs))), axis=1),
            np.concatenate((np.ones(rows), np.zeros(inputs))),
        )

    def of(self, rates: Sequence[float]) -> list[float]:
        """What the best mixture for these rates yields."""
        self._right[:-1] = rates
        right = self._right * self._scale
        bounds = self._bounds @ right
        best = int(bounds.argmin())
        if (self._inverses[best] @ right).min() < -EPS:
            best = self._searched(bounds, best, right)
        found: list[float] = (self._yielded[best] @ right).tolist()
        return found

    def _searched(self, bounds: Floats, best: int, right: Floats) -> int:
        """Another known basis of the same bound, or a new one."""
        for same in np.flatnonzero(bounds <= bounds[best] + EPS).tolist():
            if (self._inverses[same] @ right).min() >= -EPS:
                return int(same)
        basis = self._steps(list(self._bases[best]), right)
        if len(self._bases) >= MOST_KNOWN:
            self._forget()
        self._keep(basis)
        return len(self._bases) - 1

    def _forget(self) -> None:
        """Rates have moved far since the first bases were found."""
        half = len(self._bases) // 2
        self._bounds = self._bounds[half:]
        for kept in (self._bases, self._inverses, self._yielded):
            del kept[:half]

    def _first_basis(self) -> list[int]:
        """With rates above all rows only the sum of shares binds: the row that scores most."""
        slack = [self._rows + i for i in range(len(self._columns) - 1)]
        return [*slack, int(self._worth[: self._rows].argmax())]

    def _keep(self, basis: list[int]) -> None:
        inverse = np.linalg.inv(self._columns[:, basis])
        self._bases.append(basis)
        self._inverses.append(inverse)
        self._yielded.append(self._yields[:, basis] @ inverse)
        self._bounds = np.concatenate((self._bounds, (self._worth[basis] @ inverse)[None]))

    def _steps(self, basis: list[int], right: Floats) -> list[int]:
        """Dual simplex: the most negative share leaves, what keeps the bound lowest enters."""
        for _ in range(MOST_STEPS):
            inverse = np.linalg.inv(self._columns[:, basis])
            levels = inverse @ right
            leaves = int(levels.argmin())
            if levels[leaves] >= -EPS:
                break
            row = inverse[leaves] @ self._columns
            gaps = (self._worth[basis] @ inverse) @ self._columns - self._worth
            row[basis] = 0.0
            ratio = np.where(row < -EPS, np.maximum(gaps, 0.0) / -np.minimum(row, -EPS), np.inf)
            enters = int(ratio.argmin())
            if not np.isfinite(ratio[enters]):
                break  # cannot be: taking nothing of any row is always allowed
            basis[leaves] = enters
        return basis
