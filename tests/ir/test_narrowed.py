"""A tensor is bound without the axes along which it is constant."""

from __future__ import annotations

import numpy as np
import pytest

import combdiff as cd


@cd.program
def mixture(a: cd.Space("k"), x: cd.Space("n", "d"), m: cd.Space("k", "d"), Q: cd.Space("k", "d", "d")):
    y = np.einsum("kde,nke->nkd", Q, x[:, None] - m)
    return cd.logsumexp(a - (y**2).sum(-1) / 2, axis=1).sum()


@pytest.mark.thorough
def test_a_cotangent_that_is_the_same_along_an_axis_has_no_such_axis() -> None:
    gradient = cd.grad(mixture, "m")
    assert str(gradient).endswith("(d, e) ↦ Σ_{k,i} Q[d,k,e] t[d,i] y[d,k,i] / Σ_j t[j,i]")
    rng = np.random.default_rng(2)
    arrays = {"a": (3,), "x": (4, 2), "m": (3, 2), "Q": (3, 2, 2)}
    cd.testing.check_grad(mixture, "m", **{name: rng.normal(size=shape) for name, shape in arrays.items()})
