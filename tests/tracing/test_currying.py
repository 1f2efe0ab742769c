"""Programs that return functions: calls in two steps, the same inside programs, and their derivatives."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import combdiff as cd
from combdiff.ir.domains import Range, Real
from combdiff.ir.indices import Coordinate
from combdiff.ir.interpreter import evaluate
from combdiff.ir.let_form import inline_all
from combdiff.ir.terms import Apply, Lambda, Sum, Term, Tuple, Var

Vector, Matrix, Number = cd.Space("n"), cd.Space("n", "n"), cd.Space()
RNG = np.random.default_rng(4)
A, x, c, w = RNG.normal(size=(3, 3)), RNG.normal(size=3), RNG.normal(size=3), RNG.uniform(0.2, 1.0, size=3)


@cd.program
def form(A: Matrix):  # type: ignore[valid-type, no-untyped-def]
    def value(x: Vector):  # type: ignore[valid-type, no-untyped-def]
        return x @ (A @ x)

    return value


@cd.program
def decay(c: Vector, w: Vector):  # type: ignore[valid-type, no-untyped-def]
    def at(t: Number):  # type: ignore[valid-type, no-untyped-def]
        return cd.sum(lambda i: c[i] * cd.exp(-w[i] * t))

    return at


@cd.program
def curve(c: Vector, w: Vector):  # type: ignore[valid-type, no-untyped-def]
    """Functions of two numbers, with a tensor as their value."""

    def at(t: Number, s: Number):  # type: ignore[valid-type, no-untyped-def]
        return cd.tensor(lambda i: c[i] * cd.sin(w[i] * t) + s * w[i] ** 2)

    return at


# --- values --------------------------------------------------------------------------------------------------------


def test_a_call_gives_a_program() -> None:
    assert str(form) == "A ↦ x ↦ Σ_i x[i] Σ_j A[i,j] x[j]"
    assert form.latex().startswith(r"A \mapsto x \mapsto ")
    assert [p.name for p in form.parameters] == ["A"]
    quadratic = form(A)
    assert isinstance(quadratic, cd.Program)
    assert [p.name for p in quadratic.parameters] == ["x"]
    np.testing.assert_allclose(quadratic(x), x @ A @ x)
    np.testing.assert_allclose(form(A=A)(x=x), x @ A @ x)
    np.testing.assert_allclose(cd.grad(quadratic)(x), (A + A.T) @ x)
    cd.testing.check_grad(quadratic, "x", x=x)
    np.testing.assert_allclose(curve(c, w)(0.3, 2.0), c * np.sin(w * 0.3) + 2 * w**2)


def test_inside_a_program_it_is_called_the_same() -> None:
    @cd.program
    def twice(A: Matrix, b: Vector):  # type: ignore[valid-type, no-untyped-def]
        g = form(A)
        return g(b) + g(2 * b)

    np.testing.assert_allclose(twice(A, x), 5 * x @ A @ x)
    cd.testing.check_grad(twice, ("A", "b"), A=A, b=x)
    assert str(cd.grad(twice, "A")) == "(A, b) ↦ (d, e) ↦ 5 b[d] b[e]"


def test_it_is_given_for_a_named_map() -> None:
    @cd.program
    def iterated(R: cd.Function(Number), a: Number):  # type: ignore[valid-type, no-untyped-def]
        return R(R(a))

    @cd.program
    def inside(c: Vector, w: Vector, a: Number):  # type: ignore[valid-type, no-untyped-def]
        return iterated(decay(c, w), a)

    at = decay(c, w)
    np.testing.assert_allclose(iterated(at, 0.1), at(at(0.1)))
    np.testing.assert_allclose(inside(c, w, 0.1), at(at(0.1)))
    slope = (at(at(0.1 + 1e-6)) - at(at(0.1 - 1e-6))) / 2e-6
    np.testing.assert_allclose(cd.grad(iterated, "a")(at, 0.1), slope, rtol=1e-8)
    cd.testing.check_grad(inside, ("c", "w", "a"), c=c, w=w, a=0.1)


def test_what_else_is_a_function() -> None:
    @cd.program
    def squares(x: Vector):  # type: ignore[valid-type, no-untyped-def]
        return lambda i: x[i] ** 2

    @cd.program
    def passed_on(B: Matrix):  # type: ignore[valid-type, no-untyped-def]
        return form(B @ B)

    assert str(squares) == "x ↦ i ↦ x[i]²"
    assert str(cd.pullback(squares)) == "(x, k) ↦ d ↦ 2 k[d] x[d]"
    np.testing.assert_allclose(passed_on(A)(x), x @ A @ A @ x)


def test_it_is_compared_and_pickled_as_what_it_is() -> None:
    @cd.program
    def both(A: Matrix, x: Vector):  # type: ignore[valid-type, no-untyped-def]
        return x @ (A @ x)

    assert form != both
    again = pickle.loads(pickle.dumps(form))
    assert again == form
    np.testing.assert_allclose(again(A)(x), x @ A @ x)
    np.testing.assert_allclose(cd.simplify(form)(A)(x), x @ A @ x)


# --- derivatives ---------------------------------------------------------------------------------------------------


def test_pushforward_and_jacobian_are_functions_again() -> None:
    moved = RNG.normal(size=(3, 3))
    assert str(cd.jacobian(form)) == "A ↦ x ↦ (d, e) ↦ x[d] x[e]"
    for simplify in (True, False):
        np.testing.assert_allclose(cd.pushforward(form, simplify=simplify)(A, moved)(x), x @ moved @ x)
        np.testing.assert_allclose(cd.jacobian(form, simplify=simplify)(A)(x), np.outer(x, x))
        step = 1e-6 * moved[0]
        slope = (curve(c, w + step)(0.3, 2.0) - curve(c, w - step)(0.3, 2.0)) / 2e-6
        found = cd.pushforward(curve, "w", simplify=simplify)(c, w, moved[0])(0.3, 2.0)
        np.testing.assert_allclose(found, slope, rtol=1e-7)


def discretised(term: Term, points: Var, weighed: Var) -> Term:
    """A formula with integrals as sums over points, the cotangent given at pairs of them."""

    def index(var: Var) -> Var:
        return Var(var.name, Range("m")) if isinstance(var.type, Real) else var

    def run(node: Term) -> Term:
        if isinstance(node, Var):
            return index(node)
        children = tuple(run(child) for child in node.children)
        if isinstance(node, Coordinate):
            return Apply(points, children)
        if isinstance(node, Apply) and isinstance(node.function, Var) and node.function.name == "k":
            return Apply(weighed, children[1:])
        if isinstance(node, Sum | Lambda):
            return type(node)(tuple(map(index, node.bound)), children[0])
        return node.with_children(children)

    return run(term)


@pytest.mark.parametrize("simplify", [True, False])
@pytest.mark.parametrize("program", [decay, curve])
def test_the_pullback_is_the_integral_of_the_pullbacks(program: cd.Program, simplify: bool) -> None:
    """At a grid it is the sum of the pullbacks of the values there."""
    found = cd.pullback(program, ("c", "w"), simplify=simplify)
    k = found.parameters[-1]
    count = sum(isinstance(axis, Real) for axis in k.type.axes)
    assert count == len(program.inner)
    weights = RNG.normal(size=(*[4] * count, *[3] * (len(k.type.axes) - count)))
    points = np.linspace(0.1, 0.9, 4)
    grid = Var("points", cd.Space("m"))
    weighed = Var("weights", cd.Space(*["m"] * count, *k.type.axes[count:]))
    body = inline_all(found.term.body)
    assert isinstance(body, Tuple)
    given = {**dict(zip(found.term.parameters, (c, w), strict=False)), grid: points, weighed: weights}
    for item, wrt in zip(body.items, ("c", "w"), strict=True):
        total: Any = 0.0
        jacobian = cd.jacobian(program, wrt)(c, w)
        for at in np.ndindex(*[4] * count):
            values = [points[n] for n in at]
            total = total + np.dot(jacobian(*values).T, weights[at])
        value = evaluate(discretised(item, grid, weighed), given, {"n": 3, "m": 4})
        np.testing.assert_allclose(value, total, rtol=1e-10)


def test_the_pullback_prints_as_an_integral() -> None:
    assert str(cd.pullback(decay, "c")) == "(c, w, k) ↦ d ↦ ∫ k(t) exp(-w[d] t) dt"
    with pytest.raises(cd.UnsupportedError, match="is the real line: nothing over it can be evaluated"):
        cd.pullback(decay, "c")(c, w, np.ones(3))


# --- what is refused -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("transform", [cd.grad, cd.value_and_grad, cd.hvp, cd.hessian])
def test_a_function_has_no_gradient(transform: Callable[..., object]) -> None:
    with pytest.raises(cd.DifferentiationError, match=r"form gives a function of x\n  hint: call the function"):
        transform(form)


def test_what_has_no_meaning_is_refused() -> None:
    with pytest.raises(cd.UnsupportedError, match=r"cotangent of a function of x, Space\('n'\), is weighed by an int"):
        cd.pullback(form)
    with pytest.raises(cd.UnsupportedError, match=r"form gives a function of x, which is not compiled by itself"):
        form.compile()
    with pytest.raises(cd.ArgumentError, match="form takes 1 argument"):
        form(A, x)
    with pytest.raises(cd.DifferentiationError, match="form has no parameter 'x'"):
        cd.jacobian(form, "x")


def returns_itself(B: Matrix):  # type: ignore[valid-type, no-untyped-def]
    return form


def returns_its_name(B: Matrix):  # type: ignore[valid-type, no-untyped-def]
    def of(B: Vector):  # type: ignore[valid-type, no-untyped-def]
        return B

    return of


def returns_a_function_of_maps(B: Matrix):  # type: ignore[valid-type, no-untyped-def]
    def of(R: cd.Function(Vector)):  # type: ignore[valid-type, no-untyped-def]
        return R(B[0])

    return of


def returns_a_pair(B: Matrix):  # type: ignore[valid-type, no-untyped-def]
    return form(B), B


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (returns_itself, "the function that returns_itself returns gives a function again"),
        (returns_its_name, "B is a parameter of returns_its_name and of the function that it returns"),
        (returns_a_function_of_maps, "takes the map R; it may take tensors"),
        (returns_a_pair, "returns_a_pair returns a Closure"),
    ],
)
def test_functions_that_cannot_be_returned(function: Callable[..., object], message: str) -> None:
    with pytest.raises(cd.TraceError, match=message):
        cd.program(function)
