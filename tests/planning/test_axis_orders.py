"""Arrays made element by element have the order of axes in which products of matrices read them."""

from __future__ import annotations

import re

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import combdiff as cd

SIZES = st.integers(0, 5)


@cd.program
def stacked(x: cd.Space("n", "d"), mu: cd.Space("k", "d"), L: cd.Space("k", "d", "d")):
    far = cd.tensor(lambda i, k, a: np.tanh(x[i, a] - mu[k, a]))
    seen = cd.tensor(lambda i, k, b: cd.sum(lambda a: L[k, a, b] * far[i, k, a]))
    return far, cd.sum(lambda i, k, b: seen[i, k, b] ** 2), cd.tensor(lambda k, a: cd.sum(lambda i: far[i, k, a]))


def expected(x: np.ndarray, mu: np.ndarray, L: np.ndarray) -> tuple[np.ndarray, ...]:
    far = np.tanh(x[:, None] - mu)
    return far, (np.einsum("kab,ika->ikb", L, far) ** 2).sum(), far.sum(0)


@given(SIZES, SIZES, SIZES)
@settings(max_examples=12, deadline=None)
def test_results_keep_their_axes_whatever_order_is_computed(n: int, k: int, d: int) -> None:
    rng = np.random.default_rng(n + 7 * k + 49 * d)
    values = rng.normal(size=(n, d)), rng.normal(size=(k, d)), rng.normal(size=(k, d, d))
    for found, wanted in zip(stacked(*values), expected(*values), strict=True):
        assert np.shape(found) == np.shape(wanted)
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


@cd.program
def batched(x: cd.Space("n", "d"), mu: cd.Space("k", "d"), L: cd.Space("k", "d", "d")):
    far = cd.tensor(lambda i, k, a: np.tanh(x[i, a] - mu[k, a]))
    return cd.tensor(lambda k, b, i: cd.sum(lambda a: L[k, a, b] * far[i, k, a]))


def test_a_batch_comes_first() -> None:
    source = batched.source()
    made = re.search(r"(\w+) = np.tanh\(\w+\)  # \(k, (d, n|n, d)\)", source)
    assert made, source


@cd.program
def squared_lengths(x: cd.Space("n", "d"), mu: cd.Space("k", "d"), L: cd.Space("k", "d", "d")):
    far = cd.tensor(lambda i, k, a: x[i, a] - mu[k, a])
    seen = cd.tensor(lambda i, k, b: cd.sum(lambda a: L[k, b, a] * far[i, k, a]))
    return cd.tensor(lambda i, k: cd.sum(lambda b: seen[i, k, b] ** 2))


def test_a_product_is_made_with_its_long_axis_last() -> None:
    """Sums over its short one go along rows then; with few elements there, it is the other way round."""
    r = np.random.default_rng(0)
    for n, d, shape in ((1000, 3, "(k, d, n)"), (3, 1000, "(k, n, d)")):
        assert f"{shape} batched matrix-matrix" in squared_lengths.source(n=n, d=d, k=2)
        x, mu, L = r.normal(size=(4, d)), r.normal(size=(2, d)), r.normal(size=(2, d, d))
        wanted = ((np.einsum("kba,ika->ikb", L, x[:, None] - mu)) ** 2).sum(-1)
        np.testing.assert_allclose(squared_lengths(x, mu, L), wanted)
