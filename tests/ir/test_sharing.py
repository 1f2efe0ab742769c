"""The normal form of programs: every heavy part computed once, what is used once put back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import latency
import numpy as np
import pytest
from elements import at
from hypothesis import HealthCheck, given, settings
from known_programs import logistic
from strategies import Case, programs

import combdiff as cd
from combdiff.ir.domains import Function, Range, Space
from combdiff.ir.indices import Affine, affine
from combdiff.ir.interpreter import evaluate
from combdiff.ir.let_form import (
    bind_heavy,
    canonical_names,
    free_indices,
    inline_single_uses,
    is_light_primitive,
    put_back,
    share,
    split,
    uses,
)
from combdiff.ir.primitives import function
from combdiff.ir.reuse import settled
from combdiff.ir.substitution import subterms
from combdiff.ir.terms import Apply, Lambda, Let, Mul, Number, Primitive, Term, Tuple, Var, add, let, mul, negate, total
from combdiff.simplification.egraph.extraction import symbols
from combdiff.tracing.recording import trace_function

i, j, p = (Var(name, Range("n")) for name in "ijp")
x, v = Var("x", Space("n")), Var("v", Space("n"))
A = Var("A", Space("n", "n"))
s = Var("s", Space())
SIZES = {"n": 3}
RNG = np.random.default_rng(0)
ARRAYS: dict[Var, Any] = {x: RNG.normal(size=3), v: RNG.normal(size=3), A: RNG.normal(size=(3, 3)), s: 0.7}


def same_value(body: Term) -> Term:
    """The normal form, found equal to the body in value."""
    shared = share(body)
    np.testing.assert_allclose(evaluate(shared, ARRAYS, SIZES), evaluate(body, ARRAYS, SIZES), rtol=1e-12)
    return shared


def bound_names(body: Term) -> list[str]:
    return [var.name for var, _ in split(body)[0]]


# --- what is shared ------------------------------------------------------------------------------------------------


def test_equal_sums_under_different_index_names_become_one_binding() -> None:
    body = add(function("exp", total((i,), at(x, i))), function("sin", total((j,), at(x, j))))
    bindings, result = split(same_value(body))
    ((t, value),) = bindings
    assert canonical_names(value) is canonical_names(total((p,), at(x, p)))
    assert result is add(function("exp", t), function("sin", t))


def test_equal_parts_at_different_free_indices_become_one_tensor() -> None:
    """Σ_p A[i,p] x[p] at i and at j is one vector t, read at i and at j."""
    row = lambda index: total((p,), mul(at(A, index, p), at(x, p)))  # noqa: E731
    body = Lambda((i, j), mul(row(i), row(j)))
    bindings, result = split(same_value(body))
    ((t, value),) = bindings
    assert isinstance(value, Lambda)
    assert canonical_names(value) is canonical_names(Lambda((i,), row(i)))
    assert result is Lambda((i, j), mul(at(t, i), at(t, j)))


def test_equal_functions_become_one_binding() -> None:
    tanh = lambda index: function("tanh", at(x, index))  # noqa: E731
    body = total((i, j), mul(tanh(i), at(A, i, j), tanh(j)))
    bindings, _ = split(same_value(body))
    assert len(bindings) == 1
    assert canonical_names(bindings[0][1]) is canonical_names(Lambda((i,), tanh(i)))


def test_what_differs_only_in_order_of_indices_is_not_mixed_up() -> None:
    """exp(A[i,j]) and exp(A[j,i]) share one array, read both ways."""
    body = Lambda((i, j), add(function("exp", at(A, i, j)), function("exp", at(A, j, i))))
    bindings, _ = split(same_value(body))
    assert len(bindings) == 1


def test_a_tensor_that_is_applied_twice_is_computed_once() -> None:
    tensor = Lambda((i,), function("exp", at(x, i)))
    body = total((j,), mul(at(tensor, j), at(tensor, j)))
    bindings, result = split(same_value(body))
    ((t, _),) = bindings
    (access,) = [term for term in subterms(result) if isinstance(term, Apply)]
    assert access.function is t


def test_a_tensor_that_depends_on_an_outer_index_is_abstracted_over_it() -> None:
    inner = Lambda((j,), function("sin", at(A, i, j)))
    body = Lambda((i,), mul(at(inner, i), at(inner, Affine((), 0))))
    ((t, value),) = split(same_value(body))[0]
    assert isinstance(value, Lambda)
    assert len(value.parameters) == 2
    assert t.type == Space("n", "n")


def test_hints_name_the_bindings() -> None:
    tensor = Lambda((i,), mul(at(x, i), at(v, i)))
    body = total((j,), mul(at(tensor, j), at(tensor, j)))
    assert bound_names(share(body, {tensor: "density"})) == ["density"]


def test_inner_lets_join_the_outer_one() -> None:
    t = Var("t", Space())
    inner = Let(((t, function("exp", s)),), mul(t, t))
    body = add(function("sin", inner), function("cos", inner), total((i,), at(x, i)))
    shared = same_value(body)
    assert not any(isinstance(term, Let) for term in subterms(shared) if term is not shared)


def test_tensors_that_are_arguments_of_a_named_map() -> None:
    R = Var("R", Function(Space("n")))
    square = Lambda((i,), mul(at(x, i), at(x, i)))
    body = add(function("exp", Apply(R, (square,))), Apply(R, (square,)))
    arrays = {**ARRAYS, R: lambda u: float(u.sum())}
    assert evaluate(share(body), arrays, SIZES) == pytest.approx(evaluate(body, arrays, SIZES))


def test_a_call_of_a_named_map_that_is_used_twice_is_bound() -> None:
    R, D = Var("R", Function(Space("n"))), Var("D", Function(Space("n"), result=Space("n"), linear=True))
    assert len(split(share(add(function("exp", Apply(R, (x,))), Apply(R, (x,)))))[0]) == 1
    image = Apply(D, (x,))
    assert len(split(share(total((i,), mul(at(image, i), at(image, i)))))[0]) == 1


# --- what is not ---------------------------------------------------------------------------------------------------


def test_single_uses_are_put_back() -> None:
    t = Var("t", Space("n"))
    value = Lambda((i,), function("exp", at(x, i)))
    body = Let(((t, value),), total((j,), mul(at(t, j), at(v, j))))
    assert same_value(body) is total((j,), mul(function("exp", at(x, j)), at(v, j)))


def test_unused_bindings_are_dropped() -> None:
    t, u = Var("t", Space()), Var("u", Space())
    body = Let(((t, function("exp", s)), (u, function("sin", t))), mul(s, s))
    assert inline_single_uses(body) is mul(s, s)


def test_a_short_chain_of_single_uses_collapses_and_a_long_one_stays_a_let() -> None:
    def chain(length: int) -> Term:
        names = [Var(f"t{n}", Space()) for n in range(length)]
        return Let(
            tuple((var, function("sin", before)) for var, before in zip(names, [s, *names], strict=False)), names[-1]
        )

    assert same_value(chain(3)) is function("sin", function("sin", function("sin", s)))
    assert 1 <= len(bound_names(same_value(chain(12)))) < 12


def test_light_parts_need_no_array() -> None:
    body = Lambda((i, j), add(mul(at(x, i), at(x, j)), function("power", at(x, i), Number(2)), at(A, j, i)))
    assert not bound_names(same_value(body))
    assert is_light_primitive(function("power", at(x, i), Number(2)))  # type: ignore[arg-type]
    assert not is_light_primitive(function("exp", at(x, i)))  # type: ignore[arg-type]


def test_putting_back_renames_what_would_be_caught() -> None:
    """(i ↦ Σ_j A[i,j]) at j, under a binder j."""
    t = Var("t", Space("n"))
    value = Lambda((i,), total((j,), at(A, i, j)))
    found = put_back(Lambda((j,), at(t, j)), {t: value})
    np.testing.assert_allclose(evaluate(found, ARRAYS, SIZES), ARRAYS[A].sum(axis=1), rtol=1e-14)


def test_uses_are_counted_as_in_a_tree() -> None:
    square = mul(s, s)
    assert uses(add(function("sin", square), square))[s] == 4


# --- growth --------------------------------------------------------------------------------------------------------


@cd.program
def tower(x: cd.Space()):  # type: ignore[no-untyped-def]
    y = x
    for _ in range(30):
        y = y * y
    return y


def test_thirty_squarings_stay_small() -> None:
    """y ← y², thirty times, is thirty bindings and not 2³⁰ factors."""
    assert sum(1 for _ in subterms(tower.term)) < 200
    assert tower(1.0 + 2.0**-30) == pytest.approx(np.exp(1.0), rel=1e-8)


def test_the_gradient_of_thirty_squarings_stays_small() -> None:
    gradient = cd.grad(tower, simplify=False)
    assert sum(1 for _ in subterms(gradient.term)) < 1000
    assert gradient(1.0 + 2.0**-30) == pytest.approx(2.0**30 * np.exp(1.0), rel=1e-6)


def test_thirty_doublings_stay_small() -> None:
    @cd.program
    def tower(x: cd.Space("n")):  # type: ignore[no-untyped-def]
        y = x
        for _ in range(30):
            y = y + cd.sin(y)
        return y.sum()

    assert sum(1 for _ in subterms(tower.term)) < 400
    assert sum(1 for _ in subterms(cd.grad(tower, simplify=False).term)) < 2000


def test_a_product_of_a_shared_product_stays_shared() -> None:
    square = mul(at(x, i), at(v, i))
    body = total((i,), Mul((square, square)))
    shared = same_value(body)
    assert len(split(shared)[0]) <= 1


# --- the invariant -------------------------------------------------------------------------------------------------


def assert_normal(body: Term) -> None:
    """Bindings are scalars or abstractions over indices; no let, tuple or applied abstraction inside a body."""
    bindings, result = split(body)
    items = result.items if isinstance(result, Tuple) else (result,)
    for tensor in (*(value for _, value in bindings), *items):
        scalar = tensor.body if isinstance(tensor, Lambda) else tensor
        for term in subterms(scalar):
            assert not isinstance(term, Let | Tuple)
            assert not (isinstance(term, Apply) and isinstance(term.function, Lambda))
    later = uses(result)
    for var, value in reversed(bindings):
        assert later[var] >= 1, f"{var.name} is used {later[var]} times"
        later.update(uses(value))
    names = [var.name for var, _ in bindings]
    assert len(set(names)) == len(names)
    forms = [canonical_names(value) for _, value in bindings]
    assert len(set(forms)) == len(forms)


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs(guarded=False))
def test_the_normal_form_of_random_programs(case: Case) -> None:
    """It has the value of the program and is normal; sharing it again keeps the value."""
    body = share(case.term.body)
    assert_normal(body)
    assert body.free <= frozenset(case.term.parameters) | {v for v in body.free if v.name in case.sizes}
    expected = np.asarray(evaluate(case.term.body, case.environment, case.sizes))
    scale = max(1.0, float(np.max(np.abs(expected), initial=0.0)))
    found = evaluate(body, case.environment, case.sizes)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9 * scale)
    found = evaluate(share(body), case.environment, case.sizes)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9 * scale)


def test_tuples_share_across_their_items() -> None:
    norm = lambda index: total((index,), mul(at(x, index), at(x, index)))  # noqa: E731
    body = Tuple((function("exp", norm(i)), Lambda((p,), mul(at(v, p), norm(j)))))
    shared = share(body)
    assert_normal(shared)
    assert len(split(shared)[0]) == 1


# --- names ---------------------------------------------------------------------------------------------------------


def test_alpha_equal_terms_become_one_object() -> None:
    one = Lambda((i,), total((j,), mul(at(A, i, j), at(x, j))))
    other = Lambda((p,), total((i,), mul(at(A, p, i), at(x, i))))
    assert canonical_names(one) is canonical_names(other)
    assert canonical_names(one) is not canonical_names(Lambda((p,), total((i,), mul(at(A, i, p), at(x, i)))))


def test_names_of_bindings_do_not_matter() -> None:
    t, u = Var("t", Space()), Var("u", Space())
    one = let([(t, function("exp", s))], mul(t, t))
    other = let([(u, function("exp", s))], mul(u, u))
    assert canonical_names(one) is canonical_names(other)


def test_free_indices_come_in_order_of_occurrence() -> None:
    size = Var("n", Range("n"))
    term = mul(at(A, j, i), total((p,), at(A, affine([(p, 1), (size, -1)]), i)))
    assert free_indices(term) == (j, i, size)
    assert not free_indices(Lambda((i,), negate(at(x, i))))


def test_sharing_is_deterministic() -> None:
    body = Lambda((i, j), mul(function("exp", at(A, i, j)), function("exp", at(A, j, i)), function("sin", at(x, i))))
    assert share(body) is share(body)


# --- numbers that are used again ---------------------------------------------------------------------------------


def logistic_elements(steps: int) -> cd.Program:
    """The same over the elements of a tensor, in a Σ."""

    @cd.program
    def f(r: cd.Space(), x: cd.Space("n")):
        def last(y):
            for _ in range(steps):
                y = r * y * (1 - y)
            return y

        return cd.sum(lambda i: last(x[i]))

    return f


def pendulum(steps: int) -> cd.Program:
    """Semi-implicit Euler steps from the speed v."""
    last = latency.pendulum(np, steps)

    @cd.program
    def f(v: cd.Space(), h: cd.Space()):
        return last(v, h)

    return f


def logistic_of_one(steps: int) -> cd.Program:
    """The same loop over a tensor of one element, which is read in the end."""

    @cd.program
    def f(x: cd.Space(1), r: cd.Space()):
        for _ in range(steps):
            x = r * x * (1 - x)
        return x[0]

    return f


def rotations(steps: int) -> cd.Program:
    """Steps of a pair that is stacked again and again."""

    @cd.program
    def f(q: cd.Space(2), r: cd.Space()):
        for _ in range(steps):
            q = np.stack([q[0] + r * q[1], q[1] - r * q[0] * q[1]])
        return q[0]

    return f


def logistic_tensor(steps: int) -> cd.Program:
    """The loop over a tensor that stays one: its Jacobian is a δ times a product of the slopes."""

    @cd.program
    def f(x: cd.Space("n"), r: cd.Space()):
        for _ in range(steps):
            x = r * x * (1 - x)
        return x

    return f


def whole_length(program: cd.Program) -> int:
    """The symbols that a program takes to print."""
    bindings, result = split(program.term.body)
    return sum(symbols(value) for _, value in bindings) + symbols(result)


@pytest.mark.parametrize("make", [logistic, logistic_elements, pendulum])
def test_what_a_loop_makes_of_a_number_grows_linearly(make: Callable[[int], cd.Program]) -> None:
    short, middle, long = (whole_length(make(steps)) for steps in (10, 20, 40))
    assert long - middle <= 2.2 * (middle - short)


@pytest.mark.sample(1)
@pytest.mark.parametrize("make", [logistic, pendulum])
def test_the_gradient_of_a_loop_grows_linearly(make: Callable[[int], cd.Program]) -> None:
    short, middle, long = (whole_length(cd.grad(make(steps))) for steps in (4, 8, 16))
    assert long - middle <= 2.5 * (middle - short)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("make", "mode"), [(logistic_of_one, "reverse"), (rotations, "forward"), (logistic_tensor, "forward")]
)
def test_the_derivative_of_a_loop_over_a_tensor_grows_linearly(make: Callable[[int], cd.Program], mode: str) -> None:
    lengths = []
    for steps in (2, 4, 8):
        f = make(steps)
        found = cd.jacobian(f, mode=mode)
        lengths.append(whole_length(found))
        x = np.array([0.3] if make is logistic_of_one else [0.3, 0.2])
        for k, step in enumerate(1e-6 * np.eye(len(x))):
            slope = (f(x + step, 1.9) - f(x - step, 1.9)) / 2e-6
            np.testing.assert_allclose(found(x, 1.9)[..., k], slope, rtol=1e-6, atol=1e-8)
    assert lengths[2] - lengths[1] <= 3 * (lengths[1] - lengths[0])


@pytest.mark.sample(2)
@pytest.mark.parametrize("mode", ["forward", "reverse", "cross-country"])
@pytest.mark.parametrize("make", [logistic, pendulum])
def test_the_hessian_of_a_loop_grows_linearly(make: Callable[[int], cd.Program], mode: str) -> None:
    lengths = [whole_length(cd.hessian(make(steps), mode=mode, simplify=False)) for steps in (4, 8, 16)]
    assert lengths[2] - lengths[1] <= 2.5 * (lengths[1] - lengths[0])


def test_the_gradient_of_a_loop_is_that_of_its_steps() -> None:
    r, x = 3.7, 0.3
    slope = 1.0
    for _ in range(12):
        slope, x = slope * r * (1 - 2 * x), r * x * (1 - x)
    assert cd.grad(logistic(12), wrt="x")(r, 0.3) == pytest.approx(slope)


def test_a_short_number_stands_where_it_is_used() -> None:
    @cd.program
    def f(a: cd.Space(), b: cd.Space()):
        s = a + b
        return s * np.exp(s)

    assert str(f) == "(a, b) ↦ exp(a + b) (a + b)"


def test_a_definition_with_its_axes_in_another_order_is_one_tensor() -> None:
    """Where t[j,i] = exp A[i,j] is bound, exp A[p,i] is t[i,p]; no law would know two arrays for equal."""
    t = Var("t", Space("n", "n"))
    exponential = Lambda((j, i), function("exp", at(A, i, j)))
    elements = mul(at(t, j, i), function("exp", at(A, p, i)))
    shared = same_value(let([(t, exponential)], Lambda((i, p), total((j,), elements))))
    assert [value for var, value in split(shared)[0] if var.name == "t"] == [exponential]
    assert sum(part.name == "exp" for part in subterms(shared) if isinstance(part, Primitive)) == 1


def test_a_program_called_in_a_program_keeps_what_it_binds() -> None:
    def composed(steps: int) -> cd.Program:
        inner = logistic(5)

        @cd.program
        def f(r: cd.Space(), x: cd.Space()):
            for _ in range(steps):
                x = inner(r, x)
            return x

        return f

    short, middle, long = (whole_length(composed(steps)) for steps in (2, 4, 8))
    assert long - middle <= 2.2 * (middle - short)


def test_settling_twice_is_settling_once() -> None:
    def f(r: cd.Space(), x: cd.Space()):
        for _ in range(7):
            x = r * x * (1 - x)
        return x

    once = trace_function(f).term
    assert settled(once) is once


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["logistic map, 10 steps", "MPS energy", "RNN, 6 steps", "shooting, 6 steps"])
def test_what_is_shared_is_itself_when_it_is_shared_again(name: str) -> None:
    """Names included: what is remembered of a term is forgotten with it, so each pass would begin anew."""
    shared = share(latency.derivatives()[name]().raw)
    once = inline_single_uses(bind_heavy(shared))
    assert once is shared
    assert inline_single_uses(bind_heavy(once)) is once
