"""Several axes read at indices that integer arrays hold: one scatter at places counted in a row, no array of hits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from backends import BACKENDS, convert, on

import combdiff as cd

Index = cd.Space("B", dtype=int)
A, B = np.array([0, 2, 2, 4]), np.array([1, 0, 0, 2])


@cd.program
def pairs(x: cd.Space("V", "D"), a: Index, b: Index, w: cd.Space("B")):
    return cd.sum(lambda i: x[a[i], b[i]] ** 3 * w[i])


@cd.program
def blocks(x: cd.Space("V", "D", "E"), a: Index, b: cd.Space("C", dtype=int), w: cd.Space("B", "C", "E")):
    return cd.sum(lambda i, j, e: cd.sin(x[a[i], b[j], e]) * w[i, j, e])


@cd.program
def mixed(x: cd.Space("V", cd.Symmetric(2), cd.Cyclic(3)), a: Index, b: Index):
    return cd.sum(lambda i: x[a[i], b[i], a[i]] ** 2)


@cd.program
def thrice(x: cd.Space("V", "V", "V"), a: Index, b: Index):
    return cd.sum(lambda i: x[a[i], b[i], a[i]] ** 2)


RNG = np.random.default_rng(0)
CASES: list[tuple[Any, dict[str, Any]]] = [
    (pairs, {"x": RNG.standard_normal((5, 3)), "a": A, "b": B, "w": RNG.standard_normal(4)}),
    (pairs, {"x": RNG.standard_normal((5, 3)), "a": A[:0], "b": B[:0], "w": np.zeros(0)}),
    (blocks, {"x": RNG.standard_normal((5, 3, 2)), "a": A, "b": B[:2], "w": RNG.standard_normal((4, 2, 2))}),
    (mixed, {"x": RNG.standard_normal((5, 5, 3)), "a": A, "b": B - 1}),
    (thrice, {"x": RNG.standard_normal((5, 5, 5)), "a": A, "b": B}),
]


@pytest.mark.sample(3)
@pytest.mark.parametrize(("f", "given"), CASES)
def test_gradients_on_every_route(f: Any, given: dict[str, Any]) -> None:
    cd.testing.check_grad(f, "x", **given)
    gradient = cd.grad(f)
    expected = gradient(**given)
    np.testing.assert_allclose(cd.grad(f, simplify=False)(**given), expected, atol=1e-12)
    direction, step = RNG.standard_normal(given["x"].shape), 1e-6
    ends = [gradient(**{**given, "x": given["x"] + sign * step * direction}) for sign in (1, -1)]
    curved = cd.hvp(f)(*given.values(), direction)
    np.testing.assert_allclose(curved, (ends[0] - ends[1]) / (2 * step), atol=1e-6)


@pytest.mark.sample(3)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("f", "given"), CASES)
def test_gradients_on_other_backends(f: Any, given: dict[str, Any], backend: str) -> None:
    gradient = cd.grad(f)
    found = on(backend, gradient)(**{name: convert(backend, array) for name, array in given.items()})
    tolerance = 1e-4 if backend == "jax" else 1e-12
    np.testing.assert_allclose(np.asarray(found), gradient(**given), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("f", [pairs, blocks, thrice])
def test_no_array_of_hits_is_made(f: Any) -> None:
    body = cd.grad(f).source().split("def grad_")[1].split("\n\n\n")[0]
    assert body.count("_scatter(") == 1
    assert "==" not in body
