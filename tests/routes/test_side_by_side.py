"""Derivatives by columns, and tensors that are put together: arrays side by side, with no zeros added to them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from backends import converted, double_precision, on

import combdiff as cd

Columns = cd.Space("p", 4)


def residual(c: Any, x: Any) -> Any:
    return c[:, 0] * np.sin(c[:, 1]) * x + c[:, 2] ** 2 - c[:, 3]


@cd.program
def squares(c: Columns, x: cd.Space("p")):
    r = residual(c, x)
    return (r * r).sum()


@pytest.mark.thorough
def test_a_gradient_by_columns_is_a_stack_of_them() -> None:
    source = cd.grad(squares).source()
    assert source.count("np.stack(") == 1
    assert "zeros" not in source
    c, x = np.random.default_rng(0).normal(size=(2, 4)), np.array([1.5, -2])
    cd.testing.check_routes(squares, c=c, x=x)


def test_columns_of_which_some_are_not_read_are_zeros() -> None:
    @cd.program
    def some(c: Columns):
        return (c[:, 0] * c[:, 2] * np.sin(c[:, 3])).sum()

    c = np.random.default_rng(0).normal(size=(3, 4))
    found = cd.grad(some)(c)
    a, _, b, d = c.T
    np.testing.assert_allclose(found.T, [b * np.sin(d), 0 * a, a * np.sin(d), a * b * np.cos(d)], rtol=1e-12)
    assert "np.stack(" in cd.grad(some).source()


def test_one_column_of_many_is_written_among_zeros() -> None:
    @cd.program
    def one(c: Columns):
        return (c[:, 1] ** 3).sum()

    assert "stack" not in cd.grad(one).source()
    c = np.arange(8.0).reshape(2, 4)
    np.testing.assert_array_equal(cd.grad(one)(c), 3 * c**2 * [0, 1, 0, 0])


def test_what_stands_beside_columns_is_added_to_them() -> None:
    @cd.program
    def beside(c: Columns, x: cd.Space("p")):
        return np.stack([c[:, 0] * x, c[:, 1] ** 2, x, c[:, 3] / 2], 1) + 3 * c

    c, x = np.random.default_rng(1).normal(size=(3, 4)), np.array([1.0, 2, 3])
    expected = np.stack([c[:, 0] * x, c[:, 1] ** 2, x, c[:, 3] / 2], 1) + 3 * c
    np.testing.assert_allclose(beside(c, x), expected, rtol=1e-12)
    jacobian = cd.jacobian(beside, ("c", "x"), "reverse")
    assert "np.stack(" in jacobian.source()
    by_c, by_x = jacobian(c, x)
    h = 1e-6
    for place in np.ndindex(3, 4):
        step = np.zeros((3, 4))
        step[place] = h
        np.testing.assert_allclose(
            by_c[(..., *place)], (beside(c + step, x) - beside(c - step, x)) / (2 * h), atol=1e-8
        )
    for n, step in enumerate(h * np.eye(3)):
        np.testing.assert_allclose(by_x[..., n], (beside(c, x + step) - beside(c, x - step)) / (2 * h), atol=1e-8)


@pytest.mark.parametrize("library", ["jax", pytest.param("torch", marks=pytest.mark.needs("torch")), "dask"])
def test_other_libraries_stack_as_numpy_does(library: str) -> None:
    """On JAX by choices, which XLA fuses; integers and zeros are as wide as what they stand beside."""

    @cd.program
    def mixed(c: Columns, k: cd.Space("p", dtype=int)):
        return np.stack([np.exp(c[:, 0]), c[:, 1], 0 * c[:, 2], k * c[:, 3]], 1)

    c, k = np.random.default_rng(2).normal(size=(3, 4)), np.array([1, -2, 3])
    expected = np.stack([np.exp(c[:, 0]), c[:, 1], 0 * c[:, 2], k * c[:, 3]], 1)
    with double_precision():
        found = on(library, mixed)(*converted(library, (c, k)))
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-12)


@pytest.mark.thorough
def test_a_jacobian_by_columns_is_made_in_the_order_of_its_axes() -> None:
    """What columns of columns are put together to is not laid out once more, and no column of them is read back."""

    @cd.program
    def both(c: Columns, x: cd.Space("p")):
        r = residual(c, x)
        s = c[:, 0] / np.sqrt(c[:, 0] ** 2 + c[:, 1] ** 2)
        return np.stack([(r * s).sum(), (s * s * c[:, 2]).sum()])

    jacobian = cd.jacobian(both, ("c", "x"), "reverse", simplify=False)
    c, x = np.random.default_rng(0).normal(size=(3, 4)), np.array([1.5, -2, 0.5])
    assert "transpose" not in jacobian.source("jax")
    assert "[:, 0]" not in jacobian.source("jax").partition("_stack(")[2]
    cd.testing.check_routes(both, c=c, x=x)
    by_c, h = jacobian(c, x)[0], 1e-6
    for place in np.ndindex(3, 4):
        step = np.zeros((3, 4))
        step[place] = h
        np.testing.assert_allclose(by_c[(..., *place)], (both(c + step, x) - both(c - step, x)) / (2 * h), atol=1e-8)
