"""The interpreter against NumPy written by hand."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from strategies import Case, programs

from combdiff.errors import ArgumentError, UnsupportedError
from combdiff.ir.domains import Cyclic, Domain, Function, Range, Real, Space, Symmetric, Whole
from combdiff.ir.indices import Affine, Indicator, affine, delta, indicator, size_form
from combdiff.ir.interpreter import evaluate
from combdiff.ir.relations import relation
from combdiff.ir.terms import (
    ONE,
    Add,
    Apply,
    Conj,
    Lambda,
    Let,
    Mul,
    Number,
    Primitive,
    Pullback,
    Sum,
    Term,
    Tuple,
    Var,
    add,
    mul,
)
from combdiff.ir.types import type_of


def indices(names: str, domain: Domain) -> list[Var]:
    return [Var(name, domain) for name in names]


def complex_array(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(1)


class Linear:
    """A linear map with its adjoint, as a user gives it for a named map."""

    def __init__(self, matrix: np.ndarray) -> None:
        self.matrix = matrix

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return self.matrix @ x

    def pullback(self, position: int, arguments: tuple[np.ndarray, ...], cotangent: np.ndarray) -> np.ndarray:
        assert position == 0
        assert len(arguments) == 1
        return self.matrix.conj().T @ cotangent


# --- numbers


@pytest.mark.parametrize(
    ("term", "value", "kind"),
    [
        (Number(3), 3, int),
        (Number(Fraction(1, 2)), 0.5, float),
        (Number(0.25), 0.25, float),
        (Number(1, Fraction(1, 2)), 1 + 0.5j, complex),
        (Add((Number(1), Number(2))), 3, int),
        (Mul((Number(2), Number(0, 1))), 2j, complex),
        (Conj(Number(1, 2)), 1 - 2j, complex),
        (Primitive("power", (Number(2), Number(-1))), 0.5, float),
        (Primitive("sqrt", (Number(4),)), 2.0, float),
        (Primitive("abs", (Number(3, 4),)), 5.0, float),
        (Primitive("sign", (Number(0, -2),)), -1j, complex),
        (Primitive("relu", (Number(-2),)), 0.0, float),
        (Primitive("relu", (Number(2),)), 2.0, float),
        (Primitive("step", (Number(0),)), 0.0, float),
        (Primitive("step", (Number(Fraction(1, 10)),)), 1.0, float),
        (Primitive("maximum", (Number(1), Number(2))), 2.0, float),
        (Primitive("minimum", (Number(1), Number(2))), 1.0, float),
    ],
)
def test_numbers_are_python_numbers(term: Term, value: complex, kind: type) -> None:
    found = evaluate(term, {}, {})
    assert found == value
    assert type(found) is kind


def test_a_scalar_argument_becomes_a_python_number() -> None:
    x = Var("x", Space())
    assert type(evaluate(x, {x: np.float64(2.0)}, {})) is float
    assert type(evaluate(mul(x, x), {x: np.array(2.0)}, {})) is float


# --- sums and tensors


def test_quadratic_form(rng: np.random.Generator) -> None:
    A, x = Var("A", Space("n", "n", dtype=complex)), Var("x", Space("n", dtype=complex))
    i, j = indices("ij", Range("n"))
    term = Sum((i, j), Mul((Conj(Apply(x, (i,))), Apply(A, (i, j)), Apply(x, (j,)))))
    A0, x0 = complex_array(rng, 4, 4), complex_array(rng, 4)
    assert evaluate(term, {A: A0, x: x0}, {"n": 4}) == pytest.approx(x0.conj() @ A0 @ x0)


def test_wannier_density_wraps_and_begins_at_minus_the_bound(rng: np.random.Generator) -> None:
    """ρ[n,b] = Σ U[p,n,k]* S[p,q,k,k+b] U[q,n,k+b] with k modulo 3 and b from −1 to 1 (theory: worked result 6)."""
    k, b = Var("k", Cyclic("Nk")), Var("b", Symmetric("B"))
    p, q, n = indices("pqn", Range("M"))
    U = Var("U", Space("M", "M", Cyclic("Nk"), dtype=complex))
    S = Var("S", Space("M", "M", Cyclic("Nk"), Cyclic("Nk"), dtype=complex))
    kb = affine([(k, 1), (b, 1)])
    body = Mul((Conj(Apply(U, (p, n, k))), Apply(S, (p, q, k, kb)), Apply(U, (q, n, kb))))
    U0, S0 = complex_array(rng, 2, 2, 3), complex_array(rng, 2, 2, 3, 3)
    found = evaluate(Lambda((n, b), Sum((k, p, q), body)), {U: U0, S: S0}, {"M": 2, "Nk": 3, "B": 1})
    expected = np.zeros((2, 3), complex)
    for position, shift in enumerate([-1, 0, 1]):
        for point in range(3):
            U1, S1 = U0[:, :, (point + shift) % 3], S0[:, :, point, (point + shift) % 3]
            expected[:, position] += np.einsum("pn,pq,qn->n", U0[:, :, point].conj(), S1, U1)
    np.testing.assert_allclose(found, expected)


def test_convolution_reversal_and_guards(rng: np.random.Generator) -> None:
    x = Var("x", Space("n"))
    i, n = Var("i", Range("n")), size_form("n")
    x0 = rng.standard_normal(4)
    reverse = Lambda((i,), Apply(x, (affine([(n, 1), (i, -1)], -1),)))
    np.testing.assert_array_equal(evaluate(reverse, {x: x0}, {"n": 4}), x0[::-1])
    before = affine([(i, 1)], -1)
    shifted = Lambda((i,), Mul((Apply(x, (before,)), Indicator(before))))
    np.testing.assert_array_equal(evaluate(shifted, {x: x0}, {"n": 4}), [0, *x0[:-1]])


def test_an_empty_sum_is_zero_and_an_empty_tensor_has_its_shape() -> None:
    i, j = Var("i", Range("n")), Var("j", Range(2))
    assert evaluate(Sum((i,), Number(1)), {}, {"n": 0}) == 0
    assert evaluate(Lambda((i, j), Number(1)), {}, {"n": 0}).shape == (0, 2)


def test_element_types_follow_the_term() -> None:
    i, z = Var("i", Range(2)), Var("z", Space(dtype=complex))
    assert evaluate(Lambda((i,), Indicator(i)), {}, {}).dtype == int
    assert evaluate(Lambda((i,), Number(0.5)), {}, {}).dtype == float
    assert evaluate(Lambda((i,), mul(Number(0), z)), {z: 1j}, {}).dtype == int
    assert evaluate(Lambda((i,), Mul((delta(i, Affine((), 0)), z))), {z: 1.0}, {}).dtype == complex


def test_a_tensor_of_tensors_has_all_axes(rng: np.random.Generator) -> None:
    A = Var("A", Space("n", "m"))
    i, j = Var("i", Range("n")), Var("j", Range("m"))
    A0 = rng.standard_normal((2, 3))
    found = evaluate(Lambda((j,), Lambda((i,), Apply(A, (i, j)))), {A: A0}, {"n": 2, "m": 3})
    np.testing.assert_array_equal(found, A0.T)


@pytest.mark.parametrize(
    ("domain", "offset", "expected"),
    [
        (Range(4), 2, [[0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0], [0, 0, 0, 0]]),
        (Cyclic(4), 6, [[0, 0, 1, 0], [0, 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, 0]]),
        (Symmetric(1), 1, [[0, 1, 0], [0, 0, 1], [0, 0, 0]]),
    ],
)
def test_delta(domain: Domain, offset: int, expected: list[list[int]]) -> None:
    i, j = indices("ij", domain)
    np.testing.assert_array_equal(evaluate(Lambda((i, j), delta(affine([(i, 1)], offset), j)), {}, {}), expected)


def test_delta_of_numbers_and_arrays_is_equality() -> None:
    x, y = Var("x", Space("n")), Var("y", Space("n"))
    assert evaluate(delta(Number(0.5), Number(Fraction(1, 2))), {}, {}) == 1
    assert evaluate(delta(x, y), {x: np.arange(3.0), y: np.arange(3.0)}, {"n": 3}) == 1
    assert evaluate(delta(x, y), {x: np.arange(3.0), y: np.ones(3)}, {"n": 3}) == 0


def test_indicators_of_order_and_of_divisibility() -> None:
    i, j = indices("ij", Range(4))
    lower = evaluate(Lambda((i, j), Indicator(affine([(i, 1), (j, -1)]))), {}, {})
    np.testing.assert_array_equal(lower, np.tril(np.ones((4, 4))))
    np.testing.assert_array_equal(evaluate(Lambda((i,), Indicator(affine([(i, 1)], -1), 3)), {}, {}), [0, 1, 0, 0])
    assert evaluate(Var("n", Whole()), {}, {"n": 7}) == 7


# --- sharing, lets, tuples, programs


def test_lets_see_earlier_lets_and_tuples_are_tuples() -> None:
    x, i = Var("x", Space("n")), Var("i", Range("n"))
    s, t = Var("s", Space()), Var("t", Space("n"))
    double = Lambda((i,), Mul((s, Apply(x, (i,)))))
    term = Let(((s, Sum((i,), Apply(x, (i,)))), (t, double)), Tuple((s, t)))
    total_, doubled = evaluate(term, {x: np.array([1.0, 2.0])}, {"n": 2})
    assert total_ == 3.0
    np.testing.assert_array_equal(doubled, [3.0, 6.0])


def test_a_let_below_an_index_is_evaluated_at_each_index() -> None:
    x, i, s = Var("x", Space("n")), Var("i", Range("n")), Var("s", Space())
    body = Let(((s, Apply(x, (i,))),), Mul((s, s)))
    np.testing.assert_array_equal(evaluate(Lambda((i,), body), {x: np.arange(4.0)}, {"n": 4}), [0, 1, 4, 9])


def test_work_is_linear_in_the_graph() -> None:
    """y ↦ ½(y² + y) sixty times: 2⁶⁰ nodes as a tree. Tensors that tracing leaves un-reduced likewise."""
    x = y = Var("x", Space())
    for _ in range(60):
        y = mul(Number(Fraction(1, 2)), add(mul(y, y), y))
    assert evaluate(y, {x: 1.0}, {}) == 1.0
    v = w = Var("v", Space("n"))
    i = Var("i", Range("n"))
    for _ in range(30):
        w = Lambda((i,), Mul((Apply(w, (i,)), Apply(w, (affine([(i, -1)], 2),)))))
    np.testing.assert_array_equal(evaluate(w, {v: np.array([1.0, -1.0, 1.0])}, {"n": 3}), np.ones(3))


def test_an_unreduced_application_means_its_reduction(rng: np.random.Generator) -> None:
    x, b, c = Var("x", Space("n")), Var("b", Symmetric(1)), Var("c", Symmetric(1))
    inner = Lambda((b,), Apply(x, (affine([(b, 1)], 1),)))
    term = Lambda((c,), Apply(inner, (affine([(c, -1)]),)))
    x0 = rng.standard_normal(3)
    np.testing.assert_array_equal(evaluate(term, {x: x0}, {"n": 3}), x0[::-1])


def test_a_program_is_a_function() -> None:
    x, y = Var("x", Space()), Var("y", Space())
    program = Lambda((x, y), add(x, mul(Number(-1), y)))
    assert evaluate(program, {}, {})(5.0, 3.0) == 2.0
    assert evaluate(Apply(program, (Number(5), Number(3))), {}, {}) == 2


# --- named maps


def test_named_maps_are_called_with_arrays(rng: np.random.Generator) -> None:
    x, i = Var("x", Space("n")), Var("i", Range("n"))
    R, D = Var("R", Function(Space("n"))), Var("D", Function(Space("n"), result=Space("n"), linear=True))
    D0, x0 = rng.standard_normal((3, 3)), rng.standard_normal(3)
    doubled = Lambda((i,), Mul((Number(2), Apply(x, (i,)))))
    value = evaluate(Apply(R, (doubled,)), {R: lambda u: np.sum(u**2), x: x0}, {"n": 3})
    assert type(value) is float
    assert value == pytest.approx(4 * x0 @ x0)
    element = Lambda((i,), Apply(Apply(D, (x,)), (i,)))
    np.testing.assert_allclose(evaluate(element, {D: Linear(D0), x: x0}, {"n": 3}), D0 @ x0)


def test_the_pullback_of_a_named_map_is_its_own(rng: np.random.Generator) -> None:
    x, k = Var("x", Space("n")), Var("k", Space("n"))
    D = Var("D", Function(Space("n"), result=Space("n"), linear=True))
    D0, k0 = rng.standard_normal((3, 3)), rng.standard_normal(3)
    term = Pullback(D, 0, (x,), k)
    np.testing.assert_allclose(evaluate(term, {D: Linear(D0), x: k0, k: k0}, {"n": 3}), D0.T @ k0)
    with pytest.raises(UnsupportedError, match=r"the value given for D has no pullback\n  hint: give an object with"):
        evaluate(term, {D: np.sin, x: k0, k: k0}, {"n": 3})


# --- errors


@pytest.mark.parametrize(
    ("domain", "offset", "message"),
    [
        (Range("n"), 2, "axis 1 of A has the indices 0 … 2, but was read at 3"),
        (Range("n"), -1, "axis 1 of A has the indices 0 … 2, but was read at -1"),
        (Symmetric(1), -2, "axis 1 of A has the indices -1 … 1, but was read at -2"),
    ],
)
def test_out_of_range_names_tensor_axis_index_and_range(domain: Domain, offset: int, message: str) -> None:
    A = Var("A", Space(2, domain))
    i = Var("i", Range(2))
    with pytest.raises(ArgumentError, match=message):
        evaluate(Lambda((i,), Apply(A, (i, affine([(i, 1)], offset)))), {A: np.zeros((2, 3))}, {"n": 3})


def test_a_condition_guards_a_comparison_beside_it_however_deep_it_stands() -> None:
    """([i ≥ 1] c)* [x[i − 1] > 0]: nothing is read at −1."""
    (i,) = indices("i", Range("n"))
    x, c = Var("x", Space("n")), Var("c", Space(dtype=complex))
    guarded = Conj(mul(indicator(affine([(i, 1)], -1)), c))
    term = Lambda((i,), mul(guarded, relation("less", Number(0), Apply(x, (affine([(i, 1)], -1),)))))
    found = evaluate(term, {x: np.array([1.0, -1.0, 1.0]), c: 2 + 1j}, {"n": 3})
    np.testing.assert_array_equal(found, [0, 2 - 1j, 0])


def test_a_missing_value_is_named() -> None:
    with pytest.raises(ArgumentError, match="x has no value"):
        evaluate(Var("x", Space()), {}, {})
    with pytest.raises(ArgumentError, match="N has no value"):
        evaluate(Var("N", Whole()), {}, {})


def test_the_real_line_has_no_arrays() -> None:
    t = Var("t", Real())
    with pytest.raises(UnsupportedError, match="t runs over the real line: arrays cannot be given for it"):
        evaluate(Sum((t,), ONE), {}, {})
    with pytest.raises(UnsupportedError, match="t runs over the real line"):
        evaluate(Lambda((t,), ONE), {}, {})
    with pytest.raises(UnsupportedError, match="Dirac"):
        evaluate(delta(t, Var("s", Real())), {t: 0.0, Var("s", Real()): 0.0}, {})


# --- the generator of random programs


@settings(max_examples=12, deadline=None)
@given(programs())
def test_random_programs_are_well_typed_and_finite(case: Case) -> None:
    space = type_of(case.term.body)
    value = evaluate(case.term.body, case.environment, case.sizes)
    assert isinstance(space, Space)
    assert np.ndim(value) == space.order
    assert np.all(np.isfinite(value))
    assert space.dtype is complex or not np.iscomplexobj(value)


@settings(max_examples=12, deadline=None)
@given(programs(result="scalar", guarded=False))
def test_random_scalar_programs_are_real(case: Case) -> None:
    assert case.scalar
    value = evaluate(case.term, {}, case.sizes)(*case.environment.values())
    assert isinstance(value, float | int)


@settings(max_examples=12, deadline=None)
@given(programs(result="tensor"))
def test_random_tensor_programs_have_one_or_two_axes(case: Case) -> None:
    assert evaluate(case.term.body, case.environment, case.sizes).ndim in (1, 2)
