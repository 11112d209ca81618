"""Three by three, symmetric. Standard library only: a planner's imports stay light."""

Vector = tuple[float, float, float]
Matrix = tuple[Vector, Vector, Vector]


def times(a: Matrix, x: Vector) -> Vector:
    p, q, r = x
    return (
        a[0][0] * p + a[0][1] * q + a[0][2] * r,
        a[1][0] * p + a[1][1] * q + a[1][2] * r,
        a[2][0] * p + a[2][1] * q + a[2][2] * r,
    )


def inverse(a: Matrix) -> Matrix | None:
    """Of a symmetric positive definite matrix, by its adjugate; None when rounding leaves none."""
    (p, q, r), (_, s, t), (_, _, u) = a
    pp, pq, pr = s * u - t * t, r * t - q * u, q * t - r * s
    qq, qr, rr = p * u - r * r, q * r - p * t, p * s - q * q
    determinant = p * pp + q * pq + r * pr
    if not determinant > 1e-12 * p * s * u:
        return None
    d = 1.0 / determinant
    return (pp * d, pq * d, pr * d), (pq * d, qq * d, qr * d), (pr * d, qr * d, rr * d)


def not_negative(inverse: Matrix, a: Matrix, b: Vector) -> Vector:
    """a x = b with no x below zero: one that would be is held at zero, the others solved again."""
    found = times(inverse, b)
    lowest = min(found)
    if lowest >= 0.0:
        return found
    held = found.index(lowest)
    i, j = (k for k in range(3) if k != held)
    determinant = a[i][i] * a[j][j] - a[i][j] * a[i][j]
    x = (a[j][j] * b[i] - a[i][j] * b[j]) / determinant
    y = (a[i][i] * b[j] - a[i][j] * b[i]) / determinant
    if x < 0.0:
        x, y = 0.0, b[j] / a[j][j]
    elif y < 0.0:
        x, y = b[i] / a[i][i], 0.0
    solved = [0.0, 0.0, 0.0]
    solved[i], solved[j] = x, y
    return solved[0], solved[1], solved[2]
