"""Programs that are done over and over, each time with the states that the time before has given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from combdiff.ir import Domain, Lambda
from combdiff.planning.extents import shape
from combdiff.planning.operations.operation import ITEM_BYTES, Occurrence, Operation, Step
from combdiff.planning.operations.words import Words

TITLES = {"last": "last state", "before": "states", "after": "of each step"}


@dataclass(frozen=True)
class Iteration(Operation):
    """A program done once for each of the `steps`; its results are those of the `IterationResult`s that read it.

    The program takes `states` first, which its first results replace, then slices of `stacks` tensors along their first
    axes, then what is the same in every step. The operands are the first states, those tensors and the rest.
    """

    system: Lambda
    steps: Domain
    states: int
    stacks: int
    reverse: bool

    def flops(self, at: Occurrence) -> int:
        """Those of all steps."""
        (steps,) = shape([self.steps], at.sizes)
        return steps * at.inner_flops

    def held(self, at: Occurrence) -> int:
        """Its results hold what it makes."""
        return 0

    def workspace(self, at: Occurrence) -> int:
        """What a step takes, and the states that it begins with."""
        pairs = zip(at.given, at.operands[: self.states], strict=False)
        return at.inner_peak + sum(size * ITEM_BYTES[one.kind] for size, one in pairs)

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """The statements around it are a loop's."""
        raise TypeError("an iteration is written as a loop")


@dataclass(frozen=True)
class IterationResult(Operation):
    """The last of the states that an iteration has, or for all steps what one begins with ("before") or gives."""

    kind: str
    component: int

    @property
    def title(self) -> str:
        """Which of the results it is."""
        return TITLES[self.kind]

    def flops(self, at: Occurrence) -> int:
        """The iteration counts them."""
        return 0

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """The loop of the iteration makes it."""
        raise TypeError("a result of an iteration is written by its loop")
