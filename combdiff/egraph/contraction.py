"""Contraction normal form: every Σ is a connected network of factors, and δ's over index forms are solved.

    Σ_i x[i]·(Σ_i A[i, j]·y[k])        becomes  y[k]·(Σ_i x[i])·(Σ_i A[i, j])
    Σ_k δ(i + k, d)·w[k]               becomes  w[d − i]·[0 ≤ d − i < n]

Names of bound indices make these steps awkward for rewriting, so they are done on terms between two saturations of
the e-graph: sums in a product are joined (their indices renamed apart), δ's between index forms are solved for summed
indices and conditions made plain (see `conditions`), factors without summed indices are moved out, and what is not
connected through summed indices is split. Of a sum what all of its terms have as a factor is put in front.

Invariant: the value of the term is unchanged; in the result no Σ holds a number, a Σ, or two unconnected parts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import reduce
from math import gcd, lcm

from combdiff.checking import dtype_of
from combdiff.egraph.conditions import solve
from combdiff.egraph.waves import collapsed
from combdiff.indexing import Delta
from combdiff.primitives import is_entire
from combdiff.substitution import Names, substitute
from combdiff.terms import ZERO, Add, Apply, Conj, Mul, Number, Primitive, Sum, Term, Var, add, conj, mul, tidy, total


def normalise(term: Term, names: Names) -> Term:
    """The contraction normal form of a scalar term; new names for bound indices come from `names`."""
    match term:
        case Sum() | Mul():
            return _network(term, names)
        case Conj():
            return _conjugate(normalise(term.body, names))
        case Add():
            return _factored([normalise(part, names) for part in term.terms])
        case Apply():
            return term
    return term.with_children(tuple(normalise(child, names) for child in term.children))


def _factored(terms: Sequence[Term]) -> Term:
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


def _conjugate(term: Term) -> Term:
    """The conjugate pushed to the leaves of sums and products; a real term is its own."""
    if dtype_of(term) is not complex:
        return term
    match term:
        case Mul() | Add():
            return term.with_children(tuple(_conjugate(child) for child in term.children))
        case Sum():
            return total(term.indices, _conjugate(term.body))
        case Primitive() if is_entire(term):
            return term.with_children(tuple(_conjugate(child) for child in term.children))
    return conj(term)


def _network(term: Term, names: Names) -> Term:
    indices, factors = _join(term, names)
    indices, factors = solve(*collapsed(indices, factors), names)
    if ZERO in factors:
        return ZERO
    return _split(indices, [part for factor in factors for part in _primitive(factor)] if len(factors) > 1 else factors)


def _join(term: Term, names: Names) -> tuple[list[Var], list[Term]]:
    """The summed indices and the factors of a nest of sums and products."""
    if isinstance(term, Sum):
        renamed = tuple(names.fresh(index) for index in term.indices)
        body = substitute(term.body, dict(zip(term.indices, renamed, strict=True)))
        indices, factors = _join(body, names)
        return [*renamed, *indices], factors
    if not isinstance(term, Mul):
        flat = normalise(term, names)
        return _join(flat, names) if isinstance(flat, Mul | Sum) else ([], [flat])
    indices, factors = [], []
    for factor in term.factors:
        more_indices, more_factors = _join(factor, names)
        indices += more_indices
        factors += more_factors
    return indices, factors


# --- connected parts -----------------------------------------------------------------------------------------------


def _split(indices: list[Var], factors: list[Term]) -> Term:
    """A product of sums over connected parts, times the factors that hold no summed index."""
    outside = [f for f in factors if f.free.isdisjoint(indices)]
    inside = [f for f in factors if not f.free.isdisjoint(indices)]
    parts = [total(i, mul(*f)) for i, f in components(indices, inside)]
    unused = [i for i in indices if not any(i in f.free for f in inside)]
    return mul(*outside, *parts, *(total((i,), Number(1)) for i in unused))


def components(indices: Iterable[Var], factors: Iterable[Term]) -> list[tuple[list[Var], list[Term]]]:
    """The factors grouped by connection through the indices, with the indices of each group."""
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
    return [([i for i in summed if i in mine], members) for mine, members in groups]
