"""Source as a person would write it: with few helpers or none, run by itself, at sizes at which edges meet.

Σ diff(x)² by x        t1 = np.zeros((n,), x.dtype)
                       t1[1:] = x[:-1]
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from backends import TORCH, back, converted

import combdiff as cd
from combdiff.api.programs import Program
from combdiff.ir import LAST, Lambda, Number, Scan, Tuple, Var, add, conj, extent, function, let, mul
from combdiff.ir.interpreter import evaluate

CYCLE = cd.Cyclic("n")
Vector, Matrix, Window, Pair = cd.Space("n"), cd.Space("n", "n"), cd.Space(3), cd.Space("n", "n + 1")


def rows(element: Callable[[Any, Any], Any]) -> Any:
    return cd.tensor(lambda i: cd.sum(lambda j: element(i, j)), i="n")


def around(element: Callable[[Any], Any]) -> Any:
    return cd.tensor(element, i=CYCLE)


def halved(element: Callable[[Any], Any]) -> Any:
    return cd.tensor(element, i="n")


def batch(element: Callable[[Any, Any], Any]) -> Any:
    return cd.tensor(element, b=4, i="n")


# the lines of helpers that a program and its pullbacks have at most on NumPy, JAX and PyTorch, and the program
PROGRAMS: dict[str, tuple[tuple[int, int, int], Callable[..., Any]]] = {
    "differences": ((0, 0, 0), lambda x: np.sum(np.diff(x) ** 2)),
    "neighbours": ((0, 0, 0), lambda x: x[1:] * x[:-1]),
    "second differences": ((0, 0, 0), lambda x: x[2:] - 2 * x[1:-1] + x[:-2]),
    "first and last": ((0, 0, 0), lambda x: x * x[0] + np.sum(x) * x[-1]),
    "a corner": ((0, 0, 0), lambda A, x: A[0] * x[1] + A[:, -1] * A[0, 0]),
    "ends": ((10, 0, 24), lambda x: np.concatenate([x[1:] ** 2, x[:1] * x[-1:]])),
    "convolution": ((13, 0, 24), lambda x, w: np.convolve(x, w)),
    "valid": ((13, 0, 24), lambda y, w: np.convolve(y, w, "valid")),
    "around": ((13, 0, 0), lambda c, u: around(lambda i: cd.sum(lambda k: u[k] * c[i - k]))),
    "every other": ((13, 0, 0), lambda o: halved(lambda i: cd.sum(lambda k: 0.5**k * o[2 * i + k], k=3))),
    "strided rows": ((24, 23, 23), lambda C, V: halved(lambda i: cd.sum(lambda k, c: C[2 * i + k, c] * V[k, c]))),
    "windows of a batch": ((24, 0, 24), lambda D, v: batch(lambda b, i: cd.sum(lambda k: D[b, i + k] * v[k]))),
    "beside the diagonal": ((0, 0, 0), lambda A, x: rows(lambda i, j: cd.where(i != j, A[i, j] * x[j], 0))),
    "triangle": ((0, 0, 0), lambda A, x: np.tril(A) @ x),
    "band": ((0, 0, 0), lambda A, x: rows(lambda i, j: cd.where((i <= j + 1) & (j <= i + 2), A[i, j] * x[j], 0))),
    "parity": ((0, 0, 0), lambda A, x: rows(lambda i, j: cd.where((i + 2 * j) % 3 == 1, A[j, i] * x[i], 0))),
    "pairs": ((0, 0, 0), lambda x: cd.sum(lambda i, j: cd.where(i < j, (x[i] - x[j]) ** 2, 0))),
    "upper part": ((0, 0, 0), lambda B: np.triu(B, 1) * B),
}
LEAST = {
    "a corner": 2,
    "differences": 1,
    "neighbours": 1,
    "second differences": 2,
    "ends": 1,
}  # with less there are no such arrays
SPACES = {"x": Vector, "y": cd.Space("n + 2"), "A": Matrix, "B": Pair, "w": Window}
SPACES |= {"c": cd.Space(CYCLE), "u": cd.Space(CYCLE), "o": cd.Space("2*n + 1")}
SPACES |= {"C": cd.Space("2*n + 1", "n"), "V": cd.Space(3, "n"), "D": cd.Space(4, "2*n"), "v": cd.Space("n")}


def drawn(name: str) -> list[cd.Program]:
    """A program and its pullbacks."""
    body = PROGRAMS[name][1]
    names = body.__code__.co_varnames[: body.__code__.co_argcount]
    traced = eval(f"lambda {', '.join(names)}: body({', '.join(names)})", {"body": body})
    traced.__annotations__, traced.__name__ = {each: SPACES[each] for each in names}, "traced"
    program = cd.program(traced)
    return [program, *(cd.pullback(program, each) for each in names)]


@pytest.mark.sample(2)
@pytest.mark.parametrize("library", ["numpy", "jax", TORCH])
@pytest.mark.parametrize("name", PROGRAMS)
def test_plain_programs_have_plain_sources(name: str, library: str) -> None:
    """Their text needs its library alone, gives what they mean, and has no helper where a few lines do."""
    rng = np.random.default_rng(0)
    most = PROGRAMS[name][0][("numpy", "jax", "torch").index(library)]
    for program in drawn(name):
        source = program.source(library)
        helpers = [part for part in source.rstrip().split("\n\n\n") if re.search(r"^def _", part, re.MULTILINE)]
        assert sum(part.count("\n") + 1 for part in helpers) <= most, source
        scope: dict[str, Any] = {}
        exec(source, scope)
        function = scope[re.findall(r"^def (\w+)", source, re.MULTILINE)[0]]
        for n in (each for each in (0, 1, 2, 5) if each >= LEAST.get(name, 0)):
            spaces = [each.type.axes for each in program.term.parameters if isinstance(each.type, cd.Space)]
            arrays = [rng.normal(size=[extent(axis, {"n": n}) for axis in axes])[()] for axes in spaces]
            values = dict(zip(program.term.parameters, arrays, strict=True))
            expected = evaluate(program.term.body, values, {"n": n})
            found = back(function(*(arrays if library == "numpy" else converted(library, arrays))))
            assert np.shape(found) == np.shape(expected)
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("text", ["c", "2 c", "c + 1/2", "-c b", "c² - b", "[c < b]", "max(c, b)", "exp(c) b", "3"])
def test_sources_of_numbers_take_pythons_numbers(text: str) -> None:
    """What adds and multiplies Python's numbers is one, but the result is NumPy's."""
    program = cd.read(f"c (), b ()\n(c, b) ↦ {text}")
    for each in (program, cd.grad(program, "c")):
        scope: dict[str, Any] = {}
        exec(each.source(), scope)
        for kind in (float, np.float64, np.array):
            found = scope[each.name](kind(2.0), kind(-0.5))
            assert type(found) is np.float64
            assert found == each(2.0, -0.5)


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize(
    ("space", "text"), [(cd.Space("n", "m"), "x.{}(1)"), (cd.Space("n", 2, "m"), "np.{}imum(x[:, 0]")]
)
def test_the_largest_is_found_once(name: str, space: cd.Space, text: str) -> None:
    def squares(x: space):
        return (getattr(np, name)(x, axis=1) ** 2).sum()

    gradient = cd.grad(cd.program(squares))
    source = gradient.source()
    assert source.count(text.format(name)) == 1
    assert source.count(".astype(real)") == source.count(" == ") == 1, (
        "how many are the largest is counted where they are"
    )
    assert "broadcast_to" not in source
    x = np.random.default_rng(0).integers(0, 3, size=(5, 2, 4)[: len(space.axes)]) * 1.0
    equal = x == getattr(np, name)(x, axis=1, keepdims=True)
    expected = 2 * x * equal / equal.sum(1, keepdims=True)
    np.testing.assert_allclose(gradient(x), expected)


@pytest.mark.parametrize("backend", ["numpy", "jax", TORCH])
def test_the_parts_of_a_number_that_is_written_out(backend: str) -> None:
    """A step reads Re t and t* of what turns out to be the number 0: `0.real` is no Python."""
    step, s = Var("i", cd.Range(3)), Var("s", cd.Space(dtype=complex))
    t, z = Var("t", cd.Space(dtype=complex)), Var("z", cd.Space(dtype=complex))
    parts = add(function("real", t), function("imag", t), mul(conj(t), s))
    scan = Scan(Lambda((step, s), Tuple((add(mul(Number(2), s), parts),))), (z,), LAST, 0)
    program = Program(Lambda((z,), let([(t, Number(0))], scan)), name="doubled")
    point = np.asarray(1.5 + 1j)
    (argument,) = [point] if backend == "numpy" else converted(backend, [point])
    np.testing.assert_allclose(back(program(argument)), 8 * point)
