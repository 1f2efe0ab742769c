"""Sums over axes, the largest elements along them, and powers of 2 near these, by which arrays are divided."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from combdiff.dialects import tuple_text
from combdiff.ir import Range
from combdiff.planning.extents import at_least, at_most, extent_form
from combdiff.planning.operations.operation import Labels, Named, Occurrence, Operation, Step
from combdiff.planning.operations.words import Pattern, Words
from combdiff.records import dataclass

SHORT = 4  # elements of an axis behind others that are quicker taken slice by slice
LONGEST = 512  # elements of a row that is summed from its first to its last
MANY = 1000  # elements of rows from which a quicker way to sum them is worth its call


def _slices(words: Words, step: Step, operand: str, summed: Pattern) -> list[str]:
    """The slices of a short axis that is reduced, which NumPy goes through one by one where it is not the first."""
    axes = words.axes[step.operands[0]]
    if not words.dialect.native or len(summed) != 1 or summed == (0,):
        return []
    axis = axes[summed[0]]
    size = axis.size if isinstance(axis, Range) and isinstance(axis.size, int) else 0
    before = "..., " if summed[0] == len(axes) - 1 else ":, " * summed[0]
    return [f"{operand}[{before}{n}]" for n in range(size)] if 1 < size <= SHORT else []


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

    def workspace(self, at: Occurrence) -> int:
        """The sum so far, where slices of a short axis are added one by one."""
        short = len(self.summed) == 1 and 2 < at.shape_of(0)[self.summed[0]] <= SHORT
        return at.elements * at.item if short else 0

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """The method that all libraries have; slices of a short axis."""
        every = not step.axes
        if slices := _slices(words, step, operands[0], self.summed):
            return " + ".join(slices)
        if self._is_of_rows(words, step):
            return f'{words.dialect.np}.einsum("...a->...", {operands[0]})'
        if words.dialect.fuses_sums:
            return words.dialect.summed(operands[0], self.summed, len(words.axes[step.operands[0]]))
        return f"{operands[0]}.sum({'' if every else f'axis={tuple_text(map(str, self.summed), single=False)}'})"

    def _is_of_rows(self, words: Words, step: Step) -> bool:
        """Whether it sums each of many short rows, which takes NumPy's method two to four times as long as einsum.

        Long ones it adds in pairs, which rounds less.
        """
        (m,) = step.operands
        axes, sizes = [extent_form(axis) for axis in words.axes[m]], words.planned
        if not words.dialect.native or not step.axes or self.summed != (len(step.axes),):
            return False
        return words.kinds[m] in (float, complex) and at_most(LONGEST, axes[-1:], sizes) and at_least(MANY, axes, sizes)


@dataclass(frozen=True)
class ReduceExtreme(Named, Operation):
    """The largest element along some axes, −∞ of no elements; `amax` and `amin` are those of some elements."""

    summed: Pattern
    name: str = "largest"

    def labels(self, step: Step) -> Labels:
        """Those of the operand's axes; the largest of blocks are no sum."""
        return _labels(step, self.summed, self.summed)

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """The library's own; of slices of a short axis."""
        if self.name == "largest":
            return words.dialect.largest(operands[0], tuple_text(map(str, self.summed)))
        if slices := _slices(words, step, operands[0], self.summed):
            function = f"{words.dialect.np}.{'maximum' if self.name == 'amax' else 'minimum'}"
            return reduce(lambda one, other: f"{function}({one}, {other})", slices)
        return words.dialect.extreme(self.name, operands[0], tuple_text(map(str, self.summed), single=False))


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
        return elements * (33 if complex_ else 1) + 5 * at.elements * at.item

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """A kernel; a number becomes an array first."""
        (m,), (array,) = step.operands, operands
        array = words.as_kind(m, array, words.kinds[m]) if words.numbers[m] else array
        return f"_magnitude({array}, {tuple_text(map(str, self.summed))}, {self.degree})"


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
        whole = self.patterns[0] == tuple(range(len(step.axes)))  # what is divided has the size of the quotient
        looks = words.dialect.native and whole and not words.numbers[step.operands[1]]
        return f"_rescaled({array}, {scale})" if looks else f"{array} / {scale}"
