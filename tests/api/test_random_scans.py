"""Random steps done over and over: `cd.scan` against Python's own loop, in values and in derivatives of two orders.

Random programs with recurrences, too: their pullback and Hessian-vector product against the reference interpreter and
central differences.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from backends import TORCH, back, converted, double_precision, on
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from strategies import Case, all_programs, examples

import combdiff as cd
from combdiff.ir import Scan, subterms
from combdiff.ir.interpreter import evaluate
from combdiff.testing import check_routes
from combdiff.testing.arrays import symmetrize

FEW = settings(max_examples=examples(8), deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
DRAWN = settings(
    max_examples=examples(4), deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate]
)
N, T = 2, 3
OTHERS = ("lookups", "empty axes", "matrix functions", "solutions", "maps")

pytestmark = pytest.mark.filterwarnings("ignore::combdiff.BudgetWarning")

# What a step makes of its state x, of v or nothing, and of what it reads from outside.
MOVES: list[Callable[..., Any]] = [
    lambda A, x, v, b: A @ x + b,
    lambda A, x, v, b: x * v + 0.1 * (x @ b) * x,
    lambda A, x, v, b: np.exp(0.1 * x) - (A @ b) * v,
    lambda A, x, v, b: 0.3 * (A @ (x * x)) + v,
    lambda A, x, v, b: x / (2 + x * x) + v * b,
]


def in_python(step: Callable[..., Any], init: Any, xs: Any, length: int | None) -> tuple[Any, Any]:
    """What cd.scan means."""
    found = []
    for n in range(T):
        init, y = step(init, None if xs is None else xs[n])
        found.append(y)
    return init, np.array(found)


@st.composite
def objectives(draw: st.DrawFn) -> Callable[..., Any]:
    """A real number made of a scan of random steps: one state or two, with xs or without, perhaps around a scan."""
    moves = draw(st.lists(st.sampled_from(MOVES), min_size=1, max_size=2))
    two, has_xs, nested = draw(st.booleans()), draw(st.booleans()), draw(st.booleans())

    def objective(scan: Callable[..., Any], A: Any, x0: Any, u: Any, b: Any) -> Any:
        def move(x: Any, v: Any) -> Any:
            for each in moves:
                x = each(A, x, b if v is None else v, b)
            return x

        def step(carry: Any, v: Any) -> Any:
            x, s = carry if two else (carry, 1)
            if nested:
                x, _ = scan(lambda z, _: (move(z, v), z), x, None, T)
            else:
                x = move(x, v)
            after = (x, 0.5 * s + (x * np.conj(x)).sum().real) if two else x
            return after, s * x

        last, ys = scan(step, (x0, 0.7) if two else x0, u if has_xs else None, None if has_xs else T)
        x, s = last if two else (last, 1)
        return ((x * np.conj(x)).sum() * s + (ys * np.conj(ys)).sum()).real

    objective.is_nested = nested
    return objective


def moved(arguments: tuple[Any, ...], directions: tuple[Any, ...], h: float) -> tuple[Any, ...]:
    return tuple(a + h * d for a, d in zip(arguments, directions, strict=True))


def program_of(objective: Callable[..., Any], dtype: type) -> cd.Program:
    """The objective as a program."""

    @cd.program
    def f(
        A: cd.Space("n", "n", dtype=dtype),
        x0: cd.Space("n", dtype=dtype),
        u: cd.Space(T, "n", dtype=dtype),
        b: cd.Space("n", dtype=dtype),
    ):
        return objective(cd.scan, A, x0, u, b)

    return f


def drawn(rng: np.random.Generator, is_complex: bool) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Arguments of an objective, and directions from there."""
    shapes = ((N, N), (N,), (T, N), (N,))

    def some() -> tuple[Any, ...]:
        return tuple(0.4 * (rng.normal(size=s) + (1j * rng.normal(size=s) if is_complex else 0)) for s in shapes)

    return some(), some()


@FEW
@given(objectives(), st.booleans(), st.integers(0, 2**16))
def test_random_steps(objective: Callable[..., Any], is_complex: bool, seed: int) -> None:
    f = program_of(objective, complex if is_complex else float)
    arguments, directions = drawn(np.random.default_rng(seed), is_complex)
    wrt = ("A", "x0", "u", "b")
    np.testing.assert_allclose(f(*arguments), objective(in_python, *arguments))
    gradient = cd.grad(f, wrt=wrt, simplify=False)
    along = sum(np.vdot(g, d).real for g, d in zip(gradient(*arguments), directions, strict=True))
    h = 1e-5
    ends = [objective(in_python, *moved(arguments, directions, s * h)) for s in (1, -1)]
    np.testing.assert_allclose(along, (ends[0] - ends[1]) / (2 * h), rtol=1e-6, atol=1e-8)
    if objective.is_nested:  # second derivatives of these take seconds to derive
        return
    product = cd.hvp(f, wrt=wrt, simplify=False)(*arguments, *directions)
    sides = [gradient(*moved(arguments, directions, s * h)) for s in (1, -1)]
    for found, one, two in zip(product, *sides, strict=True):
        np.testing.assert_allclose(found, (one - two) / (2 * h), rtol=1e-5, atol=1e-7)


AS_WIDE_AS_LONG: list[Callable[..., Any]] = [
    np.logaddexp,
    lambda x, v: np.hypot(x, v + 1),
    lambda x, v: np.exp(-x * v),
    lambda x, v: np.tanh(x) / (1 + v**2),
]


@pytest.mark.sample(2)
@pytest.mark.parametrize("move", AS_WIDE_AS_LONG, ids=["logaddexp", "hypot", "exp", "tanh"])
@pytest.mark.parametrize("turned", [False, True])
def test_as_many_steps_as_a_state_has_elements(move: Callable[..., Any], turned: bool) -> None:
    """What a step begins with and what it ends with are two results: exp(c[t] - c[t + 1]) is no symmetric matrix."""

    @cd.program
    def f(x0: cd.Space(T), u: cd.Space(T, T)):
        def step(x: Any, v: Any) -> Any:
            after = move(x, v)
            return after, after

        last, ys = cd.scan(step, x0, u.T if turned else u)
        return np.sum(np.cos(ys)) + last @ last

    rng = np.random.default_rng(0)
    x0, u, way = rng.normal(size=T), rng.normal(size=(T, T)), rng.normal(size=(T, T))
    for derived, arguments in ((cd.grad, (x0, u)), (cd.hvp, (x0, u, way))):
        simplified, raw = derived(f, "u"), derived(f, "u", simplify=False)
        np.testing.assert_allclose(simplified(*arguments), raw(*arguments), err_msg=str(simplified))


@pytest.mark.thorough
@pytest.mark.parametrize("library", ["jax", TORCH])
@settings(FEW, max_examples=2)
@given(objectives(), st.booleans(), st.integers(0, 2**16))
def test_random_steps_on_other_libraries(
    library: str, objective: Callable[..., Any], is_complex: bool, seed: int
) -> None:
    """Value and gradient as on NumPy."""
    f = program_of(objective, complex if is_complex else float)
    arguments, _ = drawn(np.random.default_rng(seed), is_complex)
    both = cd.value_and_grad(f, wrt=("A", "x0", "u", "b"), simplify=False)
    value, gradients = both(*arguments)
    with double_precision():
        found, slopes = on(library, both)(*converted(library, arguments))
        np.testing.assert_allclose(back(found), value, rtol=1e-10)
        for one, other in zip(back(slopes), gradients, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def repeats(case: Case) -> bool:
    """Whether steps are done over and over in what a program computes."""
    return any(isinstance(part, Scan) for part in subterms(case.program.term))


@pytest.mark.thorough
@DRAWN
@given(all_programs(result="scalar", depth=1, without=OTHERS).filter(repeats))
def test_random_programs_with_recurrences(case: Case) -> None:
    """Every route of value and pullback; the Hessian-vector product is the slope of the gradient, and what it means."""
    f, arrays = case.program, case.arrays
    with cd.budget(nodes=2000), np.errstate(all="ignore"):
        check_routes(f, **arrays)
        for p in case.points[:1]:
            raw, product = (cd.hvp(f, p.name, simplify=simplified) for simplified in (False, True))
            direction = np.random.default_rng(0).normal(size=np.shape(arrays[p.name])) + 0 * arrays[p.name]
            given = {**arrays, raw.parameters[-1].name: symmetrize(direction, p.type)}
            direction, gradient = given[raw.parameters[-1].name], cd.grad(f, p.name)
            ends = [gradient(**arrays | {p.name: arrays[p.name] + h * direction}) for h in (1e-5, -1e-5)]
            slope, found = (ends[0] - ends[1]) / 2e-5, product(**given)
            scale = max(1.0, float(np.max(np.abs(slope), initial=0.0)))
            np.testing.assert_allclose(found, slope, rtol=0, atol=1e-5 * scale, err_msg=str(f))
            meant = evaluate(raw.term.body, {q: given[q.name] for q in raw.term.parameters}, case.sizes)
            np.testing.assert_allclose(found, meant, rtol=0, atol=1e-9 * scale, err_msg=str(f))


def rooted(given: Any) -> Any:
    """The root of y + y³/5 = given, by Newton's steps."""
    y = 0 * given
    for _ in range(30):
        y = y - (y + 0.2 * y**3 - given) / (1 + 0.6 * y**2)
    return y


SOLVED: list[Callable[..., Any]] = [
    lambda root, A, x, v, w: root(A @ x + v) * w,
    lambda root, A, x, v, w: np.where(x > v, x * w, v) + 0.5 * root(x * v),
    lambda root, A, x, v, w: root(np.where(x > 0, v, w)) - A @ x,
]


@pytest.mark.thorough
@settings(FEW, max_examples=3)
@given(st.sampled_from(SOLVED), st.integers(0, 2**16))
def test_steps_with_roots_choices_and_pairs_of_xs(move: Callable[..., Any], seed: int) -> None:
    """Values of Python's loop, and gradients against central differences of it."""

    def objective(scan: Callable[..., Any], root: Callable[..., Any], A: Any, x0: Any, u: Any, w: Any) -> Any:
        last, ys = scan(lambda x, each: (move(root, A, x, *each), x * x), x0, (u, w), None)
        return (last * last).sum() + ys.sum()

    def paired(step: Callable[..., Any], init: Any, xs: Any, length: None) -> tuple[Any, Any]:
        return in_python(step, init, list(zip(*xs, strict=True)), length)

    @cd.program
    def f(A: cd.Space("n", "n"), x0: cd.Space("n"), u: cd.Space(T, "n"), w: cd.Space(T, "n")):
        def root(v: Any) -> Any:
            return cd.root(lambda y: y + 0.2 * y**3 - v, like=x0)

        return objective(cd.scan, root, A, x0, u, w)

    rng = np.random.default_rng(seed)
    shapes, h = ((N, N), (N,), (T, N), (T, N)), 1e-5
    arguments, directions = ([rng.normal(size=shape) for shape in shapes] for _ in range(2))
    np.testing.assert_allclose(f(*arguments), objective(paired, rooted, *arguments))
    gradient = cd.grad(f, wrt=("A", "x0", "u", "w"), simplify=False)
    along = sum(np.vdot(g, d) for g, d in zip(gradient(*arguments), directions, strict=True))
    ends = [objective(paired, rooted, *moved(tuple(arguments), tuple(directions), s * h)) for s in (1, -1)]
    np.testing.assert_allclose(along, (ends[0] - ends[1]) / (2 * h), rtol=1e-5, atol=1e-8)


def bent(right: Any, like: Any) -> Any:
    return cd.root(lambda y: y + 0.2 * y**3 - right, like=like)


def lowest(right: Any, like: Any) -> Any:
    return cd.argmin(lambda y: y @ y / 2 + 0.05 * (y**4).sum() - right @ y, like=like)


def twice(A: Any, x: Any, v: Any) -> Any:
    """Two roots, one after the other."""
    return cd.scan(lambda z, _: (bent(A @ z + v, x), None), x, None, length=2)[0]


def with_all(A: Any, x: Any, v: Any, u: Any) -> Any:
    """A root for each row of u, and what they make together."""
    z, ys = cd.scan(lambda z, w: (bent(A @ z + v * w, x), z * w), x, u)
    return z + ys.sum(0)


SOLVERS_IN_SCANS: dict[str, Callable[..., Any]] = {
    "root": lambda A, x0, u: cd.scan(lambda x, v: (bent(A @ x + v, x0), None), x0, u)[0],
    "root beside the state": lambda A, x0, u: cd.scan(lambda x, v: (A @ x, bent(x + v, x0)), x0, u)[1].sum(0),
    "root without states": lambda A, x0, u: cd.scan(lambda _, v: (None, bent(A @ v, x0)), None, u)[1].sum(0),
    "argmin": lambda A, x0, u: cd.scan(lambda x, v: (lowest(A @ x + v, x0), None), x0, u)[0],
    "scan in root": lambda A, x0, u: cd.root(
        lambda y: y - cd.scan(lambda z, v: (np.sin(0.3 * (A @ z)) + 0.2 * y + v, None), x0, u)[0], like=x0
    ),
    "root in scan in scan": lambda A, x0, u: cd.scan(lambda x, v: (twice(A, x, v), None), x0, u)[0],
    "results of those": lambda A, x0, u: cd.scan(lambda x, v: (x + v, with_all(A, x, v, u)), x0, u)[1].sum(0),
}
DEAR = ("argmin", "root in scan in scan", "results of those")


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.thorough if n in DEAR else ()) for n in SOLVERS_IN_SCANS]
)
def test_solvers_in_scans_by_all_they_read(name: str) -> None:
    """Gradients by what every step reads, by xs and by the start, against central differences."""

    @cd.program
    def f(A: cd.Space("n", "n"), x0: cd.Space("n"), u: cd.Space(T, "n")):
        return (SOLVERS_IN_SCANS[name](A, x0, u) ** 2).sum()

    rng, h, wrt = np.random.default_rng(0), 1e-5, ("A", "x0", "u")
    shapes = ((N, N), (N,), (T, N))
    arguments, directions = (tuple(0.4 * rng.normal(size=shape) for shape in shapes) for _ in range(2))
    gradient = cd.grad(f, wrt=wrt, simplify=False)
    along = sum(np.vdot(g, d) for g, d in zip(gradient(*arguments), directions, strict=True))
    ends = [f(*moved(arguments, directions, s * h)) for s in (1, -1)]
    np.testing.assert_allclose(along, (ends[0] - ends[1]) / (2 * h), rtol=1e-6, atol=1e-8)
