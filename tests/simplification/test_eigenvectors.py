"""Gradients in which eigenvectors meet their matrix: no pair of eigenvalues is left where a book has none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import combdiff as cd
from combdiff.ir import Apply, Names, Primitive, Range, SummedProduct, Var, conj, evaluate
from combdiff.simplification.eigenvectors import contracted

DATA, COMPLEX = cd.Space("n", "d"), cd.Space("n", "d", dtype=complex)
SYMMETRIC = cd.Space("n", "n", symmetry=["A[i,j] = A[j,i]"])
HERMITIAN = cd.Space("n", "n", dtype=complex, symmetry=["A[i,j] = conj(A[j,i])"])
Case = tuple[cd.Space, Callable[[Any], Any], str]


def vectors(A: Any) -> Any:
    return np.linalg.eigh(A)[1]


def adjoint(A: Any) -> Any:
    return A.conj().T


def centred(X: Any) -> Any:
    return X - X.mean(axis=0)


CASES: dict[str, Case] = {
    "captured": (
        DATA,
        lambda X: ((X @ vectors(X.T @ X)[:, -2:]) ** 2).sum(),
        "2 Σ_{j,k<2} X[i,j] eigvecsh(A)[e,k + d - 2] eigvecsh(A)[j,k + d - 2]",
    ),
    "of the largest": (
        DATA,
        lambda X: ((X @ vectors(X.T @ X)[:, -1]) ** 2).sum(),
        "2 eigvecsh(A)[e,d - 1] Σ_j X[i,j] eigvecsh(A)[j,d - 1]",
    ),
    "left over": (
        DATA,
        lambda X: ((X - X @ vectors(X.T @ X)[:, -2:] @ vectors(X.T @ X)[:, -2:].T) ** 2).sum(),
        "2 X[i,e] - 2 Σ_{j,k<2} X[i,j] eigvecsh(A)[e,k + d - 2] eigvecsh(A)[j,k + d - 2]",
    ),
    "of centred data": (
        DATA,
        lambda X: ((centred(X) @ vectors(centred(X).T @ centred(X) / 3)[:, -2:]) ** 2).sum(),
        "2 Σ_{j,k<2} eigvecsh(A)[e,k + d - 2] eigvecsh(A)[j,k + d - 2] t[i,j]",
    ),
    "of rows": (
        DATA,
        lambda X: ((vectors(X @ X.T)[:, -2:].T @ X) ** 2).sum(),
        "2 Σ_{i,j<2} X[i,e] eigvecsh(A)[d,j + n - 2] eigvecsh(A)[i,j + n - 2]",
    ),
    "with a ridge": (
        cd.Space("n", 4),
        lambda X: ((X @ vectors(X.T @ X + np.eye(4) / 10)[:, -2:]) ** 2).sum(),
        "2 Σ_{i<2,j} X[d,j] eigvecsh(A)[e,i + 2] eigvecsh(A)[j,i + 2]",
    ),
    "whitened": (
        DATA,
        lambda X: ((X @ vectors(X.T @ X) / np.sqrt(np.linalg.eigh(X.T @ X)[0])) ** 2).sum(),
        "↦ 0",
    ),
    "complex": (
        COMPLEX,
        lambda X: (np.abs(X @ vectors(adjoint(X) @ X)[:, -2:]) ** 2).sum(),
        "2 Σ_{j,k<2} X[i,j] eigvecsh(A)[j,k + d - 2] eigvecsh(A)[e,k + d - 2]*",
    ),
    "of a symmetric matrix": (
        SYMMETRIC,
        lambda A: np.trace(vectors(A)[:, -2:].T @ A @ vectors(A)[:, -2:]),
        "Σ_{i<2} eigvecsh(X)[d,i + n - 2] eigvecsh(X)[e,i + n - 2]",
    ),
    "of a Hermitian matrix": (
        HERMITIAN,
        lambda A: np.real(np.trace(adjoint(vectors(A)[:, -2:]) @ A @ vectors(A)[:, -2:])),
        "Σ_{i<2} eigvecsh(X)[d,i + n - 2] eigvecsh(X)[e,i + n - 2]*",
    ),
}


def of_low_rank(X: Any) -> Any:
    U, s, Vh = np.linalg.svd(X, full_matrices=False)
    return (U[:, :2] * s[:2]) @ Vh[:2]


def laplacian(A: Any) -> Any:
    return np.diag(A.sum(axis=1)) - A


CASES |= {
    "of a graph": (
        SYMMETRIC,
        lambda A: np.trace(vectors(laplacian(A))[:, :2].T @ laplacian(A) @ vectors(laplacian(A))[:, :2]),
        "- Σ_{i<2} eigvecsh(A)[d,i] eigvecsh(A)[e,i]",
    ),
    "beside the nearest of rank 2": (
        cd.Space(5, 4),
        lambda X: ((X - of_low_rank(X)) ** 2).sum(),
        "2 X[d,e] - 2 Σ_{i<2} svd_left(X)[d,i] svd_right(X)[e,i] svdvals(X)[i]",
    ),
    "beside the nearest of rank 2, complex": (
        cd.Space(5, 4, dtype=complex),
        lambda X: (np.abs(X - of_low_rank(X)) ** 2).sum(),
        "2 X[d,e] - 2 Σ_{i<2} svd_left(X)[d,i] svdvals(X)[i] svd_right(X)[e,i]*",
    ),
}


def program(case: str) -> cd.Program:
    space, function, _ = CASES[case]

    def f(X):  # type: ignore[no-untyped-def]
        return function(X)

    f.__annotations__ = {"X": space}
    return cd.program(f)


def matrix(space: cd.Space, rng: np.random.Generator) -> Any:
    X = rng.normal(size=(4, 4) if space.group[1:] else (5, 4))
    X = X + 1j * rng.normal(size=X.shape) if space.dtype is complex else X
    return X + adjoint(X) if space.group[1:] else X


@pytest.mark.sample(2)
@pytest.mark.parametrize("case", CASES)
def test_gradients_read_as_by_hand(case: str) -> None:
    """And are those of central differences, with their own derivatives; finite where eigenvalues are equal."""
    f, space = program(case), CASES[case][0]
    gradient = cd.grad(f)
    assert CASES[case][2] in str(gradient)
    assert "≠" not in str(gradient)
    assert "/ (" not in str(gradient)
    X = matrix(space, rng := np.random.default_rng(0))
    V = matrix(space, rng)
    assert cd.testing.check_grad(f, "X", X=X) < 1e-6
    beside = [gradient(X + step * V) for step in (1e-5, -1e-5)]
    np.testing.assert_allclose(cd.hvp(f)(X, V), (beside[0] - beside[1]) / 2e-5, rtol=1e-5, atol=1e-5)
    if not space.group[1:]:
        assert np.isfinite(gradient(np.eye(5, 4) + 0 * X)).all()


BESIDE_JAX: dict[str, Callable[..., Any]] = {
    "right singular vectors": lambda xp, X: ((X @ xp.linalg.svd(X, full_matrices=False)[2][:2].T) ** 2).sum(),
    "thresholds": lambda xp, X: (lambda U, s, Vh: (((U * xp.maximum(s - 0.5, 0)) @ Vh - X) ** 2).sum())(
        *xp.linalg.svd(X, full_matrices=False)
    ),
    "in a subspace": lambda xp, X: (lambda V: xp.trace(xp.linalg.inv(V[:, :3].T @ X.T @ X @ V[:, :3] + np.eye(3))))(
        xp.linalg.eigh(X.T @ X)[1]
    ),
    "of a sum": lambda xp, X: (lambda V: ((X @ V[:, -2:]) ** 2).sum() + (X[:4] @ V[:, :2]).sum())(
        xp.linalg.eigh(X.T @ X + X[:4] + X[:4].T)[1]
    ),
}


@pytest.mark.thorough
@pytest.mark.parametrize("case", BESIDE_JAX)
def test_derivatives_are_those_of_jax(case: str) -> None:
    jax = pytest.importorskip("jax")

    @cd.program
    def f(X: cd.Space(5, 4)):
        return BESIDE_JAX[case](np, X)

    rng = np.random.default_rng(0)
    X, V = rng.normal(size=(2, 5, 4))
    with jax.enable_x64(True):
        slope = jax.grad(lambda X: BESIDE_JAX[case](jax.numpy, X))
        gradient, product = jax.jvp(slope, (X,), (V,))
    np.testing.assert_allclose(cd.grad(f)(X), gradient, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(cd.hvp(f)(X, V), product, rtol=1e-6, atol=1e-7)


def test_what_is_no_eigenvalue_stays() -> None:
    """Vectors of another matrix, of a matrix that is not symmetric, and of weighted data."""

    @cd.program
    def other(A: SYMMETRIC, B: SYMMETRIC):
        return np.trace(vectors(A)[:, -2:].T @ B @ vectors(A)[:, -2:])

    @cd.program
    def weighted(X: DATA, s: cd.Space("n")):
        return ((X.T * s @ X @ vectors(X.T @ X)[:, -2:]) ** 2).sum()

    rng = np.random.default_rng(0)
    A, B = (matrix(SYMMETRIC, rng) for _ in "AB")
    assert "/ (t[j] - t[k])" in str(cd.grad(other, "A"))
    assert cd.testing.check_grad(other, "A", A=A, B=B) < 1e-6
    assert cd.testing.check_grad(weighted, "X", X=rng.normal(size=(5, 4)), s=rng.normal(size=5)) < 1e-6


@pytest.mark.parametrize("kind", [float, complex])
def test_wide_matrices_have_vectors_without_numbers(kind: type) -> None:
    @cd.program
    def f(X: cd.Space(3, 4, dtype=kind)):
        return (np.abs(X - of_low_rank(X)) ** 2).sum()

    rng = np.random.default_rng(0)
    X = rng.normal(size=(3, 4)) + (1j * rng.normal(size=(3, 4)) if kind is complex else 0)
    assert cd.testing.check_grad(f, "X", X=X) < 1e-6


@pytest.mark.parametrize("kind", [float, complex])
def test_some_of_the_vectors_are_some(kind: type) -> None:
    """Σ_j U[j,k]* U[j,p] is δ(k, p) for k < 2, and not 1 for every p; A U is U w on either side."""
    space = HERMITIAN if kind is complex else SYMMETRIC
    A, c = Var("A", cd.Space(4, 4, dtype=kind, symmetry=space.symmetry)), Var("c", cd.Space(2, 4))
    U, n = Primitive("eigvecsh", (A,)), Range(4)
    i, j, p, k = Var("i", n), Var("j", n), Var("p", n), Var("k", Range(2))
    weight, star = Apply(c, (k, p)), conj if kind is complex else lambda factor: factor
    products = [
        SummedProduct((j, k, p), (star(Apply(U, (j, k))), Apply(U, (j, p)), weight)),
        SummedProduct((i, j, k, p), (star(Apply(U, (i, k))), Apply(A, (i, j)), Apply(U, (j, p)), weight)),
        SummedProduct((i, j, k, p), (Apply(A, (j, i)), star(Apply(U, (j, p))), Apply(U, (i, k)), weight)),
    ]
    rng = np.random.default_rng(0)
    values = {A: matrix(space, rng), c: rng.normal(size=(2, 4))}
    for product in products:
        (found,) = contracted([product], {}, Names(product.term))
        assert len(found.indices) < len(product.indices)
        np.testing.assert_allclose(evaluate(found.term, values, {}), evaluate(product.term, values, {}))
