"""Abstraction elimination and back, and how the combinator forms read."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from elements import at
from hypothesis import HealthCheck, given, settings
from strategies import Case, programs

import combdiff as cd
from combdiff.differentiation.combinators import (
    Compose,
    ConstantMap,
    Evaluate,
    Exchange,
    Fork,
    Identity,
    decompose,
    eliminate,
    reduce,
)
from combdiff.differentiation.univariate import Elementwise, Multiply, SumOver, Translate
from combdiff.errors import UnsupportedError
from combdiff.ir.domains import Function, Range, Space
from combdiff.ir.indices import Delta, delta
from combdiff.ir.interpreter import evaluate
from combdiff.ir.let_form import share, split
from combdiff.ir.primitives import function
from combdiff.ir.terms import (
    ONE,
    Add,
    Apply,
    Lambda,
    Mul,
    Number,
    Pullback,
    Term,
    Tuple,
    Var,
    add,
    conj,
    let,
    mul,
    total,
)
from combdiff.printing.combinators import combinator_text

i, j = Var("i", Range("n")), Var("j", Range("n"))
x, v, z = Var("x", Space("n")), Var("v", Space("n")), Var("z", Space("n", dtype=complex))
A = Var("A", Space("n", "n"))
s = Var("s", Space())
X = frozenset({x})


def unordered(term: Term) -> Any:
    """A key that is equal for terms equal up to the order of factors and terms."""
    children = [unordered(child) for child in term.children]
    if isinstance(term, Add | Mul):
        return type(term).__name__, frozenset(Counter(children).items())
    own = repr(term) if not children else (type(term).__name__, getattr(term, "name", ""), term.bound)
    return own, tuple(children)


# --- there and back ------------------------------------------------------------------------------------------------

EXAMPLES: dict[str, Term] = {
    "variable": x,
    "constant": at(v, i),
    "evaluation": at(x, i),
    "dot product": total((i,), mul(at(v, i), at(x, i))),
    "square norm": total((i,), mul(at(x, i), at(x, i))),
    "quadratic form": total((i, j), mul(at(x, i), at(A, i, j), at(x, j))),
    "product of functions": total((i,), mul(function("sin", at(x, i)), function("exp", at(x, i)), at(x, i))),
    "sum of terms": add(total((i,), at(x, i)), function("exp", at(x, Number(0))), Number(3)),
    "tensor": Lambda((i, j), mul(at(x, i), at(x, j))),
    "power": function("power", at(x, i), at(x, j)),
    "delta": Lambda((i,), mul(delta(i, j), at(x, i))),
    "tuple": Tuple((total((i,), at(x, i)), Lambda((i,), function("sin", at(x, i))))),
    "applied abstraction": at(Lambda((i,), mul(at(x, i), at(x, i))), j),
    "named map": Apply(Var("R", Function(Space("n"))), (x,)),
    "map of two": Apply(Var("L", Function(Space("n"), Space("n"))), (x, Lambda((i,), mul(at(x, i), at(v, i))))),
    "adjoint": Pullback(Var("D", Function(Space("n"), result=Space("n"), linear=True)), 0, (), x),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_reduction_undoes_elimination(name: str) -> None:
    """The result is the same term, up to the order of factors and terms."""
    term = EXAMPLES[name]
    assert unordered(reduce(eliminate(term, X))) == unordered(term)


def test_conjugates_come_back() -> None:
    term = total((i,), mul(conj(at(z, i)), at(z, i), Number(0, 2)))
    assert unordered(reduce(eliminate(term, frozenset({z})))) == unordered(term)


def test_a_captured_factor_that_binds_the_same_name_comes_back() -> None:
    """Σ_i x[i] twice in a product: the inner map's index must not be caught by the capture's."""
    norm = total((i,), mul(at(x, i), at(x, i)))
    term = Lambda((i,), mul(at(x, i), norm, total((j,), mul(at(x, j), at(A, i, j)))))
    back = reduce(eliminate(term, X))
    numbers = np.array([1.5, -2.0, 0.25])
    arrays = {x: numbers, A: np.arange(9.0).reshape(3, 3)}
    np.testing.assert_allclose(evaluate(back, arrays, {"n": 3}), evaluate(term, arrays, {"n": 3}), rtol=1e-13)


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs())
def test_reduction_undoes_elimination_in_value(case: Case) -> None:
    """On random programs, binding by binding, with respect to every parameter and binding at once."""
    bindings, result = split(share(case.term.body))
    points = frozenset(case.term.parameters) | {var for var, _ in bindings}
    back = let(((var, reduce(eliminate(value, points))) for var, value in bindings), reduce(eliminate(result, points)))
    expected = np.asarray(evaluate(case.term.body, case.environment, case.sizes))
    found = np.asarray(evaluate(back, case.environment, case.sizes))
    scale = max(1.0, float(np.max(np.abs(expected), initial=0.0)))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9 * scale)


# --- one step ------------------------------------------------------------------------------------------------------


def test_each_kind_of_term_has_its_step() -> None:
    assert decompose(at(v, i), X) == ConstantMap(at(v, i))
    assert decompose(x, X) == Identity(x)
    assert decompose(at(x, i), X) == Evaluate(x, (i,))
    assert decompose(Lambda((i,), at(x, i)), X) == Exchange((i,), at(x, i))
    assert decompose(total((i,), at(x, i)), X) == Compose(SumOver((i,)), Lambda((i,), at(x, i)))
    assert decompose(mul(at(v, i), at(x, i)), X) == Compose(Multiply(at(v, i)), at(x, i))
    assert decompose(add(at(v, i), at(x, i)), X) == Compose(Translate(at(v, i)), at(x, i))
    assert decompose(Tuple((x, x)), X) == Fork((x, x))
    sine = function("sin", at(x, i))
    assert decompose(sine, X) == Compose(Elementwise("sin", 0, (at(x, i),)), at(x, i))


def test_a_product_of_two_that_mention_x_captures_one() -> None:
    """x ↦ f(x)·g(x) is x ↦ (v ↦ f(x)·v)(g(x)): the map x ↦ (v ↦ f(x)·v) goes under 𝐂."""
    step = decompose(mul(at(x, i), at(v, i), at(x, j)), X)
    assert isinstance(step, Compose)
    assert step.inner is at(x, j)
    assert step.outer == Multiply(mul(at(x, i), at(v, i)))
    assert step.captured is not None
    (value,) = step.captured.parameters
    assert step.captured.body is mul(at(x, i), at(v, i), value)
    single = decompose(mul(at(v, i), at(x, j)), X)
    assert isinstance(single, Compose)
    assert single.captured is None


def test_the_captured_map_names_its_value_apart() -> None:
    """A capture may itself mention a variable called v."""
    step = decompose(mul(at(x, i), at(v, i), at(x, j)), X)
    assert isinstance(step, Compose)
    assert step.captured is not None
    assert step.captured.parameters[0].name not in {var.name for var in mul(at(x, i), at(v, i)).free}


def test_what_has_no_derivative_is_refused() -> None:
    moment = Var("R", Function(Space("n")))
    step = decompose(Pullback(moment, 0, (x,), ONE), X)
    assert isinstance(step, Compose)
    with pytest.raises(UnsupportedError, match="second derivative of R, which is only named, is not known"):
        step.outer.pullback(x, x)
    with pytest.raises(UnsupportedError, match="a Delta that depends on s has no derivative"):
        decompose(Delta(s, ONE, None), frozenset({s}))
    with pytest.raises(UnsupportedError, match="a derivative with respect to a map and the point it is taken at"):
        decompose(Apply(moment, (x,)), frozenset({x, moment}))


# --- how forms read ------------------------------------------------------------------------------------------------

GOLDEN = {
    "(x) ↦ 𝐁 Σ (𝐂 (i ↦ 𝐁 (v[i] ·) (𝐁 x 𝐈 [i])))": Lambda((x,), total((i,), mul(at(v, i), at(x, i)))),
    "(x) ↦ 𝐁 Σ (𝐂 ((i, j) ↦ 𝐁 (x[i] A[i,j] ·) (𝐁 x 𝐈 [j])))": Lambda((x,), EXAMPLES["quadratic form"]),
    "(x) ↦ 𝐁 Σ (𝐂 (i ↦ 𝐁 (sin(x[i]) ·) (𝐁 exp (𝐁 x 𝐈 [i]))))": Lambda(
        (x,), total((i,), mul(function("sin", at(x, i)), function("exp", at(x, i))))
    ),
    "(z) ↦ 𝐁 Σ (𝐂 (i ↦ 𝐁 (z[i] ·) (𝐁 conj (𝐁 z 𝐈 [i]))))": Lambda((z,), total((i,), mul(at(z, i), conj(at(z, i))))),
    "(x, s) ↦ (𝐁 (3 +) s, 𝐂 (i ↦ 𝐁 power(·, 2) (𝐁 x 𝐈 [i])), 𝐊 (i ↦ v[i]))": Lambda(
        (x, s), Tuple((add(s, Number(3)), Lambda((i,), function("power", at(x, i), Number(2))), Lambda((i,), at(v, i))))
    ),
}


@pytest.mark.parametrize("expected", GOLDEN)
def test_golden_forms(expected: str) -> None:
    assert combinator_text(GOLDEN[expected]) == expected


def test_a_traced_sum_shows_b_and_c() -> None:
    @cd.program
    def dot(x: cd.Space("n"), v: cd.Space("n")):  # type: ignore[no-untyped-def]
        return cd.sum(lambda i: v[i] * x[i])

    assert dot.combinators() == "(x, v) ↦ 𝐁 Σ (𝐂 (i ↦ 𝐁 (v[i] ·) (𝐁 x 𝐈 [i])))"


def test_bindings_have_a_line_each() -> None:
    @cd.program
    def shared(x: cd.Space("n")):  # type: ignore[no-untyped-def]
        t = cd.exp(cd.sum(lambda i: x[i]))
        return t * cd.sin(t)

    assert shared.combinators().splitlines() == [
        "(x) ↦",
        "  t = 𝐁 exp (𝐁 Σ (𝐂 (i ↦ 𝐁 x 𝐈 [i])))",
        "  𝐁 (t ·) (𝐁 sin t)",
    ]


def test_bound_names_of_a_form_differ() -> None:
    """One naming for the whole form: the indices of a simplified gradient are told apart in its captures."""
    cubic = cd.Space("n", "n", "n", symmetry=["T[i,j,k] = T[j,i,k]", "T[i,j,k] = T[k,j,i]"])

    @cd.program
    def form(T: cubic, x: cd.Space("n")):  # type: ignore[no-untyped-def]
        return cd.sum(lambda i, j, k: T[i, j, k] * x[i] * x[j] * x[k])

    found = cd.grad(form, wrt="x").combinators()
    assert found.startswith("(T, x) ↦ 𝐂 (d ↦ 𝐁 (3 ·) (𝐁 Σ (𝐂 ((i, j) ↦ ")
    assert "T[d,i,j]" in found
    assert "𝐁 x 𝐈 [j]" in found


@pytest.mark.thorough
def test_a_form_is_on_one_line_however_long_its_captures() -> None:
    """Captures are not broken into lines, as a long program text would be."""

    @cd.program
    def long(x: cd.Space("n")):  # type: ignore[no-untyped-def]
        total_ = cd.sum(lambda i: cd.sin(x[i]) * cd.exp(x[i]) * cd.tanh(x[i]) + cd.cos(x[i]) * x[i] ** 3)
        return cd.sum(lambda i, j: (x[i] + 2 * cd.sin(x[j]) * cd.exp(x[i] * x[j])) * cd.tanh(x[i] - x[j])) * total_

    for line in cd.grad(long).combinators().splitlines()[1:]:
        assert line.startswith("  ")
        assert line.count("(") == line.count(")")


def test_named_maps_show_their_names() -> None:
    vector = cd.Space("n")

    @cd.program
    def objective(R: cd.Function(vector), x: vector):  # type: ignore[no-untyped-def, valid-type]
        return R(x)

    assert objective.combinators() == "(R, x) ↦ 𝐁 R(·) x"
    assert "∂R" in cd.grad(objective, wrt="x").combinators()
