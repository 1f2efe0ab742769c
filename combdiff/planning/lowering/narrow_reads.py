"""Sums around cycles, counted from where their factors read the fewest indices.

    Σ_i x[i]·x[d + i − a]     to     Σ_i x[i + a]·x[d + i]     a product of two matrices, where an array of three axes
                                                              would be copied and multiplied by a vector

Invariant: the value is unchanged; a sum of which no read gets narrower stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator

from combdiff.ir import (
    Apply,
    Cyclic,
    Rewriter,
    Sum,
    Term,
    Var,
    affine,
    affine_parts,
    counts_modulo,
    substitute,
    subterms,
)


def with_narrow_reads(body: Term) -> Term:
    """A let program with its sums around cycles counted so that their factors read fewest indices."""
    return _Narrowing().run(body)


class _Narrowing(Rewriter):
    def node(self, term: Term) -> Term:
        """The term with such sums in it counted from elsewhere."""
        new = self.inside(term)
        if isinstance(new, Sum) and any(isinstance(index.type, Cyclic) for index in new.indices):
            return min(_counted_from_elsewhere(new), key=_widths)
        return new


def _counted_from_elsewhere(sum_: Sum) -> Iterator[Sum]:
    """A sum, and those in which an index around a cycle is counted from another index that is read beside it."""
    yield sum_
    for index in sum_.indices:
        if isinstance(index.type, Cyclic) and counts_modulo(index, sum_.body):
            beside: dict[Term, None] = {}
            for place in (place for read in _reads(sum_) for place in read.arguments if index in place.free):
                parts = dict(affine_parts(place)[0])
                sign = parts.pop(index, 0)
                if abs(sign) == 1:
                    beside |= {affine([(v, -sign * c)]): None for v, c in parts.items() if v in sum_.body.free}
            for form in beside:
                yield Sum(sum_.indices, substitute(sum_.body, {index: affine([(index, 1), (form, 1)])}))


def _reads(sum_: Sum) -> Iterator[Apply]:
    return (node for node in subterms(sum_.body) if isinstance(node, Apply) and isinstance(node.function, Var))


def _widths(sum_: Sum) -> list[int]:
    """How many indices each element that a sum reads has, the most first."""
    return sorted((len(read.free) - 1 for read in _reads(sum_)), reverse=True)
