"""Second derivatives through solutions of equations, by a matrix, in the mode that goes through the whole graph."""

from __future__ import annotations

import numpy as np
import pytest

import combdiff as cd

V, M = cd.Space("n"), cd.Space("n", "n")


@cd.program
def of_root(A: M, b: V):
    x = cd.root(lambda x: A @ x + x**3 - b, like=b)
    return (x * x).sum()


@cd.program
def of_minimum(A: M, b: V):
    x = cd.argmin(lambda x: ((A @ x - b) ** 2).sum() + (x**4).sum(), like=b)
    return (x * b).sum()


@pytest.mark.sample(1)
@pytest.mark.parametrize("f", [of_root, of_minimum], ids=["root", "argmin"])
def test_the_hessian_by_a_matrix_is_that_of_central_differences(f: cd.Program) -> None:
    rng, h = np.random.default_rng(0), 1e-5
    A, b = np.eye(2) * 3 + rng.normal(size=(2, 2)) / 3, rng.normal(size=2)
    gradient = cd.grad(f, "A")
    found = cd.hessian(f, "A", "cross-country")(A, b)
    for entry in np.ndindex(2, 2):
        move = np.zeros((2, 2))
        move[entry] = h
        slope = (gradient(A + move, b) - gradient(A - move, b)) / (2 * h)
        np.testing.assert_allclose(found[entry], slope, atol=1e-8)
