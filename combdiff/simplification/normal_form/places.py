"""Indices as numbers: how many places bounds leave, and sums of several as one.

    Σ_{i<n} [i ≥ d] x[d]      becomes   (n − d) x[d]
    (i + 1) − i               becomes   1

Invariant: the value is unchanged, at every index.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import lcm

from combdiff.ir import (
    Add,
    Coordinate,
    Indicator,
    Number,
    Range,
    SummedProduct,
    Term,
    Var,
    add,
    affine,
    affine_parts,
    coordinate,
    factors_of,
    indicator,
    mul,
    number_and_rest,
    size_form,
)
from combdiff.polyhedra import implied, linear, premises_of, symbol
from combdiff.simplification.normal_form.conditions import is_counted


def with_places_joined(sum_: Term) -> Term:
    """A sum in which counted indices that stand as numbers are one index expression where some cancel.

    (i + 1) − i is 1, and −1 − (i + 1) is −(i + 2); a difference of two, i − j, stays a sum, whose sign goes in its
    square.
    """
    parts = [(each, *number_and_rest(each)) for each in sum_.terms] if isinstance(sum_, Add) else []
    places = [(each, number, rest) for each, number, rest in parts if isinstance(rest, Coordinate)]
    places = [p for p in places if p[1].exact and not p[1].imag and is_counted(p[2].form)]
    moved = any(affine_parts(rest.form)[1] for *_, rest in places)
    numbers = [each for each, *_ in parts if moved and isinstance(each, Number) and _is_whole(each)]
    if len(places) < 2 and not numbers:
        return sum_
    scale = lcm(*(Fraction(number.real).denominator for _, number, _ in places))
    form = affine(
        [(rest.form, Fraction(number.real * scale)) for _, number, rest in places],
        sum(Fraction(each.real * scale) for each in numbers),
    )
    if not numbers and len(affine_parts(form)[0]) == sum(len(affine_parts(rest.form)[0]) for *_, rest in places):
        return sum_
    kind = int if all(rest.dtype is int for *_, rest in places) else float
    joined = mul(Number(Fraction(1, scale)), coordinate(form, kind))
    taken = {*numbers, *(place[0] for place in places)}
    return add(*(each for each, *_ in parts if each not in taken), joined)


def _is_whole(number: Number) -> bool:
    return number.exact and not number.imag and Fraction(number.real).denominator == 1


def without_counted_places(product: SummedProduct) -> SummedProduct:
    """The product with the number of places for each summed index that stands in bounds alone: Σ_i [i ≥ d] is n − d.

    Where there may be none, a condition says that there are. An index of which either of two bounds may be the nearer
    stays, and one in steps.
    """
    for index in product.indices:
        bounds = [factor for factor in product.factors if index in factor.free]
        others = [factor for factor in product.factors if index not in factor.free]
        count = _number_of_places(index, bounds, others) if bounds and all(map(_bounds, bounds)) else None
        if count is not None:
            left = tuple(each for each in product.indices if each is not index)
            return without_counted_places(SummedProduct(left, (*others, *factors_of(count))))
    return product


def _number_of_places(index: Var, bounds: Sequence[Term], beside: Iterable[Term]) -> Term | None:
    """How many places are left of a counted index, between one bound from below and one from above at most."""
    if not isinstance(index.type, Range) or len(bounds) > 2:
        return None
    ends = {1: affine([]), -1: affine([(size_form(index.type.size), 1)], -1)}
    others = {var for bound in bounds for var in bound.free if var is not index}
    known = [*premises_of(sorted(others, key=symbol)), *(linear(_form(f)) for f in beside if _bounds(f))]
    found: dict[int, Term] = {}
    for bound in bounds:
        sign = dict(affine_parts(_form(bound))[0])[index]
        if abs(sign) != 1 or sign in found:
            return None
        found[int(sign)] = place = affine([(_form(bound), -sign), (index, 1)])
        if not implied(linear(affine([(place, sign), (ends[int(sign)], -sign)])), known):
            return None
    first, last = (found.get(sign, ends[sign]) for sign in (1, -1))
    count = affine([(last, 1), (first, -1)], 1)
    number = coordinate(count, int)
    return number if implied(linear(count), known) else mul(indicator(count), number)


def _form(bound: Term) -> Term:
    assert isinstance(bound, Indicator)
    return bound.form


def _bounds(factor: Term) -> bool:
    return isinstance(factor, Indicator) and not factor.modulus and is_counted(factor.form)
