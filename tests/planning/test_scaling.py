"""Numbers are multiplied where that costs least: into the terms of a sum, where it then takes fewer operations."""

from __future__ import annotations

import pytest

import combdiff as cd
from combdiff.ir import Number, Range, Var
from combdiff.planning.operations.elementwise import Combine, Scale
from combdiff.planning.operations.leaves import Parameter
from combdiff.planning.operations.operation import Step
from combdiff.planning.operations.words import SizeFactor
from combdiff.planning.passes.scaling import scaled_early
from combdiff.planning.plan import Plan

AXES = Range("n"), Range("d")
Factors = tuple[int, ...]


def scaled_sum(factors: Factors, number: int) -> Plan:
    """number · Σ factor · array, of a vector and a matrix."""
    m, x = (Var(name, cd.Space(*(axis.size for axis in axes))) for name, axes in (("m", AXES[:1]), ("x", AXES)))
    sum_ = Combine(tuple(SizeFactor(Number(factor)) for factor in factors), ((0,), (0, 1)))
    steps = (
        Step(Parameter("m"), (), AXES[:1], float),
        Step(Parameter("x"), (), AXES, float),
        Step(sum_, (0, 1), AXES, float),
        Step(Scale(SizeFactor(Number(number))), (2,), AXES, float),
    )
    return Plan((m, x), steps, (3,), 0, {"n": 3, "d": 4}, {})


@pytest.mark.parametrize(
    ("factors", "number", "new", "operands"),
    [((1, -1), -1, (1, -1), (1, 0)), ((-1, -1), -1, (1, 1), (0, 1)), ((-1, 2), -1, (1, -2), (0, 1))],
)
def test_a_number_is_multiplied_into_a_sum(factors: Factors, number: int, new: Factors, operands: Factors) -> None:
    plan = scaled_early(scaled_sum(factors, number))
    assert len(plan.steps) == 3
    assert plan.steps[-1].operands == operands
    assert isinstance(plan.steps[-1].operation, Combine)
    assert [factor.number.real for factor in plan.steps[-1].operation.factors] == [*new]


@pytest.mark.parametrize(("factors", "number"), [((1, 1), -1), ((1, 1), 3), ((1, -1), 3)])
def test_a_sum_that_would_take_as_many_operations_is_kept(factors: Factors, number: int) -> None:
    plan = scaled_sum(factors, number)
    assert scaled_early(plan) is plan
