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

from combdiff.ir import Space
from combdiff.planning.operations import (
    Arrange,
    Combine,
    ConjugateElements,
    Contract,
    ElementwiseStep,
    Gram,
    IndexCondition,
    IndexEquals,
    NamedCall,
    Parameter,
    PartialResult,
    Pattern,
    Scale,
    SolveEquation,
    Step,
    Words,
)
from combdiff.planning.plan import Plan

LEAST = 1 << 14  # elements from which new memory is noticed
_OWN = (Contract, Combine, Scale, ElementwiseStep, ConjugateElements, Gram)


class Reuse:
    """Which steps of a plan may write their results over an operand."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.widths: list[frozenset[str]] = []  # of each step, the arguments whose element types decide on its own
        for n in range(len(plan.steps)):
            self.widths.append(self._width(n))

    def written(self, words: Words, n: int, text: str) -> str:
        """The expression of a step, written over an operand where one may be; `text` is it without."""
        step = self.plan.steps[n]
        looped = any(loop.first <= n < loop.last for loop in self.plan.loops)
        if not step.axes or (self.plan.elements(n) < LEAST and not looped):
            return text
        free = (words.operand(m) for position, m in enumerate(step.operands) if self._is_free(n, m, position))
        if (place := next(free, None)) is None:
            return text
        called = step.operation.called(words, step, list(map(words.operand, step.operands)))
        return f"{words.dialect.np}.{called[:-1]}, out={place})" if called else text

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
            case NamedCall() | SolveEquation() | PartialResult():
                own = frozenset([f"#{n}"])
            case IndexCondition() | IndexEquals() | Arrange():
                own = frozenset(var.name for var in self.plan.parameters if isinstance(var.type, Space))
            case _:
                own = frozenset()
        return own.union(*(self.widths[m] for m in step.operands))


def _patterns(step: Step) -> tuple[Pattern, ...]:
    """The axis of the result along each axis of each operand."""
    labels = step.operation.labels(step)
    if labels is None or not all(label in labels.result for pattern in labels.operands for label in pattern):
        return ((-1,),) * len(step.operands)
    return tuple(
        tuple(labels.result.index(label) for label in pattern if label is not None) for pattern in labels.operands
    )
