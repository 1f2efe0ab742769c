"""Results written over operands that nothing reads any more.

    t2 = np.exp(t1)                 becomes     t2 = np.exp(t1, out=t1)
    t4 = t2 * t3                                t4 = np.multiply(t2, t3, out=t2)

New memory costs more than arithmetic on it. Done element by element alone, for arrays of some size and in loops, where
the operand is an array of the plan's own with the shape and element type of the result. Which element types arrays have
is known up to their width, so an operand counts as wide enough when its width comes from all the arguments that the
others' do.

Invariant: no argument and no result that was returned changes, and every result has the element type it had.
"""

from __future__ import annotations

from typing import Protocol

import numpy

from combdiff.ir import Number, Space
from combdiff.planning.indirections import IndexEquals
from combdiff.planning.operations import (
    UNIT,
    Arrange,
    Combine,
    ConjugateElements,
    Contract,
    ElementwiseStep,
    Gram,
    IterationResult,
    NamedCall,
    Parameter,
    Pattern,
    Scale,
    SizeFactor,
    SolveEquation,
    Step,
)
from combdiff.planning.plan import Plan
from combdiff.planning.views import IndexCondition

LEAST = 1 << 14  # elements from which new memory is noticed
_NEGATIVE = SizeFactor(Number(-1))
_OWN = (Contract, Combine, Scale, ElementwiseStep, ConjugateElements, Gram)


class InPlaceWriter(Protocol):
    """What is asked of the writer of expressions."""

    plan: Plan

    def operand(self, n: int) -> str:
        """How a step is referred to."""

    def placed(self, text: str, pattern: Pattern, rank: int) -> str:
        """An array with its axes where the pattern says."""

    def factor(self, factor: SizeFactor) -> str:
        """A number times extents."""


class Reuse:
    """Which steps of a plan may write their results over an operand."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.widths: list[frozenset[str]] = []  # of each step, the arguments whose element types decide on its own
        for n in range(len(plan.steps)):
            self.widths.append(self._width(n))

    def written(self, writer: InPlaceWriter, n: int, text: str, np: str) -> str:
        """The expression of a step, written over an operand where one may be; `text` is it without."""
        looped = any(loop.first <= n < loop.last for loop in self.plan.loops)
        if not self.plan.steps[n].axes or (self.plan.elements(n) < LEAST and not looped):
            return text
        operands = self.plan.steps[n].operands
        place = next((writer.operand(m) for position, m in enumerate(operands) if self._is_free(n, m, position)), None)
        called = _called(writer, n, text, np) if place else None
        return f"{np}.{called[:-1]}, out={place})" if called else text

    def _is_free(self, n: int, m: int, position: int) -> bool:
        """Whether the result of a step may take the memory of an operand."""
        step, operand = self.plan.steps[n], self.plan.steps[m]
        whole = _patterns(step)[position] == tuple(range(len(step.axes))) and operand.axes == step.axes
        own = isinstance(operand.operation, _OWN) and operand.fresh and operand.kind is step.kind is not int
        wide = all(self.widths[other] <= self.widths[m] for other in step.operands)
        return whole and own and wide and self.plan.last_use[m] == n

    def _width(self, n: int) -> frozenset[str]:
        step = self.plan.steps[n]
        match step.operation:
            case Parameter(name=name):
                return frozenset([name])
            case NamedCall() | SolveEquation() | IterationResult():
                own = frozenset([f"#{n}"])
            case IndexCondition() | IndexEquals() | Arrange():
                own = frozenset(var.name for var in self.plan.parameters if isinstance(var.type, Space))
            case _:
                own = frozenset()
        return own.union(*(self.widths[m] for m in step.operands))


def _patterns(step: Step) -> tuple[Pattern, ...]:
    """The axis of the result along each axis of each operand."""
    match step.operation:
        case Contract(left=left, right=right, out=out, kernel="multiply"):
            return tuple(tuple(out.index(label) for label in pattern) for pattern in (left, right))
        case Combine(patterns=patterns) | ElementwiseStep(patterns=patterns):
            return patterns
        case Scale() | ConjugateElements():
            return (tuple(range(len(step.axes))),)
    return ((-1,),) * len(step.operands)


def _called(writer: InPlaceWriter, n: int, text: str, np: str) -> str | None:
    """A step as the call of one of NumPy's functions of elements; None where there is none."""
    step = writer.plan.steps[n]
    match step.operation:
        case ElementwiseStep():
            return _function(text, np)
        case ConjugateElements():
            return f"conjugate({writer.operand(step.operands[0])})"
        case Scale(factor=factor):
            return f"multiply({writer.factor(factor)}, {writer.operand(step.operands[0])})"
        case Contract():
            function = "multiply"
        case Combine(factors=factors) if factors in ((UNIT, UNIT), (UNIT, _NEGATIVE)):
            function = "add" if factors[1] == UNIT else "subtract"
        case _:
            return None
    places = zip(step.operands, _patterns(step), strict=True)
    texts = [writer.placed(writer.operand(m), pattern, len(step.axes)) for m, pattern in places]
    return f"{function}({', '.join(texts)})"


def _function(text: str, np: str) -> str | None:
    """A text that calls a function of elements, without the library's name; a reciprocal counts as one."""
    if text.startswith("1 / ") and text[4:].isidentifier():
        return f"divide(1, {text[4:]})"
    name, _, arguments = text.removeprefix(f"{np}.").partition("(")
    single = arguments.count("(") == arguments.count(")") - 1 and arguments.endswith(")")
    return f"{name}({arguments}" if single and isinstance(getattr(numpy, name, None), numpy.ufunc) else None
