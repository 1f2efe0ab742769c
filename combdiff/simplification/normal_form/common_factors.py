"""Common factors in front of sums: what a reader would take out of a simplified term.

    Σ_i (X[i,a]·X[i,d]·t[i] − X[i,a]·X[i,d]·u[i])      →   Σ_i X[i,a]·X[i,d]·(t[i] − u[i])
    Σ_i A[d,i]·x[i] + Σ_j A[j,d]·x[j]                →   Σ_i (A[d,i] + A[i,d])·x[i]
    T[a,d] + δ(a, d)·V[d] + 2 δ(a, d)·g·z[d]²          →   T[a,d] + δ(a, d)·(V[d] + 2 g·z[d]²)

The laws expand products to free δ's, and none of them puts a sum of many terms together again; this is done once, at
the end, on canonical forms.

Invariant: the value of the term is unchanged, and it costs no more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from combdiff.ir import Add, Delta, Lambda, Mul, Names, Number, Sum, Term, add, factors_of, mul, subterms
from combdiff.simplification.egraph.extraction import cost
from combdiff.simplification.normal_form.canonical import canonical
from combdiff.simplification.normal_form.contraction import normalise
from combdiff.simplification.normal_form.expansion import common_factors
from combdiff.simplification.normal_form.joined_networks import joined_networks, primitive
from combdiff.simplification.normal_form.lengths import printed_length


def factored(value: Term, *, joining: bool = True) -> Term:
    """A tensor or number with common factors in front, where that costs no more; `joining` those of networks too."""
    body = value.body if isinstance(value, Lambda) else value
    if not any(isinstance(part, Add) for part in subterms(body)):
        return value
    found = canonical(normalise(_taken_out(body, joining), Names(value)))
    if _weight(found) >= _weight(body):
        return value
    return Lambda(value.parameters, found) if isinstance(value, Lambda) else found


def one_network(value: Term) -> Term:
    """A value in which Σ's that stand in one another are one."""
    body = value.body if isinstance(value, Lambda) else value
    found = canonical(normalise(body, Names(value)))
    return Lambda(value.parameters, found) if isinstance(value, Lambda) else found


def _weight(term: Term) -> tuple[float, int]:
    return cost(term)[0], printed_length(term)


def _taken_out(term: Term, joining: bool) -> Term:
    """A term with the common factors of each sum in it in front of that."""
    if not isinstance(term, Add | Mul | Sum):
        return term
    children = tuple(_taken_out(child, joining) for child in term.children)
    if isinstance(term, Add):
        return _of_terms(children, joined_networks if joining else lambda sum_: sum_)
    if isinstance(term, Mul):
        return _without_fractions(children)
    return term.with_children(children)


def _of_terms(terms: Sequence[Term], join: Callable[[Term], Term]) -> Term:
    """A sum with the factors in front that its terms have in common, first those with the same δ's, then all."""
    groups: dict[frozenset[Term], list[Term]] = {}
    for term in terms:
        groups.setdefault(frozenset(f for f in factors_of(term) if isinstance(f, Delta)), []).append(term)
    plain = groups.pop(frozenset(), [])
    return _in_front([*plain, *(_in_front(group, join) for group in groups.values())], join)


def _without_fractions(factors: Sequence[Term]) -> Term:
    """½ (a − b) for ½ a − ½ b, but a + ⅙ b as it is: the shorter one."""
    found = mul(*(part for factor in factors for part in primitive(factor)))
    return min(found, mul(*factors), key=printed_length)


def _in_front(terms: Sequence[Term], join: Callable[[Term], Term]) -> Term:
    """A sum with the factors in front that all of its terms have, and with these the number that divides the rest."""
    numbers = [mul(*(f for f in factors_of(term) if isinstance(f, Number))) for term in terms]
    others = [tuple(f for f in factors_of(term) if not isinstance(f, Number)) for term in terms]
    common, rests = common_factors(others)
    if not common:
        return _without_fractions([join(add(*terms))])
    inside = join(add(*(mul(number, *rest) for number, rest in zip(numbers, rests, strict=True))))
    return _without_fractions([*common, inside])
