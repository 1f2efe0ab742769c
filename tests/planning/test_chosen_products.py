"""Sums of what truth values choose: these choose from the weights of a larger array, and infinities have no part."""

from __future__ import annotations

import numpy as np
import pytest

import combdiff as cd

R = np.random.default_rng(0)
CHOSEN = R.normal(size=40) > 0


@cd.program
def hinge(w: cd.Space("d"), X: cd.Space("n", "d"), y: cd.Space("n"), on: cd.Space("n")):
    return cd.sum(lambda i: cd.where(on[i] > 0, y[i] * cd.sum(lambda a: np.sin(w[a] * X[i, a])), 0))


@cd.program
def nearest(c: cd.Space("k", "d"), p: cd.Space("n", "d")):
    return ((p[:, None] - c) ** 2).sum(-1).min(1).sum()


def test_the_weights_are_chosen() -> None:
    source = cd.grad(nearest).source()
    assert "_product_of_chosen(" in source


@pytest.mark.parametrize("other", [0.0, np.inf, -np.inf, np.nan])
@pytest.mark.filterwarnings("error")
def test_what_is_not_chosen_has_no_part(other: float) -> None:
    w, X, y = R.normal(size=5), R.normal(size=(40, 5)), R.normal(size=40)
    expected = (y[:, None] * X * np.cos(X * w))[CHOSEN].sum(0)
    X[~CHOSEN] = other
    np.testing.assert_allclose(cd.grad(hinge, "w")(w, X, y, CHOSEN * 1.0), expected)


def test_what_is_chosen_may_be_infinite() -> None:
    c, p = R.normal(size=(6, 5)), R.normal(size=(300, 5))
    expected = cd.grad(nearest)(c, p)
    gradient = cd.grad(nearest)(np.vstack([c, np.full(5, np.inf)]), p)
    np.testing.assert_allclose(gradient[:-1], expected)
    np.testing.assert_array_equal(gradient[-1], 0)
    assert not np.isfinite(cd.grad(hinge, "w")(np.ones(2), np.ones((3, 2)), np.array([np.inf, 1, 1]), np.ones(3))).any()
