"""Sliding windows, blocks and strided writes of emitted NumPy source, against loops at all sizes."""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np
import pytest
from backends import on

import combdiff as cd
from combdiff.testing.arrays import named_sizes

Batch, Weights = cd.Space("B", "n"), cd.Space("k")


@cd.program
def forwards(x: Batch, w: Weights, v: cd.Space("B", "m")):
    return cd.sum(lambda b, i, k: x[b, i + k] * w[k] * v[b, i])


@cd.program
def backwards(x: Batch, w: Weights, v: cd.Space("B", "m")):
    return cd.sum(lambda b, i, k: cd.where(i >= k, x[b, i - k], 0) * w[k] * v[b, i])


@pytest.fixture(scope="module")
def gradients() -> dict[Any, Any]:
    return {(f.name, name): cd.grad(f, wrt=name) for f in (forwards, backwards) for name in "xwv"}


@pytest.mark.sample(10)
@pytest.mark.parametrize(("width", "count"), list(itertools.product((0, 1, 2, 17, 40), (0, 1, 2, 33, 150))))
def test_correlations_at_all_sizes(gradients: dict[Any, Any], width: int, count: int) -> None:
    rng = np.random.default_rng(0)
    for f, sign in ((forwards, 1), (backwards, -1)):
        length = max(count + width - 1, 1) if sign > 0 else max(count, 1)
        x, w, v = rng.standard_normal((3, length)), rng.standard_normal(width), rng.standard_normal((3, count))
        expected = [np.zeros_like(array) for array in (x, w, v)]
        for i, k in itertools.product(range(count), range(width)):
            if sign > 0 or i >= k:
                at = i + sign * k
                expected[0][:, at] += w[k] * v[:, i]
                expected[1][k] += x[:, at] @ v[:, i]
                expected[2][:, i] += x[:, at] * w[k]
        for name, array in zip("xwv", expected, strict=True):
            np.testing.assert_allclose(gradients[f.name, name](x, w, v), array, atol=1e-10)


def test_windows_are_multiplied_by_blocks_and_nothing_is_masked(gradients: dict[Any, Any]) -> None:
    for (_, name), gradient in gradients.items():
        for size, texts in ((200, ("_lags(", "_correlate(")), (8, ("_lag_sums(", "_window_sums("))):
            source = gradient.source(B=3, n=size, k=size // 4, m=size - size // 4 + 1)
            body = source.split("def grad_")[1].split("\n\n\n")[0]
            assert texts[name != "w"] in body
            assert "arange" not in body
            assert "_view" not in body


def test_strided_products_are_computed_where_they_are_not_zero() -> None:
    @cd.program
    def pairs(x: cd.Space("n"), v: cd.Space("m")):
        return cd.sum(lambda i: v[i] * cd.sin(x[2 * i] * x[2 * i + 1]))

    gradient = cd.grad(pairs)
    body = gradient.source().split("def grad_")[1].split("\n\n\n")[0]
    assert body.count("_place(") == 2
    assert "(n,) cos" not in body
    for n, m in ((0, 0), (2, 1), (9, 4), (12, 4)):
        x, v = np.random.default_rng(0).standard_normal(n), np.random.default_rng(1).standard_normal(m)
        expected = np.zeros(n)
        even, odd = x[: 2 * m : 2], x[1 : 2 * m : 2]
        expected[: 2 * m : 2], expected[1 : 2 * m : 2] = v * np.cos(even * odd) * odd, v * np.cos(even * odd) * even
        np.testing.assert_allclose(gradient(x, v), expected)


def test_a_strided_plane_is_written_at_once() -> None:
    @cd.program
    def f(x: cd.Space(7, 8), y: cd.Space(3, 2)):
        return cd.sum(lambda i, j: x[2 * i + 1, 3 * j + 1] ** 2 * y[i, j])

    x, y = np.random.default_rng(0).standard_normal((7, 8)), np.random.default_rng(1).standard_normal((3, 2))
    expected = np.zeros((7, 8))
    expected[1:6:2, 1:5:3] = 2 * x[1:6:2, 1:5:3] * y
    np.testing.assert_allclose(cd.grad(f)(x, y), expected)


def test_reads_around_cycles_roll() -> None:
    Torus = cd.Space(cd.Cyclic("n"), cd.Cyclic("m"))

    @cd.program
    def f(u: Torus, v: Torus, w: cd.Space(cd.Cyclic("m"), cd.Cyclic("n"))):
        return cd.tensor(lambda i, j: u[i + 2, j - 1] * v[1 - i, j] * u[-i, 3 - j] * w[j + 1, i] * w[-j, -i])

    body = f.source().split("def f")[1].split("\n\n\n")[0]
    assert body.count("np.roll(") == 5
    assert "arange" not in body
    for n, m in ((5, 4), (1, 3), (2, 2), (0, 3)):
        u, v, w = (np.random.default_rng(n).standard_normal(shape) for shape in ((n, m), (n, m), (m, n)))
        i, j = np.indices((n, m))
        at = [(u, i + 2, j - 1), (v, 1 - i, j), (u, -i, 3 - j), (w, j + 1, i), (w, -j, -i)]
        expected = np.ones((n, m))
        for x, p, q in at if n else ():
            expected *= x[p % x.shape[0], q % x.shape[1]]
        np.testing.assert_allclose(f(u, v, w), expected)


@cd.program
def filtered(A: cd.Space("n", "m", "c"), w: cd.Space("k", "l", "c"), v: cd.Space("p", "q")):
    return cd.sum(lambda i, j, a, b, c: A[i + a, j + b, c] * w[a, b, c] * v[i, j])


@pytest.mark.thorough
def test_of_a_kernel_and_a_plane_that_it_slides_over_the_plane_is_read_in_windows() -> None:
    """Also its gradient by the plane, in which the kernel is 0 nearly everywhere; and where they change their parts."""
    gradients = {name: cd.grad(filtered, wrt=name) for name in "Awv"}
    for n, m, k, h, p, q in (
        (9, 8, 2, 2, 8, 7),
        (9, 9, 8, 7, 2, 3),
        (9, 9, 2, 8, 8, 2),
        (4, 1, 1, 1, 4, 1),
        (5, 6, 2, 6, 1, 1),
    ):
        rng = np.random.default_rng(0)
        A, w, v = (rng.standard_normal(shape) for shape in ((n, m, 2), (k, h, 2), (p, q)))
        expected = np.zeros_like(A), np.zeros_like(w), np.zeros_like(v)
        for i, j, a, b in itertools.product(range(p), range(q), range(k), range(h)):
            if i + a < n and j + b < m:
                expected[0][i + a, j + b] += w[a, b] * v[i, j]
                expected[1][a, b] += A[i + a, j + b] * v[i, j]
                expected[2][i, j] += A[i + a, j + b] @ w[a, b]
        for gradient, array in zip(gradients.values(), expected, strict=True):
            np.testing.assert_allclose(gradient(A, w, v), array, atol=1e-12)
        np.testing.assert_allclose(on("jax", gradients["A"])(A, w, v), expected[0], rtol=1e-4, atol=1e-5)
    for kernel, plane in ((3, 298), (298, 3)):
        cost = gradients["A"].cost(n=300, m=300, c=2, k=kernel, l=kernel, p=plane, q=plane)
        assert cost.flops <= 1.1 * 2 * 9 * 300**2
        assert cost.peak_bytes <= 12 * 8 * 300**2 + 10**7


# --- images, filters, matrices of diagonals

Ring = cd.Space(cd.Cyclic("n"))


@cd.program
def images(x: cd.Space("B", "H", "W", "C"), w: cd.Space("k", "l", "C", "O"), v: cd.Space("B", "h", "u", "O")):
    return cd.sum(lambda b, i, j, k, l, c, o: x[b, 2 * i + k, 2 * j + l, c] * w[k, l, c, o] * v[b, i, j, o])  # noqa: E741


@cd.program
def channels_first(x: cd.Space("B", "C", "H", "W"), w: cd.Space("O", "C", "k", "l"), v: cd.Space("B", "O", "h", "u")):
    return cd.sum(lambda b, i, j, k, l, c, o: x[b, c, i + k, j + l] * w[o, c, k, l] * v[b, o, i, j])  # noqa: E741


@cd.program
def circular(x: Ring, w: cd.Space(cd.Symmetric("r")), v: Ring):
    return cd.sum(lambda i, r: x[i - r] * w[r] * v[i])


@cd.program
def columns(x: cd.Space("n", "c"), w: cd.Space("k"), v: cd.Space("m", "c")):
    return cd.sum(lambda i, k, c: x[i + k, c] * w[k] * v[i, c])


@cd.program
def toeplitz(t: cd.Space(cd.Symmetric("r")), x: cd.Space("n"), v: cd.Space("m")):
    return cd.sum(lambda i, j: cd.where((i - j <= 6) & (j - i <= 6), t[i - j], 0) * x[j] * v[i])


SHAPES = {
    images: [(2, 5, 6, 2), (2, 3, 2, 2), (2, 2, 2, 2)],
    channels_first: [(2, 2, 4, 5), (2, 2, 2, 3), (2, 2, 3, 3)],
    circular: [(20,), (5,), (20,)],
    columns: [(20, 2), (9,), (12, 2)],
    toeplitz: [(13,), (12,), (10,)],
}


def arrays_of(f: Any, seed: int) -> tuple[list[Any], dict[str, int]]:
    rng = np.random.default_rng(seed)
    arrays = [rng.standard_normal(shape) for shape in SHAPES[f]]
    return arrays, named_sizes(f.parameters, dict(zip((p.name for p in f.parameters), arrays, strict=True)))


@pytest.mark.sample(2)
@pytest.mark.parametrize("f", SHAPES, ids=lambda f: f.name)
def test_gradients_of_windows_slide(f: Any) -> None:
    for p in f.parameters:
        source = cd.grad(f, wrt=p.name).source().split("def grad_")[1].split("\n\n\n")[0]
        assert f is toeplitz or re.search(r"_(correlate|lags|slide|window_sums|lag_sums)\(", source), source


def test_nan_does_not_spread() -> None:
    x, w, v = np.arange(40.0), np.arange(14.0) + 1, np.zeros(27)
    x[5] = np.nan
    found = cd.grad(columns, wrt="v")(x[:, None], w, v[:, None])[:, 0]
    assert np.isnan(found).tolist() == [i <= 5 for i in range(27)]
