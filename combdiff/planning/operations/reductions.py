"""Sums over axes, and the largest elements along them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from combdiff.dialects import tuple_text
from combdiff.planning.operations.operation import Labels, Occurrence, Operation, Step
from combdiff.planning.operations.words import Pattern, Words


def _labels(step: Step, summed: Pattern, whole: Pattern) -> Labels:
    labels = tuple(range(len(step.axes) + len(summed)))
    return Labels((labels,), tuple(label for label in labels if label not in summed), frozenset(whole))


@dataclass(frozen=True)
class Reduce(Operation):
    """The sum over some axes."""

    summed: Pattern

    def labels(self, step: Step) -> Labels:
        """Those of the operand's axes; sums over blocks add up to the sum."""
        return _labels(step, self.summed, ())

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """The method that all libraries have."""
        every = not step.axes
        return f"{operands[0]}.sum({'' if every else f'axis={tuple_text(map(str, self.summed), single=False)}'})"


@dataclass(frozen=True)
class ReduceMax(Operation):
    """The largest element along some axes; −∞ of no elements."""

    summed: Pattern

    def labels(self, step: Step) -> Labels:
        """Those of the operand's axes; the largest of blocks are no sum."""
        return _labels(step, self.summed, self.summed)

    def workspace(self, at: Occurrence) -> int:
        """What is compared meanwhile."""
        return 2 * sum(at.given) * at.item + 4 * at.elements * at.item + at.buffers([()])

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """The library's own."""
        return words.dialect.largest(operands[0], tuple_text(map(str, self.summed)))
