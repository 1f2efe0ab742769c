"""What derivatives of iterations compute again of the states, as the steps have it, is read from the steps."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from backends import back, converted, double_precision

import combdiff as cd
from combdiff.ir import Lambda, Tuple, Var, add, let, mul, split
from combdiff.simplification.normal_form.given_by_steps import with_results_of_steps
from combdiff.testing import check_grad, check_routes

Vector, Matrix = cd.Space("n"), cd.Space("n", "n")
Rows = cd.Space("T", "n")
RNG = np.random.default_rng(5)


@cd.program
def gated(W: Matrix, U: Matrix, h0: Vector, x: Rows):
    """A gate that the step uses three times, and its pullback, too."""

    def step(h, x):
        z = 1 / (1 + np.exp(-(W @ h + x)))
        return (1 - z) * h + z * np.tanh(U @ (z * h) + x), None

    return (cd.scan(step, h0, x)[0] ** 2).sum()


@cd.program
def chained(W: Matrix, h0: Vector, x: Rows):
    """Two stages: the second is made of the first, and the state of both."""

    def step(h, x):
        one = W @ np.sin(h) + x
        two = W @ np.sin(one) * h
        return h + one + two * one, two.sum()

    last, each = cd.scan(step, h0, x)
    return last @ last + each.sum()


@cd.program
def weighted(W: Matrix, h0: Vector, x: Rows):
    """Exponentials that cancel in a step: none of them is given by itself, as it might be too large."""

    def step(h, x):
        weights = np.exp(W @ h + x)
        return weights / weights.sum(), np.log(weights.sum())

    last, each = cd.scan(step, h0, x)
    return last @ h0 + each.sum()


@cd.program
def turning(h0: cd.Space(dtype=complex), w: cd.Space("T", dtype=complex)):
    """Complex states."""

    def step(h, w):
        z = np.sin(w * h)
        return z * h + np.cos(z) * w, None

    last = cd.scan(step, h0, w)[0]
    return cd.real(last * np.conj(last))


def real(*shape: int) -> Any:
    return 0.5 * RNG.normal(size=shape)


def arrays(f: cd.Program) -> dict[str, Any]:
    sizes = {"n": 3, "T": 4}
    shapes = {p.name: [sizes[str(axis.size)] for axis in p.type.axes] for p in f.parameters}  # type: ignore[union-attr]
    return {name: real(*shape) + (0.5j * real(*shape) if f is turning else 0) for name, shape in shapes.items()}


PROGRAMS = [gated, chained, weighted, turning]
NAMES = [f.name for f in PROGRAMS]


@pytest.mark.thorough
@pytest.mark.parametrize("f", PROGRAMS, ids=NAMES)
def test_derivatives_are_the_same_by_every_route(f: cd.Program) -> None:
    check_grad(f, tuple(p.name for p in f.parameters), **arrays(f))
    check_routes(f, **arrays(f))


@pytest.mark.thorough
@pytest.mark.parametrize("library", ["jax", pytest.param("torch", marks=pytest.mark.needs("torch"))])
@pytest.mark.parametrize("f", PROGRAMS, ids=NAMES)
def test_they_are_the_same_on_every_library(f: cd.Program, library: str) -> None:
    slopes, given = cd.grad(f, tuple(p.name for p in f.parameters)), tuple(arrays(f).values())
    with double_precision():
        found = back(slopes.compile(library)(*converted(library, given)))
    for one, two in zip(found, slopes(*given), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-10, atol=1e-12)


@pytest.mark.thorough
@pytest.mark.parametrize("f", PROGRAMS, ids=NAMES)
def test_so_are_derivatives_of_gradients(f: cd.Program) -> None:
    given = arrays(f)
    direction = given["h0"] * (0.7 + 0.3j if f is turning else 0.7)
    simple, raw = (cd.hvp(f, "h0", simplify=simplified) for simplified in (True, False))
    np.testing.assert_allclose(simple(*given.values(), direction), raw(*given.values(), direction), rtol=1e-9)


@pytest.mark.thorough
@pytest.mark.parametrize(("f", "once"), [(gated, "1 / (1 + exp("), (chained, "sin(h[t,j])")], ids=["gated", "chained"])
def test_it_is_printed_once(f: cd.Program, once: str) -> None:
    gradient, given = cd.grad(f, "h0"), tuple(arrays(f).values())
    assert str(gradient).count(once) == 1
    np.testing.assert_allclose(cd.read(str(gradient))(*given), gradient(*given), rtol=1e-12)


def test_it_is_computed_once() -> None:
    """The gate has a product of a matrix and a vector in each step, which was made again for the pullback."""
    gradient = cd.grad(gated, "h0")
    n, steps = 50, 20
    products = [row for row in gradient.cost(n=n, T=steps).rows if row.flops >= 2 * n * n * steps]
    assert len(products) <= 3


@cd.program
def powers(x: cd.Space("n"), w: cd.Space("T")):
    """Products of factors that are there more than once: x[0]³ s² is x[0] (x[0] s)²."""
    s = cd.scan(lambda s, w: (s * x[0] + w, s), x[1], w)[1]
    return (x[0] * s).sum(), (x[0] * x[0] * s).sum(), (x[0] * x[0] * x[0] * s * s).sum(), (x[0] * s * s * s).sum()


def test_a_factor_goes_as_often_as_it_is_read() -> None:
    (state, scan), *bindings = split(powers.term.body)[0]
    (sum_,) = scan.outputs
    part = Var("p", cd.Space())
    product, rest = sum_.terms
    step = let([(part, product)], Tuple((add(part, part, mul(part, part), rest),)))
    steps = replace(scan, step=Lambda(scan.variables, step))
    before = let([(state, steps), *bindings], split(powers.term.body)[1])
    after = with_results_of_steps(before)
    one, other = (replace(powers, term=Lambda(powers.parameters, body), steps=None) for body in (before, after))
    at = np.array([0.7, -1.2]), np.array([0.3, 0.2, 0.5])
    np.testing.assert_allclose(one(*at), other(*at), rtol=1e-12)
    assert "x[0] p[i]²" in str(other)


@cd.program
def neighbours(x: cd.Space(4), w: cd.Space("T")):
    """Products of elements at numbers, and at two places of one array, times numbers that steps have."""

    def step(s, w):
        return s * x[0] * x[1] + w, s

    s = cd.scan(step, x[1], w)[1]
    return (x[0] * x[0] * x[1] * x[1] * s).sum(), (x[1] * x[1] * x[2] * s).sum(), (x[0] * x[0] * x[0] * s).sum()


def test_an_element_is_read_for_no_other_element_of_its_array() -> None:
    (state, scan), *bindings = split(neighbours.term.body)[0]
    (sum_,) = scan.outputs
    part = Var("p", cd.Space())
    product, rest = sum_.terms
    steps = replace(scan, step=Lambda(scan.variables, let([(part, product)], Tuple((add(part, part, rest),)))))
    before = let([(state, steps), *bindings], split(neighbours.term.body)[1])
    after = with_results_of_steps(before)
    one, other = (replace(neighbours, term=Lambda(neighbours.parameters, body), steps=None) for body in (before, after))
    at = np.array([0.7, -1.2, 0.4, 2.0]), np.array([0.3, 0.2, 0.5])
    np.testing.assert_allclose(one(*at), other(*at), rtol=1e-12)
    assert "p[i]" in str(other)


def test_large_exponents_stay_beside_what_cancels_them() -> None:
    slopes, (W, h0, x) = cd.grad(weighted, "h0"), arrays(weighted).values()
    np.testing.assert_allclose(slopes(W, h0, x + 2000), slopes(W, h0, x), rtol=1e-9)


@cd.program
def falling(w: cd.Space()):
    """Until it is down; the drag stands in both next states, and in the derivative."""

    def step(state):
        x, v = state
        drag = np.sin(w * v) / (2 + np.cos(w * x))
        return x + 0.1 * v * drag, v - 0.1 - drag * x

    return cd.while_loop(lambda state: state[0] > 0, step, (3.0 * w, 1.0), limit=200)[0]


@pytest.mark.thorough
def test_loops_with_a_condition_end_where_it_fails() -> None:
    """What a step gives beside its states would be asked for in all steps."""
    slope = cd.jacobian(falling, "w", "forward")
    assert "break" in slope.source()
    np.testing.assert_allclose(slope(1.2), (falling(1.2 + 1e-6) - falling(1.2 - 1e-6)) / 2e-6, rtol=1e-6)
