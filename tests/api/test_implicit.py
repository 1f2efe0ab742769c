"""Roots and minima inside programs: values, derivatives by every captured argument to second order, and messages."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from messages import message, messages_of

import combdiff as cd
from combdiff.ir.interpreter import evaluate
from combdiff.testing.differences import finite_difference_gradient

Vector, Matrix, Number = cd.Space("n"), cd.Space("n", "n"), cd.Space()
Complex, ComplexMatrix = cd.Space("n", dtype=complex), cd.Space("n", "n", dtype=complex)


def real(*shape: int, seed: int = 3) -> Any:
    return np.random.default_rng(seed).normal(size=shape)


def cplx(*shape: int, seed: int = 3) -> Any:
    return real(*shape, seed=seed) + 1j * real(*shape, seed=seed + 1)


@cd.program
def layer(A: Matrix, b: Vector, c: Vector):  # type: ignore[valid-type, no-untyped-def]
    """An implicit layer: x + tanh(A x)/3 = b."""
    x = cd.root(lambda x: x + cd.tanh(A @ x) / 3 - b, like=b)
    return cd.sum(lambda i: c[i] * x[i] ** 2)


@cd.program
def cube(a: Number, b: Number):  # type: ignore[valid-type, no-untyped-def]
    """x³ + a x = b has one real root for a > 0."""
    return cd.root(lambda x: x**3 + a * x - b, like=b)


@cd.program
def ridge(X: cd.Space("m", "n"), y: cd.Space("m"), decay: Number, v: cd.Space("m")):  # type: ignore
    """The validation loss of ridge regression, by its data and its hyperparameter."""
    w = cd.argmin(
        lambda w: cd.sum(lambda i: (X[i] @ w - y[i]) ** 2) + cd.exp(decay) * cd.sum(lambda j: w[j] ** 2),
        like=cd.Space("n"),
    )
    return cd.sum(lambda i: (X[i] @ w - v[i]) ** 2)


@cd.program
def softened(s: Vector, b: Vector):  # type: ignore[valid-type, no-untyped-def]
    """A minimum that is not quadratic."""
    x = cd.argmin(lambda x: cd.sum(lambda i: cd.exp(x[i] - b[i]) + s[i] ** 2 * x[i] ** 2 - x[i]), like=b)
    return cd.sum(lambda i: x[i] * b[i])


@cd.program
def nested(A: Matrix, b: Vector, c: Vector):  # type: ignore[valid-type, no-untyped-def]
    """A root whose equation holds a root."""

    def outer(x):  # type: ignore[no-untyped-def]
        y = cd.root(lambda y: y + cd.tanh(A @ y) / 4 - x, like=x)
        return 2 * x + y * y / 5 - b

    x = cd.root(outer, like=b)
    return cd.sum(lambda i: c[i] * x[i])


@cd.program
def planar(A: ComplexMatrix, b: Complex):  # type: ignore[valid-type, no-untyped-def]
    """A complex equation that is not holomorphic."""
    z = cd.root(lambda z: 2 * z + cd.conj(A @ z) / 3 + z * z.conj() / 7 - b, like=b)
    return cd.sum(lambda i: abs(z[i]) ** 2)


@cd.program
def between(a: Number, A: Matrix, b: Vector):  # type: ignore[valid-type, no-untyped-def]
    """A matrix unknown, and a root that depends on one bound before it."""
    scale = cd.root(lambda s: cd.exp(s) - 2 - a * a, like=a)
    X = cd.root(lambda X: X + X @ X / 9 - scale * A, like=A)
    return cd.sum(lambda i, j: X[i, j] * b[i] * b[j])


@cd.program
def recurrent(A: Matrix, b: Vector):  # type: ignore[valid-type, no-untyped-def]
    """A minimum of what the end of an iteration is part of."""

    def energy(x):  # type: ignore[no-untyped-def]
        last, states = cd.scan(lambda s, row: (np.tanh(s / 2 + row @ x), s), 0.1, A)
        return x @ x + (last**2 + states @ states) / 5 - b @ x

    x = cd.argmin(energy, like=b)
    return cd.sum(lambda i: x[i] ** 3)


SMALL = real(3, 3) / 3
CASES: dict[str, tuple[cd.Program, dict[str, Any]]] = {
    "layer": (layer, {"A": real(3, 3), "b": real(3, seed=4), "c": real(3, seed=5)}),
    "cube": (cube, {"a": 0.7, "b": 1.9}),
    "ridge": (ridge, {"X": real(4, 2), "y": real(4, seed=8), "decay": 0.3, "v": real(4, seed=9)}),
    "softened": (softened, {"s": real(3) + 2, "b": real(3, seed=6)}),
    "nested": (nested, {"A": SMALL, "b": real(3, seed=4), "c": real(3, seed=5)}),
    "complex": (planar, {"A": cplx(2, 2) / 3, "b": cplx(2, seed=7)}),
    "recurrent": (recurrent, {"A": SMALL, "b": real(3, seed=4)}),
    "matrix": (between, {"a": 0.4, "A": SMALL, "b": real(3, seed=4)}),
}


grad = lru_cache(maxsize=None)(cd.grad)  # two tests look at each gradient


def reference(program: cd.Program, arrays: Mapping[str, Any]) -> Any:
    """What a program means."""
    sizes = {"n": next((np.shape(a)[-1] for a in arrays.values() if np.ndim(a)), 1), "m": 4}
    return evaluate(program.term.body, {p: arrays[p.name] for p in program.parameters}, sizes)


def close(found: Any, expected: Any, tolerance: float) -> None:
    """Equal up to the tolerance, relative to the largest entry (absolute where that is below 1)."""
    for one, other in zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]:
        scale = max(1.0, float(np.max(np.abs(other), initial=0.0)))
        np.testing.assert_allclose(one, other, rtol=0, atol=tolerance * scale)


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", CASES)
def test_every_route_gives_the_value(name: str) -> None:
    program, arrays = CASES[name]
    expected = reference(program, arrays)
    close(program(**arrays), expected, 1e-9)
    simple = cd.simplify(program)
    close(simple(**arrays), expected, 1e-9)
    close(reference(simple, arrays), expected, 1e-9)


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", CASES)
def test_every_route_gives_the_gradient(name: str) -> None:
    """By every captured argument: raw and simplified, planned and interpreted, and central differences."""
    program, arrays = CASES[name]
    names = tuple(arrays)
    simple, raw = grad(program, names), cd.grad(program, names, simplify=False)
    expected = simple(**arrays)
    close(expected, tuple(finite_difference_gradient(program, arrays, each) for each in names), 1e-6)
    close(raw(**arrays), expected, 1e-10)
    close(reference(simple, arrays), expected, 1e-7)
    if name != "nested":  # an interpreted root in an interpreted root takes long
        close(reference(raw, arrays), expected, 1e-7)


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", CASES)
def test_every_route_gives_the_second_derivative(name: str) -> None:
    """The Hessian-vector product by all arguments at once, against central differences of the gradient."""
    program, arrays = CASES[name]
    names, step = tuple(arrays), 1e-5
    gradient = grad(program, names)
    moves = {p: (cplx if np.iscomplexobj(a) else real)(*np.shape(a), seed=11) for p, a in arrays.items()}
    ahead, behind = (gradient(**{p: a + s * step * moves[p] for p, a in arrays.items()}) for s in (1, -1))
    expected = tuple((one - other) / (2 * step) for one, other in zip(ahead, behind, strict=True))
    given = {**arrays, **{f"{p}_dot": move for p, move in moves.items()}}
    for simplify in (True, False) if name in ("layer", "complex") else (True,):
        close(cd.hvp(program, names, simplify=simplify)(**given), expected, 1e-6)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["layer", "ridge"])
def test_hessians_agree_with_their_products(name: str) -> None:
    """The linear system of the second derivative is solved for all columns at once."""
    program, arrays = CASES[name]
    wrt = {"layer": "b", "ridge": "y", "softened": "b"}[name]
    vector = real(*np.shape(arrays[wrt]), seed=11)
    product = cd.hvp(program, wrt)(**{**arrays, f"{wrt}_dot": vector})
    for mode in ("forward", "reverse"):
        close(cd.hessian(program, wrt, mode=mode)(**arrays) @ vector, product, 1e-9)


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["layer", "complex", "matrix"])
def test_pushforward_and_pullback_are_adjoint(name: str) -> None:
    program, arrays = CASES[name]
    moves = {p: (cplx if np.iscomplexobj(a) else real)(*np.shape(a), seed=12) for p, a in arrays.items()}
    pushed = cd.pushforward(program, tuple(arrays))(**arrays, **{f"{p}_dot": v for p, v in moves.items()})
    pulled = cd.pullback(program, tuple(arrays))(*arrays.values(), 1.0)
    close(pushed, sum(np.vdot(g, v).real for g, v in zip(pulled, moves.values(), strict=True)), 1e-9)


# --- results with a closed form ------------------------------------------------------------------------------------


@cd.program
def linear(A: Matrix, b: Vector):  # type: ignore[valid-type, no-untyped-def]
    return cd.root(lambda x: A @ x - b, like=b)


def test_a_linear_root_is_a_solution_and_its_jacobian_the_inverse() -> None:
    A, b = real(4, 4), real(4, seed=1)
    close(linear(A, b), np.linalg.solve(A, b), 1e-12)
    for mode in ("forward", "reverse"):
        close(cd.jacobian(linear, "b", mode=mode)(A, b), np.linalg.inv(A), 1e-10)
    assert linear(A.astype("f4"), b.astype("f4")).dtype == np.float32


def test_a_minimum_of_a_quadratic_form() -> None:
    @cd.program
    def least(A: cd.Space("n", "n", symmetry=["A[i,j] = A[j,i]"]), b: Vector):  # type: ignore
        return cd.argmin(lambda x: x @ (A @ x) / 2 - b @ x, like=b)

    A, b = np.eye(3) * 3 + real(3, 3) @ real(3, 3).T, real(3, seed=1)
    close(least(A, b), np.linalg.solve(A, b), 1e-12)
    close(cd.jacobian(least, "b")(A, b), np.linalg.inv(A), 1e-10)


def test_the_start_chooses_the_root_and_has_no_derivative() -> None:
    @cd.program
    def wave(a: Number, start: Number):  # type: ignore[valid-type, no-untyped-def]
        return cd.root(lambda x: cd.sin(x) - a, like=a, start=start)

    close(wave(0.5, 0.3), np.arcsin(0.5), 1e-14)
    close(wave(0.5, 3.0), np.pi - np.arcsin(0.5), 1e-14)
    by_a, by_start = cd.grad(wave, ("a", "start"))(0.5, 3.0)
    close(by_a, 1 / np.cos(np.pi - np.arcsin(0.5)), 1e-12)
    assert by_start == 0


def test_what_does_not_hold_the_unknown_is_computed_once() -> None:
    @cd.program
    def hoisted(A: Matrix, b: Vector):  # type: ignore[valid-type, no-untyped-def]
        return cd.root(lambda x: cd.exp(A @ b) * x + x**3 - b, like=b)

    source = hoisted.source()
    equation, main = source.split("\n\n\n")[1:3]
    assert "np.exp" not in equation
    assert "np.exp" in main


@pytest.mark.thorough
def test_the_source_runs_alone() -> None:
    for program, arrays in (CASES["layer"], CASES["ridge"]):
        gradient = grad(program, tuple(arrays))
        namespace: dict[str, Any] = {}
        exec(gradient.source(), namespace)
        close(namespace[gradient.name](**arrays), gradient(**arrays), 1e-12)


def test_empty_unknowns() -> None:
    assert linear(np.zeros((0, 0)), np.zeros(0)).shape == (0,)


# --- how they look -------------------------------------------------------------------------------------------------


def test_how_roots_look() -> None:
    assert str(linear) == "(A, b) ↦ root(x ↦ i ↦ Σ_j A[i,j] x[j] - b[i], b)"
    assert linear.latex() == (
        r"(A, b) \mapsto \operatorname{root}\left(x \mapsto i \mapsto \sum_{j} A_{i,j} x_{j} - b_{i}, b\right)"
    )
    assert linear.combinators().startswith("(A, b) ↦ 𝐁 root (𝐂 (x ↦ 𝐂 (i ↦ ")


# --- what is refused -----------------------------------------------------------------------------------------------


@cd.program
def hopeless(a: Number):  # type: ignore[valid-type, no-untyped-def]
    return cd.root(lambda x: x * x + a, like=a)


@cd.program
def saddle(a: Number):  # type: ignore[valid-type, no-untyped-def]
    return cd.argmin(lambda x: a * x * x, like=a)


NUMERIC: dict[str, tuple[Callable[[], Any], str]] = {
    "no root": (lambda: hopeless(1.0), "the residual is 1"),
    "singular": (
        lambda: linear(np.ones((2, 2)), np.array([1.0, 2.0])),
        "the Jacobian of the equation for x is singular",
    ),
    "singular with solutions": (lambda: linear(np.ones((2, 2)), np.ones(2)), "the Jacobian of the equation for x is"),
    "double root": (lambda: hopeless(0.0), "the Jacobian of the equation for x is singular"),
    "a maximum": (lambda: saddle(-1.0), "the residual is"),
    "flat": (lambda: saddle(0.0), "the Jacobian of the equation for x is singular"),
}


@pytest.mark.parametrize("name", NUMERIC)
def test_equations_without_an_isolated_solution(name: str) -> None:
    action, expected = NUMERIC[name]
    assert expected in message(cd.ConvergenceError, action)


def test_the_reference_refuses_them_too() -> None:
    with pytest.raises(cd.ConvergenceError, match="singular"):
        reference(linear, {"A": np.ones((2, 2)), "b": np.ones(2)})
    with pytest.raises(cd.ConvergenceError, match="residual is"):
        reference(hopeless, {"a": 1.0})


def traced(body: Callable[..., Any]) -> Callable[[], Any]:
    """The act of tracing a program of a vector and a matrix."""

    def act() -> Any:
        def f(x: Vector, A: Matrix):  # type: ignore[valid-type, no-untyped-def]
            return body(x, A)

        return cd.program(f)

    return act


WRONG: dict[str, tuple[type[cd.CombdiffError], Callable[[], Any], str]] = {
    "fewer equations": (
        cd.TypeMismatchError,
        traced(lambda x, A: cd.root(lambda y: cd.sum(lambda i: y[i]), like=x)),
        "the equation of cd.root is a real number, but its unknown is real over ('n')",
    ),
    "complex equation": (
        cd.TypeMismatchError,
        traced(lambda x, A: cd.root(lambda y: y * 1j, like=x)),
        "the equation of cd.root is complex over ('n'), but its unknown is real over ('n')",
    ),
    "tensor objective": (
        cd.TypeMismatchError,
        traced(lambda x, A: cd.argmin(lambda y: A @ y, like=x)),
        "the objective of cd.argmin is a tensor of order 1, but a real number is to be least",
    ),
    "two unknowns": (
        cd.TraceError,
        traced(lambda x, A: cd.root(lambda y, z: y, like=x)),
        "cd.root takes a lambda of one unknown, not a lambda of (y, z)",
    ),
    "no lambda": (cd.TraceError, traced(lambda x, A: cd.root(x, like=x)), "cd.root takes a lambda of one unknown"),
    "start": (
        cd.TypeMismatchError,
        traced(lambda x, A: cd.root(lambda y: y - x, like=x, start=A)),
        "the start of cd.root is a tensor over ('n', 'n'), but was declared a tensor over ('n')",
    ),
    "outside": (cd.TraceError, lambda: cd.root(lambda y: y, like=1.0), "cd.root is used outside of a program"),
    "real line": (
        cd.UnsupportedError,
        traced(lambda x, A: cd.root(lambda y: y, like=cd.Space(cd.Real()))),
        "the unknown of cd.root is a function over the real line, which no array holds",
    ),
}


test_messages_about_equations = messages_of(WRONG)


def test_the_unknown_stays_in_its_lambda() -> None:
    def leaking(x: Vector):  # type: ignore[valid-type, no-untyped-def]
        kept = []

        def equation(y):  # type: ignore[no-untyped-def]
            kept.append(y)
            return y - x

        return cd.root(equation, like=x) + kept[0]

    found = message(cd.TraceError, lambda: cd.program(leaking))
    assert found.startswith("the unknown y is used outside of the lambda that has it as a parameter")


def test_a_root_for_each_index_is_refused_when_it_is_run() -> None:
    @cd.program
    def rows(A: Matrix):  # type: ignore[valid-type, no-untyped-def]
        return cd.tensor(lambda i: cd.root(lambda y: y + cd.tanh(y) - A[i], like=A[i]))

    found = message(cd.UnsupportedError, lambda: rows(real(2, 2)))
    assert found.startswith("an equation for y is solved for each index i: that would be a loop")


@cd.program
def far(b: Number):  # type: ignore[valid-type, no-untyped-def]
    """A root that Newton's steps from b do not come near."""
    return cd.root(lambda x: cd.arctan(x - 5 * b), like=b)


@cd.program
def well(b: Number):  # type: ignore[valid-type, no-untyped-def]
    """The minimum to the right of a hill."""
    return cd.argmin(lambda x: (x**2 - 1) ** 2 + b * x, like=b)


def test_where_newtons_steps_go_astray_scipy_searches() -> None:
    assert far(1.0) == pytest.approx(5.0)
    assert well(0.1) == pytest.approx(0.9872575)  # the curve bends down where the search starts


def test_a_missing_scipy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real_import = builtins.__import__

    def without_scipy(name: str, *rest: Any, **named: Any) -> Any:
        if name.split(".")[0] == "scipy":
            raise ModuleNotFoundError("No module named 'scipy'", name="scipy")
        return real_import(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", without_scipy)
    assert cube(1.0, 1.0) == pytest.approx(0.6823278)  # Newton's steps go down at once
    found = message(cd.UnsupportedError, lambda: far(1.0))
    assert found == "roots and minima are found by SciPy, which is not installed — pip install combdiff[implicit]"


@cd.program
def beside_a_number(x: cd.Space()):
    count = np.sqrt(cd.sum(lambda i: 0.5 + 0 * i, i=3))
    return cd.root(lambda u: 3 * u + count * u / (2 + count * count) - x, x)


@pytest.mark.thorough
def test_an_equation_takes_what_is_a_number_when_it_is_planned() -> None:
    """The function of an equation gives arrays, even where all that it reads are Python's numbers."""
    slope = 1 / (3 + 1.5**0.5 / 3.5)
    assert float(beside_a_number(2.0)) == pytest.approx(2 * slope)
    for simplify in (True, False):
        assert float(cd.grad(beside_a_number, simplify=simplify)(2.0)) == pytest.approx(slope)
