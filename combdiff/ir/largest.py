"""The largest of several numbers, as nodes: what sums of exponentials are shifted by before they are evaluated.

    m = Shift((Largest((j,), Masked((j ≤ i,), x[i, j])),))      np.where(mask, x, -np.inf).max(1), 0 where not finite
    log Σ_{j ≤ i} exp(x[i, j])  =  m[i] + log Σ_j exp(Masked((j ≤ i,), x[i, j]) − m[i])

    s = Magnitude((j,), x[j], 2)                                a power of 2 near max_j |x[j]|, or 1
    sqrt(Σ_j x[j]²)  =  s·sqrt(Σ_j Rescaled(x[j], s)²)

They are made just before a program is planned (`stability`), so that no other stage meets them.

Invariant: they are real numbers; a condition is a δ or an indicator, or a real number, which holds where it is not 0.
"""

from __future__ import annotations

from collections.abc import Iterable

from combdiff.ir.indices import Guard
from combdiff.ir.terms import ZERO, Add, Mul, Number, OverIndices, Term, Var, add, mul
from combdiff.records import dataclass

NOTHING = Number(float("-inf"))  # the largest of no numbers


@dataclass(frozen=True, eq=False, repr=False)
class Masked(Term):
    """The body where all conditions hold, −∞ elsewhere. Build with `masked`."""

    conditions: tuple[Term, ...]
    body: Term

    @property
    def children(self) -> tuple[Term, ...]:
        return (*self.conditions, self.body)

    def with_children(self, children: tuple[Term, ...]) -> Term:
        return masked(children[:-1], children[-1])


@dataclass(frozen=True, eq=False, repr=False)
class Largest(OverIndices):
    """The largest value of the body over the domains of the indices."""

    def with_children(self, children: tuple[Term, ...]) -> Term:
        return Largest(self.indices, children[0])


@dataclass(frozen=True, eq=False, repr=False)
class Shift(Term):
    """The largest of the terms, and 0 where that is not finite; beside a number the largest finite number for +∞."""

    terms: tuple[Term, ...]

    @property
    def children(self) -> tuple[Term, ...]:
        return self.terms

    def with_children(self, children: tuple[Term, ...]) -> Term:
        return Shift(children)


@dataclass(frozen=True, eq=False, repr=False)
class Magnitude(OverIndices):
    """A power of 2 near the largest |body| over the domains of the indices.

    It is 1 where |body|² adds up to a number of which powers up to `degree` neither over- nor underflow, and where the
    body is 0 throughout or nowhere finite.
    """

    degree: int

    def with_children(self, children: tuple[Term, ...]) -> Term:
        return Magnitude(self.indices, children[0], self.degree)

    def over(self, bound: tuple[Var, ...], body: Term) -> Term:
        return Magnitude(bound, body, self.degree)


@dataclass(frozen=True, eq=False, repr=False)
class Rescaled(Term):
    """The body divided by a scale, which is a magnitude: exact but where the quotient underflows."""

    body: Term
    scale: Term

    @property
    def children(self) -> tuple[Term, ...]:
        return (self.body, self.scale)

    def with_children(self, children: tuple[Term, ...]) -> Term:
        return ZERO if children[0] is ZERO else Rescaled(*children)


def masked(conditions: Iterable[Term], body: Term) -> Term:
    """The body where conditions hold, −∞ elsewhere; those that always hold are left out."""
    kept = tuple(dict.fromkeys(each for each in conditions if each is ZERO or not isinstance(each, Number)))
    if ZERO in kept:
        return NOTHING
    if isinstance(body, Masked):
        return masked((*kept, *body.conditions), body.body)
    return Masked(kept, _told(body, kept)) if kept else body


def _told(term: Term, conditions: tuple[Term, ...]) -> Term:
    """A term without the conditions among its factors that are known to hold."""
    if isinstance(term, Add):
        return add(*(_told(part, conditions) for part in term.terms))
    if isinstance(term, Mul):
        return mul(*(f for f in term.factors if f not in conditions or not isinstance(f, Guard)))
    return term
