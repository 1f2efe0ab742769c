"""Elements that are read at parts of an index, in print: ⌊i/3⌋ is the largest and i mod 3 the smallest digit of i.

    Σ_{r<3} [(i - r) mod 3 = 0] x[(i - r)/3, r]          becomes        x[⌊i/3⌋, i mod 3]
    Σ_{j,k<2} [0 ≤ i - 4j - 2k ≤ 1] x[j, k]              becomes        x[⌊i/4⌋, ⌊i/2⌋ mod 2]
    Σ_{j,k<2} [0 ≤ i - 4j - 2k ≤ 1] x[i - 4j]            becomes        x[i mod 4]

As e digits with the scales s, i = Σ_k s_k e_k, where s_0 = 1 and e_k < s_{k+1}/s_k: reshapes read at an index's digits.

Invariant: what is written has the value of the term given.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from fractions import Fraction
from functools import partial
from typing import NamedTuple

from combdiff.ir import (
    Apply,
    Coordinate,
    Delta,
    Indicator,
    Number,
    Range,
    Space,
    Sum,
    Term,
    Var,
    add,
    affine,
    affine_parts,
    as_integer,
    denominator,
    exchanged,
    factors_of,
    function,
    is_index,
    mul,
    number_left,
    size_form,
    subterms,
    tidy,
    total,
    type_of,
)
from combdiff.polyhedra import enclosed, implied, is_inside, lattice_of, linear, loosest_room, premises_of


class Digit(NamedTuple):
    """An index, or a part without a name, that an expression counts so often; all larger ones count from `end` on."""

    var: Var | None
    scale: int
    end: int | None


class Digits(NamedTuple):
    """Conditions that say that an expression is the sum of its digits, each so often as its scale says."""

    conditions: tuple[Term, ...]
    whole: Term
    digits: tuple[Digit, ...]


def without_digits(term: Term) -> Term:
    """A Σ without indices that are digits of an expression, where elements alone are read at them."""
    if not isinstance(term, Sum):
        return term
    indices, factors = _with_inner(term)
    for found in _all_digits(indices, factors):
        named = {digit.var for digit in found.digits}
        rest = [factor for factor in factors if factor not in found.conditions]
        left = mul(*(read_at(factor, named, partial(_by_the_whole, found)) for factor in rest))
        if named.isdisjoint(left.free):
            return without_digits(total([i for i in indices if i not in named], left))
    return term


def _with_inner(term: Sum) -> tuple[tuple[Var, ...], tuple[Term, ...]]:
    """The indices and the factors of a Σ, with those of a Σ that is a factor."""
    factors = factors_of(term.body)
    sums = [factor for factor in factors if isinstance(factor, Sum)]
    others = [factor for factor in factors if not isinstance(factor, Sum)]
    if len(sums) != 1 or any(i in factor.free for factor in others for i in sums[0].indices):
        return term.indices, factors
    return (*term.indices, *sums[0].indices), (*others, *factors_of(sums[0].body))


def _all_digits(indices: Sequence[Var], factors: Sequence[Term]) -> Iterator[Digits]:
    """[(i - r) mod 3 = 0]; δ(i, 6k + 3j + r); [0 ≤ i - 6k - 3j ≤ 2], whose smallest digit has no name."""
    for condition in factors:
        match condition:
            case Indicator(form, modulus) if modulus and denominator(form) == 1:
                for rest, sign in affine_parts(form)[0]:
                    if rest in indices and rest.type == Range(modulus) and abs(sign) == 1:
                        whole = affine([(form, -sign), (rest, 1)])
                        if modulus == 2 and affine_parts(whole)[0] and affine_parts(whole)[0][0][1] < 0:
                            whole = affine([(whole, -1)])  # what is left is the same either way around
                        yield _divided(condition, whole, Digit(rest, 1, modulus), indices, factors)
            case Delta(left, right, Range()) if is_index(left) and is_index(right):
                form = affine([(left, 1), (right, -1)])
                for rest, sign in affine_parts(form)[0] if denominator(form) == 1 else ():
                    if rest in indices and abs(sign) == 1 and isinstance(rest.type, Range):
                        whole = affine([(form, -sign), (rest, 1)])
                        if isinstance(rest.type.size, int):
                            yield from _with_larger(
                                (condition,), whole, Digit(rest, 1, rest.type.size), indices, factors
                            )
    lattice = lattice_of(factors)
    for each in enclosed(factors):
        for room in sorted({each.room, loosest_room(each, lattice)}):
            yield from _with_larger(each.conditions, each.form, Digit(None, 1, room + 1), indices, factors)


def _divided(condition: Term, whole: Term, rest: Digit, indices: Sequence[Var], factors: Sequence[Term]) -> Digits:
    """What is left of an expression that is divided again and again, and the last quotient, which has no name."""
    conditions, digits = [condition], [rest]
    while found := _left_of_quotient(whole, digits, indices, factors):
        conditions.append(found[0])
        digits.append(found[1])
    return Digits(tuple(conditions), whole, (*digits, Digit(None, digits[-1].end or 1, None)))


def _left_of_quotient(
    whole: Term, digits: Sequence[Digit], indices: Sequence[Var], factors: Sequence[Term]
) -> tuple[Term, Digit] | None:
    """[((i - j)/2 - k) mod 3 = 0] and k, beside [(i - j) mod 2 = 0]; None where no quotient is divided again."""
    end = digits[-1].end or 1
    divided = affine([(whole, 1), *((d.var, -d.scale) for d in digits if d.var)])
    for index in indices:
        size = index.type.size if isinstance(index.type, Range) else None
        for sign in (1, -1):
            form = affine([(divided, Fraction(sign, end)), (index, -sign)])
            if isinstance(size, int) and Indicator(form, size) in factors:
                return Indicator(form, size), Digit(index, end, end * size)
    return None


def _with_larger(
    conditions: tuple[Term, ...], rest: Term, smallest: Digit, indices: Sequence[Var], factors: Sequence[Term]
) -> Iterator[Digits]:
    """Digits of which the larger ones are subtracted from an expression, as many as there are."""
    digits = [smallest]
    shares = {-share: index for index, share in affine_parts(rest)[0] if index in indices}
    while (scale := digits[-1].end) and (index := shares.get(scale)) and isinstance(index.type, Range):
        size = index.type.size
        digits.append(Digit(index, scale, scale * size if isinstance(size, int) else None))
    for count in range(len(digits), 1, -1):
        *smaller, largest = digits[:count]
        whole = affine([(rest, 1), *((d.var, d.scale) for d in (*smaller, largest) if d.var and d is not smallest)])
        known = [f for f in factors if isinstance(f, Indicator) and not f.modulus and f not in conditions]
        if _fills(whole, largest, known):
            yield Digits(conditions, whole, (*smaller, largest._replace(end=None)))


def _fills(whole: Term, largest: Digit, known: Sequence[Indicator]) -> bool:
    """Whether an expression is among the numbers that have such a largest digit."""
    assert largest.var
    assert isinstance(largest.var.type, Range)
    premises = [*premises_of(whole.free.union(*(f.free for f in known))), *(linear(f.form) for f in known)]
    beyond = affine([(size_form(largest.var.type.size), largest.scale), (whole, -1)], -1)
    return largest.var not in whole.free and all(implied(linear(side), premises) for side in (whole, beyond))


def read_at(factor: Term, gone: Collection[Var | None], of: Callable[[Term], Term]) -> Term:
    """A factor whose elements are read at integers in place of index expressions that mention some of the indices."""

    def at(place: Term) -> Term:
        if is_index(place):
            return place if place.free.isdisjoint(gone) else of(place)
        parts = [n for n in subterms(place) if isinstance(n, Coordinate) and not n.free.isdisjoint(gone)]
        return exchanged(place, {part: of(part.form) for part in parts if part.dtype is int})

    reads = [n for n in subterms(factor) if isinstance(n, Apply) and _is_held(n) and not n.free.isdisjoint(gone)]
    return exchanged(factor, {read: Apply(read.function, tuple(map(at, read.arguments))) for read in reads})


def _is_held(read: Apply) -> bool:
    """Whether what is read is an array, not a function of the real line or a map."""
    return isinstance(read.function, Var) and isinstance(type_of(read.function), Space)


class _Run(NamedTuple):
    """So often the digits of some scale and all larger ones up to an end: ⌊whole/scale⌋ mod end/scale."""

    times: int
    scale: int
    end: int | None


def _by_the_whole(found: Digits, place: Term) -> Term:
    """An index expression of digits by the whole, written shortest: so often whole − Σ_k s_k e_k = 0 may be added."""
    given = dict(affine_parts(place)[0])
    shares = [given.get(digit.var, 0) if digit.var else 0 for digit in found.digits]
    others = affine([(place, 1), *((d.var, -s) for d, s in zip(found.digits, shares, strict=True) if d.var)])
    without_whole = [Fraction(-given.get(var, 0)) / share for var, share in affine_parts(found.whole)[0]]
    without_digit = [Fraction(share) / digit.scale for digit, share in zip(found.digits, shares, strict=True)]
    written = []
    for times in (*without_whole, *without_digit, Fraction(0)):
        left = affine([(others, 1), (found.whole, times)])
        runs = _runs(found.digits, [tidy(s - times * d.scale) for d, s in zip(found.digits, shares, strict=True)])
        if denominator(left) == 1 and runs is not None:
            written.append((left, runs))
    if not written:
        return place
    left, runs = min(written, key=_symbols)
    return add(as_integer(left), *(mul(Number(run.times), _value(run, found.whole)) for run in runs))


def _runs(digits: Sequence[Digit], shares: Sequence[int | Fraction]) -> list[_Run] | None:
    """Digits with shares, those together that count as their scales do; None where a share is no integer."""
    runs: list[_Run] = []
    for digit, share in zip(digits, shares, strict=True):
        if not isinstance(share, int):
            return None
        if runs and runs[-1].end == digit.scale and share * runs[-1].scale == runs[-1].times * digit.scale:
            runs[-1] = runs[-1]._replace(end=digit.end)
        elif share:
            runs.append(_Run(share, digit.scale, digit.end))
    return runs


def _symbols(written: tuple[Term, Sequence[_Run]]) -> int:
    left, runs = written
    return len(affine_parts(left)[0]) + sum(1 + (run.scale > 1) + (run.end is not None) for run in runs)


def _value(run: _Run, whole: Term) -> Term:
    """⌊whole/scale⌋ mod end/scale as an integer, without what is known of it."""
    whole = _less_than(run.end, whole) if run.end else whole
    inner = _less_than(run.scale, whole)
    outer = affine([(whole, Fraction(1, run.scale)), (inner, Fraction(-1, run.scale))])
    if is_inside(inner, Range(run.scale)):
        return number_left(outer, run.end // run.scale) if run.end else as_integer(outer)
    rounded = add(as_integer(outer), function("floor_divide", as_integer(inner), Number(run.scale)))
    return function("remainder", rounded, Number(run.end // run.scale)) if run.end else rounded


def _less_than(divisor: int, form: Term) -> Term:
    """An index expression without multiples of a number."""
    parts, offset = affine_parts(form)
    return affine([(v, int(math.fmod(c, divisor))) for v, c in parts], int(math.fmod(offset, divisor)))
