"""Conditions on indices that count in several units, as those of arrays that are laid out anew, taken apart.

    δ(6a + 2b + c, 6d + 2e + f)          becomes   δ(a, d) δ(b, e) δ(c, f)      b, e < 3 and c, f < 2
    [3a + b ≥ 0]                         becomes   [a ≥ 0]                      b < 3
    [3d + 2j − 2k ≡ 0 (mod 6)]           becomes   [d ≡ 0 (mod 2)] [j − k ≡ 0 (mod 3)]
    [0 ≤ d − 2j ≤ 1] [0 ≤ d − 2k ≤ 1]    tells     δ(j, k)
    Σ_j [0 ≤ d − 3j ≤ 2]                 becomes   [0 ≤ d < 3m]                 j < m
    Σ_l [0 ≤ l − 2j ≤ 1] f(l, l − 2j)    becomes   Σ_{k<2} f(2j + k, k)
    Σ_l [l ≡ 0 (mod 2)] f(l)             becomes   Σ_k f(2k)
    Σ_{i,j} f(3i + j)                    becomes   Σ_k f(k)                     j < 3

So each asks for as few indices as it can, and the solver has equations with small coefficients.

Invariant: the value of the product is unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations, permutations, product
from math import ceil, floor, gcd

from combdiff.ir import (
    Affine,
    Delta,
    Indicator,
    Names,
    Range,
    Size,
    SummedProduct,
    Term,
    Var,
    affine,
    affine_parts,
    denominator,
    indicator,
    remembered,
    size_form,
    size_of_parts,
    size_parts,
    size_sum,
    substitute,
    subterms,
)
from combdiff.polyhedra import (
    Lattice,
    enclosed,
    implied,
    is_inside,
    lattice_of,
    linear,
    loosest_room,
    premises_of,
    tightest,
)
from combdiff.simplification.normal_form.conditions import compares_whole_numbers, is_counted, vanishing

MOST_WAYS = 4  # parts of an index expression of which each is reduced either way around


def taken_apart(indices: Sequence[Var], factors: Sequence[Term]) -> Sequence[Term]:
    """The factors with each condition as several on fewer indices, where it is such, and what windows say."""
    factors = [part for f in factors for part in _by_primes(f)]
    lattice = lattice_of(factors)
    factors = [part for f in factors for part in (_by_digits_on(f, lattice) if lattice else _by_digits(f))]
    return [*factors, *_in_one_window(indices, factors)]


@remembered
def _by_primes(factor: Term) -> tuple[Term, ...]:
    """[3d + 2j − 2k ≡ 0 (mod 6)] as [d ≡ 0 (mod 2)] and [j − k ≡ 0 (mod 3)]: each asks for indices of its own."""
    if not isinstance(factor, Indicator) or denominator(factor.form) > 1:
        return (factor,)
    size = factor.modulus
    for one in (n for n in range(2, size) if not size % n and gcd(n, size // n) == 1):
        sides = [_congruence(factor.form, n) for n in (one, size // one)]
        if sides[0].free.isdisjoint(sides[1].free):
            return tuple(part for side in sides for part in _by_primes(side))
    return (factor,)


def _congruence(form: Term, modulus: int) -> Term:
    """An index expression is 0 modulo a number; its first index counts once where it can."""
    parts, offset = affine_parts(form)
    first = next((int(c) for _, c in parts if c % modulus), 1)
    times = pow(first, -1, modulus) if gcd(first, modulus) == 1 else 1
    return indicator(affine([(v, int(c) * times % modulus) for v, c in parts], int(offset) * times % modulus), modulus)


@remembered
def _by_digits(factor: Term) -> tuple[Term, ...]:
    return _by_digits_on(factor, ())


def _by_digits_on(factor: Term, lattice: Lattice) -> tuple[Term, ...]:
    """δ(c·a + b, c·d + e) as δ(a, d) and δ(b, e) where b − e is more than −c and less than c, as of a reshape and back.

    And [c·a + b ≥ 0] as [a ≥ 0] where b is 0 … c − 1. A lattice is what congruences say of indices.
    """
    if isinstance(factor, Indicator) and factor.modulus:
        return _without_turns(factor)
    if isinstance(factor, Delta) and compares_whole_numbers(factor):
        form = affine([(factor.left, 1), (factor.right, -1)])
    elif isinstance(factor, Indicator) and not factor.modulus:
        form = factor.form
    else:
        return (factor,)
    if not is_counted(form) or denominator(form) > 1:
        return (factor,)
    parts, offset = affine_parts(form)
    for base in sorted({abs(int(c)) for _, c in parts} - {1}):
        for small in _remainders(form, base):
            great = affine([(form, Fraction(1, base)), (small, Fraction(-1, base))], Fraction(-offset, base))
            if not is_counted(small) or not is_counted(great):
                continue
            premises = [tightest(premise, lattice) for premise in premises_of(small.free)]
            for turns in (floor(Fraction(offset, base)), ceil(Fraction(offset, base))):
                low, high = linear(affine([(small, 1)], offset - turns * base)), affine([(great, 1)], turns)
                if not implied(low.scale(-1) + (base - 1), premises):
                    continue
                if isinstance(factor, Indicator) and implied(low, premises):
                    return _by_digits_on(indicator(high), lattice)
                if isinstance(factor, Delta) and implied(low + (base - 1), premises):
                    small = affine([(small, 1)], offset - turns * base)
                    return (*_by_digits_on(vanishing(high), lattice), *_by_digits_on(vanishing(small), lattice))
    return (factor,)


def _without_turns(factor: Indicator) -> tuple[Term, ...]:
    """[i − j − 2k ≡ 0 (mod 6)] as δ(i, j + 2k), and its digits, where i < 6, j < 2 and k < 3: one multiple is met."""
    if denominator(factor.form) > 1 or not is_counted(factor.form):
        return (factor,)
    offset = int(affine_parts(factor.form)[1]) % factor.modulus
    for small in _remainders(factor.form, factor.modulus):
        premises = premises_of(small.free)
        for whole in (affine([(small, 1)], offset), affine([(small, 1)], offset - factor.modulus)):
            sides = (linear(whole).scale(sign) + (factor.modulus - 1) for sign in (1, -1))
            if is_counted(small) and all(implied(side, premises) for side in sides):
                return _by_digits(vanishing(whole))
    return (factor,)


def _remainders(form: Term, base: int) -> Iterator[Term]:
    """An index expression less multiples of a number, without a constant: each part either way around."""
    parts = [(v, int(c) % base) for v, c in affine_parts(form)[0] if c % base]
    if len(parts) <= MOST_WAYS:
        for turned in product((0, base), repeat=len(parts)):
            yield affine([(v, c - turn) for (v, c), turn in zip(parts, turned, strict=True)])


def _in_one_window(indices: Sequence[Var], factors: Sequence[Term]) -> Iterator[Delta]:
    """What windows say that lie apart by multiples of what is wider: δ(j, k) by [0 ≤ d − 2j ≤ 1] [0 ≤ d − 2k ≤ 1]."""
    for one, other in combinations([e for e in enclosed(factors) if is_counted(e.form)], 2):
        parts, offset = affine_parts(apart := affine([(one.form, 1), (other.form, -1)]))
        step = gcd(*(int(c) for _, c in parts))
        if step > 1 and not apart.free.isdisjoint(indices):
            low, high = ceil(Fraction(-other.room - offset, step)), floor(Fraction(one.room - offset, step))
            if low == high:
                yield vanishing(affine([(v, Fraction(c, step)) for v, c in parts], -low))


def without_tiles(product: SummedProduct) -> SummedProduct:
    """The product without indices that only say in which tile something is: Σ_j [0 ≤ d − 3j ≤ 2] is [0 ≤ d < 3m]."""
    lattice = lattice_of(product.factors)
    for index in product.indices:
        asked = [f for f in product.factors if index in f.free]
        if len(asked) != 2 or not isinstance(index.type, Range):
            continue
        for each in enclosed(asked):
            width = loosest_room(each, lattice) + 1
            if dict(affine_parts(each.form)[0])[index] == -width:
                place = affine([(each.form, 1), (index, width)])
                end = indicator(affine([(size_form(index.type.size), width), (place, -1)], -1))
                rest = [f for f in product.factors if f not in each.conditions]
                left = [i for i in product.indices if i is not index]
                return without_tiles(SummedProduct.over(left, [indicator(place), end, *rest]))
    return product


def counted_within(product: SummedProduct, names: Names) -> SummedProduct:
    """The product with an index of its own for what two conditions enclose, where index expressions are made of that.

    Σ_l [0 ≤ l − 2j ≤ 1] x[l] y[l − 2j] is Σ_{k<2} x[2j + k] y[k].
    """
    for form, room, conditions in enclosed(product.factors):
        rest = [f for f in product.factors if f not in conditions]
        for index, share in affine_parts(form)[0]:
            if index not in product.indices or abs(share) != 1 or len(form.free) == 1:
                continue
            place = names.fresh(Var(index.name, Range(room + 1)))
            value = affine([(place, share), (form, -share), (index, 1)])
            places = {n for f in rest for n in subterms(f) if isinstance(n, Affine) and index in n.free}
            shorter = any(len(substitute(n, {index: value}).free) < len(n.free) for n in places)
            if shorter and is_inside(value, index.type):
                left = [place if i is index else i for i in product.indices]
                factors = [substitute(f, {index: value}) for f in rest]
                return counted_within(SummedProduct.over(left, factors), names)
    return product


def counted_in_steps(product: SummedProduct, names: Names) -> SummedProduct:
    """The product without congruences on one summed index: Σ_i [i mod 2 = 0] f(i) is Σ_j f(2j)."""
    for condition in product.factors:
        if not isinstance(condition, Indicator) or not (size := condition.modulus) or len(condition.form.free) > 1:
            continue
        ((index, share),), offset = affine_parts(condition.form)
        if index in product.indices and isinstance(index.type, Range) and share == 1:
            first = int(-offset) % size
            many = _quotient(size_sum((index.type.size, 1), (size - 1 - first, 1)), size)
            if many is not None:
                step = names.fresh(Var(index.name, Range(many)))
                value = affine([(step, size)], first)
                rest = [substitute(f, {index: value}) for f in product.factors if f is not condition]
                left = [step if i is index else i for i in product.indices]
                return counted_in_steps(SummedProduct.over(left, rest), names)
    return product


def _quotient(size: Size, number: int) -> Size | None:
    """The whole part of a size, which is not negative, by a number; None where it depends on what names stand for."""
    parts, offset = size_parts(size)
    if any(many % number for many in parts.values()):
        return None
    return size_of_parts({name: many // number for name, many in parts.items()}, offset // number)


def as_one(product: SummedProduct, names: Names) -> SummedProduct:
    """The product with one index for two that are read together alone: Σ_{i,j<3} f(3i + j) is Σ_k f(k)."""
    if len(product.indices) < 2:
        return product
    forms = {n for f in product.factors for n in subterms(f) if isinstance(n, Affine)}
    shares = [dict(affine_parts(form)[0]) for form in forms]
    alone = {child for f in product.factors for n in subterms(f) if not isinstance(n, Affine) for child in n.children}
    counted = [(i, i.type.size) for i in product.indices if isinstance(i.type, Range) and i not in alone]
    for (less, size), (more, many) in permutations(counted, 2):
        if isinstance(size, int) and all(share.get(less, 0) * size == share.get(more, 0) for share in shares):
            whole = names.fresh(Var(less.name, Range(size_sum((many, size)))))
            factors = [substitute(f, {less: whole, more: affine([])}) for f in product.factors]
            left = [whole if i is less else i for i in product.indices if i is not more]
            return as_one(SummedProduct(tuple(left), tuple(factors)), names)
    return product
