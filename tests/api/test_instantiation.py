"""Programs, and Python functions, in place of named maps: values, derivatives to second order, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from messages import messages_of

import combdiff as cd

Vector, Matrix, Number = cd.Space("n"), cd.Space("n", "n"), cd.Space()
Symmetric = cd.Space("n", "n", symmetry=["A[i,j] = A[j,i]"])
RNG = np.random.default_rng(5)
A0, B0 = np.eye(3) * 3 + np.ones((3, 3)), RNG.normal(size=3)
POINT = dict(zip("xrp", RNG.normal(size=(3, 3)), strict=True)) | {"a": 0.3, "b": -0.4}


def same(found: Any, expected: Any, tolerance: float = 1e-10) -> None:
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


@cd.program
def search(R: cd.Function(Vector), x: Vector, r: Vector, p: Vector, a: Number, b: Number):  # type: ignore
    return R(x + a * (r + b * p))


@cd.program
def quadratic(u: Vector, A: Symmetric, b: Vector):  # type: ignore[valid-type, no-untyped-def]
    return u @ (A @ u) / 2 - b @ u


@cd.program
def quartic(v: cd.Space("m"), w: cd.Space("m")):  # type: ignore
    """A program whose size has another name than that of the map."""
    return cd.sum(lambda i: cd.exp(w[i] * v[i]) + v[i] ** 4)


@cd.program
def closed(A: Symmetric, c: Vector, x: Vector, r: Vector, p: Vector, a: Number, b: Number):  # type: ignore
    return search(lambda u: quadratic(u, A, c), x, r, p, a, b)


def expected_slopes(x: Any, r: Any, p: Any, a: float, b: float) -> tuple[float, float]:
    """The closed form of theory.md §3, result 5."""
    direction = r + b * p
    u = x + a * direction
    return direction @ A0 @ u - direction @ B0, a * (p @ A0 @ u - B0 @ p)


FORM = quadratic.partial(A=A0, b=B0)


@cache
def slopes() -> cd.Program:
    """The gradient by both, which several tests look at."""
    return cd.grad(search, ("a", "b"))


def test_the_abstract_gradient_of_a_search() -> None:
    assert str(slopes()).splitlines() == [
        "(R, x, r, p, a, b) ↦",
        "  t[d] = r[d] + b p[d]",
        "  t2 = ∇R(i ↦ x[i] + a t[i])",
        "  (Σ_i t[i] t2[i], a Σ_i p[i] t2[i])",
    ]
    both = str(cd.value_and_grad(search, "a")).splitlines()
    assert both[1:3] == ["  t[d] = r[d] + b p[d]", "  t2[d] = x[d] + a t[d]"]
    assert both[3] == "  (R(t2), Σ_i t[i] ∇R(t2)[i])"


@pytest.mark.thorough
def test_a_program_is_passed_for_the_map_or_takes_its_place() -> None:
    expected = expected_slopes(**POINT)
    same(slopes()(R=FORM, **POINT), expected)
    same(slopes().partial(R=FORM)(**POINT), expected)
    same(cd.grad(search.partial(R=FORM), ("a", "b"))(**POINT), expected)
    same(cd.grad(closed, ("a", "b"))(A=A0, c=B0, **POINT), expected)
    same(search(R=FORM, **POINT), search.partial(R=FORM)(**POINT))
    assert [p.name for p in search.partial(R=FORM).parameters] == ["x", "r", "p", "a", "b"]
    cd.testing.check_grad(search.partial(R=FORM), ("x", "r", "p", "a", "b"), **POINT)


def test_the_closed_form_prints_without_the_map() -> None:
    slopes = cd.grad(closed, ("a", "b"))
    assert "R" not in str(slopes)
    assert str(slopes).count("A[") == 1
    assert str(slopes).count("c[") == 1


def test_conjugate_gradient_coefficients() -> None:
    """Along the residual the slope vanishes at α = −rᵀr / rᵀAr; later β makes directions conjugate."""
    slope = cd.grad(closed, "a")
    x = np.zeros(3)
    p = r = A0 @ x - B0
    rest = {"A": A0, "c": B0, "r": r, "p": p, "b": 0.0}
    at_zero, at_one = (slope(x=x, a=a, **rest) for a in (0.0, 1.0))
    alpha = -at_zero / (at_one - at_zero)  # the slope is linear in α
    same(alpha, -(r @ r) / (p @ A0 @ p))
    x = x + alpha * p
    r = A0 @ x - B0
    mixed = cd.hvp(closed, "a")  # ∂²R/∂α² = dᵀ A d
    d = r - (r @ A0 @ p) / (p @ A0 @ p) * p
    beta = -(r @ A0 @ p) / (p @ A0 @ p)
    same(mixed(A=A0, c=B0, x=x, r=r, p=p, a=0.0, b=beta, a_dot=1.0), d @ A0 @ d)
    same(d @ A0 @ p, 0.0)


def test_second_derivatives_need_the_program_in_place() -> None:
    placed = search.partial(R=quartic.partial(w=B0))
    product, gradient = cd.hvp(placed, "x"), cd.grad(placed, "x")
    v, h = RNG.normal(size=3), 1e-5
    ahead, behind = (gradient(**{**POINT, "x": POINT["x"] + s * h * v}) for s in (1, -1))
    same(product(**POINT, x_dot=v), (ahead - behind) / (2 * h), 1e-6)
    later = cd.grad(search, "x").partial(R=quartic.partial(w=B0))
    same(later(**POINT), gradient(**POINT))
    same(cd.jacobian(later, "x")(**POINT) @ v, product(**POINT, x_dot=v))


def test_derivatives_of_programs_are_called_inside_programs() -> None:
    """A derivative that mentions ∇R, given a program or a function for R, is differentiated on."""

    @cd.program
    def through(A: Symmetric, c: Vector, x: Vector, r: Vector, p: Vector, a: Number, b: Number):  # type: ignore
        first, second = slopes()(lambda u: quadratic(u, A, c), x, r, p, a, b)
        return first * second

    first, second = expected_slopes(**POINT)
    same(through(A=A0, c=B0, **POINT), first * second)
    cd.testing.check_grad(through, ("c", "x", "p", "a", "b"), A=A0, c=B0, **POINT)


def test_programs_as_arguments_of_programs() -> None:
    @cd.program
    def twice(f: cd.Function(Vector, result=Vector), x: Vector):  # type: ignore
        return f(f(x))

    @cd.program
    def bend(x: Vector):  # type: ignore[valid-type, no-untyped-def]
        return cd.tensor(lambda i: cd.sin(x[i]) + x[i])

    @cd.program
    def outer(x: Vector):  # type: ignore[valid-type, no-untyped-def]
        return cd.sum(lambda i: twice(bend, x)[i] * x[i])

    x = RNG.normal(size=3)
    once = np.sin(x) + x
    same(twice(bend, x), np.sin(once) + once)
    same(outer(x), (np.sin(once) + once) @ x)
    cd.testing.check_grad(outer, "x", x=x)
    k = RNG.normal(size=3)
    expected = (1 + np.cos(once)) * (1 + np.cos(x)) * k
    same(cd.pullback(twice, "x")(bend, x, k), expected)
    same(cd.pullback(twice.partial(f=bend), "x")(x, k), expected)


# --- linear maps ---------------------------------------------------------------------------------------------------


@cd.program
def energy(D: cd.Function(Vector, result=Vector, linear=True), x: Vector):  # type: ignore
    y = D(x)
    return cd.sum(lambda i: y[i] ** 2)


@cd.program
def image(x: Vector, B: Matrix):  # type: ignore[valid-type, no-untyped-def]
    return B @ x


@cd.program
def turned(u: Vector):  # type: ignore[valid-type, no-untyped-def]
    return 1j * u.sum()


@cd.program
def counted(u: Vector):  # type: ignore[valid-type, no-untyped-def]
    return 7


@cd.program
def gram(R: cd.Function(Vector, result=Symmetric), x: Vector):  # type: ignore
    return x @ R(x) @ np.sin(x) - np.sin(x) @ R(x) @ x


@cd.program
def outer_square(u: Vector):  # type: ignore[valid-type, no-untyped-def]
    return np.outer(u, u) + np.diag(u)


@cd.program
def lopsided(u: Vector):  # type: ignore[valid-type, no-untyped-def]
    return np.outer(u, u * u)


@cd.program
def difference(x: Vector):  # type: ignore[valid-type, no-untyped-def]
    return cd.tensor(lambda i: x[i] - cd.sum(lambda j: x[j]) / 3)


@cd.program
def shifted(x: Vector):  # type: ignore[valid-type, no-untyped-def]
    return x + 1


@cd.program
def squared(x: Vector):  # type: ignore[valid-type, no-untyped-def]
    return x * x


@pytest.mark.parametrize("given", [image.partial(B=RNG.normal(size=(3, 3))), difference], ids=["matrix", "mean"])
def test_linear_programs_bring_their_adjoint(given: cd.Program) -> None:
    x = RNG.normal(size=3)
    B = cd.jacobian(given, "x")(x)
    gradient = cd.grad(energy, "x")
    assert str(gradient) == "(D, x) ↦ 2 Dᵀ(D(x))"
    same(energy(given, x), np.sum((B @ x) ** 2))
    same(gradient(given, x), 2 * B.T @ B @ x)
    same(gradient.partial(D=given)(x), 2 * B.T @ B @ x)
    same(cd.hvp(energy, "x")(given, x, x), 2 * B.T @ B @ x)


WRONG: dict[str, tuple[type[cd.CombdiffError], Callable[[], Any], str]] = {
    "not linear": (
        cd.TypeMismatchError,
        lambda: energy(squared, np.ones(3)),
        "D is declared linear, but the program given for it is not: its derivative depends on x",
    ),
    "affine": (
        cd.TypeMismatchError,
        lambda: energy(shifted, np.ones(3)),
        "D is declared linear, but the program given for it is not: it is not 0 at x = 0",
    ),
    "in place": (
        cd.TypeMismatchError,
        lambda: cd.grad(energy, "x").partial(D=squared),
        "D is declared linear, but the program given for it is not: its derivative depends on x",
    ),
    "open parameters": (
        cd.ArgumentError,
        lambda: search.partial(R=quadratic),
        "R takes 1 argument, but quadratic, given for it, takes 3 (u, A, b)",
    ),
    "another result": (
        cd.TypeMismatchError,
        lambda: search.partial(R=difference),
        "the result of R, by its declaration, has order 0, but the program takes order 1",
    ),
    "a complex result": (
        cd.TypeMismatchError,
        lambda: search.partial(R=turned),
        "R gives float by its declaration, but the program given for it complex",
    ),
    "a complex value": (
        cd.ArgumentError,
        lambda: search(R=lambda u: 1j * u.sum(), **POINT),
        "R gave complex128, but real numbers were expected",
    ),
    "a result without the declared symmetry": (
        cd.TypeMismatchError,
        lambda: cd.simplify(gram).partial(R=lopsided),
        "the result of R is declared with R[i,j] = R[j,i], which that of the program given for it has not",
    ),
    "no program": (cd.ArgumentError, lambda: slopes()(**POINT), "grad_search misses R"),
    "nothing": (cd.ArgumentError, lambda: search(R=None, **POINT), "no array was given for R"),
    "an array": (cd.ArgumentError, lambda: search(R=A0, **POINT), "R is a map, but what was given for it cannot be"),
    "no pullback": (
        cd.ArgumentError,
        lambda: slopes()(R=np.sum, **POINT),
        "the derivative of R is needed, but what was given for R has no pullback",
    ),
}


test_what_cannot_take_the_place_of_a_map = messages_of(WRONG)


# --- tuples --------------------------------------------------------------------------------------------------------


def test_a_tuple_gives_the_cotangents_of_several_results() -> None:
    """The cotangent is shaped like the result: of a tuple it is a tuple, or one argument for each item."""

    @cd.program
    def several(x: Vector, A: Matrix):  # type: ignore[valid-type, no-untyped-def]
        y = A @ x
        return y, cd.sum(lambda i: y[i] * x[i])

    product = cd.pullback(several, "x")
    x, A, k = RNG.normal(size=3), RNG.normal(size=(3, 3)), RNG.normal(size=3)
    expected = A.T @ k + 2 * (A + A.T) @ x
    same(product(x, A, k, 2.0), expected)
    same(product(x, A, (k, 2.0)), expected)
    first, second = several(x, A)
    same(product(x, A, (first, second)), A.T @ first + second * (A + A.T) @ x)
    same(several((1.0, 2.0, 3.0), A)[0], A @ [1.0, 2.0, 3.0])
    with pytest.raises(cd.ArgumentError, match="misses k2"):
        product(x, A, (k,))


def test_whole_numbers_are_real_ones() -> None:
    """A program of whole numbers, or a function, stands for a map to real ones."""
    for given in (counted, lambda u: 7, lambda u: np.int64(7)):
        assert search(R=given, **POINT) == 7
    assert cd.grad(search.partial(R=counted), "a")(**POINT) == 0


def test_a_result_with_the_declared_symmetry_is_taken() -> None:
    """All that follows from the symmetry of a map's result was used before the program is there: both are 0."""
    for f in (gram, cd.simplify(gram)):
        same(f(outer_square, POINT["x"]), 0)
