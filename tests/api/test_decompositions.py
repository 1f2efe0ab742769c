"""Cholesky factors, eigenvalues, singular values, QR factors, pseudoinverses: values, derivatives, prints, refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from backends import TORCH, back, convert, double_precision, on

import combdiff as cd

M, C = cd.Space("n", "n"), cd.Space("n", "n", dtype=complex)
TALL = {float: cd.Space("m", "n"), complex: cd.Space("m", "n", dtype=complex)}
SQUARE = {float: M, complex: C}
V = cd.Space("n")
RNG = np.random.default_rng(5)


def array(dtype: type, *shape: int) -> Any:
    found = RNG.normal(size=shape)
    return found + 1j * RNG.normal(size=shape) if dtype is complex else found


def seen(x: Any) -> Any:
    """A number that depends on the real and the imaginary part of every element."""
    return cd.sum(cd.cos(cd.real(x) + 2 * cd.imag(x)))


def of_vectors(U: Any, w: Any) -> Any:
    """A number that does not depend on the phases of the vectors."""
    return cd.sum(lambda i, k: cd.cos(3 * cd.real(U[i, k] * cd.conj(U[i, k]))) * w[k])


def of_svd(A: Any) -> Any:
    U, s, Vh = np.linalg.svd(A, full_matrices=False)
    mixed = cd.sum(lambda k: U[0, k] * Vh[k, 1] * s[k] ** 2)
    return of_vectors(U, s) + of_vectors(cd.tensor(lambda i, k: Vh[k, i]), s) + cd.real(mixed) + cd.imag(mixed)


CASES: dict[str, tuple[bool, Callable[[Any], Any]]] = {  # whether the matrix is square, and a number made of it
    "cholesky": (True, lambda A: seen(np.linalg.cholesky(A))),
    "eigvalsh": (True, lambda A: cd.sum(cd.exp(np.linalg.eigvalsh(A) / 9))),
    "eigh": (True, lambda A: of_vectors(*np.linalg.eigh(A)[::-1])),
    "svdvals": (False, lambda A: cd.sum(np.linalg.svd(A, compute_uv=False) ** 3)),
    "svd": (False, of_svd),
    "qr": (False, lambda A: seen(np.linalg.qr(A).Q) + seen(np.linalg.qr(A).R)),
    "log |diag R|": (False, lambda A: cd.sum(cd.log(cd.abs(np.diag(np.linalg.qr(A).R))))),
    "pinv": (False, lambda A: seen(np.linalg.pinv(A))),
    "nuclear norm": (False, lambda A: np.linalg.norm(A, "nuc")),
    "spectral norm": (False, lambda A: np.linalg.norm(A, 2) ** 2),
}


@pytest.mark.sample(1)
@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("name", CASES)
def test_gradients(name: str, dtype: type) -> None:
    square, number = CASES[name]

    def f(A):
        return number(A)

    f.__annotations__["A"] = (SQUARE if square else TALL)[dtype]
    A = array(dtype, 3, 3) if square else array(dtype, 4, 3)
    A = A @ A.conj().T + 3 * np.eye(3) if square else A
    assert cd.testing.check_grad(cd.program(f), "A", A=A) < 1e-6


def test_values_are_numpy_s() -> None:
    A, S, b = array(complex, 4, 3), array(complex, 2, 3, 3), array(complex, 4)
    S = S @ S.conj().swapaxes(-1, -2) + np.eye(3)

    @cd.program
    def stacked(S: cd.Space("b", "n", "n", dtype=complex)):
        return np.linalg.cholesky(S), np.linalg.eigvalsh(S), np.linalg.svd(S, compute_uv=False), np.linalg.pinv(S)

    @cd.program
    def tall(A: TALL[complex], b: cd.Space("m", dtype=complex)):
        return (*np.linalg.qr(A), np.linalg.lstsq(A, b)[0], np.linalg.norm(A, "nuc"), np.linalg.norm(A, "fro"))

    expected = np.linalg.cholesky(S), np.linalg.eigvalsh(S), np.linalg.svd(S, compute_uv=False), np.linalg.pinv(S)
    for one, other in zip(stacked(S), expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)
    norms = np.linalg.norm(A, "nuc"), np.linalg.norm(A)
    for one, other in zip(tall(A, b), (*np.linalg.qr(A), np.linalg.lstsq(A, b)[0], *norms), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)
    wide = cd.program(nuclear)
    np.testing.assert_allclose(wide(A.real.T), np.linalg.norm(A.real, "nuc"))
    np.testing.assert_allclose(cd.grad(wide)(A.real.T), cd.grad(wide)(A.real).T, atol=1e-12)
    for name in ("eigvalsh", "cholesky", "pinv"):
        np.testing.assert_allclose(getattr(cd, name)(S), getattr(np.linalg, name)(S), atol=1e-12)


def nuclear(A: TALL[float]):
    return np.linalg.norm(A, "nuc")


@pytest.mark.thorough
@pytest.mark.parametrize("number", [lambda A: cd.sum(cd.log(np.diag(cd.cholesky(A)))), CASES["eigvalsh"][1]])
def test_second_derivatives(number: Callable[[Any], Any]) -> None:
    @cd.program
    def f(A: M):
        return number(A)

    A, D = array(float, 3, 3), array(float, 3, 3)
    A = A @ A.T + 2 * np.eye(3)
    gradient, step = cd.grad(f), 1e-5
    slope = (gradient(A + step * D) - gradient(A - step * D)) / (2 * step)
    np.testing.assert_allclose(cd.hvp(f)(A, D), slope, rtol=1e-7, atol=1e-8)


@pytest.mark.thorough
def test_functions_of_eigenvalues_have_gradients_where_eigenvalues_are_equal() -> None:
    @cd.program
    def free_energy(A: M):
        return cd.sum(cd.exp(np.linalg.eigvalsh(A)))

    wanted = "A ↦ (d, e) ↦ Σ_i eigvecsh(A)[d,i] eigvecsh(A)[e,i] exp(eigvalsh(A)[i])"
    assert str(cd.grad(free_energy)) == wanted
    one = np.eye(3)
    np.testing.assert_allclose(cd.grad(free_energy)(one), np.e * one, atol=1e-14)
    np.testing.assert_allclose(cd.grad(cd.program(nuclear))(2 * one), one, atol=1e-14)
    with np.errstate(all="ignore"):
        assert np.isnan(cd.grad(cd.program(of_first_vector))(one)).any()


def of_first_vector(A: M):
    return np.linalg.eigh(A).eigenvectors[0, 0] ** 3


# --- as users write them -------------------------------------------------------------------------------------------


@cd.program
def evidence(K: M, y: V):
    """The negative log-evidence of a Gaussian process, but for a constant."""
    L = np.linalg.cholesky(K)
    alpha = np.linalg.solve(L, y)
    return alpha @ alpha / 2 + cd.sum(lambda i: cd.log(L[i, i]))


@cd.program
def captured(X: cd.Space("m", 3)):
    """How much of the variance the first two principal components have."""
    w, U = np.linalg.eigh(X.T @ X)
    scores = X @ U[:, -2:]
    return (scores * scores).sum() / w.sum()


@cd.program
def penalised(W: cd.Space("m", "n"), x: V):
    return ((W @ x) ** 2).sum() + np.linalg.norm(W, 2) + np.linalg.norm(W, "nuc") / 3


@pytest.mark.thorough
def test_evidence_of_a_gaussian_process() -> None:
    A, y = array(float, 5, 5), array(float, 5)
    K = A @ A.T + np.eye(5)
    gradient = cd.grad(evidence, wrt="K")
    beta = np.linalg.solve(K, y)
    np.testing.assert_allclose(gradient(K, y), (np.linalg.inv(K) - np.outer(beta, beta)) / 2, atol=1e-12)
    cd.testing.check_grad(evidence, ("K", "y"), K=K, y=y)
    assert gradient.cost(n=1000).flops < 5e9  # n³, a few times: what the value binds is differentiated once
    with pytest.raises(cd.SingularError, match=r"cholesky\(K\): the matrix is not positive definite"):
        evidence(-K, y)


@pytest.mark.thorough
def test_principal_components_and_penalties() -> None:
    rng = np.random.default_rng(2)
    X, W, x = rng.normal(size=(4, 3)), rng.normal(size=(4, 3)), rng.normal(size=3)
    assert cd.testing.check_grad(captured, "X", X=X) < 1e-6
    assert cd.testing.check_grad(penalised, "W", W=W, x=x) < 1e-6


@pytest.mark.sample(1)
@pytest.mark.parametrize("backend", ["jax", TORCH, "dask"])
def test_libraries(backend: str) -> None:
    @cd.program
    def f(A: TALL[float], K: M):
        L, (U, s, Vh) = np.linalg.cholesky(K), np.linalg.svd(A, full_matrices=False)
        q, r = np.linalg.qr(A)
        w, vectors = np.linalg.eigh(K)
        return L, s, U * U, Vh * Vh, q * q, r * r, w, vectors * vectors, np.linalg.pinv(A)

    A, K = array(float, 4, 3), array(float, 3, 3)
    arrays = A, K @ K.T + np.eye(3)
    with double_precision():
        found = on(backend, f)(*(convert(backend, one) for one in arrays))
        for one, other in zip(found, f(*arrays), strict=True):
            np.testing.assert_allclose(back(one), other, atol=1e-10)


@pytest.mark.thorough
def test_gradients_are_jax_s() -> None:
    import jax
    import jax.numpy as jnp

    def by_jax(K: Any, y: Any) -> Any:
        L = jnp.linalg.cholesky(K)
        alpha = jnp.linalg.solve(L, y)
        w, U = jnp.linalg.eigh(K)
        return alpha @ alpha / 2 + jnp.log(jnp.diagonal(L)).sum() + (U[0] ** 4 * w).sum()

    @cd.program
    def ours(K: M, y: V):
        w, U = np.linalg.eigh(K)
        return evidence(K, y) + cd.sum(lambda k: U[0, k] ** 4 * w[k])

    A, y = array(float, 4, 4), array(float, 4)
    K = A @ A.T + np.eye(4)
    with double_precision():
        expected = jax.grad(by_jax)(jnp.asarray(K), jnp.asarray(y))
    np.testing.assert_allclose(cd.grad(ours, wrt="K")(K, y), expected, atol=1e-9)


def test_prints_are_read_back() -> None:
    for form in (cd.program(nuclear), cd.grad(cd.program(nuclear)), cd.program(of_factor)):
        assert str(cd.read(str(form))) == str(form)
    A, y = array(float, 4, 4), array(float, 4)
    K = A @ A.T + np.eye(4)
    np.testing.assert_allclose(cd.read(str(evidence))(K, y), evidence(K, y), rtol=1e-12)
    assert cd.grad(cd.program(nuclear)).matrix() == "svd_left(A)·svd_right(A)ᵀ"
    assert r"\operatorname{chol}(A)" in cd.program(of_factor).latex()


def of_factor(A: M):
    return cd.sum(np.linalg.cholesky(A))


# --- refusals ------------------------------------------------------------------------------------------------------


def _ranked(A: M):
    return np.linalg.matrix_rank(A)


def _rectangular(A: TALL[float]):
    return np.linalg.cholesky(A)


def _both_triangles(A: M):
    return np.linalg.eigh(A, UPLO="both")


def _complete(A: M):
    return np.linalg.qr(A, mode="complete")


def _driver(A: M):
    return np.linalg.cholesky(A, overwrite_a=True)


def _full(A: TALL[float]):
    return np.linalg.svd(A)


def _cyclic(A: cd.Space(cd.Cyclic("n"), cd.Cyclic("n"))):
    return cd.cholesky(A)


def _vector(x: V):
    return cd.pinv(x)


def _tolerance(A: M, y: V):
    return np.linalg.lstsq(A, y, rcond=0.1)[0]


@pytest.mark.parametrize(
    ("definition", "message"),
    [
        (_ranked, r"matrix_rank is not supported in a program: it is a whole number that jumps"),
        (_rectangular, "cholesky takes a square matrix, but the axes of A are"),
        (_both_triangles, "UPLO='both' names no triangle of a matrix"),
        (_complete, "mode='complete' is not taken: columns beside the matrix's are any"),
        (_driver, "overwrite_a"),
        (_full, r"full_matrices=False"),
        (_cyclic, "cholesky numbers the rows and columns of A, whose indices have no first one"),
        (_vector, "pinv takes a matrix, but x has order 1"),
        (_tolerance, "rcond is not taken"),
    ],
)
def test_refusals(definition: Callable[..., Any], message: str) -> None:
    with pytest.raises((cd.CombdiffError, TypeError), match=message):
        cd.program(definition)


def test_wide_matrices_have_no_qr_factors() -> None:
    with pytest.raises(cd.SingularError, match=r"qr\(A\): the matrix has fewer rows than columns"):
        cd.program(_triangle)(array(float, 2, 3))


def _triangle(A: TALL[float]):
    return np.linalg.qr(A).R


def _with_distinct_ends(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """A matrix of any kind, and one whose eigenvalues have positive real parts."""
    any_, half = rng.normal(size=(2, 3, 3))
    return {"expm": any_, "sqrtm": half @ half.T + np.eye(3) + 0.2 * half}


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["expm", "sqrtm"])
def test_primary_functions_have_derivatives_of_every_order_by_blocks(name: str) -> None:
    linalg = pytest.importorskip("scipy.linalg")
    primary, rng = getattr(cd, name), np.random.default_rng(5)
    X, W, way = _with_distinct_ends(rng)[name], rng.normal(size=(3, 3)), rng.normal(size=(3, 3))

    @cd.program
    def f(X: cd.Space("n", "n"), W: cd.Space("n", "n")):  # type: ignore[no-untyped-def]
        return (primary(X) * W).sum()

    @cd.program
    def stacked(Z: cd.Space(2, 3, 3, dtype=complex)):  # type: ignore[no-untyped-def, valid-type]
        return cd.real(((1 + 1j) * primary(Z)[:, 0]).sum())

    gradient, step = cd.grad(f), 1e-5
    assert f(X, W) == pytest.approx((getattr(linalg, name)(X) * W).sum())
    np.testing.assert_allclose(primary(X), getattr(linalg, name)(X), atol=1e-12)
    assert cd.testing.check_grad(f, "X", X=X, W=W) < 1e-7
    slopes = (gradient(X + step * way, W) - gradient(X - step * way, W)) / (2 * step)
    np.testing.assert_allclose(cd.hvp(f)(X, W, way), slopes, atol=1e-8)
    assert cd.testing.check_grad(stacked, "Z", Z=np.stack([X, X.T]) + 0.1j * W) < 1e-7
    assert f"{name}(t)[d,e + n]" in str(gradient)


def test_primary_functions_at_the_ends_of_their_ranges() -> None:
    linalg = pytest.importorskip("scipy.linalg")
    for matrix in (np.zeros((2, 2)), np.diag([-700.0, 1, 2]), 30 * np.array([[0, 1.0], [-1, 0.5]]), np.zeros((0, 0))):
        np.testing.assert_allclose(cd.expm(matrix), linalg.expm(matrix), rtol=1e-10, atol=1e-300)
    with np.errstate(all="ignore"):
        assert np.isnan(cd.sqrtm(-np.eye(2))).all()
    with pytest.raises(cd.CombdiffError, match="expm takes a square matrix"):

        @cd.program
        def refused(X: cd.Space(2, 3)):  # type: ignore[no-untyped-def, valid-type]
            return cd.expm(X).sum()
