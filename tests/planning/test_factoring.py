"""What all terms of a sum have in common stands in front of it: in derivatives of programs people write."""

from functools import cache
from typing import Any

import numpy as np
import pytest

import combdiff as cd

RNG = np.random.default_rng(4)
hessian = cache(cd.hessian)


@cd.program
def logistic(X: cd.Space("m", "n"), y: cd.Space("m"), w: cd.Space("n")):
    return cd.sum(lambda i: cd.log(1 + cd.exp(-y[i] * cd.sum(lambda j: X[i, j] * w[j]))))


@cd.program
def gross_pitaevskii(
    T: cd.Space("n", "n", dtype=complex, symmetry=["T[i,j] = conj(T[j,i])"]),
    V: cd.Space("n"),
    g: cd.Space(),
    z: cd.Space("n", dtype=complex),
):
    """⟨z|T|z⟩ + Σ V |z|² + g/2 |z|⁴, the energy of a condensate on a lattice."""
    kinetic = cd.real(cd.sum(lambda i, j: cd.conj(z[i]) * T[i, j] * z[j]))
    return kinetic + cd.sum(lambda i: V[i] * cd.abs(z[i]) ** 2 + g / 2 * cd.abs(z[i]) ** 4)


@cd.program
def cross_entropy(W: cd.Space("k", "n"), X: cd.Space("m", "n"), Y: cd.Space("m", "k")):
    Z = X @ W.T
    return cd.sum(lambda i: cd.log(cd.sum(lambda c: cd.exp(Z[i, c]))) - cd.sum(lambda c: Y[i, c] * Z[i, c]))


@cd.program
def network(W: cd.Space("h", "n"), b: cd.Space("h"), v: cd.Space("h"), X: cd.Space("m", "n"), y: cd.Space("m")):
    return ((np.tanh(X @ W.T + b) @ v - y) ** 2).sum() / 2


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("program", "wrt", "line"),
    [
        (
            logistic,
            "w",
            "  (a, d) ↦ Σ_i X[i,a] X[i,d] t[i] y[i]² / (1 + t[i])²",
        ),
        (
            gross_pitaevskii,
            "z",
            "(T, V, g, z) ↦ ((a, d) ↦ T[d,a] + δ(a, d) (V[d] + 2 g |z[d]|²), (a, d) ↦ δ(a, d) g (z[d]*)²)",
        ),
        (
            cross_entropy,
            "W",
            "  (a, b, d, e) ↦ Σ_i X[i,b] X[i,e] p[i,d] (δ(a, d) - p[i,a])",
        ),
    ],
    ids=["logistic", "condensate", "cross-entropy"],
)
def test_how_hessians_read(program: cd.Program, wrt: str, line: str) -> None:
    assert str(hessian(program, wrt)).splitlines()[-1] == line


@cd.program
def scaled(scale: cd.Space(), observed: cd.Space("n"), predicted: cd.Space("n"), weights: cd.Space("n")):
    return scale * (weights @ observed - weights @ predicted + observed @ predicted + weights @ weights)


def test_a_long_sum_in_a_product_is_broken() -> None:
    assert str(scaled).splitlines() == [
        "(scale, observed, predicted, weights) ↦",
        "  scale (",
        "    Σ_i weights[i] observed[i]",
        "    - Σ_i weights[i] predicted[i]",
        "    + Σ_i observed[i] predicted[i]",
        "    + Σ_i weights[i]²",
        "  )",
    ]


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("program", "wrt", "shapes"),
    [
        (logistic, "w", {"X": (5, 3), "y": (5,), "w": (3,)}),
        (cross_entropy, "W", {"W": (2, 3), "X": (4, 3), "Y": (4, 2)}),
        (network, "W", {"W": (2, 3), "b": (2,), "v": (2,), "X": (4, 3), "y": (4,)}),
    ],
    ids=["logistic", "cross-entropy", "network"],
)
def test_factored_derivatives_agree_with_raw_ones(program: Any, wrt: str, shapes: dict[str, tuple[int, ...]]) -> None:
    arrays = {name: RNG.normal(size=shape) for name, shape in shapes.items()}
    cd.testing.check_grad(program, wrt, **arrays)
    np.testing.assert_allclose(
        hessian(program, wrt)(**arrays), cd.hessian(program, wrt, simplify=False)(**arrays), atol=1e-12
    )


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
