"""A condition that stands in a product twice is one condition: its square is itself."""

import numpy as np
import pytest

from combdiff.ir import (
    Apply,
    Cyclic,
    Lambda,
    Range,
    Space,
    Term,
    Var,
    affine,
    delta,
    function,
    indicator,
    mul,
    total,
    unequal,
)
from combdiff.ir.interpreter import evaluate
from combdiff.runtime.execution import run

SIZES = {"n": 4, "c": 4}


def conditions(i: Var, j: Var, looked_up: Var) -> list[Term]:
    """One of each kind."""
    found = [
        indicator(affine([(i, 1), (j, 1)], 1), 2),
        indicator(affine([(i, 1), (j, -1)])),
        delta(i, affine([(i, -1)])),
    ]
    found += [unequal(affine([(i, 1), (j, -1)])), delta(i, affine([(j, 2)], 1)), delta(i, affine([(i, -1)]))]
    if isinstance(i.type, Range):
        found.append(delta(i, Apply(looked_up, (j,)), i.type))
    return found


@pytest.mark.parametrize("axis", [Cyclic(3), Cyclic("c"), Range(3), Range("n")])
def test_twice_is_once(axis: Cyclic | Range) -> None:
    i, j = Var("i", axis), Var("j", axis)
    x, idx = Var("x", Space(axis, axis)), Var("idx", Space(axis, dtype=int))
    size = SIZES.get(str(axis.size), 3)
    arrays = {x: np.cos(np.arange(size * size)).reshape(size, size), idx: np.arange(size)[::-1].copy()}
    for condition in conditions(i, j, idx):
        rest = (Apply(x, (i, j)), function("cos", mul(condition, Apply(x, (j, i)))))
        once, twice = (total((i, j), mul(*[condition] * n, *rest)) for n in (1, 2))
        expected = evaluate(once, arrays, SIZES)
        for term in (once, twice):
            assert run(Lambda((x, idx), term), list(arrays.values()), SIZES) == pytest.approx(expected), condition
