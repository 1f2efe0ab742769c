"""Conditions on indices that count in several units, as those of arrays that are laid out anew, taken apart.

    δ(6a + 2b + c, 6d + 2e + f)          becomes   δ(a, d) δ(b, e) δ(c, f)      b, e < 3 and c, f < 2
    [3a + b ≥ 0]                         becomes   [a ≥ 0]                      b < 3
    [3d + 2j − 2k ≡ 0 (mod 6)]           becomes   [d ≡ 0 (mod 2)] [j − k ≡ 0 (mod 3)]
    [0 ≤ d − 2j ≤ 1] [0 ≤ d − 2k ≤ 1]    tells     δ(j, k)
    Σ_j [0 ≤ d − 3j ≤ 2]                 becomes   [0 ≤ d < 3m]                 j < m
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
    SummedProduct,
    Term,
    Var,
    affine,
    affine_parts,
    denominator,
    indicator,
    remembered,
    size_form,
    size_sum,
    substitute,
    subterms,
)
from combdiff.polyhedra import enclosed, implied, linear, plain_congruence, premises_of
from combdiff.simplification.normal_form.conditions import (
    Lattice,
    compares_whole_numbers,
    is_counted,
    lattice_of,
    on_lattice,
    vanishing,
)

MOST_WAYS = 4  # parts of an index expression of which each is reduced either way around


def taken_apart(indices: Sequence[Var], factors: Sequence[Term]) -> Sequence[Term]:
    """The factors with each condition as several on fewer indices, where it is such, and what windows say."""
    factors = [part for f in factors for part in _by_primes(f)]
    lattice = lattice_of(plain_congruence(f) for f in factors if isinstance(f, Indicator) and f.modulus)
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
            premises = [on_lattice(premise, lattice) for premise in premises_of(small.free)]
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
    for index in product.indices:
        asked = [f for f in product.factors if index in f.free]
        if len(asked) != 2 or not isinstance(index.type, Range):
            continue
        for form, room, conditions in enclosed(asked):
            width = room + 1
            if dict(affine_parts(form)[0])[index] == -width:
                place = affine([(form, 1), (index, width)])
                end = indicator(affine([(size_form(index.type.size), width), (place, -1)], -1))
                rest = [f for f in product.factors if f not in conditions]
                left = [i for i in product.indices if i is not index]
                return without_tiles(SummedProduct.over(left, [indicator(place), end, *rest]))
    return product


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
