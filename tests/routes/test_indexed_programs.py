"""One corpus of programs whose indices meet bounds, strides, windows, cycles and integers × one table of routes.

Each program, its gradients, raw and simplified, and its products with the Hessian, at sizes at which edges meet: run on
NumPy, as source that was written without sizes, and in the least memory that there is a plan for, they are what the
interpreter says; the gradients are those of central differences, and other libraries give them, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import masked_programs
import numpy as np
import pytest
import test_bounds
import test_conditions
import test_folds
import test_joining
import test_lookups
import test_turns
import test_windows
from backends import BACKENDS, back, converted, on, quiet

import combdiff as cd
from combdiff.ir import extent, type_of
from combdiff.ir.interpreter import evaluate

Draw = Callable[[Any, int], tuple[list[Any], dict[str, int]]]


def of_points(_: cd.Program, n: int) -> tuple[list[Any], dict[str, int]]:
    return list(test_conditions.arrays(n).values()), {"n": n}


def of_matrices(f: cd.Program, n: int) -> tuple[list[Any], dict[str, int]]:
    return masked_programs.arrays_of(f, n), {"n": n, "m": 3}


LOOKUPS = list(dict.fromkeys(f for f, _ in test_lookups.CASES))
CORPUS: dict[str, tuple[cd.Program, Draw, Sequence[int]]] = {
    f"{f.name}, {about}": (f, draw, sizes)
    for about, programs, draw, sizes in (
        ("a bound", test_bounds.CASES, test_bounds.arrays_of, (0, 1, 2, 3, 9)),
        ("a reshape", test_folds.SIZES, test_folds.arrays_of, (0, 1, 2, 5)),
        ("a condition", test_conditions.PROGRAMS, of_points, (2, 3, 4)),
        ("a mask", masked_programs.PROGRAMS, of_matrices, (0, 1, 2, 3, 7)),
        ("joined", test_joining.PROGRAMS, test_joining.arrays_of, (0, 1, 2)),
        ("windows", test_windows.SHAPES, test_windows.arrays_of, (0,)),
        ("integers", LOOKUPS, test_lookups.arrays_of, (0,)),
        ("a cycle", test_turns.PROGRAMS, test_turns.arrays_of, (0, 1, 2, 3, 4, 6, 8, 9)),
    )
    for f in programs
}


@cache
def derivatives(name: str) -> list[cd.Program]:
    """The program, its gradients and the product of its Hessian and a direction; of tensors pullbacks, and of one."""
    f = CORPUS[name][0]
    points = [p.name for p in f.parameters if p.type.dtype is not int]
    if len(type_of(f.term.body).axes):
        first = [cd.pullback(f, wrt=point) for point in points]
        return [f, *first, cd.pullback(first[-1], wrt=points[0])]
    return [f, *(cd.grad(f, wrt=point, simplify=s) for point in points for s in (True, False)), cd.hvp(f)]


def given(program: cd.Program, arrays: list[Any], sizes: dict[str, int]) -> list[Any]:
    """The arrays, and one for each of the arguments that a derivative takes more."""
    more, rng = program.parameters[len(arrays) :], np.random.default_rng(1)
    return [*arrays, *(rng.normal(size=[extent(axis, sizes) for axis in p.type.axes]) for p in more)]


def written(program: cd.Program) -> Callable[..., Any]:
    """The function that the source of a program defines."""
    scope: dict[str, Any] = {}
    exec(program.source(), scope)
    function: Callable[..., Any] = scope[program.name]
    return function


def limited(program: cd.Program, library: str = "numpy") -> Callable[..., Any]:
    """The program in the least memory that there is a plan for, which an error names."""

    def call(*arrays: Any) -> Any:
        try:
            return program.compile(library, memory_limit=1)(*arrays)
        except cd.MemoryLimitError as refused:
            least = int(str(refused.hint).rpartition("=")[2])
            return program.compile(library, memory_limit=least)(*arrays)

    return call


def limited_on_torch(program: cd.Program) -> Callable[..., Any]:
    """The same with PyTorch's tensors, which come back as NumPy's arrays."""
    return lambda *arrays: back(limited(program, "torch")(*converted("torch", arrays)))


Route = Callable[[cd.Program], Callable[..., Any]]
ROUTES: dict[str, Route] = {
    "run": lambda program: program,
    "source": written,
    "limits": limited,
    "limits of PyTorch": limited_on_torch,
}
NEEDS = {"limits of PyTorch": pytest.mark.needs("torch")}


@pytest.mark.sample(5)
@pytest.mark.parametrize("route", [pytest.param(route, marks=NEEDS.get(route, ())) for route in ROUTES])
@pytest.mark.parametrize("name", CORPUS)
def test_values_and_derivatives_are_those_of_the_interpreter(name: str, route: str) -> None:
    _, draw, every = CORPUS[name]
    programs = derivatives(name)
    if route.startswith("limits"):  # a plan for each size is dear: the program and a gradient, at one size
        programs, every = programs[:2], every[:3][-1:]
    for program in programs:
        function = ROUTES[route](program)
        for size in every:
            arrays, sizes = draw(CORPUS[name][0], size)
            every_array = given(program, arrays, sizes)
            values = dict(zip(program.term.parameters, every_array, strict=True))
            with np.errstate(all="ignore"):
                expected = evaluate(program.term.body, values, sizes)
                np.testing.assert_allclose(function(*every_array), np.asarray(expected), atol=1e-9)


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", CORPUS)
def test_gradients_are_those_of_central_differences(name: str) -> None:
    f, draw, every = CORPUS[name]
    arrays, _ = draw(f, every[:3][-1])
    named = dict(zip((p.name for p in f.parameters), arrays, strict=True))
    check = cd.testing.check_routes if derivatives(name)[1].name.startswith("pullback") else cd.testing.check_grad
    check(f, **named)


@pytest.mark.sample(2)
@pytest.mark.parametrize("library", BACKENDS)
@pytest.mark.parametrize("name", CORPUS)
def test_other_libraries_agree(name: str, library: str) -> None:
    f, draw, every = CORPUS[name]
    gradient = derivatives(name)[1]
    arrays = given(gradient, *draw(f, every[-1]))
    with quiet(library):
        found = np.asarray(on(library, gradient)(*converted(library, arrays, chunks=4)))
    close = 1e-4 if library == "jax" else 1e-9
    np.testing.assert_allclose(found, gradient(*arrays), rtol=close, atol=close * np.abs(found).max(initial=0))
