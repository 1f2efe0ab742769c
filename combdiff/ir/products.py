"""Sums of products taken apart: a number, summed indices and factors.

    2·A[d, d]·Σ_i x[i]·y[i]   =   SummedProduct((i,), (A[d, d], x[i], y[i]), 2)

Invariant: the term of what a term was taken apart into has the value of that term.
"""

from __future__ import annotations

from collections.abc import Iterable

from combdiff.ir.substitution import Names, substitute
from combdiff.ir.terms import ONE, Mul, Number, Sum, Term, Var, mul, total
from combdiff.records import dataclass


def factors_of(term: Term) -> tuple[Term, ...]:
    """The factors of a product, or the term itself."""
    return term.factors if isinstance(term, Mul) else (term,)


def factors_beside(factor: Term, term: Term) -> tuple[Term, ...]:
    """The factors of a product beside one of them, which is left as often as it occurs again: x, y beside x in x² y."""
    factors = factors_of(term)
    place = factors.index(factor)
    return factors[:place] + factors[place + 1 :]


@dataclass(frozen=True)
class SummedProduct:
    """`number · Σ over indices of the product of factors`."""

    indices: tuple[Var, ...]
    factors: tuple[Term, ...]
    number: Term = ONE

    @classmethod
    def of(cls, term: Term, names: Names) -> SummedProduct:
        """A term with the Σ's among its factors as one, under names of its own, and its numbers in front."""
        indices, factors = list[Var](), list[Term]()
        for factor in factors_of(term):
            if isinstance(factor, Sum):
                own = tuple(names.fresh(index) for index in factor.indices)
                indices += own
                factors += factors_of(substitute(factor.body, dict(zip(factor.indices, own, strict=True))))
            else:
                factors.append(factor)
        number = mul(*(factor for factor in factors if isinstance(factor, Number)))
        factors = [factor for factor in factors if not isinstance(factor, Number)]
        return cls(tuple(indices), tuple(factors), number)

    @classmethod
    def over(cls, indices: Iterable[Var], factors: Iterable[Term]) -> SummedProduct:
        """Σ over indices of a product, factors that are products opened."""
        return cls(tuple(indices), factors_of(mul(*factors)))

    @property
    def term(self) -> Term:
        """All of it as one term."""
        return mul(self.number, total(self.indices, mul(*self.factors)))


def connected(indices: Iterable[Var], factors: Iterable[Term]) -> list[SummedProduct]:
    """The factors grouped by connection through the indices, each group summed over the indices that it has."""
    summed = list(indices)
    groups: list[tuple[set[Var], list[Term]]] = []
    for factor in factors:
        mine = {i for i in summed if i in factor.free}
        members = [factor]
        apart = []
        for group in groups:
            if group[0] & mine:
                mine |= group[0]
                members = group[1] + members
            else:
                apart.append(group)
        groups = [*apart, (mine, members)]
    return [SummedProduct(tuple(i for i in summed if i in mine), tuple(members)) for mine, members in groups]
