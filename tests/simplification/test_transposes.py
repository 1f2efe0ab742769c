"""Sums of transposes in derivatives of forms: (A + Aᵀ)·x, whatever A·x stands beside it."""

from __future__ import annotations

import numpy as np
import pytest

import combdiff as cd

HEAD = "x (n), a (n), A (n, n), B (n, n)\n"


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("xᵀ·A·x", "(A + Aᵀ)·x"),
        ("(xᵀ·A·x)^2", "2·(xᵀ·A·x)·(A + Aᵀ)·x"),
        ("log(1 + xᵀ·A·x)", "(A + Aᵀ)·x / (1 + xᵀ·A·x)"),
        ("1 / (xᵀ·A·x)", "-(A + Aᵀ)·x / (xᵀ·A·x)²"),
        ("exp(-(x - a)ᵀ·A·(x - a) / 2)", "t = x - a\n-1/2·exp(-1/2·tᵀ·A·t)·(A + Aᵀ)·t"),
        ("(xᵀ·A·x)·(xᵀ·B·x)", "(xᵀ·B·x)·(A + Aᵀ)·x + (xᵀ·A·x)·(B + Bᵀ)·x"),
        ("log((B·x)ᵀ·A·(B·x))", "t = B·x\nBᵀ·(A + Aᵀ)·t / (tᵀ·A·t)"),
    ],
)
def test_gradients_of_forms(form: str, expected: str) -> None:
    program = cd.read(HEAD + form)
    gradient = cd.grad(program, wrt="x")
    assert gradient.matrix() == expected
    rng = np.random.default_rng(2)
    arrays = {p.name: rng.uniform(0.5, 1.5, (3,) * p.type.order) for p in program.parameters}
    assert cd.testing.check_routes(program, **arrays) < 1e-6


def test_they_are_no_more_work() -> None:
    """A·x is computed once, for the form and its gradient."""
    gradient = cd.grad(cd.read(HEAD + "(xᵀ·A·x)^2"), wrt="x")
    products = [row for row in gradient.cost(n=100).rows if row.flops >= 100**2]
    assert len(products) == 2
