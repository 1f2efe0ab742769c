"""Products with δ's along diagonals and weighted Gram matrices: found in plans, equal to what they stand for."""

import sys
import tracemalloc
from typing import Any

import numpy as np
import pytest
from backends import BACKENDS, MODULES, converted, on

import combdiff as cd
from combdiff.ir.interpreter import evaluate

RNG = np.random.default_rng(3)
Matrix, Vector = cd.Space("m", "n"), cd.Space("m")


@cd.program
def gram(X: Matrix, s: Vector):
    return cd.tensor(lambda a, d: cd.sum(lambda i: X[i, a] * s[i] * X[i, d]))


@cd.program
def gram_of_rows(X: cd.Space("n", "m"), s: Vector):
    return cd.tensor(lambda a, d: cd.sum(lambda i: X[a, i] * X[d, i] * s[i]))


@cd.program
def blocks(C: cd.Space("k", "k"), x: cd.Space("n")):
    return cd.tensor(lambda i, j, p, q: 3 * cd.delta(i, p) * C[j, q] * x[i], p=cd.Range("n"))


@cd.program
def same_blocks(C: cd.Space("k", "k"), x: cd.Space("n")):
    return cd.tensor(
        lambda i, j, p, q: cd.delta(i, p) * C[j, q] * cd.sum(lambda a: x[a]), i=cd.Range("n"), p=cd.Range("n")
    )


@cd.program
def later(x: cd.Space("n")):
    return cd.tensor(lambda i, p: cd.delta(i, p) * cd.log(x[p]), i=cd.Range("n"))


def by_reference(f: cd.Program, arrays: tuple[np.ndarray, ...], **sizes: int) -> np.ndarray:
    return np.asarray(evaluate(f.term.body, dict(zip(f.term.parameters, arrays, strict=True)), sizes))


@pytest.mark.parametrize("sign", [1, -1, 0])
@pytest.mark.parametrize("f", [gram, gram_of_rows])
def test_weighted_gram_matrices_of_any_sign(f: cd.Program, sign: int) -> None:
    X, s = RNG.normal(size=(5, 3)), RNG.normal(size=5)
    s = np.abs(s) * sign if sign else s
    X = X if f is gram else X.T.copy()
    assert "_gram(" in f.source()
    np.testing.assert_allclose(f(X, s), by_reference(f, (X, s), m=5, n=3), atol=1e-12)


@pytest.mark.thorough
@pytest.mark.parametrize("without", [[], ["scipy.linalg.blas"]])
@pytest.mark.parametrize("sign", [1, -1, 0])
def test_many_rows_are_taken_in_blocks(sign: int, without: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in without:
        monkeypatch.setitem(sys.modules, name, None)
    X, s = RNG.normal(size=(9000, 257)), RNG.normal(size=9000)
    s = np.abs(s) * sign if sign else s
    gram(X, s)  # what is imported and compiled is not counted
    for dtype, atol in ((np.float64, 1e-9), (np.float32, 2e-2)):
        arrays = X.astype(dtype), s.astype(dtype)
        tracemalloc.start()
        found = gram(*arrays)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, found.T)
        np.testing.assert_allclose(found, X.T @ (X * s[:, None]), atol=atol)
        assert peak < arrays[0].nbytes / 2
    s[7] = np.nan
    assert np.isnan(gram(X, s)).all()


@pytest.mark.parametrize("m", [0, 1])
def test_small_gram_matrices(m: int) -> None:
    X, s = np.ones((m, 2)), np.ones(m)
    np.testing.assert_array_equal(gram(X, s), np.full((2, 2), float(m)))
    assert gram(X.astype(np.float32), s.astype(np.float32)).dtype == np.float32


def test_small_complex_products_stay_products() -> None:
    @cd.program
    def hermitian(X: cd.Space("m", "n", dtype=complex), s: Vector):
        return cd.tensor(lambda a, d: cd.sum(lambda i: cd.conj(X[i, a]) * s[i] * X[i, d]))

    X, s = RNG.normal(size=(5, 3)) + 1j * RNG.normal(size=(5, 3)), RNG.normal(size=5)
    np.testing.assert_allclose(hermitian(X, s), X.conj().T @ (s[:, None] * X), atol=1e-12)


@pytest.mark.parametrize("f", [blocks, same_blocks])
def test_unit_tensors_are_written_along_the_diagonal(f: cd.Program) -> None:
    C, x = RNG.normal(size=(2, 2)), RNG.normal(size=3)
    assert "_spread(" in f.source()
    assert "eye" not in f.source()
    np.testing.assert_allclose(f(C, x), by_reference(f, (C, x), k=2, n=3), atol=1e-14)


def test_what_is_undefined_beside_the_diagonal_is_not_seen() -> None:
    x = np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(later(x), np.diag(np.log(x)))
    assert later(np.ones(0)).shape == (0, 0)


def test_whole_numbers_stay_whole() -> None:
    @cd.program
    def whole(X: cd.Space("m", "n", dtype=int), s: cd.Space("m", dtype=int)):
        return cd.tensor(lambda a, d: cd.sum(lambda i: X[i, a] * s[i] * X[i, d]))

    found = whole(np.arange(6).reshape(3, 2), np.array([1, -2, 3]))
    assert found.dtype.kind == "i"
    np.testing.assert_array_equal(found, [[40, 48], [48, 58]])


def test_a_unit_tensor_times_a_number() -> None:
    @cd.program
    def unit(x: cd.Space("n")):
        return cd.tensor(
            lambda i, p: cd.delta(i, p) * cd.sin(cd.sum(lambda a: 1.0, a=cd.Range("n"))),
            i=cd.Range("n"),
            p=cd.Range("n"),
        )

    np.testing.assert_allclose(unit(np.ones(3)), np.sin(3.0) * np.eye(3))


@cd.program
def traces(A: cd.Space("n", "n", "n"), k: cd.Space("n", "n")):
    """The pullback of A[i,i,j] A[j,j,i] + A[i,j,i]."""
    return cd.tensor(
        lambda d, e, f: cd.delta(d, e) * A[f, f, d] * (k[d, f] + k[f, d]) + cd.delta(d, f) * k[d, e], e="n", f="n"
    )


@cd.program
def three(A: cd.Space("n", "n", "n")):
    """The Jacobian of the same."""

    def element(a: Any, b: Any, d: Any, e: Any, f: Any) -> Any:
        one = cd.delta(a, f) * cd.delta(b, d) * cd.delta(b, e) * A[a, a, b]
        two = cd.delta(a, d) * cd.delta(a, e) * cd.delta(b, f) * A[b, b, a]
        return one + two + cd.delta(a, d) * cd.delta(a, f) * cd.delta(b, e)

    return cd.tensor(element, **dict.fromkeys("abdef", "n"))


@cd.program
def squares(A: cd.Space("m", "n")):
    """The Hessian of Σ exp(A[i,j]) A[i,0]."""

    def element(a: Any, b: Any, d: Any, e: Any) -> Any:
        row = cd.exp(A[a, b]) * (cd.delta(b, e) * A[a, 0] + cd.delta(e, 0)) + cd.delta(b, 0) * cd.exp(A[a, e])
        return cd.delta(a, d) * row

    return cd.tensor(element, a="m", b="n", d="m", e="n")


@cd.program
def rotated(x: cd.Space("m", "n"), y: cd.Space("n")):
    return cd.tensor(lambda i, j, p, q: cd.delta(i, p) * x[i, j] * y[q], p=cd.Range("m"))


@pytest.mark.thorough
@pytest.mark.parametrize("backend", BACKENDS)
def test_other_libraries_write_along_any_diagonal(backend: str) -> None:
    A, k, C, x = (RNG.normal(size=shape) for shape in ((3, 3, 3), (3, 3), (2, 2), 3))
    M = RNG.normal(size=(3, 2))
    for f, arrays in (
        (traces, (A, k)),
        (three, (A,)),
        (squares, (A[0],)),
        (blocks, (C, x)),
        (rotated, (M, k[0, :2])),
    ):
        found = np.asarray(on(backend, f)(*converted(backend, arrays)))
        np.testing.assert_allclose(found, f(*arrays), atol=1e-6 if backend == "jax" else 1e-12)


@pytest.mark.parametrize("backend", MODULES)
def test_other_libraries_write_along_diagonals_too(backend: str) -> None:
    assert "_spread(" in blocks.source(backend)
    assert "eye" not in blocks.source(backend)
    assert "_gram(" not in gram.source(backend)
