"""Floating-point constants: a number that the laws have seen is the number that the user wrote."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import combdiff as cd
from combdiff.ir import Number, subterms

RANDOM = np.random.default_rng(9)
Vector = cd.Space("n")


@cd.program
def quotients(a: Vector, c: Vector):
    t = a / (3 + np.log(1e-3 + c**2))
    return (t * np.cos(t)).sum()


@cd.program
def weighted(a: Vector, c: Vector):
    return (np.log(1e-3 + a**2) * np.sqrt(0.007 + c**2) / (0.3 + a**2)).sum()


@cd.program
def shared(a: Vector, c: Vector):
    return np.log(0.001 + a**2).sum() * (a * c).mean()


PROGRAMS = [quotients, weighted, shared]


@pytest.mark.sample(2)
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.name)
@pytest.mark.parametrize("derive", [cd.grad, cd.hvp])
def test_numbers_are_real_where_they_were_written_so(f: cd.Program, derive: Callable[..., cd.Program]) -> None:
    numbers = [node for node in subterms(derive(f, ("a", "c")).term) if isinstance(node, Number)]
    assert any(not number.exact for number in numbers)
    assert all(type(number.imag) is int for number in numbers)


@pytest.mark.sample(1)
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.name)
def test_products_with_hessians_by_several_parameters(f: cd.Program) -> None:
    """Of the first, one definition had the wrong sign: 0.001 + c² was not what it is the negative of, but no other."""
    a, c, a_dot, c_dot = RANDOM.normal(size=(4, 5))
    gradient: Any = cd.grad(f, ("a", "c"), simplify=False)
    there, here = (np.array(gradient(a + h * a_dot, c + h * c_dot)) for h in (1e-6, -1e-6))
    for simplify in (True, False):
        found = np.array(cd.hvp(f, ("a", "c"), simplify=simplify)(a, c, a_dot, c_dot))
        np.testing.assert_allclose(found, (there - here) / 2e-6, rtol=1e-5, atol=1e-6)
    assert cd.testing.check_routes(f, a=a, c=c) < 1e-5
