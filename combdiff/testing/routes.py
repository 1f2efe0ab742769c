"""The property every release holds: on each route a program and its derivative have the value that they mean.

    reference(f) = run(f) = run(simplify f)
    reference(P f) = run(P f) = run(simplify P f) = central differences of reference(f)

    @given(cd.testing.programs())
    def test_routes(case): cd.testing.check_routes(case.program, **case.arrays)

Invariant: each route is compared with the reference interpreter, never with another route.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

import numpy as np

from combdiff.api import Program, pullback, simplify
from combdiff.errors import UnsupportedError
from combdiff.ir import Lambda, Space, Var, evaluate, readable, share, type_of
from combdiff.records import dataclass
from combdiff.testing.arrays import check_arguments, largest, named_sizes, random_array
from combdiff.testing.differences import default_step, finite_difference_pullback, rounding

EXACT, DIFFERENCES = 1e-9, 2e-5  # tolerances, of routes and of central differences


@dataclass(frozen=True)
class Case:
    """A program `(parameters) ↦ body` with everything needed to evaluate it, as `programs` draws it."""

    term: Lambda
    sizes: dict[str, int]
    arrays: dict[str, Any] = field(repr=False)

    @property
    def program(self) -> Program:
        """The program to call and transform."""
        return Program(readable(Lambda(self.term.parameters, share(self.term.body)), {}), "case")

    @property
    def environment(self) -> dict[Var, Any]:
        """The arrays by parameter, as `combdiff.ir.interpreter.evaluate` takes them."""
        return {parameter: self.arrays[parameter.name] for parameter in self.term.parameters}

    @property
    def points(self) -> tuple[Var, ...]:
        """The parameters by which there are derivatives: tensors of real or complex numbers, not of indices."""
        return tuple(p for p in self.term.parameters if isinstance(p.type, Space) and p.type.dtype is not int)

    @property
    def scalar(self) -> bool:
        """Whether the program gives a number (a real one) and not a tensor."""
        found = type_of(self.term.body)
        return isinstance(found, Space) and not found.order


def check_routes(f: Program, /, **arrays: Any) -> float:
    """Compare every route of a program and of its pullback at the arrays given by name; return the largest error.

    The pullback is taken by all real and complex tensors, for a fixed random cotangent. Errors are relative to the
    largest entry (absolute where that is below 1). Raises AssertionError naming the route that is wrong, ArgumentError
    for arrays that do not fit, and UnsupportedError for a program with several results.
    """
    given = check_arguments(f.parameters, arrays)
    sizes = named_sizes(f.parameters, given)
    result = type_of(f.term.body)
    if not isinstance(result, Space):
        raise UnsupportedError(f"{f.name} has several results", hint="check one of them at a time")
    errors = [_compare(_routes(f, simplify(f)), given, sizes)]
    wrt = tuple(p.name for p in f.parameters if isinstance(p.type, Space) and p.type.dtype is not int)
    if wrt:
        raw, simple = (pullback(f, wrt, simplify=simplified) for simplified in (False, True))
        k = raw.parameters[-1]
        cotangent = random_array(Space(*result.axes, dtype=result.dtype), np.random.default_rng(7), sizes)
        everything = {**given, k.name: cotangent}
        expected, value = _meaning(raw, everything, sizes), _meaning(f, given, sizes)
        for name, found in zip(wrt, expected, strict=True):
            space = next(p.type for p in f.parameters if p.name == name)
            assert isinstance(space, Space)
            slopes = finite_difference_pullback(lambda **a: _meaning(f, a, sizes), given, name, cotangent, space=space)
            lost = rounding(np.sum(np.abs(cotangent * value)), default_step(given[name]))
            errors.append(_error(found, slopes, DIFFERENCES, f"the pullback by {name}", "central differences", lost))
        errors.append(_compare(_routes(raw, simple), everything, sizes))
    return max(errors)


def _routes(raw: Program, simple: Program) -> dict[str, tuple[Program, bool]]:
    """Every route by name: a program, and whether it is run (or interpreted)."""
    return {
        f"{raw.name}, interpreted": (raw, False),
        f"{raw.name}, run": (raw, True),
        f"{raw.name}, simplified and interpreted": (simple, False),
        f"{raw.name}, simplified and run": (simple, True),
    }


def _compare(routes: Mapping[str, tuple[Program, bool]], arrays: Mapping[str, Any], sizes: Mapping[str, int]) -> float:
    """The largest deviation of a route from the first."""
    values = {
        name: program(**arrays) if runs else _meaning(program, arrays, sizes)
        for name, (program, runs) in routes.items()
    }
    (first, expected), *others = values.items()
    return max(_error(value, expected, EXACT, name, first) for name, value in others)


def _meaning(program: Program, arrays: Mapping[str, Any], sizes: Mapping[str, int]) -> Any:
    """What the reference interpreter says."""
    scope = {p: arrays[p.name] if p.name in arrays else program.fixed[p.name] for p in program.term.parameters}
    return evaluate(program.term.body, scope, sizes)


def _error(found: Any, expected: Any, tolerance: float, name: str, other: str, lost: float = 0.0) -> float:
    """The relative deviation of two values or tuples of values, beyond what the second is known to have `lost`.

    Raises AssertionError where it is too large.
    """
    if isinstance(expected, tuple):
        return max(_error(a, b, tolerance, name, other) for a, b in zip(found, expected, strict=True))
    one, two = np.asarray(found), np.asarray(expected)
    if one.shape != two.shape:
        raise AssertionError(f"{name}: the shape is {one.shape}, but {two.shape} by {other}")
    deviation = largest(one - two)
    error = (deviation - lost if deviation > lost else 0.0 * deviation) / max(1.0, largest(two))
    if not error <= tolerance:
        raise AssertionError(f"{name}: differs from {other} by {error:.2g} (tolerance {tolerance:.2g})")
    return error
