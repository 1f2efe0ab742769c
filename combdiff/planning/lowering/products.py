"""A Σ of a product, taken apart before it becomes a network.

    Σ_i 2·[i ≥ 1]·x[i - 1]·w[i]     factor 2, masks [i ≥ 1], operands x and w, summed i

Invariant: `reads[n]` belongs to `operands[n]`; no condition is there twice.
"""

from __future__ import annotations

from dataclasses import field

from combdiff.ir import Delta, IndexGuard, Number, Var
from combdiff.planning.lowering.graph import LabelledStep
from combdiff.planning.lowering.guards import Read
from combdiff.planning.operations.words import UNIT, SizeFactor
from combdiff.records import dataclass


@dataclass
class Product:
    """A Σ of a product, taken apart."""

    factor: SizeFactor = UNIT
    operands: list[LabelledStep] = field(default_factory=list)
    reads: list[tuple[Read, ...]] = field(default_factory=list)  # outside of which each operand is 0
    masks: list[IndexGuard] = field(default_factory=list)
    summed: list[Var] = field(default_factory=list)
    lookups: list[Delta] = field(default_factory=list)

    def times(self, term: Number) -> None:
        """Multiply by a number."""
        self.factor = self.factor.times(SizeFactor(term))

    def add_condition(self, term: IndexGuard) -> None:
        """Multiply by a condition; a condition times itself is that condition."""
        if isinstance(term, Delta) and term.lookup:
            self.lookups = list(dict.fromkeys((*self.lookups, term)))
        else:
            self.masks = list(dict.fromkeys((*self.masks, term)))

    def private(self, labels: set[Var]) -> set[Var]:
        """Those of the labels that are summed, and that no operand and no condition of the product has."""
        mentioned = {label for value in self.operands for label in value.labels}
        mentioned |= {var for condition in (*self.masks, *self.lookups) for var in condition.free}
        return labels.intersection(self.summed) - mentioned
