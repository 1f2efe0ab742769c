"""Sums of products that are one product with the sum of what differs, and products that are multiplied term by term."""

import numpy as np
import pytest

import combdiff as cd
from combdiff.testing import random_arrays

RNG = np.random.default_rng(4)


@cd.program
def diagonal_and_triangle(e: cd.Space("k", "d"), L: cd.Space("k", "d", "d"), F: cd.Space("n", "k", "d")):
    lower = np.tril(L, -1)
    return cd.tensor(lambda k, a, i: e[k, a] * F[i, k, a] + cd.sum(lambda b: lower[k, a, b] * F[i, k, b]))


def test_what_is_multiplied_element_by_element_is_a_diagonal_of_the_matrix_beside() -> None:
    """One product of matrices; what is infinite beside the triangle has no share in it."""
    k, d, n = 2, 3, 5
    e, L, F = RNG.normal(size=(k, d)), RNG.normal(size=(k, d, d)), RNG.normal(size=(n, k, d))
    F[0, :, 2] = np.inf
    Q = np.tril(L, -1) + e[:, :, None] * np.eye(d)
    wanted = np.stack([(Q[:, a, : a + 1] * F[:, :, : a + 1]).sum(-1) for a in range(d)], -1)
    np.testing.assert_allclose(diagonal_and_triangle(e, L, F), wanted.transpose(1, 2, 0))
    cost = diagonal_and_triangle.cost(k=k, d=d, n=1000)
    assert cost.flops < k * d * d * 1000 + k * d * 1000


@pytest.mark.parametrize(("first", "second"), [(0, 0), (-1, 0), (0, -2), (-1, 1)])
def test_sums_of_triangles_are_multiplied_within_them(first: int, second: int) -> None:
    """What stands beside all of them has no share, even if it is infinite."""

    @cd.program
    def both(A: cd.Space("n", "n"), B: cd.Space("n", "n"), X: cd.Space("n", "m")):
        return np.tril(A, first) @ X - 2 * (np.tril(B, second) @ X)

    A, B, X = RNG.normal(size=(4, 4)), RNG.normal(size=(4, 4)), RNG.normal(size=(4, 6))
    finite = np.tril(A, first) @ X - 2 * (np.tril(B, second) @ X)
    X[2, 1] = np.inf
    seen = [i + max(first, second) >= 2 for i in range(4)]
    found = both(A, B, X)
    np.testing.assert_array_equal(np.isfinite(found[:, 1]), np.logical_not(seen))
    np.testing.assert_allclose(found[~np.array(seen)], finite[~np.array(seen)])
    np.testing.assert_allclose(found[:, 2:], finite[:, 2:])


Matrix, Vector = cd.Space("n", "n"), cd.Space("n")
Matrices, Complex = cd.Space("b", "n", "n"), cd.Space("n", "n", dtype=complex)
TRANSPOSED = {
    "matrix": (lambda A, x: (A + A.T) @ x, Matrix, Vector, True),
    "multiple": (lambda A, x: x @ (A / 2 + A.T / 2), Matrix, Vector, True),
    "adjoint": (lambda A, x: (A + A.conj().T) @ x, Complex, cd.Space("n", dtype=complex), True),
    "conjugate": (lambda A, x: np.conj(A + A.T) @ x, Complex, Vector, True),
    "matrices": (lambda A, x: ((A + A.swapaxes(1, 2)) @ x[:, :, None])[:, :, 0], Matrices, cd.Space("b", "n"), True),
    "read elsewhere": (lambda A, x: ((A + A.T) @ x) * (x @ A @ x), Matrix, Vector, True),
    "difference": (lambda A, x: (A - A.T) @ x, Matrix, Vector, False),
    "columns": (lambda A, x: (A + A.T) @ x, Matrix, cd.Space("n", "m"), False),
    "weights": (lambda A, x: ((A + A.T) * A).sum() * x, Matrix, Vector, False),
}


@pytest.mark.parametrize("name", TRANSPOSED)
def test_sums_of_transposes_are_multiplied_by_vectors_term_by_term(name: str) -> None:
    """Differences are not, which may be small beside what they are of; and matrices are added up for many columns."""
    value, array, vector, term_by_term = TRANSPOSED[name]

    @cd.program
    def product(A: array, x: vector):
        return value(A, x)

    sizes = {"n": 4, "b": 2, "m": 3}
    at = random_arrays(product.parameters, RNG, sizes)
    np.testing.assert_allclose(product(*at.values()), value(*at.values()), rtol=1e-12)
    sums = [row for row in product.cost().rows if row.operation == "combine" and len(row.shape) == array.order]
    assert len(sums) == (not term_by_term)
