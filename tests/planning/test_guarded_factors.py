"""What is 0 outside of some conditions guards the factors beside it, whatever their number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import combdiff as cd
from combdiff.ir import subterms
from combdiff.planning.lowering.guarded_factors import guard_conditions

X, Y, Z = np.array([2.5, 1.5, 3.0]), np.array([1.2, 5.0, 0.3]), np.array([1.0, 2.0, 0.0])


def guarded(count: int) -> cd.Program:
    """Σ s log z, where s is a sum of values of which each has three conditions; log z has no value where all fail."""

    def f(x: Any, y: Any, z: Any) -> Any:
        def value(i: Any, r: int) -> Any:
            inner = cd.where(z[i] > r - 1, cd.exp(r * x[i]), 0)
            return cd.where(x[i] > r, cd.where(y[i] < r + 0.5, inner, 0), 0)

        s = cd.tensor(lambda i: sum(value(i, r) for r in range(1, count + 1)))
        return cd.sum(lambda i: s[i] * cd.log(z[i])) + cd.sum(lambda i: s[i] ** 2)

    f.__annotations__ = dict.fromkeys("xyz", cd.Space("n"))
    return cd.program(f)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 40])
def test_any_number_of_conditions_guards(count: int) -> None:
    values = [
        sum(np.exp(r * x) for r in range(1, count + 1) if x > r and y < r + 0.5 and z > r - 1)
        for x, y, z in zip(X, Y, Z, strict=True)
    ]
    expected = sum(s * np.log(z) for s, z in zip(values, Z, strict=True) if s) + sum(s * s for s in values)
    assert guarded(count)(X, Y, Z) == pytest.approx(expected, rel=1e-12)


def test_terms_grow_with_the_conditions_and_no_faster() -> None:
    """Disjoint pieces of eight regions with three conditions each would be 4⁸."""
    sizes = [len(set(subterms(guard_conditions(guarded(count).term)))) for count in (8, 16, 32)]
    assert sizes[2] - sizes[1] < 2.5 * (sizes[1] - sizes[0])


def test_conditions_without_an_opposite_guard() -> None:
    """Of i % 3 = 0 there is no condition that holds where it does not."""

    @cd.program
    def f(x: cd.Space(6), z: cd.Space(6)):  # type: ignore[valid-type]
        s = cd.tensor(lambda i: cd.where(i % 3 == 0, cd.exp(x[i]), 0) + cd.where(i % 4 == 1, x[i] ** 2, 0))
        return cd.sum(lambda i: s[i] * cd.log(z[i])) + cd.sum(lambda i: s[i] ** 2)

    x, z = np.arange(6.0) / 3, np.array([1, 2, 0, 3, 0, 5.0])
    s = np.array([np.exp(x[i]) * (i % 3 == 0) + x[i] ** 2 * (i % 4 == 1) for i in range(6)])
    assert f(x, z) == pytest.approx(sum(s[i] * np.log(z[i]) for i in (0, 1, 3, 5)) + s @ s, rel=1e-12)


def test_conditions_that_hold_everywhere_guard_nothing() -> None:
    """A concatenation beside a logarithm was cut into its parts, which were added again."""

    @cd.program
    def f(x: cd.Space("n"), y: cd.Space("m"), w: cd.Space("n + m")):
        return cd.tensor(lambda i: np.concatenate([x, y])[i] * cd.log(w[i]), i=w.shape[0])

    assert guard_conditions(f.term) is f.term
    assert f(X, Y, np.ones(6)).tolist() == [0.0] * 6
