"""An index reduced modulo the size of its axis: x[(i − 1) mod n] of np.roll, and what a δ on a cycle says of it.

It is the number that a summed index equals, a δ turns it around, and a plan reads the array rolled, whatever n is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from backends import BACKENDS, back, converted, on, quiet

import combdiff as cd

V = cd.Space("n")
W = cd.Space(cd.Cyclic("n"))
R = np.random.default_rng(0)
X, Y = R.normal(size=7), R.normal(size=7)


def rolled(x: V, y: V):
    return (np.roll(x, 1) * y).sum()


def differences(x: V, y: V):
    return (np.sin(np.roll(x, -2) - x) * y).sum()


def rolled_twice(x: V, y: V):
    return (np.roll(np.roll(x, 1), 2) * y * np.roll(x, -3) ** 2).sum()


def running(x: V, y: V):
    return (np.cumsum(np.roll(x, 1)) ** 2 * y).sum()


def backwards(x: V, y: V):
    return (np.roll(x[::-1], 1) * y * x).sum() + np.prod(np.roll(x, 2) + x)


def products(x: V, y: V):
    return (np.roll(x, 2) * np.roll(x, -2) * y * x).sum()


PROGRAMS: list[Callable[..., Any]] = [rolled, differences, rolled_twice, running, backwards, products]


@pytest.mark.sample(1)
@pytest.mark.parametrize("function", PROGRAMS)
def test_rolls_of_named_axes_are_numpy_s(function: Callable[..., Any]) -> None:
    """Also where the axis is shorter than the shift; derivatives are those of differences, and read back as printed."""
    f = cd.program(function)
    g, h = cd.grad(f, ("x", "y")), cd.hvp(f)
    for n in (1, 2, 7):
        x, y = X[:n], Y[:n]
        assert f(x, y) == pytest.approx(function(x, y), rel=1e-12)
        assert cd.testing.check_grad(f, "x", x=x, y=y) < 1e-7
        ahead, behind = (g(x + step * y, y)[0] for step in (1e-6, -1e-6))
        np.testing.assert_allclose(h(x, y, y), (ahead - behind) / 2e-6, rtol=1e-5, atol=1e-7)
    for each in (f, g, h):
        spaces = {parameter.name: V for parameter in each.parameters}
        assert cd.read(str(each), spaces=spaces) == each


def test_a_roll_prints_as_an_index_reduced_and_its_gradient_as_one_turned_back() -> None:
    f = cd.program(rolled)
    assert str(f) == "(x, y) ↦ Σ_i x[(i - 1) mod n] y[i]"
    assert str(cd.grad(f)) == "(x, y) ↦ d<n ↦ y[(d + 1) mod n]"
    assert str(cd.grad(cd.program(differences))) == (
        "(x, y) ↦\n  t[i] = cos(x[(i + 2) mod n] - x[i])\n  d ↦ t[(d - 2) mod n] y[(d - 2) mod n] - t[d] y[d]"
    )
    assert "(i - 3) mod n" in str(cd.simplify(cd.program(rolled_twice)))


@pytest.mark.parametrize("function", [rolled, differences, rolled_twice, products])
def test_a_roll_is_planned_as_a_view(function: Callable[..., Any]) -> None:
    f = cd.program(function)
    for each in (f, cd.grad(f)):
        assert "np.roll(" in each.source()
        assert "arange" not in each.source()


def test_a_roll_is_never_refused_and_its_hessian_has_a_known_pattern() -> None:
    @cd.program
    def chain(u: V):
        return np.sum((np.roll(u, 1) - u) ** 2)

    assert str(cd.grad(chain)) == "u ↦ d ↦ 4 u[d] - 2 u[(d - 1) mod n] - 2 u[(d + 1) mod n]"
    assert str(cd.hessian(chain).sparsity()) == "H[i,j] = 0 unless i = j or i ≡ j + 1 (mod n) or i ≡ j - 1 (mod n)"
    pattern = cd.hessian(chain).sparsity().pattern(n=7)
    np.testing.assert_array_equal(pattern, np.asarray(cd.hessian(chain)(X)) != 0)
    assert not chain.accesses


@pytest.mark.thorough
@pytest.mark.parametrize("backend", BACKENDS)
def test_rolls_on_all_libraries(backend: str) -> None:
    g = cd.grad(cd.program(differences))
    with quiet(backend):
        found = back(on(backend, g)(*converted(backend, [X, Y])))
    np.testing.assert_allclose(found, g(X, Y), rtol=1e-5, atol=1e-6)


def test_a_bound_on_a_cycle_beside_a_shifted_index_is_one_of_the_number() -> None:
    """The δ is taken by the Σ, so that nothing of the size n² is left, and the Hessian is known to be diagonal."""

    @cd.program
    def f(x: W, y: W):
        return cd.sum(lambda i: cd.where(i <= 2, x[i - 1] ** 2, 0) * y[i])

    g = cd.grad(f)
    assert str(g) == "(x, y) ↦ d ↦ 2 [(d + 1) mod n ≤ 2] x[d] y[d + 1]"
    assert cd.read(str(g), spaces={"x": W, "y": W}) == g
    assert str(cd.hessian(f).sparsity()) == "H[i,j] = 0 unless i = j"
    for n in (1, 2, 3, 7):
        assert cd.testing.check_grad(f, "x", x=X[:n], y=Y[:n]) < 1e-7


@pytest.mark.thorough
def test_elements_of_a_roll_at_its_ends() -> None:
    @cd.program
    def f(x: V):
        there, back = np.roll(x, 1), np.roll(x, -2)
        return there[0] ** 2 * there[-1] + back[-1] ** 3 * back[0] + (there[:1] * back[-2:]).sum()

    for each in (f, cd.simplify(f)):
        for x in (X, X[:3]):
            assert each(x) == pytest.approx(x[-1] ** 2 * x[-2] + x[1] ** 3 * x[2] + x[-1] * (x[0] + x[1]), rel=1e-12)
            assert cd.testing.check_grad(each, "x", x=x) < 1e-7


TURNED = {
    "reversed, then rolled": (lambda x: np.roll(x[::-1], 1) * x**2, "x ↦ d ↦ x[(-d) mod n] (2 x[d] + x[(-d) mod n])"),
    "rolled between two reversals": (
        lambda x: np.roll(x[::-1], 1)[::-1] * x**2,
        "x ↦ d ↦ 2 x[d] x[(d + 1) mod n] + x[(d - 1) mod n]²",
    ),
    "a part that is rolled": (lambda x: np.roll(x[1:], 2) * x[:-1] ** 2, ""),
}


@pytest.mark.parametrize("name", TURNED)
def test_what_is_read_backwards_is_read_around_its_end(name: str) -> None:
    body, gradient = TURNED[name]

    @cd.program
    def f(x: V):
        return body(x).sum()

    assert gradient in ("", str(cd.grad(f)))
    assert f(X) == pytest.approx(body(X).sum())
    assert cd.testing.check_grad(f, "x", x=X) < 1e-7


def test_digits_are_those_of_indices_that_count() -> None:
    """Of sizes alone, and on a cycle, [i ≥ d] [i ≤ d] is no δ."""

    @cd.program
    def f(x: V, y: cd.Space(3), z: W):
        n = x.shape[0]
        of_sizes = cd.sum(lambda i: cd.where(i == 3 * n - 6, y[i] ** 2, 0))
        return of_sizes + cd.sum(lambda i, j: cd.where((i >= j + 1) & (i <= j + 1), z[i] ** 2 * z[j], 0))

    for n in (1, 2, 3):
        x, y, z = X[:n], X[:3], Y[:n]
        expected = (y[0] ** 2 if n == 2 else 0) + (z[1:] ** 2 * z[:-1]).sum()
        assert f(x, y, z) == pytest.approx(expected)
        assert cd.simplify(f)(x, y, z) == pytest.approx(expected)
        for wrt in ("y", "z"):
            assert cd.testing.check_grad(f, wrt, x=x, y=y, z=z) < 1e-7


@cd.program
def residual(w: cd.Space("n", "m"), psi: cd.Space("n", "m")):
    slope = np.roll(psi, -1, 1) - np.roll(psi, 1, 1)
    new = w + 0.1 * slope * (np.roll(w, -1, 0) - np.roll(w, 1, 0)) + np.roll(w, 1, 1)
    return np.sum(new**2)


FIELDS = dict(zip(("w", "psi"), np.random.default_rng(0).normal(size=(2, 4, 5)), strict=True))


def test_what_is_read_around_several_ends_is_computed_once() -> None:
    """A residual of a finite-difference scheme, and not the whole of it at each of its neighbours."""
    assert str(cd.grad(residual, "w")).endswith("+ 2 new[d,e] + 2 new[d,(e + 1) mod m]")
    for wrt in FIELDS:
        assert cd.testing.check_grad(residual, wrt, **FIELDS) < 1e-6


@pytest.mark.thorough
@pytest.mark.parametrize("wrt", FIELDS)
def test_so_are_its_second_derivatives(wrt: str) -> None:
    cd.testing.check_routes(cd.grad(residual, wrt), **FIELDS)
