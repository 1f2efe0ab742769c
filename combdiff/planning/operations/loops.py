"""What plans in blocks are made of, and the choice between equal arrays."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from combdiff.planning.operations.operation import Occurrence, Operation, Step, View
from combdiff.planning.operations.words import Words
from combdiff.records import dataclass


@dataclass(frozen=True)
class Block(View):
    """The block of the operand, along an axis, that a loop is at."""

    axis: int

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """A slice."""
        return f"{operands[0]}[{':, ' * self.axis}{words.block}]"


@dataclass(frozen=True)
class Collect(Operation):
    """All blocks of the operand that a loop makes: side by side along an axis, or added where that is None.

    Those that are added `pairwise` are held until the loop has ended, and lose less to rounding.
    """

    axis: int | None
    pairwise: bool = False

    def flops(self, at: Occurrence) -> int:
        """The additions, if there are any."""
        return 0 if self.axis is not None else prod(at.given)

    def held(self, at: Occurrence) -> int:
        """The whole, once or, where blocks are added at the end, for each of them."""
        return at.elements * (at.rounds if self.pairwise else 1)

    def workspace(self, at: Occurrence) -> int:
        """A list of blocks becomes an array before it is added up."""
        return at.rounds * at.elements * at.item if self.pairwise else 0

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """A block as what it is added to, or put into: the statement around it is the loop's."""
        return operands[0]


@dataclass(frozen=True)
class Choice(Operation):
    """Equal arrays computed in different ways, of which a plan takes one."""

    def flops(self, at: Occurrence) -> int:
        """Nothing is computed beside what is chosen."""
        return 0

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """Plans that are written have chosen."""
        raise TypeError("a plan has taken one of its choices before it is written")
