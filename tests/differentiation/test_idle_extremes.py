"""Largest elements that a result does not depend on have no derivative: what is taken out of exponents, and cancels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import combdiff as cd
from combdiff.differentiation.idle_extremes import idle_extremes
from combdiff.testing.differences import finite_difference_gradient

RANDOM = np.random.default_rng(21)
Matrix, Vector = cd.Space("n", "m"), cd.Space("m")


def weighted(x: Matrix, y: Vector):
    p = np.exp(x - x.max(axis=1, keepdims=True))
    return (p / p.sum(axis=1, keepdims=True) @ y).sum()


def heads(x: cd.Space(3, 4), y: cd.Space(4, 4)):
    q = (x @ y).reshape(3, 2, 2).transpose(1, 0, 2)
    s = q @ q.transpose(0, 2, 1)
    p = np.exp(s - s.max(axis=-1, keepdims=True))
    o = (p / p.sum(axis=-1, keepdims=True) @ q).transpose(1, 0, 2).reshape(3, 4)
    return (o**2).sum()


def logarithm(x: Matrix, y: Vector):
    m = x.max(axis=1)
    return (m + np.log((np.exp(x - m[:, None]) * y**2).sum(axis=1))).sum()


def odds(x: Matrix, y: Vector):
    p = np.exp(2 * (x.min() - x))
    return ((p @ y) ** 2 / (p**2).sum()).sum()


def directions(x: Matrix, y: Vector):
    p = np.exp(x - x.max(axis=1, keepdims=True))
    return (np.abs(p @ y) / np.sqrt((p**2).sum(axis=1))).sum()


def read_alone(x: Matrix, y: Vector):
    p = np.exp(x - x.max(axis=1, keepdims=True))
    return (p @ y).sum()


def left_over(x: Matrix, y: Vector):
    m = x.max(axis=1)
    return (2 * m + np.log((np.exp(x - m[:, None]) * y**2).sum(axis=1))).sum()


def of_columns(x: Matrix, y: Vector):
    p = np.exp(x - x.max(axis=0))
    return (p / p.sum(axis=1, keepdims=True) @ y).sum()


IDLE = [weighted, heads, logarithm, odds, directions]
BUSY = [read_alone, left_over, of_columns]


def arrays(f: Callable[..., Any]) -> dict[str, Any]:
    shapes = {"x": (3, 4), "y": (4, 4) if f is heads else (4,)}
    return {name: RANDOM.normal(size=shape) for name, shape in shapes.items()}


@pytest.mark.sample(2)
@pytest.mark.parametrize("f", IDLE + BUSY, ids=lambda f: f.__name__)
def test_those_are_found_that_cancel(f: Callable[..., Any]) -> None:
    program = cd.program(f)
    assert bool(idle_extremes(program.term.body)) == (f in IDLE)
    assert ("maxima" in str(cd.grad(program, "x")) or "minima" in str(cd.grad(program, "x"))) == (f in BUSY)


@pytest.mark.sample(2)
@pytest.mark.parametrize("f", IDLE + BUSY, ids=lambda f: f.__name__)
@pytest.mark.parametrize("simplify", [True, False])
def test_derivatives_are_those_of_central_differences(f: Callable[..., Any], simplify: bool) -> None:
    program, given = cd.program(f), arrays(f)
    gradient = cd.grad(program, "x", simplify=simplify)
    expected = finite_difference_gradient(program, given, "x")
    np.testing.assert_allclose(gradient(**given), expected, rtol=1e-6, atol=1e-7)
    direction = RANDOM.normal(size=given["x"].shape)
    step = 1e-5 * direction
    there, here = (gradient(given["x"] + sign * step, given["y"]) for sign in (1, -1))
    product = cd.hvp(program, "x", simplify=simplify)(*given.values(), direction)
    np.testing.assert_allclose(product, (there - here) / 2e-5, rtol=1e-5, atol=1e-6)


@pytest.mark.thorough
@pytest.mark.parametrize("f", IDLE + BUSY, ids=lambda f: f.__name__)
def test_every_route_agrees(f: Callable[..., Any]) -> None:
    assert cd.testing.check_routes(cd.program(f), **arrays(f)) < 1e-5
    program, given = cd.program(f), arrays(f)
    forward = cd.jacobian(program, "x", mode="forward")(**given)
    np.testing.assert_allclose(forward, cd.grad(program, "x")(**given), rtol=1e-10, atol=1e-12)
