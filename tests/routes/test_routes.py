"""One program, every route: what a term means, normal form, simplified, executed; and the same for its derivatives.

Random programs come from `strategies.programs`; the reference interpreter says what each means, and central
differences, taken in the real and in the imaginary direction of every entry, what its derivative is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from strategies import Case, examples, programs

import combdiff as cd
from combdiff.differentiation.pullback import cotangent_space, pull, push
from combdiff.ir.domains import Cyclic, Range, Space, Whole
from combdiff.ir.indices import Affine, affine, indicator
from combdiff.ir.interpreter import evaluate
from combdiff.ir.let_form import share, split
from combdiff.ir.primitives import function, power
from combdiff.ir.substitution import Names
from combdiff.ir.terms import Apply, Lambda, Number, Term, Tuple, Var, add, conj, let, mul, total
from combdiff.ir.types import type_of
from combdiff.runtime.execution import run
from combdiff.simplification.pipeline import simplify_body
from combdiff.testing.arrays import random_array, random_arrays
from combdiff.testing.differences import finite_difference_pullback
from combdiff.testing.routes import check_routes

pytestmark = pytest.mark.filterwarnings("ignore::combdiff.BudgetWarning", "ignore:Generating overly large repr")

GIVEN: dict[str, Any] = {"suppress_health_check": list(HealthCheck)}

Arrays = Mapping[Var, Any]
NODES = 2_000  # of an e-graph: one program in twenty fills what is allowed, for twenty seconds; its value is the same


def close(found: Any, expected: Any, tolerance: float = 1e-9) -> None:
    """Equal up to rounding, relative to the largest entry (absolute where that is below 1); tuples item by item."""
    if isinstance(expected, tuple):
        assert isinstance(found, tuple)
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            close(one, other, tolerance)
        return
    one, other = np.asarray(found), np.asarray(expected)
    assert one.shape == other.shape
    scale = max(1.0, float(np.max(np.abs(other), initial=0.0)))
    np.testing.assert_allclose(one, other, rtol=0.0, atol=tolerance * scale)


def reference(body: Term, arrays: Arrays, case: Case) -> Any:
    """What a body means."""
    return evaluate(body, arrays, case.sizes)


def simplified(body: Term) -> Term:
    """A body as the laws leave it, within a budget that few programs reach."""
    with cd.budget(nodes=NODES):
        return simplify_body(body)


def executed(body: Term, arrays: Arrays, case: Case) -> Any:
    """What a body gives as array operations."""
    return run(Lambda(tuple(arrays), body), list(arrays.values()), case.sizes)


@settings(max_examples=examples(10), **GIVEN)
@given(programs())
def test_every_route_gives_the_value(case: Case) -> None:
    """Reference, normal form, simplified, executed raw and executed simplified are one number."""
    body, arrays = case.term.body, case.environment
    expected = reference(body, arrays, case)
    shared, simple = share(body), simplified(body)
    close(reference(shared, arrays, case), expected)
    close(reference(simple, arrays, case), expected)
    close(executed(body, arrays, case), expected)
    close(executed(shared, arrays, case), expected)
    close(executed(simple, arrays, case), expected)


# --- derivatives ---------------------------------------------------------------------------------------------------


def to_differentiate(case: Case) -> tuple[Term, tuple[Var, ...], Names, Var, Any]:
    """The let form of a program, its parameters, the names in use, a variable for the cotangent and an array for it."""
    body = share(case.term.body)
    names, space = Names(case.term, body), type_of(body)
    assert isinstance(space, Space)
    var = names.fresh(Var("k", cotangent_space(space)))
    array = random_array(var.type, np.random.default_rng(7), case.sizes)  # type: ignore[arg-type]
    return body, case.term.parameters, names, var, array


def raw_pullback(body: Term, points: Sequence[Var], cotangent: Term, names: Names) -> Term:
    """The pullback of a normal form by several variables, as the rules leave it."""
    backward, gradients = pull(body, tuple(points), cotangent, names)
    return let((*split(body)[0], *backward), Tuple(tuple(gradients)))


def differences(case: Case, cotangent: Any) -> tuple[Any, ...]:
    """The pullback of a program by each of its parameters, by central differences."""

    def function(**named: Any) -> Any:
        return reference(case.term.body, {p: named[p.name] for p in case.term.parameters}, case)

    arrays = {p.name: np.asarray(case.arrays[p.name], p.type.dtype) for p in case.term.parameters}  # type: ignore
    return tuple(finite_difference_pullback(function, arrays, p.name, cotangent) for p in case.term.parameters)


@settings(max_examples=examples(5), **GIVEN)
@given(programs())
def test_every_route_gives_the_pullback(case: Case) -> None:
    """Raw and simplified, interpreted and executed, and central differences agree."""
    body, points, names, k, cotangent = to_differentiate(case)
    arrays = {**case.environment, k: cotangent}
    raw = raw_pullback(body, points, k, names)
    simple = simplified(raw)
    expected = reference(raw, arrays, case)
    for point, gradient in zip(points, expected, strict=True):
        assert isinstance(point.type, Space)
        assert point.type.dtype is complex or np.asarray(gradient).dtype.kind != "c"
    close(expected, differences(case, cotangent), 2e-5)
    close(reference(simple, arrays, case), expected)
    close(executed(raw, arrays, case), expected)
    close(executed(simple, arrays, case), expected)


@pytest.mark.thorough
@settings(max_examples=examples(5), **GIVEN)
@given(programs())
def test_pushforward_and_pullback_are_adjoint(case: Case) -> None:
    """⟨k, J v⟩ = ⟨Jᵀ k, v⟩ in the real inner product Re Σ conj(a)·b; both routes of the pushforward agree."""
    body, points, names, k, cotangent = to_differentiate(case)
    rng = np.random.default_rng(11)
    tangents = {p: names.fresh(Var(f"{p.name}_dot", cotangent_space(p.type))) for p in points}  # type: ignore[arg-type]
    moves = {v: random_array(v.type, rng, case.sizes) for v in tangents.values()}  # type: ignore[arg-type]
    forward, tangent = push(body, tangents, names)
    raw = let((*split(body)[0], *forward), tangent)
    arrays = {**case.environment, **moves}
    pushed = reference(raw, arrays, case)
    simple = simplified(raw)
    close(reference(simple, arrays, case), pushed)
    close(executed(simple, arrays, case), pushed)
    pulled = reference(raw_pullback(body, points, k, Names(case.term, body, raw, k)), {**arrays, k: cotangent}, case)
    left = inner(cotangent, pushed)
    right = sum(inner(gradient, moves[tangents[p]]) for p, gradient in zip(points, pulled, strict=True))
    close(left, right, 1e-8)


def inner(one: Any, other: Any) -> float:
    """Re Σ conj(a)·b."""
    return float(np.real(np.vdot(one, other)))


# --- programs that once went wrong ---------------------------------------------------------------------------------


def _cyclic_condition() -> Case:
    """Σ_{j,k} [j ≥ k] x[j + 1, -j]: a cyclic index in a condition may only be replaced by a reduced form."""
    cycle = Cyclic("c")
    x, j, k = Var("x", Space(cycle, cycle)), Var("j", cycle), Var("k", cycle)
    access = Apply(x, (affine([(j, 1)], 1), affine([(j, -1)])))
    return _case((x,), total((j, k), mul(indicator(affine([(j, 1), (k, -1)])), access)), {"c": 3})


def _guarded_part() -> Case:
    """Σ_k [m ≥ 2] (Σ_k x[0, 1])² twice: what is read only behind a condition may not exist without it."""
    x, k, m = Var("x", Space("n", "m")), Var("k", Range("n")), Var("m", Whole())
    zero, one = Affine((), 0), Affine((), 1)
    square = power(total((k,), Apply(x, (zero, one))), Number(2))
    guarded = total((k,), mul(indicator(affine([(m, 1)], -2)), square))
    return _case((x,), mul(Apply(x, (zero, zero)), guarded, guarded), {"n": 1, "m": 1})


def _signs_inside_functions() -> Case:
    """Σ A exp(A) + A (A + S): exchanging the indices of an antisymmetric A negates more than the product."""
    A = Var("A", Space("n", "n", symmetry=["A[i,j] = -A[j,i]"]))
    S = Var("S", Space("n", "n", symmetry=["S[i,j] = S[j,i]"]))
    i, j = Var("i", Range("n")), Var("j", Range("n"))
    a, s = Apply(A, (i, j)), Apply(S, (i, j))
    body = add(total((i, j), mul(a, function("exp", a))), total((i, j), mul(a, add(a, s))))
    return _case((A, S), body, {"n": 3})


def _real_parts_of_real_parts() -> Case:
    """Re(Re(x)* + Re(x)* Re(x)²): its pushforward holds halves of equal sums."""
    x = Var("x", Space(dtype=complex))
    part = function("real", x)
    return _case((x,), function("real", add(conj(part), mul(conj(part), part, part))), {})


def _numbers_alone_in_sums() -> Case:
    """Σ_{i,j} (0.3 x[i] + Σ_k 0.3 x[i]): joining networks took a number for a common factor, again and again."""
    x, (i, j, k) = Var("x", Space(2)), (Var(name, Range(2)) for name in "ijk")
    term = mul(Number(0.3), Apply(x, (i,)))
    return _case((x,), total((i, j), add(term, total((k,), term))), {})


def _case(parameters: tuple[Var, ...], body: Term, sizes: dict[str, int]) -> Case:
    arrays = random_arrays(parameters, np.random.default_rng(0), sizes)
    return Case(Lambda(parameters, body), sizes, arrays)


@pytest.mark.parametrize(
    "make",
    [_cyclic_condition, _guarded_part, _signs_inside_functions, _real_parts_of_real_parts, _numbers_alone_in_sums],
)
@pytest.mark.parametrize(
    "route",
    [
        test_every_route_gives_the_value,
        test_every_route_gives_the_pullback,
        test_pushforward_and_pullback_are_adjoint,
    ],
)
def test_programs_that_once_went_wrong(make: Callable[[], Case], route: Any) -> None:
    route.hypothesis.inner_test(make())


# --- the public check ----------------------------------------------------------------------------------------------


@settings(max_examples=examples(4), **GIVEN)
@given(programs(depth=2))
def test_the_public_check_agrees(case: Case) -> None:
    with cd.budget(nodes=NODES):
        assert check_routes(case.program, **case.arrays) < 2e-5


def test_a_sum_times_a_complex_number_is_a_numpy_scalar() -> None:
    """Python's complex numbers times a NumPy float are Python's again."""

    @cd.program
    def f(x: cd.Space("n")):  # type: ignore[no-untyped-def]
        return cd.sum(lambda k, p: x[k] * (1j + cd.sin(0 * x[k])), p="n").real

    assert isinstance(f(np.ones(2)), np.float64)
    assert check_routes(f, x=[0.1, 0.2]) < 1e-8


def test_the_public_check_names_the_route(monkeypatch: pytest.MonkeyPatch) -> None:
    from combdiff.testing import routes

    @cd.program
    def f(x: cd.Space("n")):  # type: ignore[no-untyped-def]
        return cd.sum(lambda i: cd.sin(x[i]))

    @cd.program
    def g(x: cd.Space("n")):  # type: ignore[no-untyped-def]
        return cd.sum(lambda i: cd.cos(x[i]))

    assert check_routes(f, x=[0.1, 0.2]) < 1e-8
    monkeypatch.setattr(routes, "simplify", lambda _: g)
    with pytest.raises(AssertionError, match="f, simplified and interpreted: differs from f, interpreted by"):
        check_routes(f, x=[0.1, 0.2])
