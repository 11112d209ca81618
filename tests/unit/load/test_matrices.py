"""Three by three, against NumPy."""

import numpy as np
import pytest

from spillway.load.matrices import Matrix, Vector, inverse, not_negative, times

RNG = np.random.default_rng(7)
MADE = [(lambda a: a @ a.T + 0.1 * np.eye(3))(RNG.normal(size=(3, 3))) for _ in range(40)]


def matrix(a: np.ndarray) -> Matrix:
    return tuple(tuple(float(value) for value in row) for row in a)  # type: ignore[return-value]


def solved(a: np.ndarray, b: np.ndarray) -> Vector:
    known = inverse(matrix(a))
    assert known is not None
    return not_negative(known, matrix(a), tuple(b))  # type: ignore[arg-type]


@pytest.mark.parametrize("a", MADE)
def test_an_inverse_and_a_product_are_those_of_the_matrix(a: np.ndarray) -> None:
    np.testing.assert_allclose(np.array(inverse(matrix(a))), np.linalg.inv(a), rtol=1e-9)
    assert times(matrix(a), (1.0, -2.0, 3.0)) == pytest.approx(a @ [1.0, -2.0, 3.0])


def test_what_rounding_leaves_nothing_of_has_no_inverse() -> None:
    assert inverse(matrix(np.ones((3, 3)))) is None
    assert inverse(matrix(np.diag([1.0, 1.0, 0.0]))) is None
    assert inverse(matrix(np.diag([1e-9, 1.0, 1e9]))) is not None, "small is not singular"


@pytest.mark.parametrize("a", MADE)
def test_a_solution_without_a_negative_part_stays(a: np.ndarray) -> None:
    x = np.abs(RNG.normal(size=3))
    assert solved(a, a @ x) == pytest.approx(x)


@pytest.mark.parametrize("held", range(3))
@pytest.mark.parametrize("a", MADE)
def test_the_lowest_is_held_at_zero_and_the_others_solve_what_is_left(
    a: np.ndarray, held: int
) -> None:
    wanted = np.array([1.0, 2.0, 3.0])
    wanted[held] = -4.0
    b = a @ wanted
    others = [i for i in range(3) if i != held]
    left = np.linalg.solve(a[np.ix_(others, others)], b[others])
    found = solved(a, b)
    assert found[held] == 0.0
    if (left >= 0.0).all():
        assert [found[i] for i in others] == pytest.approx(left)
    else:  # only one of them is left
        goes, stays = others if left[0] < 0.0 else reversed(others)
        assert found[goes] == 0.0
        assert found[stays] == pytest.approx(b[stays] / a[stays, stays])
