"""What all terms of a sum have in common stands in front of it: in Hessians of programs people write."""

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
            "  (a, b, d, e) ↦ Σ_i X[i,b] X[i,e] p[i,a] (δ(a, d) - p[i,d])",
        ),
    ],
    ids=["logistic", "condensate", "cross-entropy"],
)
def test_how_hessians_read(program: cd.Program, wrt: str, line: str) -> None:
    assert str(hessian(program, wrt)).splitlines()[-1] == line


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


def test_that_of_logistic_regression_is_one_weighted_gram_matrix() -> None:
    H = hessian(logistic, "w")
    assert H.source().count("= _gram(") == 1
    X, y, w = RNG.normal(size=(6, 3)), np.sign(RNG.normal(size=6)), RNG.normal(size=3)
    s = 1 / (1 + np.exp(y * (X @ w)))
    np.testing.assert_allclose(H(X, y, w), X.T @ ((s * (1 - s))[:, None] * X), rtol=1e-12)
