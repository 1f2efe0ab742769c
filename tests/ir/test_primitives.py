"""Every row of the table against central differences, inside the domain it states."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest
from backends import BACKENDS, back, convert, double_precision, on
from strategies import ORDERED

import combdiff as cd
from combdiff.errors import TypeMismatchError
from combdiff.ir.divided_differences import MOST_NODES
from combdiff.ir.domains import Space
from combdiff.ir.interpreter import evaluate
from combdiff.ir.primitives import AT_ZERO, SCIPY, TABLE, Derivative, Row, divide, function, power, square
from combdiff.ir.relations import OPPOSITES
from combdiff.ir.terms import MINUS_ONE, ONE, ZERO, Mul, Number, Primitive, Term, Var
from combdiff.ir.types import type_of

STEP = 2e-6
REAL_POINTS = (-2.3, -0.7, 0.0, 0.4, 0.9, 1.6, 3.0)
COMPLEX_POINTS = tuple(complex(a, b) for a, b in itertools.product((-1.4, -0.6, 0.0, 0.3, 1.7), (-1.2, -0.5, 0.0, 0.8)))


def off(ray: Callable[[complex], bool]) -> Callable[..., bool]:
    """All arguments nonzero and not on a ray."""
    return lambda *z: all(v != 0 and not ray(complex(v)) for v in z)


ORDERS = (0.0, 3.0)  # the whole numbers among the points that are no less than 0

# Which points the words in a row's `domain` admit. A row with new words needs an entry here.
ADMITS: dict[str, Callable[..., bool]] = {
    "everywhere": lambda *z: True,
    "z ≠ 0": lambda z: z != 0,
    "|x| < 1": lambda x: abs(x) < 1,
    "0 < x < 1": lambda x: 0 < x < 1,
    "x is not 0, −1, −2, …": lambda x: x > 0 or x != int(x),
    "n = 0, 1, 2, …, x is not 0, −1, −2, …": lambda n, x: n in ORDERS and (x > 0 or x != int(x)),
    "n = 1, 2, …": lambda n, x: n == 3,
    "a whole order, or x > 0": lambda n, x: n in ORDERS or x > 0,
    "x > 0, or a whole order and x ≠ 0": lambda n, x: (n in ORDERS and x != 0) or x > 0,
    "x > 0, y > 0": lambda x, y: x > 0 and y > 0,
    "all x > 0": lambda *x: min(x) > 0,
    "y > 0": lambda x, y: y > 0,
    "y > −1": lambda x, y: y > -1,
    "x ≠ 0": lambda x: x != 0,
    "x is not whole": lambda x: x != int(x),
    "(x, y) ≠ 0": lambda x, y: x != 0 or y != 0,
    "(x, y) off the negative real axis": lambda y, x: y != 0 or x > 0,
    "x ≠ y": lambda x, y: x != y,
    "x / y is not whole": lambda x, y: y != 0 and x / y != round(x / y),
    "cos z ≠ 0": lambda z: abs(np.cos(z)) > 0.05,
    "cosh z ≠ 0": lambda z: abs(np.cosh(z)) > 0.05,
    "z ≠ 0, off the negative real axis": off(lambda z: z.imag == 0 and z.real < 0),
    "off the real rays |z| ≥ 1": lambda z: np.imag(z) != 0 or abs(z) < 1,
    "off the imaginary rays |z| ≥ 1": lambda z: np.real(z) != 0 or abs(z) < 1,
    "z ≠ 0 off the negative real axis, or a whole exponent": lambda z, p: (
        (z != 0 and (np.imag(z) != 0 or np.real(z) > 0)) or (z != 0 and p == int(np.real(p)))
    ),
}


def scalar(name: str, dtype: type) -> Var:
    return Var(name, Space(dtype=dtype))


def variables_of(row: Row, dtype: type) -> tuple[Var, ...]:
    """The arguments of a row; an order is real."""
    kinds = (float if n == 0 and row.name in ORDERED else dtype for n in range(row.arity))
    return tuple(scalar(name, kind) for name, kind in zip("zwuvst", kinds, strict=False))


def points_of(row: Row, dtype: type, points: Sequence[complex]) -> Iterator[tuple[complex, ...]]:
    """Points of the arguments, of which an order is real; few of more than two arguments."""
    if row.arity > 2:
        inside = [each for each in points if ADMITS[row.domain](*[each] * row.arity)]
        return zip(*(inside[n:] + inside[:n] for n in range(row.arity)), strict=True)
    return itertools.product(*(points if v.type.dtype is dtype else REAL_POINTS for v in variables_of(row, dtype)))  # type: ignore[union-attr]


def call(term: Term, arguments: tuple[Var, ...], values: tuple[complex, ...]) -> complex:
    return complex(evaluate(term, dict(zip(arguments, values, strict=True)), {}))


def cases(dtype: type) -> list[tuple[Row, int, tuple[complex, ...]]]:
    """Every row, argument position and admitted point of that kind."""
    points = COMPLEX_POINTS if dtype is complex else REAL_POINTS
    return [
        (row, position, values)
        for row in TABLE.values()
        if not (row.real_only and dtype is complex)
        for values in points_of(row, dtype, points)
        if ADMITS[row.domain](*values)
        for position in range(row.arity)
        if not (row.name == "power" and position == 1 and np.imag(values[0]) == 0 and np.real(values[0]) < 0)
        if not (row.name in ORDERED and position == 0)
        if row.arity < MOST_NODES
    ]


def slopes(row: Row, position: int, values: tuple[complex, ...], variables: tuple[Var, ...]) -> tuple[complex, complex]:
    """∂h/∂z and ∂h/∂z̄ by central differences; for real arguments the slope and 0."""
    term = function(row.name, *variables)

    def slope(direction: complex) -> complex:
        ahead, behind = (
            tuple(v + s * STEP * direction if n == position else v for n, v in enumerate(values)) for s in (1, -1)
        )
        return (call(term, variables, ahead) - call(term, variables, behind)) / (2 * STEP)

    if variables[-1].type.dtype is not complex:  # type: ignore[union-attr]
        return slope(1), 0
    along, up = slope(1), slope(1j)
    return (along - 1j * up) / 2, (along + 1j * up) / 2


def check(row: Row, position: int, values: tuple[complex, ...], dtype: type) -> None:
    variables = variables_of(row, dtype)
    partials: tuple[Derivative, ...] = row.partials
    conjugates: tuple[Derivative, ...] = row.conjugate_partials
    if dtype is float and row.real_partials:
        partials, conjugates = row.real_partials, ()
    found = call(partials[position](*variables), variables, values)
    mirrored = call(conjugates[position](*variables), variables, values) if conjugates else 0
    if dtype is float:
        found, mirrored = found + mirrored, 0
    np.testing.assert_allclose(
        (found, mirrored), slopes(row, position, values, variables), rtol=1e-6, atol=1e-7, err_msg=f"{row.name}{values}"
    )


COMPLEX = [row.name for row in TABLE.values() if not row.real_only]


@pytest.mark.sample(40)
@pytest.mark.parametrize(
    ("dtype", "name", "least"), [(float, name, 2) for name in TABLE] + [(complex, name, 10) for name in COMPLEX]
)
def test_derivatives(dtype: type, name: str, least: int) -> None:
    tried = [case for case in cases(dtype) if case[0].name == name]
    assert len(tried) >= least or TABLE[name].arity == MOST_NODES
    for case in tried:
        check(*case, dtype)


@pytest.mark.sample(1)
@pytest.mark.parametrize("backend", BACKENDS)
def test_every_library_computes_what_numpy_does(backend: str) -> None:
    """By a line of its dialect where it has no function of that name. SciPy's functions have a test of their own."""
    own = [row for row in TABLE.values() if not row.numpy.startswith(SCIPY)]
    rows = [row for row in own if row.name not in ORDERED and row.arity < 4]
    admitted = [next(z for z in points_of(r, float, REAL_POINTS) if ADMITS[r.domain](*z)) for r in rows]
    points = np.array([(*z, *[0.0] * 6)[:6] for z in admitted])

    @cd.program
    def every(z: cd.Space(len(rows), 6)):  # type: ignore[no-untyped-def]
        return tuple(cd.primitive(r.name)(*(z[k, n] for n in range(r.arity))) for k, r in enumerate(rows))

    with double_precision():
        found = back(on(backend, every)(convert(backend, points)))
    for row, one, expected in zip(rows, found, every(points), strict=True):
        np.testing.assert_allclose(one, expected, rtol=1e-12, err_msg=row.name)


@pytest.mark.parametrize("name", COMPLEX)
def test_mirror(name: str) -> None:
    """`mirror` says that h(z̄) = conj(h(z)), on both axes too, where branch cuts lie: a real number is its conjugate."""
    row = TABLE[name]
    variables = variables_of(row, complex)
    term = function(name, *variables)
    points = [*filter(None, COMPLEX_POINTS), -2.5 + 0j, 2.5 + 0j, 2.5j]  # log has no value at 0

    def image(z: complex) -> complex:
        """The conjugate, on the other side of a cut along the imaginary axis, and on the same of one along the real."""
        return complex(z.real or -0.0, 0.0 - z.imag)

    pairs = [
        (call(term, variables, tuple(map(image, values))), np.conj(call(term, variables, values)))
        for values in points_of(row, complex, points)
        if row.name not in ORDERED or ADMITS[row.domain](*values)
    ]
    assert row.mirror == all(np.isclose(a, b, rtol=1e-12, atol=1e-12) for a, b in pairs)


@pytest.mark.parametrize("name", TABLE)
def test_rows_are_complete(name: str) -> None:
    row = TABLE[name]
    assert row.name == name
    assert row.definition or callable(row.numerical())
    assert row.latex or name == "power"
    assert row.domain in ADMITS
    for derivatives in (row.conjugate_partials, row.real_partials):
        assert len(derivatives) in (0, row.arity)
    variables = tuple(scalar(n, float if row.real_only else complex) for n in ("z", "w")[: row.arity])
    value = type_of(function(name, *variables))
    real = int if name in OPPOSITES else float
    assert value == Space(dtype=real if row.real_valued or row.real_only else complex)
    for derivative in (*row.partials[row.name in ORDERED :], *row.conjugate_partials):
        assert isinstance(type_of(derivative(*variables)), Space)


@pytest.mark.parametrize("name", TABLE)
def test_the_stated_result_type_is_the_value_s(name: str) -> None:
    """`real_valued` functions give real numbers for complex arguments; real arguments give real numbers."""
    row = TABLE[name]
    for dtype, value in ((float, 0.3), *(() if row.real_only else ((complex, 0.3 + 0.4j),))):
        variables = tuple(scalar(n, dtype) for n in ("z", "w")[: row.arity])
        term = function(name, *variables)
        order = {variables[0]: 2.0} if name in ORDERED else {}
        found = evaluate(term, dict.fromkeys(variables, value) | order, {})
        assert type(found) is type_of(term).dtype  # type: ignore[union-attr]


@pytest.mark.parametrize("name", [row.name for row in TABLE.values() if row.real_only])
def test_real_functions_refuse_complex_arguments(name: str) -> None:
    z = scalar("z", complex)
    with pytest.raises(TypeMismatchError, match=rf"{name} takes real arguments\n  hint: take cd.real\(…\)"):
        type_of(function(name, *[z] * TABLE[name].arity))


def test_kinks_have_the_derivative_zero() -> None:
    x = scalar("x", float)
    for name in ("relu", "abs"):
        row = TABLE[name]
        derivative = (row.real_partials or row.partials)[0](x)
        assert evaluate(derivative, {x: 0.0}, {}) == 0


@pytest.mark.parametrize("simplify", [True, False])
def test_ties_share_the_derivative(simplify: bool) -> None:
    """At a tie each argument of max and min counts half: the mean of both one-sided slopes."""

    @cd.program
    def f(x: cd.Space("n")):
        upper = cd.sum(lambda i, j: cd.maximum(x[i], x[j]) + cd.maximum(x[i], x[i]))
        return upper + cd.sum(lambda i, j: 3 * cd.minimum(2 * x[i], x[j]) + cd.maximum(0, x[i]) * cd.minimum(x[j], 0))

    slope = cd.grad(f, simplify=simplify)
    for x in np.array(list(itertools.product((-1.0, 0.0, 1.0), repeat=3))):
        central = [(f(x + step) - f(x - step)) / (2 * STEP) for step in STEP * np.eye(3)]
        np.testing.assert_allclose(slope(x), central, atol=1e-4)


def test_the_larger_of_equals_is_either() -> None:
    @cd.program
    def f(x: cd.Space("n"), y: cd.Space("n")):
        ramps = cd.sum(lambda i: cd.maximum(x[i], 0) ** 2 + cd.minimum(0, y[i]) ** 3)
        return ramps + cd.sum(lambda i: cd.maximum(x[i], x[i]) * cd.relu(y[i]) ** 2)

    assert str(cd.grad(f)) == "(x, y) ↦ d ↦ relu(y[d])² + 2 max(x[d], 0)"
    assert str(cd.grad(f, wrt="y")) == "(x, y) ↦ d ↦ 3 min(0, y[d])² + 2 x[d] relu(y[d])"


@pytest.mark.parametrize("backend", ["numpy", *BACKENDS])
def test_every_library_halves_ties(backend: str) -> None:
    @cd.program
    def f(x: cd.Space("n"), y: cd.Space("n")):
        return cd.sum(lambda i: 2 * cd.maximum(x[i], y[i]))

    found = cd.grad(f).compile(backend=backend)(np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0]))
    np.testing.assert_allclose(np.asarray(found), [1.0, 0.0, 2.0])


def test_shorthands() -> None:
    x = scalar("x", float)
    assert power(x, ONE) is x
    assert power(x, ZERO) is ONE
    assert square(x) is Primitive("power", (x, Number(2)))
    assert divide(Number(3), x) is Mul((Number(3), Primitive("power", (x, MINUS_ONE))))


def test_powers_of_zero_have_a_derivative_for_positive_exponents() -> None:
    @cd.program
    def f(x: cd.Space("n")):
        return cd.sum(lambda i: (0 ** x[i] + 1) * x[i] ** 2)

    x = np.array([0.5, 2.0, 3.0])
    for simplify in (True, False):
        np.testing.assert_allclose(cd.grad(f, simplify=simplify)(x), 2 * x)
        np.testing.assert_allclose(cd.hessian(f, simplify=simplify)(x), 2 * np.eye(3))
    cd.testing.check_grad(f, "x", x=x)
    power = cd.derive("declare x 0 expression 0^x derivative wrt x")
    assert str(power) == "x ↦ -0^x / x"
    assert power(2.5) == 0


@pytest.mark.parametrize("name", AT_ZERO)
def test_an_exact_zero_is_folded(name: str) -> None:
    """As the function has it at 0; an inexact one stays as it was written."""
    assert function(name, ZERO) is AT_ZERO[name]
    assert AT_ZERO[name].value() == TABLE[name].numerical()(0.0)
    assert isinstance(function(name, Number(0.0)), Primitive)
