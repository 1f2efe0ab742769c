"""Sums of products over an array that is made where it is summed, of what truth values choose.

    Σ_i [t[k,i]]·w[k,i]·(c[k,a] − p[i,a])
    = _sum_of_chosen(lambda: c[:, :, None] - p.T, w[:, None, :], t[:, None, :], (2,))

Invariant: what is not chosen has no part in the result, not even where it is infinite or no number.
"""

from __future__ import annotations

from collections.abc import Sequence

from combdiff.ir import Domain
from combdiff.planning.operations.elementwise import Combine
from combdiff.planning.operations.operation import Labels, Occurrence, Operation, Step
from combdiff.planning.operations.words import Pattern, Words
from combdiff.records import dataclass


@dataclass(frozen=True)
class ChosenSum(Operation):
    """The sum over the last axes of what `made` makes over `axes` of all operands but the first two: these are weights,
    0 where truth values do not choose them, and the truth values, both over the axes at `places`.
    """

    made: Combine
    axes: tuple[Domain, ...]
    places: Pattern
    kept: int

    @property
    def title(self) -> str:
        """What it is."""
        return "chosen sum"

    def labels(self, step: Step) -> Labels:
        """The axes of what is made."""
        return Labels((self.places, self.places, *self.made.patterns), tuple(range(self.kept)))

    def flops(self, at: Occurrence) -> int:
        """One for each operand and element that is made, and one for each product."""
        patterns = (self.places, self.places, *self.made.patterns)
        return (len(self.made.patterns) + 1) * at.products(patterns)

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """A helper, which looks at the result."""
        rank = len(self.axes)
        weights, truths = words.aligned(operands[:2], (self.places, self.places), rank)
        made = self.made.write(words, Step(self.made, step.operands[2:], self.axes, step.kind), operands[2:])
        summed = ", ".join(map(str, range(self.kept, rank)))
        return f"_sum_of_chosen(lambda: {made}, {weights}, {truths}, ({summed},))"
