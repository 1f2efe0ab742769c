"""Sums of what truth values choose: these choose from the weights of a larger array, and infinities have no part."""

from __future__ import annotations

import numpy as np
import pytest

import combdiff as cd

R = np.random.default_rng(0)
CHOSEN = R.normal(size=40) > 0
Rows = cd.Space("n", "d")


@cd.program
def weighed(X: Rows, y: cd.Space("n"), on: cd.Space("n")):
    return cd.tensor(lambda a: cd.sum(lambda i: cd.where(on[i] > 0, y[i] * X[i, a], 0)))


@cd.program
def near(c: cd.Space("k", "d"), p: Rows):
    """Of each centre, how far those lie that are nearer to it than to the origin."""
    far = p[:, None] - c
    return cd.tensor(
        lambda k, a: cd.sum(
            lambda i: cd.where((far[i, k] ** 2).sum() < (p[i] ** 2).sum(), far[i, k, a] / (p[i] ** 2).sum(), 0)
        )
    )


def test_the_weights_are_chosen() -> None:
    assert "_product_of_chosen(" in weighed.source()
    assert "_product_of_chosen(" in weighed.source("jax")


@pytest.mark.parametrize("backend", ["numpy", "jax"])
@pytest.mark.parametrize("other", [0.0, np.inf, -np.inf, np.nan])
@pytest.mark.filterwarnings("error")
def test_what_is_not_chosen_has_no_part(other: float, backend: str) -> None:
    f, bound = weighed.compile(backend), 1e-5 if backend == "jax" else 1e-10
    X, y = R.normal(size=(40, 5)), R.normal(size=40)
    expected = (y[:, None] * X)[CHOSEN].sum(0)
    X[~CHOSEN] = other
    np.testing.assert_allclose(f(X, y, CHOSEN * 1.0), expected, rtol=bound, atol=bound)
    y[~CHOSEN] = other
    np.testing.assert_allclose(f(X, y, CHOSEN * 1.0), expected, rtol=bound, atol=bound)


@pytest.mark.filterwarnings("error")
def test_infinite_centres_are_not_near() -> None:
    c, p = R.normal(size=(6, 5)), R.normal(size=(3000, 5))
    found = near(np.vstack([c, np.full(5, np.inf)]), p)
    squares = (p**2).sum(1)[:, None]
    nearer = ((p[:, None] - c) ** 2).sum(-1) < squares
    np.testing.assert_allclose(found[:-1], ((nearer / squares)[..., None] * (p[:, None] - c)).sum(0))
    np.testing.assert_array_equal(found[-1], 0)


def test_what_is_chosen_may_be_infinite() -> None:
    assert not np.isfinite(weighed(np.ones((3, 2)), np.array([np.inf, 1, 1]), np.ones(3))).any()
