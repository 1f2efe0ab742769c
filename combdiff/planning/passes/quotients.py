"""Products with reciprocals as quotients: one operation over the elements where there were two, rounded once.

    t = 1 / q,  p * t      becomes      p / q            where nothing else reads t, and t is as large as the product

A reciprocal of fewer elements is kept: numbers are multiplied in a fraction of the time in which they are divided.

Invariant: a quotient is what the product is, but where the reciprocal overflows: p / q of subnormal numbers is right.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from combdiff.ir import Number
from combdiff.planning.operations.contraction import Contract
from combdiff.planning.operations.elementwise import QUOTIENT, ElementwiseStep, Scale
from combdiff.planning.operations.leaves import Fill
from combdiff.planning.operations.operation import Step
from combdiff.planning.operations.words import Pattern
from combdiff.planning.plan import NewPlan, Plan, step_by_step

RECIPROCALS = (Number(-1), Number(-2), Number(Fraction(-1, 2)))  # exponents; other powers are one operation


def with_quotients(plan: Plan) -> Plan:
    """The plan with quotients where arrays were multiplied by reciprocals that nothing else reads."""

    def rewrite(new: NewPlan, old: Step) -> int:
        patterns = _places(old)
        for side in reversed(range(len(patterns))):
            if len(patterns[side]) == len(old.axes) > 0 and _is_reciprocal(plan, old.operands[side]):
                below, pattern = _denominator(new, plan.steps[old.operands[side]], patterns[side])
                above, over = _numerator(new, old, 1 - side)
                quotient = ElementwiseStep(QUOTIENT, (over, pattern))
                return new.add(replace(old, operation=quotient, operands=(above, below)))
        return new.add(new.moved(old))

    return step_by_step(plan, rewrite)


def _places(step: Step) -> list[Pattern]:
    """The axis of the result along each axis of the factors, of a product without a sum; nothing of another step."""
    match step.operation:
        case Contract(left=left, right=right, out=out) if not step.operation.summed:
            return [tuple(map(out.index, pattern)) for pattern in (left, right)]
        case Scale(factor) if not factor.extents:
            return [tuple(range(len(step.axes)))]
    return []


def _is_reciprocal(plan: Plan, n: int) -> bool:
    """Whether a step is the reciprocal of something, and read once."""
    match plan.steps[n].operation:
        case ElementwiseStep("power"):
            exponent = plan.steps[plan.steps[n].operands[1]].operation
            return isinstance(exponent, Fill) and exponent.number in RECIPROCALS and plan.is_read_once(n)
    return False


def _numerator(new: NewPlan, product: Step, side: int) -> tuple[int, Pattern]:
    """What is divided, and the axis of the result along each of its axes."""
    if isinstance(product.operation, Scale):
        return new.add(_number(product.operation.factor.number)), ()
    return new.number[product.operands[side]], _places(product)[side]


def _denominator(new: NewPlan, reciprocal: Step, places: Pattern) -> tuple[int, Pattern]:
    """What a reciprocal is of, and the axis of the result along each of its axes."""
    assert isinstance(reciprocal.operation, ElementwiseStep)
    base, exponent = new.moved(reciprocal).operands
    number = new.steps[exponent].operation
    assert isinstance(number, Fill)
    if number.number == Number(-1):
        return base, tuple(places[axis] for axis in reciprocal.operation.patterns[0])
    power = new.add(_number(Number(-number.number.real)))
    return new.add(replace(reciprocal, operands=(base, power))), places


def _number(number: Number) -> Step:
    kind = complex if number.imag else int if isinstance(number.real, int) else float
    return Step(Fill(number), (), (), kind)
