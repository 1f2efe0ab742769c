"""Common factors in front of sums: what a reader would take out of a simplified term.

    Σ_i (X[i,a]·X[i,d]·t[i] − X[i,a]·X[i,d]·u[i])      →   Σ_i X[i,a]·X[i,d]·(t[i] − u[i])
    T[a,d] + δ(a, d)·V[d] + 2 δ(a, d)·g·z[d]²          →   T[a,d] + δ(a, d)·(V[d] + 2 g·z[d]²)

The laws expand products to free δ's, and none of them puts a sum of many terms together again; this is done once, at
the end, on canonical forms.

Invariant: the value of the term is unchanged, and it costs no more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import reduce
from math import gcd, lcm

from combdiff.egraph.canonical import canonical
from combdiff.egraph.contraction import normalise
from combdiff.egraph.extraction import price
from combdiff.indexing import Delta
from combdiff.substitution import Names, subterms
from combdiff.terms import Add, Lambda, Mul, Number, Sum, Term, add, mul, tidy


def factored(value: Term) -> Term:
    """A tensor or number with common factors in front, where that costs no more."""
    body = value.body if isinstance(value, Lambda) else value
    if not any(isinstance(part, Add) for part in subterms(body)):
        return value
    found = canonical(normalise(_taken_out(body), Names(value)))
    if price(found) >= price(body):
        return value
    return Lambda(value.parameters, found) if isinstance(value, Lambda) else found


def _taken_out(term: Term) -> Term:
    """A term with the common factors of each sum in it in front of that."""
    if not isinstance(term, Add | Mul | Sum):
        return term
    children = tuple(_taken_out(child) for child in term.children)
    if isinstance(term, Add):
        return _of_terms(children)
    if isinstance(term, Mul):
        return mul(*(part for child in children for part in _primitive(child)))
    return term.with_children(children)


def _of_terms(terms: Sequence[Term]) -> Term:
    """A sum with the factors in front that all of its terms have; else terms that have the same δ's made one."""
    products = [term.factors if isinstance(term, Mul) else (term,) for term in terms]
    if common := _common(products):
        return _in_front(common, products)
    groups: dict[frozenset[Term], list[tuple[Term, ...]]] = {}
    for factors in products:
        groups.setdefault(frozenset(f for f in factors if isinstance(f, Delta)), []).append(factors)
    plain = (mul(*factors) for factors in groups.pop(frozenset(), []))
    return add(*plain, *(_in_front(_common(group), group) for group in groups.values()))


def _common(products: Sequence[tuple[Term, ...]]) -> Counter[Term]:
    """The factors that all products have, numbers not looked at."""
    counts = [Counter(f for f in factors if not isinstance(f, Number)) for factors in products]
    return reduce(Counter.__and__, counts)


def _in_front(common: Counter[Term], products: Sequence[tuple[Term, ...]]) -> Term:
    """The sum of products that have factors in common with these in front."""
    rest = add(*(_without(factors, common) for factors in products))
    return mul(*common.elements(), *_primitive(rest))


def _primitive(factor: Term) -> tuple[Term, ...]:
    """A factor that is a sum as a number and a sum of whole multiples without a common divisor: 8 and 2 x − b."""
    if not isinstance(factor, Add):
        return (factor,)
    products = [term.factors if isinstance(term, Mul) else (term,) for term in factor.terms]
    numbers = [mul(*(f for f in factors if isinstance(f, Number))) for factors in products]
    content = _content([number for number in numbers if isinstance(number, Number)])
    inverse = Number(tidy(1 / content))
    return (factor,) if content == 1 else (Number(tidy(content)), add(*(mul(inverse, term) for term in factor.terms)))


def _content(numbers: Sequence[Number]) -> Fraction:
    """The greatest number that exact real numbers are whole multiples of, 1 where there are others."""
    if not all(number.exact and not number.imag and number.real for number in numbers):
        return Fraction(1)
    exact = [Fraction(number.real) for number in numbers]
    denominator = lcm(*(number.denominator for number in exact))
    return Fraction(gcd(*(int(number * denominator) for number in exact)), denominator)


def _without(factors: Iterable[Term], common: Counter[Term]) -> Term:
    """The product of the factors that are left when others are taken away."""
    left, kept = Counter(common), []
    for factor in factors:
        if left[factor]:
            left[factor] -= 1
        else:
            kept.append(factor)
    return mul(*kept)
