"""Long sums, simplified in groups of terms so that the work is linear in their number.

    2 x[d] + y[d] + … + 3 x[d] + …   →   (2 x[d] + y[d] + …) + (3 x[d] + …)   →   5 x[d] + y[d] + …

The cotangent of a tensor that every layer of a deep program uses has a term for each. Laws compare each term of a sum
with every other, which for all at once would cost a square of their number.

Invariant: the result equals the input in value.
"""

from __future__ import annotations

from collections.abc import Callable

from combdiff.egraph.canonical import canonical
from combdiff.egraph.contraction import normalise
from combdiff.substitution import Names
from combdiff.terms import Add, Mul, Number, Term, add, mul

MOST_TERMS = 12  # of a sum that are simplified together


def simplify_sum(term: Add, simplify: Callable[[Term], Term]) -> Term:
    """A sum simplified by a function; a long one in groups of terms, again as long as that makes it much shorter."""
    if len(term.terms) <= MOST_TERMS:
        return simplify(term)
    groups = (add(*term.terms[n : n + MOST_TERMS]) for n in range(0, len(term.terms), MOST_TERMS))
    simple = _collected(add(*map(simplify, groups)))
    if isinstance(simple, Add) and len(simple.terms) > len(term.terms) // 2:
        return simple
    return simplify_sum(simple, simplify) if isinstance(simple, Add) else simplify(simple)


def _collected(term: Term) -> Term:
    """A sum with terms that are equal up to numbers and names of bound indices made one."""
    parts = term.terms if isinstance(term, Add) else (term,)
    forms: dict[object, int] = {}
    names = Names(term)
    kept: dict[Term, tuple[Term, Term]] = {}
    for part in parts:
        factors = part.factors if isinstance(part, Mul) else (part,)
        number, rest = (factors[0], mul(*factors[1:])) if isinstance(factors[0], Number) else (Number(1), part)
        form = canonical(normalise(rest, names), forms)
        held = kept.get(form)
        kept[form] = (number, rest) if held is None else (add(held[0], number), held[1])
    return add(*(mul(number, rest) for number, rest in kept.values()))
