"""Arrays side by side along a new axis: np.stack([u, v], 1) for SideBySide(1) of u and v."""

from __future__ import annotations

from collections.abc import Sequence

from combdiff.planning.operations.operation import Labels, Occurrence, Operation, Step
from combdiff.planning.operations.words import Words
from combdiff.records import dataclass


@dataclass(frozen=True)
class SideBySide(Operation):
    """The operands, all of one shape, along a new axis: one at each of its positions."""

    axis: int

    def labels(self, step: Step) -> Labels:
        """Those of the result but the new one, whose positions are all there at once."""
        result = tuple(range(len(step.axes)))
        inside = tuple(label for label in result if label != self.axis)
        return Labels((inside,) * len(step.operands), result, frozenset({self.axis}))

    def flops(self, at: Occurrence) -> int:
        """One for each element."""
        return at.elements

    def workspace(self, at: Occurrence) -> int:
        """Operands of another element type as that of the result."""
        return max(many * at.item for many in at.given)

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """A call of that name."""
        texts = [words.widened(m, text, step.kind) for m, text in zip(step.operands, operands, strict=True)]
        return words.dialect.stacked(texts, self.axis)
