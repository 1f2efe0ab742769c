"""Formulas that are nested deeply have a value, or are refused by name: Python's stack is no user's matter."""

import numpy as np
import pytest

import combdiff as cd

Number, Vector = cd.Space(), cd.Space("n")


def nested(steps: int) -> cd.Program:
    @cd.program
    def f(x: Vector, y: Number):
        value = y
        for step in range(steps):
            value = 1 / (step + 1) + y * value * x[0]
        return value

    return f


@pytest.mark.thorough
def test_sums_in_products_in_sums_are_lowered_from_the_inside() -> None:
    x, y, expected = np.full(2, 0.9), 0.95, 0.95
    for step in range(150):
        expected = 1 / (step + 1) + y * expected * x[0]
    np.testing.assert_allclose(nested(150)(x, y), expected, rtol=1e-12)


@pytest.mark.thorough
@pytest.mark.parametrize("steps", [150, 400, 1000])
def test_what_the_stack_does_not_hold_is_refused_by_name(steps: int) -> None:
    def refusal() -> str:
        try:
            f, arrays = nested(steps), (np.full(2, 0.9), 0.95)
            values = f(*arrays), cd.grad(f, wrt="y", simplify=False)(*arrays)
        except cd.CombdiffError as error:
            return str(error)
        return "" if np.isfinite(values).all() else "not finite"

    said = refusal()
    assert not said or ("too deeply" in said and "cd.scan" in said)
    assert said or steps < 1000
