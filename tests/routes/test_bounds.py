"""Sums up to a bound that is another index, and conditions on one index: no mask is made, on any backend."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import combdiff as cd
from combdiff.ir.indices import Delta
from combdiff.ir.substitution import subterms
from combdiff.ir.terms import Sum

Vector = cd.Space("n")
grad, hvp = cache(cd.grad), cache(cd.hvp)


@cd.program
def before(x: Vector, v: Vector):
    return cd.sum(lambda i: v[i] * cd.sum(lambda j: cd.where(j <= i, x[j], 0)) ** 2)


@cd.program
def after(x: Vector, v: cd.Space("n", "c")):
    return cd.sum(lambda i, j, c: cd.where(j > i + 1, cd.sin(x[j]) * v[j, c] * v[i, c], 0))


@cd.program
def slanted(x: Vector, v: cd.Space("m", "c"), w: cd.Space("c")):
    return cd.sum(lambda i, j, k: cd.where(2 * i + k - 3 >= j, x[j] ** 2 * v[i, k] * w[k], 0))


@cd.program
def band(x: Vector, v: Vector):
    return cd.sum(lambda i, j: cd.where((j <= i + 2) & (i <= j + 1), x[j] ** 3 * v[i], 0))


@cd.program
def guarded(x: Vector, v: Vector):
    return cd.sum(lambda i, j: cd.where(j < i, cd.log(x[j] - 1) * v[i], 0))


@cd.program
def ends(x: Vector, v: Vector):
    return cd.sum(lambda i: cd.where(i >= 2, (x[i - 2] - x[i]) ** 2 + v[i] * x[i - 1], 0))


@cd.program
def corner(x: Vector, v: Vector):
    return cd.sum(lambda i, j, k: cd.where(i + j + k <= 4, cd.exp(x[i] * v[j]), 0), k=4)


CASES = [before, after, slanted, band, guarded, ends, corner]


def arrays_of(f: Any, n: int) -> tuple[list[Any], dict[str, int]]:
    rng = np.random.default_rng(n)
    sizes = {"n": n, "m": 4, "c": 3}
    return [2 + rng.random([sizes[axis.size] for axis in p.type.axes]) for p in f.parameters], sizes


@pytest.mark.parametrize("f", CASES, ids=lambda f: f.name)
def test_no_mask_is_made(f: Any) -> None:
    programs = [f, grad(f, wrt="v"), *([] if f is slanted else [grad(f)])]
    for program in programs:  # by x, slanted has v[i, k] beside a bound of i and k: there a mask selects
        source = program.source()
        assert " index condition\n" not in source, source
        assert "np.where" not in source, source


def test_what_stands_behind_a_bound_does_not_spread() -> None:
    x, v = np.arange(6.0) + 2, np.ones(6)
    x[3] = np.nan
    found = grad(guarded, wrt="v")(x, v)
    assert np.isnan(found).tolist() == [False] * 4 + [True] * 2


def test_shifts_along_two_axes_leave_no_delta() -> None:
    """Sizes in conditions are no indices: a closed form with conditions costs no more for them."""

    @cd.program
    def f(u: cd.Space("n", "m"), k: cd.Space("n", "m")):
        return cd.sum(lambda i, j: cd.where((i >= 1) & (j >= 1), k[i, j] * u[i - 1, j] * u[i, j - 1], 0))

    shown = str(grad(f, "u"))
    assert "δ" not in shown
    assert "Σ" not in shown
    assert shown.count("k[") == shown.count("u[") == 2
    rng = np.random.default_rng(0)
    cd.testing.check_grad(f, "u", u=rng.normal(size=(3, 4)), k=rng.normal(size=(3, 4)))


Sizes = cd.Space("a", "b")


@cd.program
def small_kernel(x: Sizes, w: cd.Space("c"), v: cd.Space("d", "e")):
    return cd.sum(
        lambda i, j: cd.where((j - i <= 0) & (i + j <= 2), cd.sin(x[2 - i - j, 0]) * w[j - i + 1] * v[2 * i, i + j], 0),
        i=2,
        j=2,
    )


@cd.program
def three_indices(x: Sizes, w: cd.Space("c"), v: cd.Space("d", "e")):
    def product(i: Any, j: Any, k: Any) -> Any:
        return cd.sin(x[k - i + 1, j + k - i + 1]) * w[2 * i + 2 * k] * v[i + 2 * j + k, i - j + k + 3]

    return cd.sum(lambda i, j, k: cd.where(i + 2 * j + k <= 8, product(i, j, k), 0), i=2, j=4, k=3)


@pytest.mark.parametrize(
    ("f", "shapes"),
    [(small_kernel, [(3, 1), 3, (3, 3)]), (three_indices, [(4, 7), 7, (9, 7)])],
    ids=lambda one: getattr(one, "name", ""),
)
def test_no_delta_stays_inside_a_sum(f: Any, shapes: list[Any]) -> None:
    """Not even where sums are so short that reading at a δ would take fewer operations."""
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=shape) for shape in shapes]
    for wrt in ("x", "w", "v"):
        gradient = grad(f, wrt)
        sums = [node for node in subterms(gradient.term) if isinstance(node, Sum)]
        deltas = [(node, part) for node in sums for part in subterms(node.body) if isinstance(part, Delta)]
        assert all(part.free.isdisjoint(node.bound) for node, part in deltas), gradient
        cd.testing.check_grad(f, wrt, **dict(zip("xwv", arrays, strict=True)))
