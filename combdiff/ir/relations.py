"""Numbers compared: `[x < y]` is 1 where it holds and 0 elsewhere, and guards what it multiplies.

    where(x > 0, log(x), x)   =   [0 < x]·log(x) + [¬(0 < x)]·x

A relation is a primitive of two real numbers whose derivative is 0. The opposite of `x < y` is not `y ≤ x`, as neither
holds where one of the two is no number.

Invariant: a relation and its opposite add up to 1 for all numbers, those that are no number too.
"""

from __future__ import annotations

from combdiff.ir.terms import ONE, ZERO, Number, Primitive, Term
from combdiff.records import dataclass

OPPOSITES = {
    "less": "not_less",
    "less_equal": "not_less_equal",
    "equal": "not_equal",
    "not_less": "less",
    "not_less_equal": "less_equal",
    "not_equal": "equal",
}
SIGNS = {"less": "<", "less_equal": "≤", "equal": "=", "not_less": "≥", "not_less_equal": ">", "not_equal": "≠"}
"""How a relation is written of real numbers."""


@dataclass(frozen=True, eq=False, repr=False)
class Relation(Primitive):
    """1 where two real numbers compare as its name says, 0 elsewhere. Build with `relation`."""

    def with_children(self, children: tuple[Term, ...]) -> Term:
        return relation(self.name, *children)

    @property
    def opposite(self) -> Term:
        """The relation that holds where this does not."""
        return Relation(OPPOSITES[self.name], self.arguments)


def relation(name: str, left: Term, right: Term) -> Term:
    """The relation of that name, decided here where it compares two numbers that are finite."""
    if isinstance(left, Number) and isinstance(right, Number) and left.finite and right.finite:
        found = {
            "less": left.real < right.real,
            "less_equal": left.real <= right.real,
            "equal": left.real == right.real,
        }
        return ONE if (found[name] if name in found else not found[OPPOSITES[name]]) else ZERO
    return Relation(name, (left, right))
