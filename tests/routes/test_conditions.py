"""Conditions that a name or a sum hides: what they guard is not computed where they fail, in any route."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import combdiff as cd
from combdiff.testing.differences import finite_difference_gradient

Positions, Weights = cd.Space("n"), cd.Space("n", "n")


@cd.program
def pairs(x: Positions, P: Weights):
    return cd.sum(lambda i, j: cd.where(i != j, P[i, j] / (x[i] - x[j]) ** 2, 0))


@cd.program
def named_distances(x: Positions, P: Weights):
    w = cd.tensor(lambda i, j: x[i] - x[j])
    return cd.sum(lambda i, j: cd.where(i != j, P[i, j] / w[i, j] + P[j, i] * cd.log(w[i, j] ** 2), 0))


@cd.program
def named_weights(x: Positions, P: Weights):
    """The entropy of normalised weights, as of t-SNE: each weight, 0 on the diagonal, under a logarithm."""
    w = cd.tensor(lambda i, j: cd.where(i != j, 1 / (x[i] - x[j]) ** 2, 0))
    total = w.sum()
    return cd.sum(lambda i, j: cd.where(i != j, P[i, j] * cd.log(total / w[i, j]), 0))


@cd.program
def halves(x: Positions, P: Weights):
    w = cd.tensor(lambda i, j: cd.where(i < j, 1 / (x[i] - x[j]) ** 2, 0))
    return cd.sum(lambda i, j: cd.where(i < j, P[i, j] * cd.log(w.sum() / w[i, j]), 0))


@cd.program
def overlapping(x: Positions, P: Weights):
    """Two conditions that overlap, on a tensor with a name."""
    w = cd.tensor(lambda i, j: cd.where(i > j, P[i, j], 0) + cd.where(i > j + 1, P[j, i], 0))
    return cd.sum(lambda i, j: w[i, j] * cd.log((x[i] - x[j]) ** 2))


PROGRAMS = (pairs, named_distances, named_weights, halves, overlapping)


grad = cache(cd.grad)  # several tests look at each gradient


def arrays(size: int) -> dict[str, Any]:
    rng = np.random.default_rng(size)
    return {"x": rng.normal(size=size), "P": rng.uniform(0.1, 1, size=(size, size))}


@pytest.mark.sample(1)
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.name)
@pytest.mark.parametrize("simplify", [True, False])
def test_what_a_condition_guards_is_not_computed(f: Any, simplify: bool) -> None:
    given = arrays(4)
    expected = finite_difference_gradient(f, given, "x")
    gradient = grad(f, "x", simplify=simplify)
    np.testing.assert_allclose(gradient(**given), expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())
    direction = np.array([0.3, -1.0, 0.5, 0.2])
    step = 1e-6
    ahead, behind = ({**given, "x": given["x"] + sign * step * direction} for sign in (1, -1))
    change = (gradient(**ahead) - gradient(**behind)) / (2 * step)
    np.testing.assert_allclose(
        cd.hvp(f, "x", simplify=simplify)(**given, x_dot=direction), change, rtol=1e-5, atol=1e-4
    )


def test_an_undefined_factor_that_nothing_guards_is_not_hidden() -> None:
    @cd.program
    def f(x: Positions, P: Weights):
        w = cd.tensor(lambda i, j: cd.where(i < j, P[i, j], 0))
        return cd.tensor(lambda i: cd.sum(lambda j: w[i, j]) * cd.log(x[i]))

    with np.errstate(all="ignore"):
        found = f(np.array([0.0, 1.0, 0.0]), np.zeros((3, 3)))
    assert np.isnan(found).tolist() == [True, False, False]
