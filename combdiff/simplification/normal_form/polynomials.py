"""Polynomials divided without rest, and their square roots.

    (x² − y²) / (x − y)   =   x + y          (1 + 2 e + e²) / (1 + e)   =   1 + e
    √(x² − 2 x y + y²)    =   x − y

A polynomial is a list of products, each a number and the powers of its bases. Long division takes the greatest product
that is left, in the order of its exponents, base by base; so does the root, by twice what there is of it.

Invariant: the quotient times the divisor is the dividend, and the root times itself what it is of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import isqrt

from combdiff.ir import Number, Term, tidy
from combdiff.simplification.egraph.extraction import order_key

Product = tuple[Number, Mapping[Term, int | Fraction]]
Monomial = tuple[int, ...]
Polynomial = dict[Monomial, Fraction]  # the number of each monomial


def exact_quotient(dividend: Sequence[Product], divisor: Sequence[Product], most: int) -> list[Product] | None:
    """The quotient of two polynomials, of so many terms at most; None if there is a rest, or a number is not exact."""
    bases = sorted({base for _, powers in (*dividend, *divisor) for base in powers}, key=order_key)
    left, below = _coefficients(dividend, bases), _coefficients(divisor, bases)
    if left is None or not below:
        return None
    lead, found = max(below), Polynomial()
    while left:
        top = max(left)
        times = tuple(n - m for n, m in zip(top, lead, strict=True))
        if min(times, default=0) < 0 or len(found) == most:
            return None
        found[times] = factor = left[top] / below[lead]
        _subtract(left, below, times, factor)
    return _products(found, bases)


def exact_root(square: Sequence[Product], most: int) -> list[Product] | None:
    """The polynomial, of so many terms at most, of which another is the square; None if there is none."""
    bases = sorted({base for _, powers in square for base in powers}, key=order_key)
    left = _coefficients(square, bases)
    if not left:
        return None
    lead = max(left)
    first = _root(left[lead])
    if first is None or any(n % 2 for n in lead):
        return None
    half = tuple(n // 2 for n in lead)
    found = {half: first}
    _subtract(left, {half: first}, half, first)
    while left:
        top = max(left)
        times = tuple(n - m for n, m in zip(top, half, strict=True))
        if min(times, default=0) < 0 or times >= half or len(found) == most:
            return None
        factor = left[top] / (2 * first)
        _subtract(left, found, times, 2 * factor)
        _subtract(left, {times: factor}, times, factor)
        found[times] = factor
    return _products(found, bases)


def _root(number: Fraction) -> Fraction | None:
    """The root of a fraction, where it is one."""
    if number < 0:
        return None
    root = Fraction(isqrt(number.numerator), isqrt(number.denominator))
    return root if root * root == number else None


def _subtract(left: Polynomial, what: Polynomial, times: Monomial, factor: Fraction) -> None:
    """Takes a multiple of a polynomial from another, which is changed."""
    for monomial, number in what.items():
        at = tuple(n + m for n, m in zip(monomial, times, strict=True))
        left[at] = left.get(at, Fraction(0)) - factor * number
        if not left[at]:
            del left[at]


def _products(polynomial: Polynomial, bases: Sequence[Term]) -> list[Product]:
    return [
        (Number(tidy(number)), {base: n for base, n in zip(bases, monomial, strict=True) if n})
        for monomial, number in polynomial.items()
    ]


def _coefficients(polynomial: Sequence[Product], bases: Sequence[Term]) -> Polynomial | None:
    """The numbers of a polynomial by the exponents of the bases; None where one is not exact, or no power is whole."""
    found: Polynomial = {}
    for number, powers in polynomial:
        exponents = [powers.get(base, 0) for base in bases]
        if not number.exact or number.imag or any(n < 0 or n != int(n) for n in exponents):
            return None
        monomial = tuple(map(int, exponents))
        found[monomial] = found.get(monomial, Fraction(0)) + Fraction(number.real)
    return {monomial: number for monomial, number in found.items() if number}
