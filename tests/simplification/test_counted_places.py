"""Bounds of sums: how many places they leave, and the only one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import combdiff as cd
from combdiff.ir import Names, Range, SummedProduct, Var, affine, apply, indicator, lambda_
from combdiff.ir.interpreter import evaluate
from combdiff.simplification.normal_form.contraction import normalise
from combdiff.simplification.normal_form.places import without_counted_places

Vector = cd.Space("n")

SHOWN: dict[str, tuple[Callable[..., object], str]] = {
    "sums up to each": (lambda x: np.cumsum(x).sum(), "x ↦ d<n ↦ n - d"),
    "twice": (lambda x: np.cumsum(np.cumsum(x)).sum(), "x ↦ d<n ↦ Σ_{k=d}^{n - 1} (n - k)"),
    "a triangle": (lambda x: np.tril(np.outer(x, np.ones_like(x))).sum(), "x ↦ d<n ↦ d + 1"),
    "without the diagonal": (lambda x: np.tril(np.outer(x, np.ones_like(x)), -1).sum(), "x ↦ d<n ↦ d"),
    "a band": (
        lambda x: cd.sum(lambda i, j: cd.where((j >= i - 1) & (j <= i + 1), x[i], 0), j="n"),
        "x ↦ d<n ↦ Σ_{i=max(0, d - 1)}^{min(n - 1, d + 1)} 1",  # which of d + 1 and n - 1 is the nearer depends on d
    ),
    "a number": (lambda x: x.sum() * x.shape[0], "x ↦ d<n ↦ n"),
}


@pytest.mark.parametrize("name", SHOWN)
def test_a_gradient_counts_places(name: str) -> None:
    @cd.program
    def program(x: Vector):
        return SHOWN[name][0](x)

    gradient = cd.grad(program)
    assert str(gradient) == SHOWN[name][1]
    cd.testing.check_grad(program, x=np.array([0.5, -2.0, 3.0, 1.0]))
    assert gradient(np.ones(4)).dtype == float
    assert gradient(np.ones(4, np.float32)).dtype == np.float32


def test_steps_that_leave_one_place_leave_it() -> None:
    @cd.program
    def program(x: cd.Space(5)):
        return cd.tensor(lambda d, e: cd.sum(lambda j: cd.where(3 * j + d + e <= 1, x[j], 0)), d=2, e=3)

    assert str(cd.simplify(program)) == "x ↦ (d<2, e<3) ↦ [d + e ≤ 1] x[0]"


D, E, J = Var("d", Range(3)), Var("e", Range("n")), Var("j", Range(4))
COEFFICIENTS = st.tuples(st.sampled_from([1, -1, 2, 0]), st.integers(-2, 2), st.integers(-1, 1), st.integers(-3, 3))


@given(bounds=st.lists(COEFFICIENTS, min_size=1, max_size=3), reads=st.booleans())
def test_bounds_and_what_is_made_of_them_are_equal_at_all_places(
    bounds: list[tuple[int, int, int, int]], reads: bool
) -> None:
    x = Var("x", cd.Space(4))
    forms = (affine([(J, j), (D, d), (E, e)], offset) for j, d, e, offset in bounds)
    factors = [*map(indicator, forms), *([apply(x, [J])] if reads else [])]
    product = SummedProduct.over((J,), factors)
    expected = lambda_((D, E), product.term)
    given_x, sizes = {x: np.array([1.0, 10.0, 100.0, 1000.0])}, {"n": 5}
    for found in (without_counted_places(product).term, normalise(product.term, Names(product.term))):
        np.testing.assert_array_equal(
            evaluate(lambda_((D, E), found), given_x, sizes), evaluate(expected, given_x, sizes)
        )
