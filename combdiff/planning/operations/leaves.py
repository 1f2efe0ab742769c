"""What a plan begins with: the arguments of the program, and numbers."""

from __future__ import annotations

from collections.abc import Sequence

from combdiff.dialects import literal
from combdiff.ir import Number
from combdiff.planning.operations.operation import Named, Occurrence, Operation, Step, View
from combdiff.planning.operations.words import Words
from combdiff.records import dataclass


@dataclass(frozen=True)
class Parameter(Named, View):
    """An argument of the program."""

    name: str

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """The name of the argument in the source."""
        return words.arguments[self.name]


@dataclass(frozen=True)
class Fill(Operation):
    """A number."""

    number: Number

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """The number as Python writes it."""
        return literal(self.number)

    def flops(self, at: Occurrence) -> int:
        """Nothing is done."""
        return 0

    def held(self, at: Occurrence) -> int:
        """No array is made."""
        return 0
