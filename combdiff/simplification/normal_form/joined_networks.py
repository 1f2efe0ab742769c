"""Networks of a sum that have factors in common: one Σ, under which the rest is added up.

    Σ_i A[d,i]·x[i] + Σ_j A[j,d]·x[j]   →   Σ_i (A[d,i] + A[i,d])·x[i]
    J·s[d−1] + J·s[d+1] + h             →   J·(s[d−1] + s[d+1]) + h
    Σ_{i<d} f[i] + Σ_{i>d} f[i]         →   Σ_i [i ≠ d] f[i]

The indices of one Σ are named as those of another so that as many factors as can be are equal; which they are is a
question of binders, which the e-graph cannot ask: there two Σ's have names of their own.

Invariant: the value is unchanged, the work is no more, and each step makes the print shorter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations, tee
from math import gcd, lcm

from combdiff.ir import (
    ONE,
    Add,
    Guard,
    Mul,
    Names,
    Number,
    Rewriter,
    Sum,
    SummedProduct,
    Term,
    Var,
    add,
    exact,
    mul,
    negate,
    number_and_rest,
    remembered,
    substitute,
    subterms,
    tidy,
    total,
    united,
)
from combdiff.simplification.egraph.extraction import by_transposes, parts_cost
from combdiff.simplification.normal_form.expansion import Addend, common_factors
from combdiff.simplification.normal_form.lengths import printed_length

MOST_TERMS = 12  # of a sum whose pairs are tried
MOST_NAMINGS = 64  # of the indices of one Σ by those of another
MOST_JOINED = 4  # choices of common factors that are tried, until one takes no more work

Renaming = Mapping[Var, Var]


def with_transposes_joined(term: Term) -> Term:
    """A term with A·x + Aᵀ·x in it as (A + Aᵀ)·x, which plans multiply term by term: A·x may be there."""
    return _JoiningTransposes().run(term)


class _JoiningTransposes(Rewriter):
    def node(self, term: Term) -> Term:
        new = self.inside(term)
        found = joined_networks(new)
        if found is new or not any(isinstance(part, Sum) and by_transposes(part) for part in subterms(found)):
            return new
        return found


@remembered
def joined_networks(term: Term) -> Term:
    """A sum with those of its terms made one that have factors in common, as long as that makes it shorter."""
    known: dict[tuple[Term, Term], Iterator[Term]] = {}
    while isinstance(term, Add) and len(term.terms) <= MOST_TERMS:
        found = min(_steps(term, known), key=printed_length, default=term)
        if printed_length(found) >= printed_length(term):
            return term
        term = found
    return term


def _steps(term: Add, known: dict[tuple[Term, Term], Iterator[Term]]) -> Iterator[Term]:
    """The sums with two of the terms joined that take no more work; what two terms are as one is known from before."""
    names = Names(term)
    networks = {part: SummedProduct.of(part, names) for part in term.terms}
    work = sum(parts_cost(term).values())
    for pair in combinations(term.terms, 2):
        known[pair], ways = tee(known.get(pair) or _joined(*map(networks.__getitem__, pair)))
        rest = [part for part in term.terms if part not in pair]
        sums = (add(*rest, joined) for joined in ways)
        found = next((found for found in sums if sum(parts_cost(found).values()) <= work), None)
        if found is not None:
            yield found


def _joined(one: SummedProduct, other: SummedProduct) -> Iterator[Term]:
    """The sum of two networks as one, first in the naming that makes most of their factors equal.

    That may leave sums of outer products: `Σ X[e,j] X[i,l] X[k,d] (A[j,i] B[l,k] + B[j,i] A[l,k])` is more work than
    `Σ X[e,j] X[k,d] (Σ A[j,i] X[i,l] B[l,k] + …)`.
    """
    found: dict[tuple[Term, ...], tuple[Renaming, Term, list[Addend]]] = {}
    known: dict[tuple[Term, tuple[tuple[Var, Var], ...]], Term] = {}

    def with_names(factor: Term, naming: Renaming) -> Term:
        if factor.free.isdisjoint(naming):
            return factor
        own = tuple((index, name) for index, name in naming.items() if index in factor.free)
        if (factor, own) not in known:
            known[factor, own] = substitute(factor, dict(own))
        return known[factor, own]

    for naming in _namings(one, other):
        number, renamed = _turned([with_names(factor, naming) for factor in other.factors], one.factors)
        number = mul(number, other.number)
        common, rests = common_factors([one.factors, renamed])
        if one.number is number and (condition := _united(rests)):
            yield SummedProduct(one.indices, (*common, condition), one.number).term
            return
        bounded = any(isinstance(factor, Guard) for rest in rests for factor in rest)  # a Σ that another's would widen
        if common and not bounded:
            found.setdefault(tuple(common), (naming, number, rests))
    for parts, (naming, number, rests) in sorted(found.items(), key=lambda item: -len(item[0]))[:MOST_JOINED]:
        shared = [index for index in one.indices if any(index in factor.free for factor in parts)]
        own = [index for index in one.indices if index not in shared]
        others = [naming.get(index, index) for index in other.indices if naming.get(index, index) not in shared]
        in_front, *own_numbers = (number, ONE, ONE) if one.number is number else (ONE, one.number, number)
        sums = (mul(own_numbers[0], _over(own, rests[0])), mul(own_numbers[1], _over(others, rests[1])))
        outside = [factor for factor in parts if factor.free.isdisjoint(shared)]
        inside = [factor for factor in parts if factor not in outside]
        yield mul(in_front, *outside, total(tuple(shared), mul(*inside, *primitive(joined_networks(add(*sums))))))


def _turned(factors: Sequence[Term], like: Sequence[Term]) -> tuple[Term, tuple[Term, ...]]:
    """Factors with those sums turned round of which the others have the negative, and the sign that this makes."""
    negatives = {frozenset(map(negate, factor.terms)): factor for factor in like if isinstance(factor, Add)}
    turned = [negatives.get(frozenset(factor.terms)) if isinstance(factor, Add) else None for factor in factors]
    sign = (-1) ** sum(factor is not None for factor in turned)
    return Number(sign), tuple(new or factor for new, factor in zip(turned, factors, strict=True))


def _united(rests: Sequence[Addend]) -> Term | None:
    """Of two products that differ in a condition alone: that either holds, where that is one condition."""
    if all(len(rest) == 1 and isinstance(rest[0], Guard) for rest in rests):
        return united(*(rest[0] for rest in rests))
    return None


def _over(indices: Sequence[Var], factors: Sequence[Term]) -> Term:
    """Σ over the indices of a product, numbers of terms for indices that no factor has."""
    return total(tuple(indices), mul(*factors)) if indices else mul(*factors)


def _namings(one: SummedProduct, other: SummedProduct) -> list[Renaming]:
    """Names for summed indices of `other`, those of `one`, under which a factor of one is a factor of the other."""
    each = ([naming_of(part, like, other.indices, one.indices) for like in one.factors] for part in other.factors)
    namings = [some for ways in each if (some := [naming for naming in ways if naming])]
    found: list[Renaming] = []
    seen: set[tuple[frozenset[tuple[Var, Var]], int]] = set()
    todo: list[tuple[Renaming, int]] = [({}, 0)]
    while todo and len(found) < MOST_NAMINGS:
        naming, n = todo.pop()
        state = frozenset(naming.items()), n
        if state in seen:
            continue
        seen.add(state)
        if n == len(namings):
            found.append(naming)
            continue
        todo.append((naming, n + 1))
        for more in namings[n]:
            both = together(naming, more)
            if both is not None and both != naming:
                todo.append((both, n + 1))
    return found


def together(naming: Renaming, more: Renaming) -> Renaming | None:
    """Two namings as one, None where they name one index twice, or two alike."""
    new = {index: name for index, name in more.items() if index not in naming}
    agree = all(naming.get(index, name) is name for index, name in more.items())
    return {**naming, **new} if agree and not set(new.values()).intersection(naming.values()) else None


def naming_of(part: Term, like: Term, own: Sequence[Var], theirs: Sequence[Var]) -> Renaming | None:
    """The names for indices that make one term another; None where nothing does."""
    found = _matched(part, like, {}, own, theirs)
    return found if found is not None and substitute(part, found) is like else None


def _matched(part: Term, like: Term, naming: Renaming, own: Sequence[Var], theirs: Sequence[Var]) -> Renaming | None:
    """The naming with what one term has in places where another has other indices; None where they differ in more."""
    if isinstance(part, Var) and part in own:
        if part in naming:
            return naming if naming[part] is like else None
        free = isinstance(like, Var) and like in theirs and like.type == part.type and like not in naming.values()
        return {**naming, part: like} if free and isinstance(like, Var) else None
    if part is like:
        return naming if part.free.isdisjoint(own) else None
    if type(part) is not type(like) or len(part.children) != len(like.children) or not part.children:
        return None
    if isinstance(part, Sum | Add | Mul) and part.bound:
        return None
    found: Renaming | None = naming
    for child, other in zip(part.children, like.children, strict=True):
        found = None if found is None else _matched(child, other, found, own, theirs)
    return found


def primitive(factor: Term) -> tuple[Term, ...]:
    """A factor that is a sum as a number and a sum of whole multiples without a common divisor: 8 and 2 x − b."""
    if not isinstance(factor, Add):
        return (factor,)
    numbers, rests = zip(*map(number_and_rest, factor.terms), strict=True)
    content = _content(numbers)
    if content == 1:
        return (factor,)
    wholes = (Number(tidy(Fraction(number.real / content))) for number in numbers)
    return Number(exact(content)), add(*map(mul, wholes, rests))


def _content(numbers: Sequence[Number]) -> Fraction | float:
    """The greatest number that real numbers are whole multiples of; 1 where they are not, and for complex ones."""
    parts = [number.real for number in numbers]
    if any(number.imag or not number.real or not number.finite for number in numbers):
        return Fraction(1)
    fractions = [Fraction(part) for part in parts if not isinstance(part, float)]
    if len(fractions) < len(parts):
        least = min(abs(float(part)) for part in parts)
        return least if all((float(part) / least).is_integer() for part in parts) else Fraction(1)
    denominator = lcm(*(number.denominator for number in fractions))
    return Fraction(gcd(*(int(number * denominator) for number in fractions)), denominator)
