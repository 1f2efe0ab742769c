"""Arrays that are zero, or another array, beside a diagonal."""

from __future__ import annotations

from collections.abc import Sequence

from combdiff.planning.operations.operation import BUFFER, Occurrence, Operation, Step
from combdiff.planning.operations.words import Pattern, Words
from combdiff.records import dataclass


@dataclass(frozen=True)
class DiagonalEmbed(Operation):
    """Zeros with the operand where axes coincide: axis n of the result goes along axis `along[n]` of the operand.

    Where the operand has one axis less than `along` tells, it is the same along axis 0.
    """

    along: Pattern

    def workspace(self, at: Occurrence) -> int:
        """Elements that NumPy lays out."""
        return min(BUFFER, sum(at.given)) * at.item

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """A helper; a number becomes an array first."""
        array = operands[0]
        if words.numbers[step.operands[0]]:
            array = words.dialect.full("()", array, words.dtype(step.kind))
        return f"_spread({array}, {list(self.along)}, {words.shape(step.axes)})"


@dataclass(frozen=True)
class DiagonalScatterAdd(Operation):
    """The first operand with the second added where axes coincide, as for `DiagonalEmbed`.

    In place, where `owned` says that nothing else reads the first operand.
    """

    along: Pattern
    owned: bool

    @property
    def fresh(self) -> bool:
        """Whether the first operand is copied."""
        return not self.owned

    def flops(self, at: Occurrence) -> int:
        """The additions along the diagonal."""
        return at.given[1]

    def held(self, at: Occurrence) -> int:
        """What is written over takes no memory of its own."""
        return 0 if self.owned else at.elements

    def workspace(self, at: Occurrence) -> int:
        """Elements that NumPy lays out, and what is copied once more where the element type changes."""
        other = not at.operands[0].is_like(at.step)
        again = at.elements * at.item if self.owned else at.given[0] * at.operands[0].item
        return again * other + min(BUFFER, sum(at.given)) * at.item

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """A helper that adds in place."""
        total = operands[0] if self.owned else words.dialect.copy(operands[0])
        return f"_deposit({total}, {operands[1]}, {list(self.along)})"
