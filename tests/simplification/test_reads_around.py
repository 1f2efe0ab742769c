"""Programs that read around an axis beside slices and joined arrays: their δ's are solved, and squares stay squares."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import combdiff as cd
from combdiff.ir import ZERO, Delta, Range, Var, affine, delta, size_form
from combdiff.testing import check_grad, check_routes, random_arrays

V, Q = cd.Space(3), cd.Space(4)
RNG = np.random.default_rng(0)


def turning(q: Q, w: V):
    """The rate of a quaternion, of which the vector part is a slice, cubed."""
    rate = np.concatenate([np.array([-(q[1:] @ w)]), q[0] * w + np.cross(q[1:], w)]) / 2
    return (rate**3).sum()


def turned(q: Q, v: V):
    t = 2 * np.cross(q[1:], v)
    return ((v + q[0] * t + np.cross(q[1:], t)) ** 3).sum()


def compactness(x: cd.Space("n"), y: cd.Space("n")):
    """Area² / perimeter of a polygon."""
    ahead, above = np.roll(x, -1), np.roll(y, -1)
    area = (x * above - ahead * y).sum() / 2
    return area**2 / np.sqrt((ahead - x) ** 2 + (above - y) ** 2).sum()


def decay(u: cd.Space("n", "m"), nu: cd.Space()):
    """The residual of Burgers' equation."""
    laplacian = np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1) - 4 * u
    return ((nu * laplacian - u * (np.roll(u, -1, 0) - np.roll(u, 1, 0)) / 2) ** 2).sum()


def wave(E: cd.Space("n", 3), B: cd.Space("n", 3)):
    """A step of a wave along z, whose direction is an array of ones and zeros."""
    along = np.array([0.0, 0.0, 1.0])
    E = E + 0.1 * np.cross(along, np.roll(B, -1, 0) - B)
    return ((B - 0.1 * np.cross(along, E - np.roll(E, 1, 0))) ** 3).sum()


def details(x: cd.Space(8)):
    """Haar's wavelets of three levels."""
    total = 0.0
    for _ in range(3):
        even, odd = x[::2], x[1::2]
        total, x = total + ((even - odd) ** 3).sum(), (even + odd) / 2
    return total


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("definition", "lines", "unseen"),
    [
        (turning, 8, "Σ_{k=1}"),  # Σ_{k=1}^{3} [(k - d) mod 3 = 0] … is read at one place
        (turned, 14, "δ((j"),
        (compactness, 8, "/ t[(d - 1) mod n] -"),
        (decay, 14, "(d - 1) mod n,e] ("),
        (wave, 8, "mod 3"),
        (details, 20, "δ(0, "),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_gradients_read_as_by_hand(definition: Any, lines: int, unseen: str) -> None:
    f = cd.program(definition)
    name = f.parameters[0].name
    gradient = cd.grad(f, wrt=name)
    assert len(str(gradient).splitlines()) <= lines
    assert unseen not in str(gradient)
    for sizes in ({"n": 4, "m": 3}, {"n": 1, "m": 1}, {"n": 2, "m": 5}):
        arrays = random_arrays(f.parameters, RNG, sizes)
        if sizes["n"] > 1 or definition is not compactness:  # a polygon of one corner has no perimeter
            check_routes(gradient, **arrays)
            assert check_grad(f, name, **arrays) < 1e-6


@pytest.mark.parametrize(("size", "first", "last"), [(4, 1, 3), (4, 0, 2), (2, -1, 1), (2, 0, 2), (5, 1, 3), (3, 0, 2)])
def test_bounds_that_lie_outside_of_an_axis_add_no_places_to_it(size: int, first: int, last: int) -> None:
    @cd.program
    def f(x: cd.Space(size), y: cd.Space(3)):
        def element(d: Any, k: Any) -> Any:
            inside = (k >= first) & (k <= last) & ((d - k) % 3 == 0)
            return cd.where(inside, x[k] ** 2 * y[d], 0)

        return cd.sum(lambda d, k: element(d, k))

    x, y = RNG.normal(size=size), RNG.normal(size=3)
    expected = sum(x[k] ** 2 * y[k % 3] for k in range(size) if first <= k <= last)
    assert f(x, y) == pytest.approx(expected)
    for each in (cd.simplify(f), cd.grad(f, wrt="y"), cd.grad(f, wrt="x")):
        check_routes(each, x=x, y=y)
    assert cd.simplify(f)(x, y) == pytest.approx(expected)
    assert check_grad(f, "y", x=x, y=y) < 1e-6


@pytest.mark.parametrize("size", [3, "n"])
def test_a_delta_that_holds_nowhere_is_dropped(size: Any) -> None:
    @cd.program
    def f(x: cd.Space(size), t: cd.Space()):
        return cd.tensor(lambda d: (cd.delta(0, d + 1) * t + x[d]) ** 2)

    assert str(cd.simplify(f)) == "(x, t) ↦ d ↦ x[d]²"


def test_a_delta_of_one_index_says_what_it_is() -> None:
    d, n = Var("d", Range("n")), size_form("n")
    last = delta(n, affine([(d, 1)], 1), Range("n"))
    assert last is delta(d, affine([(n, 1)], -1), Range("n"))
    assert delta(affine([(d, Fraction(1, 4))], Fraction(-1, 2)), affine([], 1), Range("n")) is delta(d, affine([], 6))
    assert delta(affine([(d, 2)]), affine([], 1), Range("n")) is ZERO
    assert isinstance(delta(affine([(d, 2)]), n, Range("n")), Delta)  # n may be even
