"""The best mixture of a table's rows for given rates: a tiny linear programme, answered at once.

    maximise sum(share_k score_k)  with  sum(share_k rate_ki) <= r_i, sum(share_k) <= 1, shares >= 0

A basis that is optimal for some rates stays dual feasible for all, so each known one gives an upper
bound of the optimum, linear in r. The lowest bound is the answer if its shares are not negative;
otherwise dual simplex steps lead from there to the answer, and the basis found is kept. A node meets
few bases, so that a look-up is two small products of a matrix and a vector.
"""

import numpy as np

from spillway.cluster.fit.table import Floats

EPS = 1e-9
MOST_KNOWN = 512  # bases
MOST_STEPS = 100


class Mixture:
    def __init__(self, rates: Floats, scores: Floats) -> None:
        """`rates`: inputs x rows."""
        inputs, self._rows = rates.shape
        self._scale = 1.0 / np.maximum(rates.max(axis=1, initial=0.0), EPS)
        size = inputs + 1
        self._columns = np.zeros((size, self._rows + size))  # rows, then slack
        self._columns[:inputs, : self._rows] = rates * self._scale[:, None]
        self._columns[inputs, : self._rows] = 1.0
        self._columns[:, self._rows :] = np.eye(size)
        self._worth = np.zeros(self._rows + size)
        self._worth[: self._rows] = scores / max(float(scores.max(initial=0.0)), EPS)
        self._bases: list[list[int]] = []
        self._bounds = np.zeros((0, size))  # dual values of each basis
        self._inverses = np.zeros((0, size, size))
        # The best row alone, the rest slack: dual feasible after at most a few steps upwards.
        self._keep(self._first_basis())

    def shares(self, rates: Floats) -> Floats:
        """How much of each row."""
        right = np.append(rates * self._scale, 1.0)
        best = int((self._bounds @ right).argmin())
        levels = self._inverses[best] @ right
        if levels.min() < -EPS:
            basis, levels = self._steps(list(self._bases[best]), right)
            if len(self._bases) < MOST_KNOWN:
                self._keep(basis)
        else:
            basis = self._bases[best]
        shares = np.zeros(self._worth.size)
        shares[basis] = np.maximum(levels, 0.0)
        return shares[: self._rows]

    def _first_basis(self) -> list[int]:
        """With rates above all rows only the sum of shares binds: the row that scores most."""
        slack = [self._rows + i for i in range(len(self._columns) - 1)]
        return [*slack, int(self._worth[: self._rows].argmax())]

    def _keep(self, basis: list[int]) -> None:
        inverse = np.linalg.inv(self._columns[:, basis])
        self._bases.append(basis)
        self._inverses = np.concatenate((self._inverses, inverse[None]))
        self._bounds = np.concatenate((self._bounds, (self._worth[basis] @ inverse)[None]))

    def _steps(self, basis: list[int], right: Floats) -> tuple[list[int], Floats]:
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
                break
            basis[leaves] = enters
        return basis, np.linalg.inv(self._columns[:, basis]) @ right
