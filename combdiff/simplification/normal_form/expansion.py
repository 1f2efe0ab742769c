"""Sums of products: the addends of a term, each a list of factors in which every δ that can be solved is.

    Σ_i A[a,i]·(δ(i, d)·u[i] − u[i]·v[d])      becomes      A[a,d]·u[d]   and   −1 · v[d] · (Σ_i A[a,i]·u[i])

A product is distributed over the terms of a sum that offer a δ to what is around it; the others stay one sum.

Invariant: the sum of the products of the addends is the term; every Σ among the factors is a connected network.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import reduce
from itertools import product
from math import prod

from combdiff.ir import (
    MINUS_ONE,
    ONE,
    ZERO,
    Add,
    Conj,
    Delta,
    Mul,
    Names,
    Number,
    Primitive,
    Replacing,
    Sum,
    Term,
    Var,
    add,
    canonical_names,
    conj,
    dtype_of,
    factors_of,
    free_indices,
    holds_delta,
    mul,
    negate,
    number_and_rest,
    substitute,
    subterms,
    total,
)
from combdiff.simplification.normal_form.canonical import canonical
from combdiff.simplification.normal_form.contraction import normalise
from combdiff.simplification.normal_form.lengths import printed_length

HALF = Number(Fraction(1, 2))
MOST_ADDENDS = 16  # of a sum that is multiplied out
MOST_SUMS = 1  # of a product that is: Σ (x − m)² keeps the digits that are lost in Σ x² − n m²
Addend = tuple[Term, ...]


def addends(term: Term, names: Names) -> list[Addend]:
    """The addends of a scalar term; new names for summed indices come from `names`."""
    match term:
        case Add():
            return [addend for part in term.terms for addend in addends(part, names)]
        case Mul():
            return _product(term.factors, names)
        case Sum():
            renamed = {index: names.fresh(index) for index in term.indices}
            body = substitute(term.body, renamed)
            found = [closed(renamed.values(), addend, names) for addend in addends(body, names)]
            return [addend for addend in found if addend != (ZERO,)]
        case Conj():
            return [tuple(map(conjugate, addend)) for addend in addends(term.body, names)]
        case Primitive(name="real", arguments=(body,)) if holds_delta(body):
            return [
                (HALF, *part) for addend in addends(body, names) for part in (addend, tuple(map(conjugate, addend)))
            ]
    return [] if term is ZERO else [(term,)]


def conjugate(term: Term) -> Term:
    """The conjugate of a number, which is itself where it is real."""
    return conj(term) if dtype_of(term) is complex else term


def collected(parts: Iterable[Addend]) -> list[Addend]:
    """The addends with those that differ only in a number, or in names of summed indices, added up."""
    sums: dict[frozenset[tuple[Term, int]], tuple[Term, Addend]] = {}
    for part in parts:
        numbers = mul(*(factor for factor in part if isinstance(factor, Number)))
        rest = tuple(factor for factor in part if not isinstance(factor, Number))
        key = frozenset(Counter(map(canonical_names, rest)).items())
        before, first = sums.get(key, (ZERO, rest))
        sums[key] = (add(before, numbers), first)
    return [(*factors_of(number), *rest) for number, rest in sums.values() if number is not ZERO]


def weighted(body: Term) -> Iterator[tuple[Number, Term]]:
    """The terms of a sum with their real coefficients, also of a multiple of a sum."""
    factor, rest = coefficient_of(body)
    if isinstance(rest, Add):
        for part in rest.terms:
            for inner, term in weighted(part):
                product = mul(factor, inner)
                assert isinstance(product, Number)
                yield product, term
    else:
        yield factor, rest


def coefficient_of(term: Term) -> tuple[Number, Term]:
    """A term as an exact real number times the rest; averages are linear over the real numbers only."""
    number, rest = number_and_rest(term)
    if number.exact and not number.imag:
        return number, rest
    if number.real < 0 or (not number.real and number.imag < 0):
        return MINUS_ONE, mul(negate(number), *factors_of(rest))
    return ONE, term


def common_factors(parts: Sequence[Addend]) -> tuple[list[Term], list[Addend]]:
    """The factors that all products have, each as often as all have it, and the rest of each product."""
    counts = [Counter(part) for part in parts]
    common = list(reduce(lambda one, two: one & two, counts).elements())
    rests = []
    for part in parts:
        rest = list(part)
        for factor in common:
            rest.remove(factor)
        rests.append(tuple(rest))
    return common, rests


def offers_delta(term: Term) -> bool:
    """Whether a δ occurs in a term that a Σ around it may take: one of an index that is free there.

    Σ_k δ(k, idx[i])·x[k], an element that is looked up, has none.
    """
    found = (part for part in subterms(term) if isinstance(part, Delta))
    return any(not term.free.isdisjoint(free_indices(part.lookup[0] if part.lookup else part)) for part in found)


def is_patched(term: Term) -> bool:
    """Whether a term is a sum in which some terms have δ's of one index and a number, and some have no δ.

    a[j] + δ(j, 0) b: written where it is read, what it is multiplied with would be multiplied out.
    """
    if not isinstance(term, Add):
        return False
    pinned = [[part for part in subterms(each) if isinstance(part, Delta)] for each in term.terms]
    return not all(pinned) and all(len(part.free) == 1 for parts in pinned for part in parts)


def _product(factors: Iterable[Term], names: Names) -> list[Addend]:
    opened = [_factor_opened(factor, names) for factor in factors]
    joined = [mul(*(factor for part in choice for factor in part)) for choice in product(*opened)]
    return [factors_of(term) for term in joined if term is not ZERO]


def _factor_opened(factor: Term, names: Names) -> list[Addend]:
    """The addends of a factor, of which those that offer no δ stay one sum."""
    if not isinstance(factor, Add):
        return addends(factor, names)
    offering = [term for term in factor.terms if offers_delta(term)]
    rest = add(*(term for term in factor.terms if term not in offering))
    found = [addend for term in offering for addend in addends(term, names)]
    return found if rest is ZERO else [*found, (rest,)]


def multiplied_out(term: Term, names: Names) -> Term:
    """A scalar term as a sum of products, as far as these are few; what is so equal as polynomials is equal.

    Σ_i (x[i] − m)·2 becomes 2 Σ_i x[i] − 2 n m. Sums inside functions stay as they are, and so do products of sums: of
    one that is summed, the factors that the summed indices do not stand in.
    """
    return add(*(mul(*normal) for normal in _multiplied_out(term, names)))


def with_sums_cancelled(term: Term, names: Names) -> Term:
    """A term with the Σ's in a sum multiplied out where some of its terms cancel: Σ x + Σ y − Σ (x + y) is 0."""
    sums = [node for node in subterms(term) if isinstance(node, Add) and _has_sums_to_open(node)]
    return Replacing({node: _cancelled(node, names) for node in sums}).run(term) if sums else term


def _cancelled(sum_: Add, names: Names) -> Term:
    parts = _multiplied_out(sum_, names)
    found = canonical(normalise(add(*(mul(*part) for part in parts)), names))
    inside = number_and_rest(found)[1]  # the sign of a sum may stand in front of it
    terms = inside.terms if isinstance(inside, Add) else (inside,)
    # x[d] Σ_i v[i] beside Σ_i v[i] x[i] would not be one Σ again
    connected = all(isinstance(number_and_rest(term)[1], Sum) for term in terms)
    shorter = connected and len(terms) < len(parts) and printed_length(found) < printed_length(sum_)
    return found if found is ZERO or len(terms) < len(sum_.terms) or shorter else sum_


def _has_sums_to_open(sum_: Add) -> bool:
    """Whether there is a Σ over a sum among the terms, whose parts may cancel with the others."""
    return any(_opens(factor) for part in sum_.terms for factor in factors_of(part))


def _opens(term: Term) -> bool:
    """Whether a term is a Σ over a product with a sum, or with such a Σ, among its factors."""
    return isinstance(term, Sum) and any(isinstance(f, Add) or _opens(f) for f in factors_of(term.body))


def _multiplied_out(term: Term, names: Names, summed: frozenset[Var] = frozenset()) -> list[Addend]:
    match term:
        case Add():
            parts = [part for inner in term.terms for part in _multiplied_out(inner, names, summed)]
        case Mul():
            opened = [_multiplied_out(factor, names, summed) for factor in term.factors]
            if _sums(opened) > MOST_SUMS:
                each = zip(term.factors, opened, strict=True)
                opened = [[factors_of(factor)] if summed.isdisjoint(factor.free) else parts for factor, parts in each]
            if _sums(opened) > MOST_SUMS or prod(map(len, opened)) > MOST_ADDENDS:
                return [factors_of(term)]
            parts = [tuple(f for part in choice for f in part) for choice in product(*opened)]
        case Sum():
            renamed = {index: names.fresh(index) for index in term.indices}
            inside = _multiplied_out(substitute(term.body, renamed), names, summed | {*renamed.values()})
            parts = [factors_of(normalise(total(renamed.values(), mul(*part)), names)) for part in inside]
        case _:
            return [factors_of(normalise(term, names))]
    return parts if len(parts) <= MOST_ADDENDS else [factors_of(term)]


def _sums(opened: Iterable[list[Addend]]) -> int:
    """How many factors have become sums."""
    return sum(len(parts) > 1 for parts in opened)


def closed(indices: Iterable[Var], factors: Sequence[Term], names: Names) -> Addend:
    """The factors of Σ of a product over indices: δ's that determine one are solved, unconnected parts are apart."""
    return factors_of(normalise(total(indices, mul(*factors)), names))
