"""The B rule and the C rule on examples small enough to check by hand, and how derivatives grow."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from elements import at
from hypothesis import HealthCheck, given, settings
from strategies import Case, programs

from combdiff.differentiation.pullback import cotangent_space, pull, push, reached
from combdiff.errors import UnsupportedError
from combdiff.ir.domains import Cyclic, Function, Range, Space
from combdiff.ir.indices import Affine, Delta, affine, delta, indicator
from combdiff.ir.interpreter import evaluate
from combdiff.ir.let_form import share, split
from combdiff.ir.primitives import divide, function, power
from combdiff.ir.substitution import Names, subterms
from combdiff.ir.terms import (
    ONE,
    ZERO,
    Apply,
    Lambda,
    Let,
    Number,
    Primitive,
    Pullback,
    Sum,
    Term,
    Tuple,
    Var,
    add,
    conj,
    let,
    mul,
    negate,
    total,
)
from combdiff.ir.types import type_of
from combdiff.printing.plain import text
from combdiff.simplification.pipeline import simplify_body
from combdiff.testing.arrays import random_array
from combdiff.testing.differences import finite_difference_pullback

i, j = Var("i", Range("n")), Var("j", Range("n"))
x, y, v = Var("x", Space("n")), Var("y", Space("n")), Var("v", Space("n"))
z, c = Var("z", Space("n", dtype=complex)), Var("c", Space(dtype=complex))
A, B = Var("A", Space("n", "n")), Var("B", Space("n", "n", dtype=complex))
s, k = Var("s", Space()), Var("k", Space())
SIZES = {"n": 3, "m": 2}
UNIT = Number(0, 1)


def constant(value: int) -> Term:
    return Affine((), value)


def space_of(term: Term) -> Space:
    found = type_of(term)
    assert isinstance(found, Space)
    return found


def pulled(body: Term, *wrt: Var, cotangent: Term | None = None) -> list[Term]:
    """The raw cotangents of a body that has no bindings."""
    cotangent = cotangent or Var("k", cotangent_space(space_of(body)))
    backward, gradients = pull(body, wrt, cotangent, Names(body, cotangent, *wrt))
    assert not backward
    return gradients


def closed(body: Term, wrt: tuple[Var, ...], cotangent: Term) -> Term:
    """The raw pullback of a let program, its own bindings in front."""
    backward, gradients = pull(body, wrt, cotangent, Names(body, cotangent, *wrt))
    return let((*split(body)[0], *backward), Tuple(tuple(gradients)))


def values(variables: Any, seed: int = 3) -> dict[Var, Any]:
    """Random arrays for variables that hold tensors."""
    rng = np.random.default_rng(seed)
    return {var: random_array(var.type, rng, SIZES) for var in variables if isinstance(var.type, Space)}


def check_pullback(body: Term, *wrt: Var) -> None:
    """The raw pullback of a closed body agrees with central differences, and has the types of its points."""
    names = Names(body, *wrt)
    cotangent = names.fresh(Var("k", cotangent_space(space_of(body))))
    arrays = values({*(var for var in body.free if isinstance(var.type, Space)), *wrt})
    seed = values([cotangent], 5)[cotangent]
    gradients = evaluate(closed(body, wrt, cotangent), {**arrays, cotangent: seed}, SIZES)
    named = {var.name: np.asarray(array) for var, array in arrays.items()}
    for var, gradient in zip(wrt, gradients, strict=True):
        expected = finite_difference_pullback(
            lambda **given: evaluate(body, {v: given[v.name] for v in arrays}, SIZES), named, var.name, seed
        )
        assert np.asarray(gradient).dtype.kind == ("c" if space_of(var).dtype is complex else "f")
        np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-7)


# --- the rules -----------------------------------------------------------------------------------------------------


def test_the_product_rule_comes_out_of_two_rules() -> None:
    """x ↦ sin(x)·exp(x): the chain rule sends k·sin(x) to exp; the capture is found by the δ that meets its Σ."""
    body = mul(function("sin", s), function("exp", s))
    (gradient,) = pulled(body, s)
    first = mul(function("exp", s), function("sin", s), k)
    second = mul(function("cos", s), function("exp", s), k)
    assert gradient is add(first, second)


def test_every_factor_of_a_product_has_its_turn() -> None:
    body = mul(at(x, i), at(v, i), at(x, i), at(x, i))
    assert text(Lambda((x, v, k), simplify_body(pulled(total((i,), body), x)[0]))) == "(x, v, k) ↦ d ↦ 3 k v[d] x[d]²"


def test_evaluation_at_an_index_gives_a_delta() -> None:
    (gradient,) = pulled(at(x, constant(2)), x)
    assert isinstance(gradient, Lambda)
    (d,) = gradient.parameters
    assert gradient.body is mul(delta(d, constant(2)), k)


def test_evaluation_of_several_axes_gives_a_delta_each() -> None:
    (gradient,) = pulled(Lambda((i,), at(A, i, i)), A, cotangent=v)
    assert isinstance(gradient, Lambda)
    d, e = gradient.parameters
    (outer,) = [term for term in subterms(gradient) if isinstance(term, Sum)]
    (index,) = outer.indices
    assert outer.body is mul(Delta(d, index, Range("n")), Delta(e, index, Range("n")), at(v, index))


def test_a_sum_sends_its_cotangent_to_every_index() -> None:
    (gradient,) = pulled(total((i,), at(x, i)), x)
    np.testing.assert_array_equal(evaluate(gradient, {k: 1.5}, SIZES), [1.5, 1.5, 1.5])


def test_addition_and_constants() -> None:
    body = add(mul(Number(3), s), at(v, constant(0)), Number(7))
    assert pulled(body, s)[0] is mul(Number(3), k)
    (gradient,) = pulled(at(v, constant(0)), x)
    assert gradient is Lambda(gradient.parameters, ZERO)  # type: ignore[attr-defined]


def test_conjugates() -> None:
    """conj: k ↦ k*; multiplication by a capture: k ↦ v*·k."""
    kappa = Var("k", Space(dtype=complex))
    assert pulled(conj(c), c)[0] is conj(kappa)
    assert pulled(mul(UNIT, c), c)[0] is mul(Number(0, -1), kappa)
    factor = at(z, constant(0))
    assert pulled(mul(factor, c), c)[0] is mul(conj(factor), kappa)
    norm = pulled(mul(conj(c), c), c, cotangent=k)[0]
    found = evaluate(norm, {c: 1 - 2j, k: 1.0}, SIZES)
    assert found == 2 * (1 - 2j)


def test_real_and_imaginary_parts_and_modulus() -> None:
    point = {c: 0.6 - 0.8j, k: 2.0}
    assert evaluate(pulled(function("real", c), c)[0], point, {}) == 2.0
    assert evaluate(pulled(function("imag", c), c)[0], point, {}) == 2.0j
    assert evaluate(pulled(function("abs", c), c)[0], point, {}) == pytest.approx(2.0 * (0.6 - 0.8j))


@pytest.mark.parametrize("factor", [UNIT, Number(1, 2), conj(at(z, i))], ids=["i", "1 + 2i", "z*"])
def test_a_real_parameter_has_a_real_cotangent(factor: Term) -> None:
    """Times a complex number, x is included in the complex numbers first; the pullback of that is Re."""
    body = Lambda((i,), mul(factor, at(x, i)))
    (gradient,) = pulled(body, x)
    assert space_of(gradient) == Space("n")
    check_pullback(body, x)
    check_pullback(Lambda((i,), mul(factor, at(x, i), function("exp", at(x, i)))), x)


def test_a_real_scalar_in_a_complex_program() -> None:
    body = mul(Number(1, 2), s, function("exp", mul(UNIT, s)), c)
    check_pullback(body, s, c)
    assert space_of(pulled(body, s)[0]) == Space()


CHECKED: dict[str, tuple[Term, tuple[Var, ...]]] = {
    "quadratic form": (total((i, j), mul(at(x, i), at(A, i, j), at(x, j))), (x, A)),
    "hermitian form": (total((i, j), mul(conj(at(z, i)), at(B, i, j), at(z, j))), (z, B)),
    "outer product": (Lambda((i, j), mul(at(z, i), at(x, j))), (z, x)),
    "nested abstraction": (Lambda((i,), at(Lambda((j,), mul(at(x, j), at(A, i, j))), i)), (x, A)),
    "element of a product": (
        at(Lambda((i,), total((j,), mul(at(A, i, j), at(x, j)))), constant(1)),
        (x, A),
    ),
    "shared and applied": (
        total(
            (i,), mul(at(Lambda((j,), function("sin", at(x, j))), i), at(Lambda((j,), function("sin", at(x, j))), i))
        ),
        (x,),
    ),
    "quotient": (divide(s, add(Number(2), mul(s, s))), (s,)),
    "power of both": (function("power", add(mul(s, s), ONE), add(s, Number(2))), (s,)),
    "maximum": (total((i,), function("maximum", at(x, i), at(v, i))), (x, v)),
    "complex root": (function("sqrt", add(c, Number(3))), (c,)),
    "sign": (function("sign", add(c, Number(3))), (c,)),
    "condition": (total((i, j), mul(indicator(affine([(i, 1), (j, -1)])), at(x, i), at(x, j))), (x,)),
    "delta of indices": (total((i, j), mul(delta(i, j), at(x, i), at(A, j, i))), (x, A)),
    "number": (mul(Number(Fraction(1, 3)), power(s, Number(3))), (s,)),
}


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", CHECKED)
def test_pullbacks_agree_with_central_differences(name: str) -> None:
    body, wrt = CHECKED[name]
    check_pullback(body, *wrt)


def test_a_periodic_shift() -> None:
    u = Var("u", Space(Cyclic("n"), dtype=complex))
    p = Var("p", Cyclic("n"))
    check_pullback(Lambda((p,), mul(conj(at(u, p)), at(u, affine([(p, 2)], 1)))), u)


def test_the_capture_does_not_catch_names() -> None:
    """x ↦ (i ↦ x[i]·Σ_j x[j]): both halves of the B rule are under the same binder."""
    check_pullback(Lambda((i,), mul(at(x, i), total((j,), mul(at(x, j), at(A, i, j))))), x, A)
    check_pullback(Lambda((i,), mul(at(x, i), total((i,), mul(at(x, i), at(x, i))))), x)


# --- named maps ----------------------------------------------------------------------------------------------------

R = Var("R", Function(Space("n")))
L = Var("L", Function(Space("n"), Space("n")))
D = Var("D", Function(Space("n"), result=Space("m"), linear=True))


def unwrapped(term: Term) -> Term:
    """u where the term is `d ↦ u[d]`."""
    assert isinstance(term, Lambda)
    assert isinstance(term.body, Apply)
    assert term.body.arguments == term.parameters
    return term.body.function


def test_a_named_map_keeps_its_name() -> None:
    (gradient,) = pulled(Apply(R, (x,)), x)
    assert unwrapped(gradient) is Pullback(R, 0, (x,), k)


def test_each_argument_of_a_named_map_has_its_own_gradient() -> None:
    first, second = pulled(Apply(L, (x, y)), x, y, cotangent=ONE)
    assert unwrapped(first) is Pullback(L, 0, (x, y), ONE)
    assert unwrapped(second) is Pullback(L, 1, (x, y), ONE)
    (both,) = pulled(Apply(L, (x, x)), x, cotangent=ONE)
    parts = {term for term in subterms(both) if isinstance(term, Pullback)}
    assert parts == {Pullback(L, 0, (x, x), ONE), Pullback(L, 1, (x, x), ONE)}


def test_the_chain_rule_through_a_named_map() -> None:
    """R(A x): Aᵀ ∇R(A x)."""
    product = Lambda((i,), total((j,), mul(at(A, i, j), at(x, j))))
    (gradient,) = pulled(Apply(R, (product,)), x, cotangent=ONE)
    numbers = values([A, x])
    image = numbers[A] @ numbers[x]
    found = evaluate(gradient, {**numbers, R: _Cubes()}, SIZES)
    np.testing.assert_allclose(found, numbers[A].T @ (3 * image**2), rtol=1e-12)


class _Cubes:
    """R(u) = Σ u³ with its pullback."""

    def __call__(self, u: Any) -> float:
        return float(np.sum(u**3))

    def pullback(self, position: int, arguments: tuple[Any, ...], cotangent: Any) -> Any:
        assert position == 0
        return 3 * arguments[0] ** 2 * cotangent


def test_the_second_derivative_of_a_named_map_is_refused() -> None:
    gradient = Pullback(R, 0, (x,), ONE)
    with pytest.raises(UnsupportedError, match="second derivative of R, which is only named, is not known") as raised:
        pulled(total((i,), mul(at(gradient, i), at(v, i))), x)
    assert "pass a program for it before differentiating twice" in str(raised.value)
    with pytest.raises(UnsupportedError, match="second derivative of R"):
        push(gradient, {x: v}, Names(gradient, v))


def test_a_linear_map_has_its_adjoint() -> None:
    """P D = Dᵀ, and the pullback of Dᵀ is D again."""
    kappa = Var("k", Space("m"))
    (adjoint,) = pulled(Apply(D, (x,)), x)
    assert unwrapped(adjoint) is Pullback(D, 0, (), kappa)
    w = Var("w", Space("m"))
    (again,) = pulled(Pullback(D, 0, (), w), w)
    assert unwrapped(again) is Apply(D, (Var("k", Space("n")),))


def test_linear_maps_push_themselves_forward() -> None:
    forward, tangent = push(Apply(D, (x,)), {x: v}, Names(x, v))
    assert not forward
    assert tangent is Apply(D, (v,))
    w, u = Var("w", Space("m")), Var("u", Space("m"))
    assert push(Pullback(D, 0, (), w), {w: u}, Names(w, u))[1] is Pullback(D, 0, (), u)


def test_a_scalar_named_map_pushes_forward_by_its_gradient() -> None:
    _, tangent = push(Apply(R, (x,)), {x: v}, Names(x, v))
    found = evaluate(tangent, {**values([x, v]), R: _Cubes()}, SIZES)
    numbers = values([x, v])
    assert found == pytest.approx(float(np.sum(3 * numbers[x] ** 2 * numbers[v])))


def test_the_pushforward_of_an_unknown_tensor_map_is_refused() -> None:
    F = Var("F", Function(Space("n"), result=Space("n")))
    with pytest.raises(UnsupportedError, match="the pushforward of the named map F is not known"):
        push(Apply(F, (x,)), {x: v}, Names(x, v))


# --- tuples and bindings -------------------------------------------------------------------------------------------


def test_the_cotangents_of_several_results_are_added() -> None:
    body = Tuple((total((i,), mul(at(x, i), at(x, i))), Lambda((i,), mul(at(x, i), at(v, i)))))
    seed = Tuple((k, y))
    (gradient,) = pulled(body, x, cotangent=seed)
    numbers = values([x, v, y, k])
    found = evaluate(gradient, numbers, SIZES)
    np.testing.assert_allclose(found, 2 * numbers[x] * numbers[k] + numbers[v] * numbers[y], rtol=1e-13)


def test_each_binding_has_one_cotangent() -> None:
    """t = exp(x): used three times, its cotangent is bound once and summed over the uses."""
    t = Var("t", Space("n"))
    body = let(
        [(t, Lambda((i,), function("exp", at(x, i))))],
        total((i,), mul(at(t, i), at(t, i), function("sin", at(t, i)))),
    )
    backward, (gradient,) = pull(body, (x,), ONE, Names(body))
    ((bar, value),) = backward
    assert bar.name == "t_bar"
    assert isinstance(value, Lambda)
    assert bar in gradient.free
    check_pullback(body, x)


def test_only_bindings_that_depend_on_the_points_are_visited() -> None:
    t, u = Var("t", Space()), Var("u", Space())
    body = Let(((t, function("exp", s)), (u, function("sin", at(v, constant(0))))), mul(t, u))
    assert reached(body, (s,)) == [s, t]
    backward, _ = pull(body, (s,), ONE, Names(body))
    assert [bar.name for bar, _ in backward] == ["t_bar"]


def test_pushforward_through_bindings() -> None:
    t = Var("t", Space("n"))
    body = let([(t, Lambda((i,), mul(at(x, i), at(x, i))))], total((i,), mul(at(t, i), at(A, i, i))))
    forward, tangent = push(body, {x: v}, Names(body, v))
    assert [dot.name for dot, _ in forward] == ["t_dot"]
    numbers = values([x, v, A])
    found = evaluate(let((*split(body)[0], *forward), tangent), numbers, SIZES)
    assert found == pytest.approx(float(np.sum(2 * numbers[x] * numbers[v] * np.diag(numbers[A]))))


def test_pushforward_of_a_constant_is_zero() -> None:
    _, tangent = push(Lambda((i,), at(v, i)), {x: y}, Names(x, y, v))
    np.testing.assert_array_equal(evaluate(tangent, values([v, y]), SIZES), np.zeros(3))
    _, pair = push(Tuple((s, at(v, constant(0)))), {s: k}, Names(s, k, v))
    assert pair is Tuple((k, ZERO))


# --- growth and names ----------------------------------------------------------------------------------------------


def chain(layers: int) -> Term:
    """y ← tanh(A y) ⊙ y, so many times: every layer is used twice."""
    bindings: list[tuple[Var, Term]] = []
    last = x
    for n in range(layers):
        product = total((j,), mul(at(A, i, j), at(last, j)))
        layer = Var(f"y{n}", Space("n"))
        bindings.append((layer, Lambda((i,), mul(function("tanh", product), at(last, i)))))
        last = layer
    return share(let(bindings, total((i,), at(last, i))))


def size(term: Term) -> int:
    return sum(1 for _ in subterms(term))


@pytest.mark.thorough
def test_the_derivative_of_a_chain_grows_linearly() -> None:
    """Each layer adds the same number of nodes, to the program and to its derivative."""
    for count in (_pulled_size, _pushed_size):
        sizes = {layers: count(chain(layers)) for layers in (8, 16, 32, 64)}
        step = (sizes[16] - sizes[8]) / 8
        assert sizes[32] - sizes[16] == 16 * step
        assert sizes[64] - sizes[32] == 32 * step
        assert sizes[64] < 7 * size(chain(64))


def _pulled_size(body: Term) -> int:
    return size(closed(body, (x, A), ONE))


def _pushed_size(body: Term) -> int:
    forward, tangent = push(body, {x: v}, Names(body, v))
    return size(let((*split(body)[0], *forward), tangent))


@pytest.mark.thorough
def test_the_simplified_derivative_of_a_chain_grows_linearly() -> None:
    sizes = {layers: size(simplify_body(closed(chain(layers), (x, A), ONE))) for layers in (3, 6, 12)}
    assert sizes[12] - sizes[6] < 2.1 * (sizes[6] - sizes[3])


def test_a_deep_chain_is_right() -> None:
    check_pullback(chain(4), x, A)


def binders(term: Term) -> list[str]:
    """The names that distinct nodes bind."""
    return [var.name for node in subterms(term) for var in node.bound]


def overshadowed(term: Term, scope: frozenset[str] = frozenset()) -> set[str]:
    """Names that are bound where they are visible already."""
    names = {var.name for var in term.bound}
    found = names & scope
    for child in term.children:
        found |= overshadowed(child, scope | names)
    return found


HAND = {
    "product": total((i,), mul(at(x, i), at(x, i), function("exp", at(x, i)))),
    "form": total((i, j), mul(at(x, i), at(A, i, j), at(x, j))),
    "tensor": Lambda((i, j), mul(at(x, i), at(x, j))),
    "nested": Lambda((i,), mul(at(x, i), total((j,), mul(at(x, j), at(A, i, j), total((Var("p", Range("n")),), s))))),
}


@pytest.mark.parametrize("name", HAND)
def test_no_binder_of_a_raw_derivative_hides_a_name(name: str) -> None:
    (gradient,) = pulled(HAND[name], x)
    assert not overshadowed(gradient, frozenset(var.name for var in gradient.free))


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs())
def test_no_binder_of_a_derivative_shadows_another(case: Case) -> None:
    body = share(case.term.body)
    cotangent = Names(case.term).fresh(Var("k", cotangent_space(space_of(body))))
    derivative = closed(body, case.term.parameters, cotangent)
    assert not overshadowed(derivative, frozenset(var.name for var in derivative.free))


def test_cotangent_spaces_have_no_symmetry() -> None:
    symmetric = Space("n", "n", dtype=complex, symmetry=["H[i,j] = conj(H[j,i])"])
    assert cotangent_space(symmetric) == Space("n", "n", dtype=complex)
    H = Var("H", symmetric)
    _, (gradient,) = pull(at(H, constant(0), constant(1)), (H,), ONE, Names(H))
    assert space_of(gradient).group == Space("n", "n").group


def test_differences_of_equals_vanish() -> None:
    body = add(s, negate(s))
    assert evaluate(pulled(body, s)[0], {k: 2.0}, {}) == 0.0


def test_primitives_of_the_cotangent_stay_light() -> None:
    """A real program makes no conjugates and no real parts."""
    body = total((i,), mul(function("exp", at(x, i)), at(x, i)))
    (gradient,) = pulled(body, x)
    assert not [t for t in subterms(gradient) if isinstance(t, Primitive) and t.name == "real"]
    assert "*" not in text(Lambda((x, k), gradient))
