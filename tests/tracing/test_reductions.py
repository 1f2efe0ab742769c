"""The largest and smallest along axes and over indices: NumPy's values, equal shares of the derivative at ties."""

from __future__ import annotations

import numpy as np
import pytest
from backends import TORCH, back, convert, on

import combdiff as cd

TIED = np.array([[1.0, 5.0, 5.0], [2.0, -1.0, 7.0]])
APART = TIED + np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]])


@cd.program
def extremes(A: cd.Space("n", "m")):
    return (np.max(A, axis=1) ** 2).sum() + A.min() ** 3 + (A.max(axis=0, keepdims=True) * A).sum()


@cd.program
def kmeans(x: cd.Space("n", "d"), c: cd.Space("k", "d")):
    return cd.sum(lambda i: cd.min(lambda j: cd.sum(lambda e: (x[i, e] - c[j, e]) ** 2)))


def test_values_are_numpys() -> None:
    expected = (TIED.max(1) ** 2).sum() + TIED.min() ** 3 + (TIED.max(0, keepdims=True) * TIED).sum()
    assert extremes(TIED) == pytest.approx(expected)
    assert cd.max(TIED) == 7
    np.testing.assert_array_equal(cd.min(TIED, axis=0), [1, -1, 5])


def test_derivatives_are_slopes() -> None:
    gradient, way, step = cd.grad(extremes), APART * 0.3 + 1, 1e-6
    assert cd.testing.check_grad(extremes, "A", A=APART) < 1e-7
    slopes = (gradient(APART + step * way) - gradient(APART - step * way)) / (2 * step)
    np.testing.assert_allclose(cd.hvp(extremes)(APART, way), slopes, atol=1e-6)


def test_ties_have_equal_shares() -> None:
    @cd.program
    def largest(A: cd.Space("n", "m")):
        return A.max(axis=1).sum()

    gradient = cd.grad(largest)
    np.testing.assert_array_equal(gradient(TIED), [[0, 0.5, 0.5], [0, 0, 1]])
    np.testing.assert_allclose(gradient(np.zeros((1, 3))), [[1 / 3] * 3])
    assert gradient(TIED.astype(np.float32)).dtype == np.float32


def test_k_means_is_written_over_indices_and_over_arrays() -> None:
    @cd.program
    def by_arrays(x: cd.Space("n", "d"), c: cd.Space("k", "d")):
        return ((x[:, None] - c[None]) ** 2).sum(-1).min(axis=1).sum()

    x = np.random.default_rng(0).normal(size=(6, 2))
    c = x[:3] + 0.1
    assert kmeans(x, c) == pytest.approx(((x[:, None] - c[None]) ** 2).sum(-1).min(1).sum())
    assert cd.testing.check_grad(kmeans, "c", x=x, c=c) < 1e-7
    np.testing.assert_allclose(cd.grad(by_arrays, "c")(x, c), cd.grad(kmeans, "c")(x, c))
    assert str(kmeans) == "(x, c) ↦ Σ_i min_k Σ_j (x[i,j] - c[k,j])²"


@pytest.mark.sample(1)
@pytest.mark.parametrize("backend", [TORCH, "jax", "dask"])
def test_other_libraries_agree(backend: str) -> None:
    gradient = cd.grad(extremes)
    np.testing.assert_allclose(back(on(backend, gradient)(convert(backend, TIED))), gradient(TIED), rtol=1e-6)


def test_what_has_no_largest_is_refused() -> None:
    for reduce, message in (
        (lambda z: np.max(1j * z), "amax takes real numbers"),
        (lambda z: z.max(axis=3), "the axes of a largest or smallest element are 3"),
    ):

        def refused(z):  # type: ignore[no-untyped-def]
            return cd.real(reduce(z))  # noqa: B023  (called at once)

        refused.__annotations__ = {"z": cd.Space("n", 2)}
        with pytest.raises(cd.CombdiffError) as caught:
            cd.program(refused)
        assert message in caught.value.message.replace("got an ", "")


def test_along_three_axes() -> None:
    @cd.program
    def product(x: cd.Space("a", "b", "c")):
        return x.prod()

    @cd.program
    def largest(x: cd.Space("a", 3, 4)):
        return x.max(axis=(2, 0, 1), keepdims=True).sum()

    x = np.random.default_rng(0).normal(size=(2, 3, 4))
    for f, numpy_function in ((product, np.prod), (largest, np.max)):
        np.testing.assert_allclose(f(x), numpy_function(x))
        cd.testing.check_grad(f, x=x)
    refused = (
        "along 3 axes of x: more than one of them has a name for its size\n  hint: .*x.max\\(axis=\\(1, 2\\)\\).max"
    )
    with pytest.raises(cd.UnsupportedError, match=refused):

        @cd.program
        def f(x: cd.Space("a", "b", "c")):
            return x.max()
