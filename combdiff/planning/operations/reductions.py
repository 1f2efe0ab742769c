"""Sums over axes, the largest elements along them, and powers of 2 near these, by which arrays are divided."""

from __future__ import annotations

from collections.abc import Sequence

from combdiff.dialects import tuple_text
from combdiff.ir import Range
from combdiff.planning.operations.operation import Labels, Occurrence, Operation, Step
from combdiff.planning.operations.words import Pattern, Words
from combdiff.records import dataclass

SHORT = 4  # elements of a last axis that are quicker added up slice by slice


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
        """The method that all libraries have; slices of a short last axis, which NumPy adds up one by one."""
        every = not step.axes
        axes = words.axes[step.operands[0]]
        short = axes[-1].size if axes and isinstance(axes[-1], Range) and isinstance(axes[-1].size, int) else 0
        if words.dialect.native and len(axes) > 1 and self.summed == (len(axes) - 1,) and 1 < short <= SHORT:
            return " + ".join(f"{operands[0]}[..., {n}]" for n in range(short))
        if words.dialect.fuses_sums:
            return words.dialect.summed(operands[0], self.summed, len(axes))
        return f"{operands[0]}.sum({'' if every else f'axis={tuple_text(map(str, self.summed), single=False)}'})"


@dataclass(frozen=True)
class ReduceMax(Operation):
    """The largest element along some axes; −∞ of no elements."""

    summed: Pattern

    def labels(self, step: Step) -> Labels:
        """Those of the operand's axes; the largest of blocks are no sum."""
        return _labels(step, self.summed, self.summed)

    def workspace(self, at: Occurrence) -> int:
        """Elements that NumPy lays out."""
        return at.buffers([()])

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """The library's own."""
        return words.dialect.largest(operands[0], tuple_text(map(str, self.summed)))


@dataclass(frozen=True)
class MagnitudeStep(Operation):
    """A power of 2 near the largest size of the elements along some axes; 1 where powers of sums of squares are safe.

    `degree` is that of the polynomials of the elements which must neither over- nor underflow.
    """

    summed: Pattern
    degree: int
    title = "magnitude"

    def labels(self, step: Step) -> Labels:
        """Those of the operand's axes; those of blocks are no sum."""
        return _labels(step, self.summed, self.summed)

    def flops(self, at: Occurrence) -> int:
        """A square and a sum for each element."""
        return 2 * sum(at.given)

    def workspace(self, at: Occurrence) -> int:
        """What tells the finite elements, in the rare case that the largest is looked for; sizes of complex ones."""
        elements, complex_ = sum(at.given), at.operands[0].kind is complex
        return elements * (33 if complex_ else 1) + 8 * at.elements * at.item + at.buffers([()])

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """A kernel."""
        return f"_magnitude({operands[0]}, {tuple_text(map(str, self.summed))}, {self.degree})"


@dataclass(frozen=True)
class Rescale(Operation):
    """The first operand divided by the second, a power of 2, broadcast along its pattern; itself where that is 1."""

    patterns: tuple[Pattern, Pattern]

    @property
    def fresh(self) -> bool:
        """It may be its operand."""
        return False

    def labels(self, step: Step) -> Labels:
        """Those of the result's axes."""
        return Labels(self.patterns, tuple(range(len(step.axes))))

    def flops(self, at: Occurrence) -> int:
        """A quotient for each element."""
        return at.elements

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """A quotient, which NumPy spares where an array of scales is 1 throughout."""
        array, scale = words.aligned(operands, self.patterns, len(step.axes))
        looks = words.dialect.native and step.operands[1] not in words.constants
        return f"_rescaled({array}, {scale})" if looks else f"{array} / {scale}"
