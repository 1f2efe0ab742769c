"""A short array is copied where long ones would be made along its columns, and is then an array of its own."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import combdiff as cd

Points, Centres = cd.Space("n", "d"), cd.Space("k", "d")


@cd.program
def distances(p: Points, c: Centres):
    return cd.tensor(lambda i, k: cd.sum(lambda a: (p[i, a] - c[k, a]) ** 2))


@cd.program
def scaled(p: Points, c: Centres):
    return p[None] * c[:, None], np.tanh(p[None] - c[:, None]), 2 * p.T


def test_what_is_short_along_its_rows_is_copied() -> None:
    assert distances.source(n=1000, k=10, d=3).count('order="C"') == 1
    for sizes in ({"n": 5, "k": 4, "d": 3}, {"n": 40, "k": 40, "d": 40}):
        assert 'order="C"' not in distances.source(**sizes)


@given(n=st.integers(0, 60), k=st.integers(0, 9), d=st.integers(0, 4), columns=st.booleans())
def test_values_are_those_without_copies(n: int, k: int, d: int, columns: bool) -> None:
    """Also of arguments that lie so already, which stay as they are."""
    rng = np.random.default_rng(n)
    p, c = np.array(rng.normal(size=(n, d)), order="F" if columns else "C"), rng.normal(size=(k, d))
    given_p = p.copy()
    np.testing.assert_allclose(distances(p, c), ((p[:, None] - c) ** 2).sum(2), rtol=1e-12, atol=1e-12)
    product, tanh, twice = scaled(p, c)
    np.testing.assert_allclose(product, p[None] * c[:, None])
    np.testing.assert_allclose(tanh, np.tanh(p[None] - c[:, None]))
    np.testing.assert_array_equal(twice, 2 * p.T)
    np.testing.assert_array_equal(p, given_p)
