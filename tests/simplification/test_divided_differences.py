"""Derivatives where eigenvalues are equal, or almost: right where they exist, infinite or NaN where they do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import combdiff as cd

REAL, COMPLEX, STACK = cd.Space("n", "n"), cd.Space("n", "n", dtype=complex), cd.Space("b", "n", "n")
SYMMETRIC = cd.Space("n", "n", symmetry=["A[i,j] = A[j,i]"])
HERMITIAN = cd.Space("n", "n", dtype=complex, symmetry=["A[i,j] = conj(A[j,i])"])
SPACES = {"real": REAL, "symmetric": SYMMETRIC, "complex": COMPLEX, "Hermitian": HERMITIAN, "stack": STACK}
Case = Callable[[Any, Any], Any]


def adjoint(A: Any) -> Any:
    return np.swapaxes(A, -1, -2).conj()


def seen(A: Any, c: Any) -> Any:
    return np.real(A * c).sum()


def of_matrix(f: Callable[[Any], Any]) -> Case:
    """Elements of a function of the matrix, by its eigenvalues."""

    def case(A: Any, c: Any) -> Any:
        w, U = np.linalg.eigh(A)
        return seen((U * f(w)[..., None, :]) @ adjoint(U), c)

    return case


def projector(A: Any, chosen: slice) -> Any:
    U = np.linalg.eigh(A)[1][..., :, chosen]
    return U @ adjoint(U)


def overlaps(A: Any, c: Any) -> Any:
    U = np.linalg.eigh(A)[1]
    return seen(adjoint(U) @ U, c)


CASES: dict[str, Case] = {
    "exp": of_matrix(np.exp),
    "log": of_matrix(np.log),
    "sqrt": of_matrix(np.sqrt),
    "inverse": of_matrix(lambda w: 1 / w),
    "cube": of_matrix(lambda w: w**3),
    "occupations": of_matrix(lambda w: 1 / (1 + np.exp(w - 3))),
    "product": of_matrix(lambda w: w * np.sin(w)),
    "itself": of_matrix(lambda w: w),
    "overlaps": overlaps,
    "first": lambda A, c: seen(projector(A, np.s_[:2]), c),
    "in between": lambda A, c: seen(projector(A, np.s_[2:5]), c),
    "element": lambda A, c: np.real(projector(A, np.s_[:2])[..., 0, 0]).sum(),
    "left over": lambda A, c: np.sin((np.abs(c - c @ projector(A, np.s_[-4:])) ** 2).sum()),
    "two": lambda A, c: np.real(np.trace(projector(A, np.s_[:2]) @ c @ projector(A, np.s_[2:5]) @ c.T)),
    "squares": lambda A, c: (np.abs(c @ of_matrix_itself(A)) ** 2).sum(),
    "eigenvalues": lambda A, c: cd.sum(cd.exp(np.linalg.eigvalsh(A) / 3)),
}


def of_matrix_itself(A: Any) -> Any:
    w, U = np.linalg.eigh(A)
    return (U * np.cos(w)[..., None, :]) @ adjoint(U)


def program(case: Case, space: cd.Space) -> cd.Program:
    def f(A, c):  # type: ignore[no-untyped-def]
        return case(A, c)

    f.__annotations__ = {"A": space, "c": REAL}
    return cd.program(f)


def matrix(space: cd.Space, values: Any, rng: np.random.Generator) -> Any:
    """A random matrix with these eigenvalues, or a stack of two."""
    shape = (2,) * (space is STACK) + (len(values),) * 2
    parts = rng.normal(size=shape), 1j * rng.normal(size=shape) if space.dtype is complex else 0
    Q = np.linalg.qr(sum(parts))[0]
    A = (Q * values) @ adjoint(Q)
    return (A + adjoint(A)) / 2


def change(A: Any, rng: np.random.Generator) -> Any:
    D = rng.normal(size=A.shape) + (1j * rng.normal(size=A.shape) if np.iscomplexobj(A) else 0)
    return D + adjoint(D)


def along(f: Callable[[Any], Any], A: Any, D: Any, step: float = 1e-4) -> Any:
    """The slope along D, by central differences of two steps."""
    near, far = ((f(A + h * D) - f(A - h * D)) / (2 * h) for h in (step, 2 * step))
    return (4 * near - far) / 3


SECOND = ("exp", "occupations", "product", "overlaps", "first", "element")
KINDS = [(name, space) for space in ("symmetric", "complex", "Hermitian", "stack") for name in ("exp", "first")]


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "space"), [*((name, "real") for name in CASES), *KINDS])
def test_derivatives_where_eigenvalues_are_equal(name: str, space: str) -> None:
    """Gradients, and Hessian-vector products of some, which are right, too, where eigenvalues are almost equal."""
    rng = np.random.default_rng(0)
    f = program(CASES[name], SPACES[space])
    gradient, product = cd.grad(f, "A"), cd.hvp(f, "A") if name in SECOND else None
    assert "≠" not in str(gradient)
    c = rng.normal(size=(6, 6))
    for apart in (0, 1e-13, 1e-9):
        values = np.array([1.0, 1 + apart, 2, 2 + apart, 2 + 3 * apart, 5])
        A = matrix(SPACES[space], values, rng)
        D = change(A, rng)
        slope = along(lambda A: f(A, c), A, D)
        np.testing.assert_allclose(np.real(np.conj(gradient(A, c)) * D).sum(), slope, rtol=1e-6, atol=1e-7)
        if product is not None:
            second = along(lambda A: gradient(A, c), A, D)
            np.testing.assert_allclose(product(A, c, D), second, rtol=1e-5, atol=1e-5 * np.abs(second).max())


COMPUTED = {
    "gram": lambda B, c: B @ B.T,
    "inverse": lambda B, c: np.linalg.inv(B @ B.T + np.eye(4)),
    "lengths": lambda B, c: B.T @ np.diag(c[0] ** 2) @ B + B.T @ B,
    "plain": lambda B, c: B @ B + 2 * B,
}
SPECTRAL = {
    "squares": lambda A: (np.linalg.eigvalsh(A) ** 2).sum(),
    "entropy": lambda A: np.log(1 + np.exp(np.linalg.eigvalsh(A))).sum(),
}


@pytest.mark.sample(1)
@pytest.mark.parametrize("spectral", SPECTRAL)
@pytest.mark.parametrize("computed", COMPUTED)
def test_matrices_that_are_computed_have_equal_eigenvalues(computed: str, spectral: str) -> None:
    """Products with Hessians by what they are computed of: one sum over pairs stands in several places then."""

    @cd.program
    def f(B: cd.Space(4, 4), c: cd.Space(4, 4)):
        return SPECTRAL[spectral](COMPUTED[computed](B, c))

    rng = np.random.default_rng(0)
    c, B = np.ones((4, 4)), matrix(SYMMETRIC, np.array([1.0, 1, 2, 2]), rng)
    if computed != "plain":
        B = B @ np.linalg.qr(rng.normal(size=(4, 4)))[0]
    D, gradient, product = rng.normal(size=(4, 4)), cd.grad(f, "B"), cd.hvp(f, "B")
    np.testing.assert_allclose((gradient(B, c) * D).sum(), along(lambda B: f(B, c), B, D), rtol=1e-6)
    second = along(lambda B: gradient(B, c), B, D)
    np.testing.assert_allclose(product(B, c, D), second, rtol=1e-5, atol=1e-5 * np.abs(second).max())


def test_functions_of_a_matrix_print_divided_differences() -> None:
    """And are computed by every route where eigenvalues are equal."""
    gradient = cd.grad(program(CASES["exp"], REAL), "A")
    assert "divided_exp(" in str(gradient)
    c, one = np.arange(9.0).reshape(3, 3), np.eye(3)
    np.testing.assert_allclose(gradient(one, c), np.e * (c + c.T) / 2, rtol=1e-13)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "number",
    [
        lambda U, s, V: (U[:, 1] ** 4).sum(),
        lambda U, s, V: (V[1] ** 3 * s).sum(),
        lambda U, s, V: (U * np.cos(np.arange(4.0))).sum() ** 2,
    ],
)
@pytest.mark.parametrize("symmetric", [True, False])
def test_vectors_where_values_are_equal_have_no_finite_derivatives(number: Any, symmetric: bool) -> None:
    """No plausible number, whatever rounding makes of gaps."""
    for seed in range(3):
        rng = np.random.default_rng(seed)

        @cd.program
        def f(A: cd.Space(4, 4)):
            if symmetric:
                w, U = np.linalg.eigh(A)
                return number(U, w, U.T)
            U, s, Vh = np.linalg.svd(A, full_matrices=False)
            return number(U, s, Vh)

        A = matrix(REAL, np.array([1.0, 1, 1, 4]), rng)
        A = A if symmetric else A @ np.linalg.qr(rng.normal(size=(4, 4)))[0]
        with np.errstate(all="ignore"):
            assert not np.isfinite(cd.grad(f)(A)).any()
            assert not np.isfinite(cd.hvp(f)(A, A)).any()


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", [float, complex])
def test_functions_of_singular_values_where_these_are_equal(dtype: type) -> None:
    @cd.program
    def f(A: cd.Space("n", "n", dtype=dtype), c: REAL):
        U, s, Vh = np.linalg.svd(A, full_matrices=False)
        return seen((U * np.exp(s)) @ Vh, c)

    rng = np.random.default_rng(0)
    space = COMPLEX if dtype is complex else REAL
    A = matrix(space, np.array([1.0, 1, 3, 3]), rng) @ matrix(space, np.array([1.0, 1, 1, -1]), rng)
    assert cd.testing.check_grad(f, "A", A=A, c=rng.normal(size=(4, 4))) < 1e-6


@pytest.mark.thorough
def test_pairs_that_do_not_cancel_stay() -> None:
    """Vectors themselves have derivatives where eigenvalues differ alone."""

    @cd.program
    def f(A: REAL):
        return (np.linalg.eigh(A)[1][:, :2] ** 4).sum()

    assert "≠" in str(cd.grad(f))
    assert cd.testing.check_grad(f, "A", A=np.diag([1.0, 2, 4]) + 0.1) < 1e-6


@pytest.mark.parametrize("power", [1, 2])
def test_what_cancels_once_does_not_cancel_squared(power: int) -> None:
    @cd.program
    def f(U: REAL, w: cd.Space("n")):
        def pair(i, k):  # type: ignore[no-untyped-def]
            return cd.where(i <= 1, cd.where(k == i, 0, U[0, i] * U[0, k] / (w[i] - w[k])), 0)

        inner = cd.tensor(lambda i: cd.sum(lambda k: pair(i, k), k=U.shape[0]), i=U.shape[0])
        return cd.sum(lambda i: inner[i] ** power)

    U, w = np.random.default_rng(0).normal(size=(4, 4)), np.array([1.0, 2.5, 3.0, 7.0])
    np.testing.assert_allclose(cd.simplify(f)(U, w), f(U, w))
    assert ("≠" in str(cd.simplify(f))) == (power == 2)


def test_a_vector_beside_itself_is_of_length_one() -> None:
    """Σ_j |U[j,l]|² is 1 for each l, which stays summed over."""

    @cd.program
    def f(A: cd.Space(2, 3, 3)):
        w, U = np.linalg.eigh(A)
        return (U**2 * np.exp(w)[:, None, :])[1].sum()

    A = np.random.default_rng(0).normal(size=(2, 3, 3))
    A = A + A.mT
    exponential = (U := np.linalg.eigh(A[1])[1]) @ np.diag(np.exp(np.linalg.eigvalsh(A[1]))) @ U.T
    np.testing.assert_allclose(cd.grad(f)(A), [np.zeros((3, 3)), exponential], atol=1e-12)
