"""Programs written in Python mean what NumPy computes: each traced term is evaluated by the reference interpreter."""

from __future__ import annotations

import threading
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from combdiff import tracing as cd
from combdiff.errors import TraceError
from combdiff.ir.domains import Cyclic, Function, Range, Real, Space, Symmetric
from combdiff.ir.indices import Indicator, affine
from combdiff.ir.interpreter import evaluate
from combdiff.ir.let_form import share
from combdiff.ir.substitution import subterms
from combdiff.ir.terms import Apply, Lambda, Mul, Number, Sum, Term, Var
from combdiff.ir.types import type_of

Number_ = Space()
Vector = Space("N")
Matrix = Space("N", "M")
Square = Space("N", "N")
ComplexVector = Space("N", dtype=complex)
SIZES = {"N": 3, "M": 4, "K": 2, "B": 1}
RANDOM = np.random.default_rng(7)
A, B = RANDOM.normal(size=(3, 4)), RANDOM.normal(size=(4, 3))
S, T3 = RANDOM.normal(size=(3, 3)), RANDOM.normal(size=(2, 3, 4))
x, y, m = RANDOM.normal(size=3), RANDOM.normal(size=3), RANDOM.normal(size=4)
z = x + 1j * y


def trace(function: Callable[..., Any]) -> Lambda:
    """The term of a function."""
    return cd.trace_function(function).term


def value(function: Callable[..., Any], *arrays: Any) -> Any:
    """What the traced program gives at the arrays; its normal form must give the same."""
    term = trace(function)
    found = evaluate(term, {}, SIZES)(*arrays)
    shared = evaluate(Lambda(term.parameters, share(term.body)), {}, SIZES)(*arrays)
    for one, other in zip(*(each if isinstance(each, tuple) else (each,) for each in (found, shared)), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-13)
    return found


def assert_means(function: Callable[..., Any], expected: Any, *arrays: Any) -> None:
    """The traced program gives the expected array, of the expected shape."""
    found = np.asarray(value(function, *arrays))
    assert found.shape == np.shape(expected)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def bound_names(term: Term) -> list[str]:
    """The names that the distinct binders of a term bind."""
    return [var.name for node in subterms(term) for var in node.bound]


# --- what a program is ---------------------------------------------------------------------------------------------


def test_a_traced_program_has_its_term_name_and_place() -> None:
    def norm(v: Vector):
        return cd.sum_(lambda i: v[i] * v[i])

    traced = cd.trace_function(norm)
    v, i = Var("v", Vector), Var("i", Range("N"))
    assert traced.term is Lambda((v,), Sum((i,), Mul((Apply(v, (i,)), Apply(v, (i,))))))
    assert traced.name == "norm"
    assert (traced.location.file, traced.location.line) == (__file__, norm.__code__.co_firstlineno)


def test_results() -> None:
    def f(v: Vector, a: Number_):
        return a * v, 3, a, v

    found = value(f, x, 2.0)
    np.testing.assert_allclose(found[0], 2 * x)
    assert found[1:3] == (3, 2.0)
    np.testing.assert_array_equal(found[3], x)


def test_a_program_may_have_no_parameters() -> None:
    def f():
        return cd.sum_(lambda k: 2, k=5)

    assert evaluate(trace(f).body, {}, {}) == 10


def test_annotations_are_found_in_enclosing_functions_and_classes() -> None:
    Inner = Space("N", dtype=complex)

    class Spaces:
        Own = Space(3)

        def f(v: Inner, w: Own, u: Vector, s: 'Space("N", "M")', t: "'Inner'"):  # noqa: UP037
            return v[0]

        term = cd.trace_function(f).term

    assert [p.type for p in Spaces.term.parameters] == [Inner, Space(3), Vector, Matrix, Inner]


def test_annotations_are_found_two_functions_up() -> None:
    Outer = Space(7)

    def middle() -> Lambda:
        def f(v: Outer):
            return v[0]

        return trace(f)

    assert middle().parameters[0].type == Outer


def test_annotations_need_not_be_strings() -> None:
    def f(v):
        return v[0]

    f.__annotations__["v"] = Space(2)
    assert trace(f).parameters == (Var("v", Space(2)),)


# --- elements, sums and tensors ------------------------------------------------------------------------------------


def test_sums_and_tensors() -> None:
    def f(a: Matrix, v: Vector, w: Space("M")):
        u = cd.tensor(lambda i: cd.sum_(lambda j: a[i, j] * w[j]))
        return cd.sum_(lambda i: v[i] * u[i])

    assert_means(f, x @ A @ m, A, x, m)


def test_affine_indices() -> None:
    def f(v: Space(9)):
        return cd.tensor(lambda i, j: v[2 * i - (j - 1)] * v[np.int64(2) * i] * v[-(j - i) + j + 1], i=4, j="K")

    v = RANDOM.normal(size=9)
    assert_means(f, [[v[2 * i - j + 1] * v[2 * i] * v[i + 1] for j in range(2)] for i in range(4)], v)


def test_constant_indices_and_ends() -> None:
    def f(v: Vector, a: Space("N", 4), w: Space(Symmetric(1))):
        return v[0], v[-1], a[-2, -1], w[-1], v[np.int64(1)]

    w = np.array([5.0, 6.0, 7.0])
    np.testing.assert_allclose(value(f, x, A, w), [x[0], x[-1], A[-2, -1], 5.0, x[1]])


def test_rows_columns_and_ellipses() -> None:
    def f(a: Space(2, "N", "M")):
        return a[0], a[:, 1], a[..., -1], a[1, :, 2], a[...], a[0][1], a[0, 1][2]

    expected = T3[0], T3[:, 1], T3[..., -1], T3[1, :, 2], T3, T3[0][1], T3[0, 1][2]
    for found, wanted in zip(value(f, T3), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_a_tensor_of_rows_has_their_axes_last() -> None:
    def f(a: Matrix):
        return cd.tensor(lambda i, n: 2 * a[i], n=2)

    assert_means(f, np.stack([2 * A, 2 * A], axis=1), A)


def test_periodic_and_symmetric_indices() -> None:
    def f(u: Space(Cyclic("M")), w: Space(Symmetric("B"))):
        rolled = cd.tensor(lambda k: cd.sum_(lambda b: w[b] * u[k + b] * w[-b]) + 0 * u[k])
        return rolled, cd.sum_(lambda b: u[b] * w[b], b=Symmetric("B")), cd.sum_(lambda k: u[k], k=9), u[-1]

    w = np.array([5.0, 6.0, 7.0])
    found = value(f, m, w)
    expected = [sum(w[b + 1] * m[(k + b) % 4] * w[1 - b] for b in (-1, 0, 1)) for k in range(4)]
    np.testing.assert_allclose(found[0], expected)
    np.testing.assert_allclose(found[1], m[3] * 5 + m[0] * 6 + m[1] * 7)
    np.testing.assert_allclose(found[2:], [2 * m.sum() + m[0], m[3]])


def test_indices_over_the_real_line() -> None:
    def f(g: Space(Real()), h: Space(Real())):
        return cd.tensor(lambda t: cd.sum_(lambda s: g[s] * h[t - s / 2 + 0.5]) + g[t])

    term = trace(f)
    t, s = (Var(name, Real()) for name in "ts")
    assert type_of(term.body) == Space(Real())
    argument = affine([(t, 1), (s, Fraction(-1, 2))], Fraction(1, 2))
    assert Apply(term.parameters[1], (argument,)) in set(subterms(term))


def test_inner_lambdas_shadow_outer_ones() -> None:
    def f(v: Vector, i: Number_):
        return i * cd.sum_(lambda i: v[i] * cd.sum_(lambda i: v[i]) * v[i])

    assert_means(f, 3 * x.sum() * (x @ x), x, 3.0)
    assert sorted(bound_names(trace(f).body)) == ["i.1", "i.2"]


def test_no_index_is_named_like_a_size() -> None:
    def f(v: Vector):
        return cd.tensor(lambda N: v[N] * v[-1])

    assert_means(f, x * x[-1], x)
    assert bound_names(trace(f).body) == ["N.1"]


def test_every_bound_name_is_unique() -> None:
    def f(a: Square, v: Vector):
        u = np.exp(a @ v)
        return (u * u + a.T @ u).sum() + cd.sum_(lambda i: u[i]) + cd.sum_(lambda i: a[i, i])

    names = bound_names(trace(f).body)
    assert len(names) == len(set(names))
    u = np.exp(S @ x)
    assert_means(f, (u * u + S.T @ u).sum() + u.sum() + np.trace(S), S, x)


def test_a_tensor_used_again_is_one_object() -> None:
    def f(a: Square, v: Vector):
        for _ in range(40):
            v = cd.tanh(a @ v) + v * v
        return v.sum()

    assert sum(1 for _ in subterms(trace(f))) < 40 * 30


def test_a_tensor_built_inside_a_lambda() -> None:
    def f(a: Matrix, w: Space("M")):
        def row(i):
            r = cd.tensor(lambda j: cd.exp(a[i, j]) * w[j])
            return cd.sum_(lambda j: r[j] * r[j])

        return cd.tensor(row)

    assert_means(f, ((np.exp(A) * m) ** 2).sum(axis=1), A, m)


def test_transposes_are_read_through() -> None:
    def f(a: Matrix):
        return cd.tensor(lambda i, j: a.T[i, j] + a.T.T[j, i])

    assert not any(isinstance(node, Apply) and isinstance(node.function, Lambda) for node in subterms(trace(f)))
    assert_means(f, 2 * A.T, A)


# --- conditions ----------------------------------------------------------------------------------------------------

CONDITIONS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[int, int], bool]]] = {
    "le": (lambda i, j: i <= j, lambda i, j: i <= j),
    "lt": (lambda i, j: i < j, lambda i, j: i < j),
    "ge": (lambda i, j: i >= j, lambda i, j: i >= j),
    "gt": (lambda i, j: i > j, lambda i, j: i > j),
    "eq": (lambda i, j: i == j, lambda i, j: i == j),
    "ne": (lambda i, j: i != j, lambda i, j: i != j),
    "constant": (lambda i, j: i < 2, lambda i, j: i < 2),
    "reflected": (
        lambda i, j: 1 >= j,  # noqa: SIM300
        lambda i, j: j <= 1,
    ),
    "numpy": (lambda i, j: np.int64(1) <= i, lambda i, j: i >= 1),
    "affine": (lambda i, j: 2 * i - j + 1 == 3, lambda i, j: 2 * i - j + 1 == 3),
    "parity": (lambda i, j: (i + j) % 2 == 0, lambda i, j: (i + j) % 2 == 0),
    "odd": (lambda i, j: (i - j) % 3 != 1, lambda i, j: (i - j) % 3 != 1),
    "and": (lambda i, j: (i <= j) & (j < 3) & (i != 1), lambda i, j: i <= j < 3 and i != 1),
    "or": (lambda i, j: (i == 0) | (j == i) | (i > j), lambda i, j: i == 0 or j <= i),
    "not": (lambda i, j: ~((i <= j) & (j < 3)), lambda i, j: not i <= j < 3),
    "far": (lambda i, j: (i + j) % 9 != 3, lambda i, j: i + j != 3),
    "apart": (lambda i, j: (i != j) & (i != 0) & (j != 3), lambda i, j: i != j and i != 0 and j != 3),
    "impossible": (lambda i, j: (i != i) | (i + 1 == i), lambda i, j: False),
    "known": (lambda i, j: (i == i) & (i < i + 1), lambda i, j: True),
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_where_on_conditions(name: str) -> None:
    condition, meaning = CONDITIONS[name]

    def f(a: Matrix):
        return cd.tensor(lambda i, j: cd.where(condition(i, j), a[i, j], -2))

    assert_means(f, [[A[i, j] if meaning(i, j) else -2.0 for j in range(4)] for i in range(3)], A)


def test_where_is_two_indicators() -> None:
    def f(a: Square):
        return cd.sum_(lambda i, j: cd.where(i <= j, a[i, j], a[j, i] ** 2))

    term = trace(f)
    i, j = Var("i", Range("N")), Var("j", Range("N"))
    found = {node.form for node in subterms(term) if isinstance(node, Indicator)}
    assert found == {affine([(j, 1), (i, -1)]), affine([(i, 1), (j, -1)], -1)}


def test_where_of_tensors_and_conditions_as_numbers() -> None:
    def f(a: Matrix):
        return cd.tensor(lambda i: np.where(i == 1, a[i], 0)), cd.sum_(lambda i, j: a[i, j] * (i < j))

    found = value(f, A)
    np.testing.assert_allclose(found[0], A * [[0], [1], [0]])
    np.testing.assert_allclose(found[1], np.triu(A, 1).sum())


def test_where_guards_what_is_not_chosen() -> None:
    def f(v: Vector):
        return cd.sum_(lambda i, j: cd.where(i != j, 1 / (v[i] - v[j]) ** 2, 0))

    assert_means(f, sum(1 / (x[i] - x[j]) ** 2 for i in range(3) for j in range(3) if i != j), x)


def test_delta() -> None:
    def f(v: Vector):
        return cd.tensor(lambda i, j: cd.delta(i, j) * v[i], j="N"), cd.sum_(lambda i: cd.delta(i, 1) * v[i])

    found = value(f, x)
    np.testing.assert_allclose(found[0], np.diag(x))
    np.testing.assert_allclose(found[1], x[1])
    assert (cd.delta(2, 2), cd.delta(2, 3)) == (1, 0)


def test_where_with_a_known_condition() -> None:
    def f(v: Vector):
        return cd.where(True, v, 2 * v)

    assert_means(f, x, x)


# --- arithmetic ----------------------------------------------------------------------------------------------------

OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b + 1 + np.float64(2),
    "subtract": lambda a, b: 3 - (a - b) - np.float32(0.5),
    "multiply": lambda a, b: np.float64(2) * a * b * 3 * True,
    "divide": lambda a, b: a / b + 1 / a + b / 3 + np.float64(1) / b + a / 0.3,
    "complex": lambda a, b: (a + 2j) / (b * 1j) + a / (1 + 2j) + b / 0.1j,
    "power": lambda a, b: a**2 + np.square(b) + a**-1 + abs(a) ** b + 2**b + np.power(a, 3),
    "sign": lambda a, b: -a + +b + np.negative(a) + np.positive(b),
    "numpy": lambda a, b: np.add(a, b) * np.subtract(a, 1.0) / np.multiply(2, b) + np.array(2.0) * a,
    "abs": lambda a, b: abs(a) + np.abs(b) + np.absolute(a),
    "reciprocal": lambda a, b: np.reciprocal(a) + np.float_power(np.abs(a), b),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_arithmetic_of_numbers_and_tensors(name: str) -> None:
    operation = OPERATIONS[name]

    def on_tensors(a: Vector, b: Vector):
        return operation(a, b)

    def on_numbers(a: Number_, b: Number_):
        return operation(a, b)

    assert_means(on_tensors, operation(x, y), x, y)
    assert_means(on_numbers, operation(x[0], y[0]), x[0], y[0])


def test_quotients_by_constants_are_exact() -> None:
    def f(a: Number_):
        return a / 3, a / 2j

    first, second = trace(f).body.items
    assert first.factors[0] is Number(Fraction(1, 3))
    assert second.factors[0] is Number(0, Fraction(-1, 2))


REAL_FUNCTIONS = ["exp", "sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh"]


@pytest.mark.parametrize("name", [*REAL_FUNCTIONS, "abs", "sign", "real", "imag", "conj"])
def test_elementary_functions(name: str) -> None:
    ours, numpys = getattr(cd, name), getattr(np, name)

    def f(v: Vector, w: ComplexVector):
        return ours(v) + numpys(w), cd.sum_(lambda i: numpys(v[i]) * ours(w[i]))

    small, complexes = x / 4, z / 4
    found = value(f, small, complexes)
    np.testing.assert_allclose(found[0], numpys(small) + numpys(complexes))
    np.testing.assert_allclose(found[1], numpys(small) @ numpys(complexes))
    np.testing.assert_allclose(ours(small), numpys(small))
    assert ours(0.25) == numpys(0.25)


def test_functions_of_positive_or_several_numbers() -> None:
    def f(v: Vector, w: Vector):
        return (
            cd.log(v) + np.log(v) + cd.sqrt(v) + np.sqrt(v) + np.log1p(v) + np.expm1(v),
            cd.maximum(v, w) * np.maximum(0.5, w) + cd.minimum(v, 1) - np.minimum(w, v),
            cd.relu(w),
        )

    p = abs(x) + 0.1
    found = value(f, p, y)
    np.testing.assert_allclose(found[0], 2 * np.log(p) + 2 * np.sqrt(p) + np.log1p(p) + np.expm1(p))
    np.testing.assert_allclose(
        found[1], np.maximum(p, y) * np.maximum(0.5, y) + np.minimum(p, 1) - np.minimum(y, p), atol=1e-14
    )
    np.testing.assert_allclose(found[2], np.maximum(y, 0))
    assert cd.relu(-2.0) == 0
    assert cd.maximum(1, 2) == 2


def test_real_values_need_no_conjugate() -> None:
    def f(v: Vector):
        return v.conj() + cd.conj(v) + v.real + v.imag

    assert_means(f, 3 * x, x)
    assert {type(node).__name__ for node in subterms(trace(f).body)}.isdisjoint({"Conj", "Primitive"})


# --- whole tensors -------------------------------------------------------------------------------------------------


def test_products() -> None:
    def f(a: Matrix, b: Space("M", "N"), v: Vector, w: Space("M")):
        return a @ b, a @ w, v @ a, v @ v, np.matmul(a, w), np.dot(a, b), np.dot(2, v), np.outer(v, w), np.dot(v, v)

    expected = A @ B, A @ m, x @ A, x @ x, A @ m, A @ B, 2 * x, np.outer(x, m), x @ x
    for found, wanted in zip(value(f, A, B, x, m), expected, strict=True):
        np.testing.assert_allclose(found, wanted)


def test_batched_products() -> None:
    def f(t: Space(2, "N", "M"), b: Space("M", "N"), w: Space("M"), one: Space(1, "M", "N")):
        return t @ b, t @ w, t @ one, np.dot(t, b), np.dot(b, t[0]), np.dot(t, one)

    expected = T3 @ B, T3 @ m, T3 @ B[None], np.dot(T3, B), B @ T3[0], np.dot(T3, B[None])
    for found, wanted in zip(value(f, T3, B, m, B[None]), expected, strict=True):
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted)


def test_broadcasting() -> None:
    def f(a: Matrix, w: Space("M"), c: Space("N", 1), one: Space(1), s: Number_):
        return a + w, a * c, c * w, one + a, s * a, one * one, cd.maximum(c, 0) - w

    c, one = x[:, None], np.array([2.0])
    expected = A + m, A * c, c * m, one + A, 3 * A, one * one, np.maximum(c, 0) - m
    for found, wanted in zip(value(f, A, m, c, one, 3.0), expected, strict=True):
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted)


def test_axes() -> None:
    def f(t: Space(2, "N", "M"), v: Vector):
        return t.T, np.transpose(t, (1, 2, 0)), np.transpose(t, (-1, 0, 1)), v.T, t.ndim * v

    expected = T3.T, T3.transpose(1, 2, 0), T3.transpose(2, 0, 1), x, 3 * x
    for found, wanted in zip(value(f, T3, x), expected, strict=True):
        np.testing.assert_allclose(found, wanted)


def test_sums_along_axes() -> None:
    def f(t: Space(2, "N", "M")):
        return t.sum(), t.sum(axis=1), t.sum((0, -1)), np.sum(t), np.sum(t, axis=-1), np.sum(t, 0), cd.sum_(t, axis=2)

    expected = T3.sum(), T3.sum(1), T3.sum((0, 2)), T3.sum(), T3.sum(-1), T3.sum(0), T3.sum(2)
    for found, wanted in zip(value(f, T3), expected, strict=True):
        np.testing.assert_allclose(found, wanted)


def test_an_index_may_be_called_axis() -> None:
    def f(v: Vector):
        return cd.sum_(lambda axis: v[axis]) + cd.sum_(lambda axis: v[2 * axis], axis=2)

    assert_means(f, x.sum() + x[0] + x[2], x)


EINSUMS = [
    "ij,jk->ik",
    "ij,jk",
    "ij,ji",
    "ij,jk->",
    "ij,ji->i",
    "ij,jk->kij",
    "ab,cd->abcd",
    "ij,ji->ij",
    " ij , jk -> k",
]


@pytest.mark.parametrize("subscripts", EINSUMS)
def test_einsum(subscripts: str) -> None:
    def f(a: Matrix, b: Space("M", "N")):
        return cd.einsum(subscripts, a, b) + np.einsum(subscripts, a, b)

    assert_means(f, 2 * np.einsum(subscripts, A, B), A, B)
    np.testing.assert_allclose(cd.einsum(subscripts, A, B), np.einsum(subscripts, A, B))


def test_einsum_of_diagonals() -> None:
    def f(a: Square):
        return cd.einsum("ii", a), cd.einsum("ii->i", a), cd.einsum("ij->ji", a)

    found = value(f, S)
    np.testing.assert_allclose(found[0], np.trace(S))
    np.testing.assert_allclose(found[1], np.diag(S))
    np.testing.assert_allclose(found[2], S.T)


def test_traces() -> None:
    def f(a: Square, t: Space("N", "N", "M")):
        return cd.trace(a) + np.trace(a), cd.trace(t)

    t = RANDOM.normal(size=(3, 3, 4))
    found = value(f, S, t)
    np.testing.assert_allclose(found[0], 2 * np.trace(S))
    np.testing.assert_allclose(found[1], np.trace(t))
    assert cd.trace(S) == np.trace(S)


def test_plain_arrays_go_to_numpy() -> None:
    np.testing.assert_array_equal(cd.sum_(A, axis=0), A.sum(axis=0))
    np.testing.assert_array_equal(cd.where(A > 0, A, 0), np.where(A > 0, A, 0))
    np.testing.assert_array_equal(cd.conj(z), np.conj(z))


def test_shapes_of_fixed_size() -> None:
    def f(a: Space(2, Symmetric(3), Cyclic(4))):
        return a.shape[0] + 10 * a.shape[1] + 100 * a[0, 0, 0].ndim + 1000 * a.shape[2]

    assert trace(f).body is Number(4072)


# --- named maps and programs in programs -----------------------------------------------------------------------------


class Norm:
    """A map from vectors to numbers."""

    def __call__(self, v: Any) -> Any:
        return (v**2).sum()


def test_named_functions_are_called() -> None:
    def f(R: Function(Vector), D: Function(Vector, result=Space("M")), v: Vector, a: Number_):
        u = D(v + a)
        return a * R(2 * v) + cd.sum_(lambda j: u[j] * D(v)[j]), u, R(v)

    term = trace(f)
    found = evaluate(term, {}, SIZES)(Norm(), lambda v: v @ A, x, 2.0)
    np.testing.assert_allclose(found[0], 8 * x @ x + (x @ A) @ ((x + 2) @ A))
    np.testing.assert_allclose(found[1], (x + 2) @ A)
    R, _, v, _ = term.parameters
    assert term.body.items[2] is Apply(R, (v,))


def inner_term() -> Lambda:
    """A program with generic sizes, in normal form: `v ↦ let t = n ↦ exp(v[n]) in (Σ t, t/Σ t, v[-1])`."""

    def softmax(v: Space("n")):
        t = np.exp(v)
        return t.sum(), t / t.sum(), v[-1]

    term = trace(softmax)
    return Lambda(term.parameters, share(term.body))


def test_programs_call_programs() -> None:
    inner = inner_term()
    assert type(inner.body).__name__ == "Let"

    def f(a: Matrix, w: Space("M"), k: Space(3)):
        total, weights, last = cd.inline(inner, (a @ w,))
        again, _, end = cd.inline(inner, (k,))
        return total, weights @ a, last, again, end

    t = np.exp(A @ m)
    found = value(f, A, m, y)
    for one, other in zip(found, (t.sum(), t / t.sum() @ A, (A @ m)[-1], np.exp(y).sum(), y[-1]), strict=True):
        np.testing.assert_allclose(one, other)
    names = bound_names(trace(f).body)
    assert len(names) == len(set(names))
    assert not any(type(node).__name__ == "Let" for node in subterms(trace(f)))
    sizes = {axis.size for node in subterms(trace(f)) for var in node.bound if isinstance(axis := var.type, Range)}
    assert sizes == {"N", "M", 3}


def test_programs_with_several_uses_stay_small() -> None:
    inner = inner_term()

    def f(v: Vector):
        for _ in range(30):
            v = cd.inline(inner, (v,))[1] + v
        return v.sum()

    assert sum(1 for _ in subterms(trace(f))) < 30 * 30


def test_programs_take_numbers_named_functions_and_programs() -> None:
    def scaled(R: Function(Space("n")), v: Space("n"), a: Number_):
        return R(a * v) + R(v)

    def square(u: Space("k")):
        return cd.sum_(lambda i: u[i] ** 2)

    outer, norm = trace(scaled), trace(square)

    def f(P: Function(Vector), v: Vector):
        return cd.inline(outer, (P, v, 2)), cd.inline(outer, (norm, v, 3.0))

    term = trace(f)
    found = evaluate(term, {}, SIZES)(Norm(), x)
    np.testing.assert_allclose(found, [5 * x @ x, 10 * x @ x])


def test_inlined_periodic_sizes() -> None:
    def shift(u: Space(Cyclic("n")), w: Space(Symmetric("b"))):
        return cd.tensor(lambda k: cd.sum_(lambda b: w[b] * u[k + b]) + 0 * u[k])

    inner = trace(shift)

    def f(u: Space(Cyclic("M")), w: Space(Symmetric("B"))):
        return cd.inline(inner, (2 * u, w))

    w = np.array([5.0, 6.0, 7.0])
    assert_means(f, [sum(2 * w[b + 1] * m[(k + b) % 4] for b in (-1, 0, 1)) for k in range(4)], m, w)


def test_is_traced() -> None:
    seen: list[bool] = []

    def f(v: Vector, R: Function(Vector)):
        seen.extend(map(cd.is_traced, (v, R, v[0], 2.0, A)))
        return cd.sum_(lambda i: (seen.append(cd.is_traced(i)), v[i])[1])

    trace(f)
    assert seen == [True, True, True, False, False, True]


def test_traces_in_threads_do_not_meet() -> None:
    def f(v: Vector):
        other = threading.Thread(target=lambda: found.append(trace(g)))
        other.start()
        other.join()
        return v.sum()

    def g(w: Vector):
        return w[0]

    found: list[Lambda] = []
    assert_means(f, x.sum(), x)
    assert found[0].parameters[0].name == "w"


def test_a_failed_trace_leaves_nothing_behind() -> None:
    def bad(v: Vector):
        return cd.sum_(lambda i: v[i] * (1 if v[i] else 0))

    def good(v: Vector):
        return cd.sum_(lambda i: v[i])

    with pytest.raises(TraceError):
        trace(bad)
    assert sorted(bound_names(trace(good))) == ["i", "v"]
    with pytest.raises(TraceError, match="outside of a program"):
        cd.sum_(lambda i: 1, i=3)
