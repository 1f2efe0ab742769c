"""Where an index expression reads an axis."""

from __future__ import annotations

from collections.abc import Sequence

from combdiff.ir import Domain
from combdiff.planning.extents import extent_form
from combdiff.polyhedra import Linear
from combdiff.records import dataclass


@dataclass(frozen=True)
class Position:
    """Where an index expression points: `(Σ steps[n]·t[n] + start) / divisor`, all integers.

    The t are zero-based positions along labels; the result is one along an axis, on which it may `wrap` around.
    """

    steps: tuple[int, ...]
    start: Linear
    divisor: int = 1
    wrap: bool = False

    def along(self) -> int | None:
        """The label whose position this is, step 1 from 0; None if it is anything else."""
        plain = self.start == Linear() and self.divisor == 1 and sorted(self.steps) == [0] * (len(self.steps) - 1) + [1]
        return self.steps.index(1) if plain else None

    def ends(self, labels: Sequence[Domain]) -> tuple[Linear, Linear]:
        """The least and the greatest of them along labels over these domains, if none is empty; divided by nothing."""
        ends = [(extent_form(domain) - 1).scale(size) for size, domain in zip(self.steps, labels, strict=True)]
        up = [size > 0 for size in self.steps]
        first = sum((end for end, rises in zip(ends, up, strict=True) if not rises), self.start)
        return first, sum((end for end, rises in zip(ends, up, strict=True) if rises), self.start)
