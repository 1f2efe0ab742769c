"""One program, every route: what a term means, normal form, simplified, executed; and the same for its derivatives.

Random programs come from `strategies.programs`; the reference interpreter says what each means, and central
differences, taken in the real and in the imaginary direction of every entry, what its derivative is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from strategies import Case, programs

from combdiff.checking import type_of
from combdiff.domains import Space
from combdiff.execution import run
from combdiff.pullback import cotangent_space, pull, push
from combdiff.reference import evaluate
from combdiff.sharing import share, split
from combdiff.simplification import simplify_body
from combdiff.substitution import Names
from combdiff.terms import Lambda, Term, Tuple, Var, let
from combdiff.testing import finite_difference_pullback, random_array

pytestmark = pytest.mark.filterwarnings("ignore::combdiff.BudgetWarning")

GIVEN: dict[str, Any] = {
    "deadline": None,
    "derandomize": True,
    "database": None,
    "suppress_health_check": list(HealthCheck),
}

Arrays = Mapping[Var, Any]


def close(found: Any, expected: Any, tolerance: float = 1e-9) -> None:
    """Equal up to rounding, relative to the largest entry (absolute where that is below 1); tuples item by item."""
    if isinstance(expected, tuple):
        assert isinstance(found, tuple)
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            close(one, other, tolerance)
        return
    one, other = np.asarray(found), np.asarray(expected)
    assert one.shape == other.shape
    scale = max(1.0, float(np.max(np.abs(other), initial=0.0)))
    np.testing.assert_allclose(one, other, rtol=0.0, atol=tolerance * scale)


def reference(body: Term, arrays: Arrays, case: Case) -> Any:
    """What a body means."""
    return evaluate(body, arrays, case.sizes)


def executed(body: Term, arrays: Arrays, case: Case) -> Any:
    """What a body gives as array operations."""
    return run(Lambda(tuple(arrays), body), list(arrays.values()), case.sizes)


@settings(max_examples=120, **GIVEN)
@given(programs())
def test_every_route_gives_the_value(case: Case) -> None:
    """Reference, normal form, simplified, executed raw and executed simplified are one number."""
    body, arrays = case.term.body, case.environment
    expected = reference(body, arrays, case)
    shared, simple = share(body), simplify_body(body)
    close(reference(shared, arrays, case), expected)
    close(reference(simple, arrays, case), expected)
    close(executed(body, arrays, case), expected)
    close(executed(shared, arrays, case), expected)
    close(executed(simple, arrays, case), expected)


# --- derivatives ---------------------------------------------------------------------------------------------------


def cotangent_of(body: Term, names: Names, case: Case) -> tuple[Var, Any]:
    """A variable for the cotangent of a body, and a random array for it."""
    space = type_of(body)
    assert isinstance(space, Space)
    var = names.fresh(Var("k", cotangent_space(space)))
    return var, random_array(var.type, np.random.default_rng(7), case.sizes)  # type: ignore[arg-type]


def raw_pullback(body: Term, points: Sequence[Var], cotangent: Term, names: Names) -> Term:
    """The pullback of a normal form by several variables, as the rules leave it."""
    backward, gradients = pull(body, tuple(points), cotangent, names)
    return let((*split(body)[0], *backward), Tuple(tuple(gradients)))


def differences(case: Case, cotangent: Any) -> tuple[Any, ...]:
    """The pullback of a program by each of its parameters, by central differences."""

    def function(**named: Any) -> Any:
        return reference(case.term.body, {p: named[p.name] for p in case.term.parameters}, case)

    arrays = {p.name: np.asarray(case.arrays[p.name], p.type.dtype) for p in case.term.parameters}  # type: ignore
    return tuple(finite_difference_pullback(function, arrays, p.name, cotangent) for p in case.term.parameters)


@settings(max_examples=60, **GIVEN)
@given(programs())
def test_every_route_gives_the_pullback(case: Case) -> None:
    """Raw and simplified, interpreted and executed, and central differences agree."""
    body, points = share(case.term.body), case.term.parameters
    names = Names(case.term, body)
    k, cotangent = cotangent_of(body, names, case)
    arrays = {**case.environment, k: cotangent}
    raw = raw_pullback(body, points, k, names)
    simple = simplify_body(raw)
    expected = reference(raw, arrays, case)
    for point, gradient in zip(points, expected, strict=True):
        assert isinstance(point.type, Space)
        assert point.type.dtype is complex or np.asarray(gradient).dtype.kind != "c"
    close(expected, differences(case, cotangent), 2e-5)
    close(reference(simple, arrays, case), expected)
    close(executed(raw, arrays, case), expected)
    close(executed(simple, arrays, case), expected)


@settings(max_examples=60, **GIVEN)
@given(programs())
def test_pushforward_and_pullback_are_adjoint(case: Case) -> None:
    """⟨k, J v⟩ = ⟨Jᵀ k, v⟩ in the real inner product Re Σ conj(a)·b; both routes of the pushforward agree."""
    body, points = share(case.term.body), case.term.parameters
    names = Names(case.term, body)
    k, cotangent = cotangent_of(body, names, case)
    rng = np.random.default_rng(11)
    tangents = {p: names.fresh(Var(f"{p.name}_dot", cotangent_space(p.type))) for p in points}  # type: ignore[arg-type]
    moves = {v: random_array(v.type, rng, case.sizes) for v in tangents.values()}  # type: ignore[arg-type]
    forward, tangent = push(body, tangents, names)
    raw = let((*split(body)[0], *forward), tangent)
    arrays = {**case.environment, **moves}
    pushed = reference(raw, arrays, case)
    simple = simplify_body(raw)
    close(reference(simple, arrays, case), pushed)
    close(executed(simple, arrays, case), pushed)
    pulled = reference(raw_pullback(body, points, k, Names(case.term, body, raw, k)), {**arrays, k: cotangent}, case)
    left = inner(cotangent, pushed)
    right = sum(inner(gradient, moves[tangents[p]]) for p, gradient in zip(points, pulled, strict=True))
    close(left, right, 1e-8)


def inner(one: Any, other: Any) -> float:
    """Re Σ conj(a)·b."""
    return float(np.real(np.vdot(one, other)))
