"""Norms, deviations and quotients of sums of squares from 1e-300 to 1e300, masked and not, against exact arithmetic.

The reference computes with 600 decimal digits, or more where 1e-600 is added to 1, and any exponent; derivatives are
its central differences.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Context, Decimal, localcontext
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from backends import BACKENDS, back, converted, double_precision, on, quiet
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import examples

import combdiff as cd

V = cd.Space("n")
EXACT = Context(prec=600, Emax=10**9, Emin=-(10**9))
MORE = Context(prec=2000, Emax=10**9, Emin=-(10**9))
BESIDE_ONE = ("roots of single squares", "quotients of squares")
Exact = Callable[[Sequence[Decimal]], Decimal]
FIRST = 2  # entries that a mask lets through


def total(numbers: Any) -> Decimal:
    return sum(numbers, Decimal(0))


def squares(x: Sequence[Decimal]) -> Decimal:
    return total(a * a for a in x)


def spread(x: Sequence[Decimal]) -> Decimal:
    mean = total(x) / len(x)
    return total((a - mean) ** 2 for a in x) / len(x)


def weighted(x: Sequence[Decimal]) -> Decimal:
    return total((n + 1) * a for n, a in enumerate(x))


FORMS: dict[str, tuple[Callable[[Any], Any], Exact]] = {
    "norm": (lambda x: np.linalg.norm(x), lambda x: squares(x).sqrt()),
    "deviation": (lambda x: np.std(x), lambda x: spread(x).sqrt()),
    "unit": (
        lambda x: cd.sum(lambda i: (i + 1) * x[i]) / cd.sqrt(cd.sum(lambda i: x[i] ** 2)),
        lambda x: weighted(x) / squares(x).sqrt(),
    ),
    "layer": (
        lambda x: cd.sum(lambda i: (i + 1) * x[i]) / cd.sqrt(cd.sum(lambda i: x[i] ** 2) + 1e-5),
        lambda x: weighted(x) / (squares(x) + Decimal("1e-5")).sqrt(),
    ),
    "logarithm": (lambda x: cd.log(cd.sum(lambda i: x[i] ** 2)), lambda x: squares(x).ln()),
    "masked": (
        lambda x: cd.sqrt(cd.sum(lambda i: cd.where(i < FIRST, x[i] ** 2, 0))),
        lambda x: squares(x[:FIRST]).sqrt(),
    ),
    "roots of single squares": (
        lambda x: np.sqrt(1 + x**2).sum(),
        lambda x: total((1 + a * a).sqrt() for a in x),
    ),
    "hypotenuses of neighbours": (
        lambda x: np.hypot(x[:-1], x[1:]).sum(),
        lambda x: total((a * a + b * b).sqrt() for a, b in pairwise(x)),
    ),
    "quotients of squares": (
        lambda x: (x**2 / (1 + x**2)).sum(),
        lambda x: total(a * a / (1 + a * a) for a in x),
    ),
}


@cache
def programs(name: str) -> tuple[cd.Program, cd.Program, cd.Program]:
    """A form, its gradient and its Hessian-vector product."""
    form = FORMS[name][0]

    @cd.program
    def f(x: V):
        return form(x)

    return f, cd.grad(f), cd.hvp(f)


def slopes(f: Exact, x: Sequence[Decimal]) -> list[Decimal]:
    step = max(map(abs, x)) * Decimal(10) ** -150
    moved = [[a + sign * step * (n == m) for n, a in enumerate(x)] for m in range(len(x)) for sign in (1, -1)]
    return [(f(up) - f(down)) / (2 * step) for up, down in zip(moved[::2], moved[1::2], strict=True)]


def reference(f: Exact, x: Any, v: Any) -> tuple[list[Decimal], list[Decimal], list[Decimal]]:
    at, along = [Decimal(float(a)) for a in x], [Decimal(float(a)) for a in v]
    step = max(map(abs, at)) / max(map(abs, along)) * Decimal(10) ** -100
    up, down = ([a + sign * step * b for a, b in zip(at, along, strict=True)] for sign in (1, -1))
    pairs = zip(slopes(f, up), slopes(f, down), strict=True)
    return [f(at)], slopes(f, at), [(one - other) / (2 * step) for one, other in pairs]


def near(found: Any, expected: Sequence[Decimal], least: str = "1e-300") -> None:
    """Equal but for rounding, relative to the largest of the numbers; what has no double is not asked for.

    What is below `least` counts as 0: a power 1/h³ of its own underflows.
    """
    size = max(map(abs, expected))
    if size > Decimal("1e308"):
        return
    for one, other in zip(np.atleast_1d(back(found)), expected, strict=True):
        assert np.isfinite(one), (found, expected)
        assert abs(Decimal(float(one)) - other) <= size * Decimal("1e-11") + Decimal(least), (found, expected)


SIZES = st.sampled_from([1e-300, 1e-200, 1e-160, 1e-150, 1e-100, 1.0, 1e100, 1e150, 1e160, 1e200, 1e300])
POINTS = st.permutations([1.0, -2.5, 0.5, 3.25])
SHRINKS = st.sampled_from([1.0, 1e-3, 1e-12])


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", FORMS)
@settings(max_examples=examples(6), deadline=None)
@given(POINTS, SIZES, SHRINKS)
def test_sums_of_squares_of_any_size(name: str, point: list[float], size: float, shrink: float) -> None:
    x = np.array(point) * size
    x[-1] *= shrink
    v = np.array(point[::-1]) * size
    beside_one = name in BESIDE_ONE
    with localcontext(MORE if beside_one else EXACT), np.errstate(over="ignore" if beside_one else "warn"):  # 1/h² is 0
        for program, arguments, expected in zip(
            programs(name), ((x,), (x,), (x, v)), reference(FORMS[name][1], x, v), strict=True
        ):
            near(program(*arguments), expected, "1e-280" if beside_one else "1e-300")


@pytest.mark.sample(1)
@pytest.mark.parametrize("library", BACKENDS)
@pytest.mark.parametrize("name", ["norm", "hypotenuses of neighbours"])
@pytest.mark.parametrize("size", [1e-300, 1.0, 1e300])
def test_on_every_library(library: str, name: str, size: float) -> None:
    x, v = np.array([1.0, -2.5, 0.5]) * size, np.array([0.5, 1.0, -1.0]) * size
    with double_precision(), localcontext(EXACT):
        expected = reference(FORMS[name][1], x, v)
        for program, arguments, wanted in zip(programs(name), ([x], [x], [x, v]), expected, strict=True):
            near(on(library, program)(*converted(library, arguments)), wanted)


def test_each_row_has_its_scale() -> None:
    """Of rows from 1e-300 to 1e300, and of their sum."""

    @cd.program
    def unit_rows(X: cd.Space("m", "n")):
        return cd.tensor(lambda i, j: X[i, j] / cd.sqrt(cd.sum(lambda k: X[i, k] ** 2)))

    sizes = np.array([1e-300, 1.0, 1e300, 0.0])
    with np.errstate(divide="ignore", invalid="ignore"):
        found = unit_rows(sizes[:, None] * np.array([3.0, -4.0]))
    np.testing.assert_allclose(found[:3], [[0.6, -0.8]] * 3, rtol=1e-15)
    assert np.isnan(found[3]).all()


def test_residuals_are_scaled_where_no_one_tensor_is_squared() -> None:
    @cd.program
    def misfit(A: cd.Space("m", "n"), x: V, b: cd.Space("m")):
        return cd.sqrt(cd.sum(lambda i: (cd.sum(lambda j: A[i, j] * x[j]) - b[i]) ** 2))

    rng = np.random.default_rng(0)
    A, x, b = rng.normal(size=(4, 3)), rng.normal(size=3), rng.normal(size=4)
    residual = A @ x - b
    for size in (1e-250, 1.0, 1e250):
        norm = np.linalg.norm(residual)
        np.testing.assert_allclose(misfit(A, x * size, b * size) / size, norm, rtol=1e-12)
        np.testing.assert_allclose(cd.grad(misfit, "x")(A, x * size, b * size), A.T @ residual / norm, rtol=1e-12)


@pytest.mark.thorough
def test_odd_functions_are_as_small_as_their_arguments() -> None:
    """Near 0 the norm of tanh(−3x) is that of 3x; its square underflows long before."""

    @cd.program
    def f(x: V):  # type: ignore[valid-type, no-untyped-def]
        return np.linalg.norm(np.tanh(-3 * x))

    unit, v = np.array([1.0, 2.0, -2.0]) / 3, np.array([0.5, -1.0, 2.0])
    gradient, product = cd.grad(f), cd.hvp(f)
    for size in (1e-290, 1e-160):
        np.testing.assert_allclose(gradient(size * unit), 3 * unit, rtol=1e-12)
        np.testing.assert_allclose(product(size * unit, size * v), 3 * (v - unit * (unit @ v)), rtol=1e-12)


def test_ordinary_numbers_are_not_divided() -> None:
    """Not a digit is changed, and infinities stay what they are."""
    x = np.random.default_rng(1).normal(size=50)
    norm, gradient, _ = programs("norm")
    assert norm(x) == np.sqrt(x @ x)
    assert (gradient(x) == x * (1 / np.sqrt(x @ x))).all()
    assert norm(np.array([np.inf, 1.0])) == np.inf
    assert norm(np.zeros(3)) == 0
    assert np.isnan(norm(np.array([np.nan, 1e300])))


@pytest.mark.parametrize("size", [1e-200, 1.0, 1e200])
def test_angles(size: float) -> None:
    """∂/∂x arctan2(x, y) = y/(x² + y²), and −2xy/(x² + y²)² v along v."""

    @cd.program
    def angle(x: V, y: V):
        return np.arctan2(x, y).sum()

    x, y, v = np.array([[3.0, 1.0], [-4.0, 0.0], [1.0, 2.0]]) * size
    np.testing.assert_allclose(cd.grad(angle, "x")(x, y) * size, [-4 / 25, 0], rtol=1e-14)
    np.testing.assert_allclose(cd.hvp(angle, "x")(x, y, v) * size, [24 / 625, 0], rtol=1e-14)


@pytest.mark.parametrize("size", [1e-200, 1.0, 1e200])
def test_quotients_by_guarded_hypotenuses(size: float) -> None:
    """The side that is not taken, 0/0 here, leaves no trace."""

    @cd.program
    def f(x: V, y: V):
        r = np.sqrt(x**2 + y**2)
        return np.where(r > 0, x * y / r, 0).sum()

    x, y, v = np.array([[3.0, 0.0, 1.0], [-4.0, 0.0, 0.0], [1.0, 2.0, 2.0]]) * size
    np.testing.assert_allclose(f(x, y) / size, -12 / 5, rtol=1e-14)
    np.testing.assert_allclose(cd.grad(f, "x")(x, y), [-64 / 125, 0, 0], rtol=1e-14)
    np.testing.assert_allclose(cd.hvp(f, "x")(x, y, v), [3 * 3 * 64 / 5**5, 0, 0], rtol=1e-14)


def test_a_condition_is_not_divided_by_a_hypotenuse() -> None:
    """[i ≥ 1]/h would be a number like others, by which the infinite 1/b[-1]² is multiplied."""

    @cd.program
    def f(b: V, y: V):
        return cd.sum(lambda i: cd.where(i >= 1, y[i] ** 2 / (2 + y[i] ** 2) ** 2 / b[i - 1] ** 2, 0), i=y.shape[0])

    b, y = np.array([2.0, 1.0, 4.0]), np.array([0.5, 1.0, 2.0])
    shares, slopes = y**2 / (2 + y**2) ** 2, (4 * y - 2 * y**3) / (2 + y**2) ** 3
    for program in (f, cd.simplify(f)):
        np.testing.assert_allclose(program(b, y), (shares[1:] / b[:-1] ** 2).sum(), rtol=1e-13)
    np.testing.assert_allclose(cd.grad(f, "b")(b, y), np.append(-2 * shares[1:] / b[:-1] ** 3, 0), rtol=1e-13)
    np.testing.assert_allclose(cd.grad(f, "y")(b, y), np.append(0, slopes[1:] / b[:-1] ** 2), rtol=1e-13)


@pytest.mark.thorough
def test_sides_that_are_bound() -> None:
    """A side is bound before its hypotenuse is: looking for quotients binds nothing."""

    @cd.program
    def f(x: cd.Space("n", "n")):
        t = cd.erf(1 + x[0, 0])
        return cd.sum(lambda j: cd.sin(t * x[j, 0] / (2 + t**2)), j="n")

    assert cd.testing.check_routes(f, x=[[0.7, 0.1], [0.2, 0.3]]) < 1e-6


@pytest.mark.parametrize("library", BACKENDS)
def test_infinities_in_sigmoids_and_maxima(library: str) -> None:
    """A slope of 0 at both ends; halves where two infinite numbers are equal."""

    @cd.program
    def sigmoids(x: V):
        return (1 / (1 + cd.exp(-x))).sum()

    @cd.program
    def larger(x: V, y: V):
        return cd.maximum(x, y).sum()

    x = np.array([-np.inf, np.inf, 0.0, -750.0])
    with double_precision(), quiet(library):
        given = converted(library, [x, np.ones(4)])
        np.testing.assert_allclose(back(on(library, sigmoids)(given[0])), 1.5, rtol=1e-15)
        np.testing.assert_allclose(back(on(library, cd.grad(sigmoids))(given[0])), [0, 0, 0.25, 0], atol=1e-300)
        assert np.isfinite(back(on(library, cd.hvp(sigmoids))(*given))).all()
        shares = on(library, cd.grad(larger, "x"))(*converted(library, [x, np.array([-np.inf, np.inf, 1.0, -800.0])]))
        np.testing.assert_array_equal(back(shares), [0.5, 0.5, 0, 1])


@pytest.mark.parametrize("library", ["numpy", *BACKENDS])
def test_beyond_an_axis_nothing_is_scaled(library: str) -> None:
    """A quotient with a norm in it, put together with something else."""

    def joined(x, y):
        found = y / (1 + np.linalg.norm(np.diag(x), axis=1) ** 2)
        return np.concatenate([y[1:], found[:1]])

    joined.__annotations__ = {"x": cd.Space(3), "y": cd.Space(3)}
    arrays = [np.array([0.3, -1.2, 2.0]), np.array([1.0, -0.4, 0.7])]
    with double_precision(), quiet(library):
        given = arrays if library == "numpy" else converted(library, arrays)
        np.testing.assert_allclose(back(on(library, cd.program(joined))(*given)), joined(*arrays), rtol=1e-14)


@pytest.mark.sample(1)
@pytest.mark.parametrize("simplified", [True, False])
@pytest.mark.parametrize("library", ["numpy", *BACKENDS])
def test_a_quotient_that_is_read_beyond_an_axis_is_masked(library: str, simplified: bool) -> None:
    """The sum over the places that np.resize reads meets elements of y that are not there."""

    def weighted(y, w):
        return (y / np.sqrt(y.var(0, keepdims=True) + 0.1) * np.resize(w, (2, 3, 3)).sum(axis=0)).sum()

    weighted.__annotations__ = {"y": cd.Space(3, 3), "w": cd.Space(3, 2)}
    y, w = np.array([[0.3, -1.2, 2.0], [1.0, -0.4, 0.7], [0.0, 0.6, -0.9]]), np.arange(6.0).reshape(3, 2)
    with double_precision(), quiet(library):
        given = [y, w] if library == "numpy" else converted(library, [y, w])
        gradient = back(on(library, cd.grad(cd.program(weighted), "w", simplify=simplified))(*given))
    assert np.sum(gradient * w) == pytest.approx(weighted(y, w), rel=1e-12)  # it is linear in w


def test_hypotenuses_on_jax_are_numpys() -> None:
    """Where squares over- or underflow, at zeros, infinities and what is no number; of the width of the legs."""
    jax = pytest.importorskip("jax")

    @cd.program
    def f(x: cd.Space(), y: cd.Space()):
        return np.hypot(x, y)

    legs = np.array([0.0, -0.0, 3.0, -4e-200, 1e200, 1.5e308, np.inf, -np.inf, np.nan])
    across, along = (side.ravel() for side in np.meshgrid(legs, legs))
    with jax.enable_x64(True), np.errstate(over="ignore"):
        found = jax.jit(jax.vmap(f))(jax.numpy.asarray(across), jax.numpy.asarray(along))
        np.testing.assert_allclose(found, np.hypot(across, along), rtol=1e-15)
        for kind in ("float32", "float16"):
            leg = jax.numpy.asarray(3, kind)
            assert f(leg, leg).dtype == kind
            np.testing.assert_allclose(f(leg, leg), np.hypot(3, 3), rtol=1e-3)
