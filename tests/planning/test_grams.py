"""Gram matrices of real and complex arrays at half the multiplications, diagonals added in place, and peak memory."""

import sys
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import combdiff as cd
from combdiff.ir.interpreter import evaluate
from combdiff.planning.plan import peak
from combdiff.runtime.execution import plan

RNG = np.random.default_rng(11)
Complex = cd.Space("m", "n", dtype=complex)
Vector = cd.Space("n")


def random(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape) + 1j * RNG.normal(size=shape)


@cd.program
def columns(X: Complex):
    return X.conj().T @ X


@cd.program
def rows(X: Complex):
    return X @ X.conj().T


@cd.program
def weighted(X: Complex, s: cd.Space("m")):
    return cd.tensor(lambda a, d: cd.sum(lambda i: cd.conj(X[i, a]) * s[i] * X[i, d]))


@cd.program
def turned(X: Complex, s: cd.Space("n")):
    return cd.tensor(lambda a, d: cd.sum(lambda i: X[a, i] * s[i] * cd.conj(X[d, i])))


@cd.program
def intensity(X: Complex, s: cd.Space("m")):
    """Both parts of the Hessian of Σ s |X z|²."""
    zeros = cd.tensor(lambda a, d: 0, a="n", d="n")
    return cd.tensor(lambda a, d: cd.sum(lambda i: X[i, a] * cd.conj(X[i, d]) * s[i])), zeros


CASES: dict[cd.Program, Callable[..., np.ndarray]] = {
    columns: lambda X: X.conj().T @ X,
    rows: lambda X: X @ X.conj().T,
    weighted: lambda X, s: X.conj().T @ (s[:, None] * X),
    turned: lambda X, s: X @ (s[:, None] * X.conj().T),
}


# --- Hermitian products ----------------------------------------------------------------------------------------------


@pytest.mark.sample(24)
@pytest.mark.parametrize("without", [[], ["scipy.linalg.blas"]])
@pytest.mark.parametrize("sign", [1, -1, 0])
@pytest.mark.parametrize("shape", [(300, 100), (70, 130), (64, 64), (1, 64), (0, 80)])
@pytest.mark.parametrize("f", CASES, ids=lambda f: f.name)
def test_hermitian_products(
    f: cd.Program, shape: tuple[int, int], sign: int, without: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in without:
        monkeypatch.setitem(sys.modules, name, None)
    X = random(*shape)
    s = RNG.normal(size=len(X) if f is weighted else X.shape[1])
    arrays: tuple[Any, ...] = (X,) if f in (columns, rows) else (X, np.abs(s) * sign if sign else s)
    expected = CASES[f](*arrays)
    for dtype, kind, atol in ((complex, float, 1e-11), (np.complex64, np.float32, 2e-3)):
        given = [a.astype(dtype if a.dtype.kind == "c" else kind) for a in arrays]
        found = f(*given)
        assert found.dtype == dtype
        if len(found) >= 64:
            np.testing.assert_array_equal(found, found.conj().T)
        np.testing.assert_allclose(found, expected, atol=atol)
        assert all(np.array_equal(a, b.astype(a.dtype)) for a, b in zip(given, arrays, strict=True))


@pytest.mark.parametrize("f", CASES, ids=lambda f: f.name)
def test_they_are_rank_k_updates_where_that_saves_time(f: cd.Program) -> None:
    assert f.cost(m=200, n=200).flops < 0.55 * 200**3
    assert f.cost(m=20, n=20).flops > 0.9 * 20**3  # the call of BLAS alone is quicker


def test_small_ones_agree_with_the_reference() -> None:
    X, s = random(4, 3), RNG.normal(size=4)
    found = evaluate(weighted.term.body, dict(zip(weighted.term.parameters, (X, s), strict=True)), {"m": 4, "n": 3})
    np.testing.assert_allclose(weighted(X, s), found, atol=1e-12)


def test_a_complex_hessian_is_one_hermitian_product() -> None:
    X, s = random(150, 90), RNG.normal(size=150)
    found, twin = intensity(X, s)
    np.testing.assert_allclose(found, (X.conj().T @ (s[:, None] * X)).conj(), atol=1e-11)
    np.testing.assert_array_equal(found, found.conj().T)
    assert not twin.any()
    assert intensity.cost(m=150, n=90).flops < 0.6 * 150 * 90**2


# --- what lies along the diagonal ------------------------------------------------------------------------------------


@cd.program
def damped(X: cd.Space("m", "n"), y: cd.Space("m"), w: Vector, mu: cd.Space()):
    """The Hessian of Σ log(1 + exp(-y (X w))) + mu w·w."""
    t = cd.exp(-y * (X @ w))
    weights = y**2 * t / (1 + t) ** 2
    gram = cd.tensor(lambda a, d: cd.sum(lambda i: X[i, a] * X[i, d] * weights[i]))
    return cd.tensor(lambda a, d: 2 * cd.delta(a, d) * mu + gram[a, d])


@cd.program
def ridge(X: cd.Space("m", "n")):
    """The Hessian of |X w - y|² + 3 w·w."""
    return cd.tensor(lambda a, d: 6 * cd.delta(a, d) + 2 * cd.sum(lambda i: X[i, a] * X[i, d]))


@cd.program
def quartic(A: cd.Space("n", "n"), x: Vector):
    """The Hessian of x·A·x + Σ x⁴ + exp(x)."""
    return cd.tensor(lambda a, d: A[a, d] + A[d, a] + cd.delta(a, d) * (12 * x[d] ** 2 + cd.exp(x[d])))


def measured(call: Callable[[], Any]) -> tuple[Any, int]:
    call(), call()
    tracemalloc.start()
    result = call()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return result, most


@pytest.mark.thorough
@pytest.mark.parametrize("without", [[], ["scipy.linalg.blas"]])
@pytest.mark.parametrize("n", [200, 300])
def test_a_hessian_takes_at_most_twice_its_own_memory(
    n: int, without: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in without:
        monkeypatch.setitem(sys.modules, name, None)
    X, y, w = RNG.normal(size=(2 * n, n)), np.sign(RNG.normal(size=2 * n)), RNG.normal(size=n) / n
    s = 1 / (1 + np.exp(-y * (X @ w)))
    A = RNG.normal(size=(n, n))
    cases = [
        (damped, (X, y, w, np.array(0.3)), X.T @ ((s * (1 - s))[:, None] * X) + 0.6 * np.eye(n)),
        (ridge, (X,), 2 * X.T @ X + 6 * np.eye(n)),
        (quartic, (A, w), A + A.T + np.diag(12 * w**2 + np.exp(w))),
    ]
    for H, arrays, expected in cases:
        found, most = measured(lambda H=H, arrays=arrays: H(*arrays))
        np.testing.assert_allclose(found, expected, atol=1e-9)
        assert most < 2 * found.nbytes + 2**17, H.name  # NumPy's buffers
        assert peak(plan(H.term, {"m": 2 * n, "n": n})) >= found.nbytes


def test_no_argument_and_no_other_result_is_written_over() -> None:
    @cd.program
    def shifted(A: cd.Space("n", "n"), x: Vector):
        square = A @ A
        return (
            cd.tensor(lambda i, j: A[i, j] + cd.delta(i, j) * x[i]),
            square,
            cd.tensor(lambda i, j: square[j, i] + 2 * cd.delta(i, j)),
            cd.tensor(lambda i, j: square[i, j] / 2 - cd.delta(i, j) * x[j] + cd.delta(i, j) * 5),
        )

    A, x = RNG.normal(size=(4, 4)), RNG.normal(size=4)
    before = A.copy()
    moved, square, third, fourth = shifted(A, x)
    np.testing.assert_array_equal(A, before)
    np.testing.assert_allclose(square, A @ A)
    np.testing.assert_allclose(moved, A + np.diag(x))
    np.testing.assert_allclose(third, (A @ A).T + 2 * np.eye(4))
    np.testing.assert_allclose(fourth, A @ A / 2 - np.diag(x) + 5 * np.eye(4))
    assert "_deposit(" in shifted.source()
    assert "_deposit(" not in shifted.source("jax")


def test_a_narrow_sum_takes_the_type_of_a_wide_diagonal() -> None:
    @cd.program
    def mixed(A: cd.Space("n", "n"), x: cd.Space("n", dtype=complex)):
        return cd.tensor(lambda i, j: cd.sum(lambda k: A[i, k] * A[k, j]) + cd.delta(i, j) * x[i])

    A, x = RNG.normal(size=(3, 3)).astype(np.float32), random(3)
    found = mixed(A, x)
    assert found.dtype == complex
    np.testing.assert_allclose(found, A @ A + np.diag(x), atol=1e-6)


def test_blocks_along_a_diagonal_of_order_four() -> None:
    @cd.program
    def blocks(A: cd.Space("n", "k", "n", "k"), C: cd.Space("k", "k"), x: Vector):
        return cd.tensor(lambda i, j, p, q: cd.delta(i, p) * C[j, q] * x[i] + 2 * A[p, q, i, j])

    A, C, x = RNG.normal(size=(3, 2, 3, 2)), RNG.normal(size=(2, 2)), RNG.normal(size=3)
    expected = 2 * A.transpose(2, 3, 0, 1) + np.einsum("ip,jq,i->ijpq", np.eye(3), C, x)
    np.testing.assert_allclose(blocks(A, C, x), expected, atol=1e-12)
