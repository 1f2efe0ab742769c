"""One corpus of programs whose indices meet bounds, strides and cycles × one table of routes.

Each program, its gradients, raw and simplified, and its products with the Hessian, at sizes at which edges meet: run on
NumPy, and as source that was written without sizes, they are what the interpreter says; the gradients are those of
central differences, and other libraries give them, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
import test_bounds
import test_folds
import test_turns
from backends import BACKENDS, converted, on

import combdiff as cd
from combdiff.ir.interpreter import evaluate

Draw = Callable[[Any, int], tuple[list[Any], dict[str, int]]]
CORPUS: dict[str, tuple[cd.Program, Draw, Sequence[int]]] = {
    f"{f.name}, {about}": (f, draw, sizes)
    for about, programs, draw, sizes in (
        ("a bound", test_bounds.CASES, test_bounds.arrays_of, (0, 1, 2, 3, 9)),
        ("a reshape", test_folds.SIZES, test_folds.arrays_of, (0, 1, 2, 5)),
        ("a cycle", test_turns.PROGRAMS, test_turns.arrays_of, (0, 1, 2, 3, 4, 6, 8, 9)),
    )
    for f in programs
}


@cache
def derivatives(name: str) -> list[cd.Program]:
    """The program, its gradients, and the product of its Hessian and a direction."""
    f = CORPUS[name][0]
    return [f, *(cd.grad(f, wrt=p.name, simplify=s) for p in f.parameters for s in (True, False)), cd.hvp(f)]


def written(program: cd.Program) -> Callable[..., Any]:
    """The function that the source of a program defines."""
    scope: dict[str, Any] = {}
    exec(program.source(), scope)
    function: Callable[..., Any] = scope[program.name]
    return function


ROUTES: dict[str, Callable[[cd.Program], Callable[..., Any]]] = {"run": lambda program: program, "source": written}


@pytest.mark.sample(10)
@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("name", CORPUS)
def test_values_and_derivatives_are_those_of_the_interpreter(name: str, route: str) -> None:
    _, draw, every = CORPUS[name]
    for program in derivatives(name):
        function = ROUTES[route](program)
        for size in every:
            arrays, sizes = draw(CORPUS[name][0], size)
            given = [*arrays, np.cos(arrays[0])][: len(program.parameters)]
            values = dict(zip(program.term.parameters, given, strict=True))
            with np.errstate(all="ignore"):
                expected = evaluate(program.term.body, values, sizes)
                np.testing.assert_allclose(function(*given), np.asarray(expected), atol=1e-10)


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", CORPUS)
def test_gradients_are_those_of_central_differences(name: str) -> None:
    f, draw, every = CORPUS[name]
    arrays, _ = draw(f, every[2])
    cd.testing.check_grad(f, "x", **dict(zip((p.name for p in f.parameters), arrays, strict=True)))


@pytest.mark.sample(8)
@pytest.mark.parametrize("library", BACKENDS)
@pytest.mark.parametrize("name", CORPUS)
def test_other_libraries_agree(name: str, library: str) -> None:
    f, draw, every = CORPUS[name]
    arrays, _ = draw(f, every[-1])
    gradient = cd.grad(f, "x")
    found = np.asarray(on(library, gradient)(*converted(library, arrays)))
    np.testing.assert_allclose(found, gradient(*arrays), rtol=1e-4 if library == "jax" else 1e-10)
