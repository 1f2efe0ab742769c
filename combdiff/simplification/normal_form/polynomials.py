"""Polynomials divided without rest.

    (x² − y²) / (x − y)   =   x + y          (1 + 2 e + e²) / (1 + e)   =   1 + e

A polynomial is a list of products, each a number and the powers of its bases. Long division takes the greatest product
that is left, in the order of its exponents, base by base.

Invariant: the quotient times the divisor is the dividend.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from combdiff.ir import Number, Term, tidy
from combdiff.simplification.egraph.extraction import order_key

Product = tuple[Number, Mapping[Term, int | Fraction]]
Monomial = tuple[int, ...]


def exact_quotient(dividend: Sequence[Product], divisor: Sequence[Product], most: int) -> list[Product] | None:
    """The quotient of two polynomials, of so many terms at most; None if there is a rest, or a number is not exact."""
    bases = sorted({base for _, powers in (*dividend, *divisor) for base in powers}, key=order_key)
    left, below = _coefficients(dividend, bases), _coefficients(divisor, bases)
    if left is None or not below:
        return None
    lead, found = max(below), dict[Monomial, Fraction]()
    while left:
        top = max(left)
        times = tuple(n - m for n, m in zip(top, lead, strict=True))
        if min(times, default=0) < 0 or len(found) == most:
            return None
        found[times] = factor = left[top] / below[lead]
        for monomial, number in below.items():
            at = tuple(n + m for n, m in zip(monomial, times, strict=True))
            left[at] = left.get(at, Fraction(0)) - factor * number
            if not left[at]:
                del left[at]
    return [
        (Number(tidy(number)), {base: n for base, n in zip(bases, monomial, strict=True) if n})
        for monomial, number in found.items()
    ]


def _coefficients(polynomial: Sequence[Product], bases: Sequence[Term]) -> dict[Monomial, Fraction] | None:
    """The numbers of a polynomial by the exponents of the bases; None where one is not exact, or no power is whole."""
    found: dict[Monomial, Fraction] = {}
    for number, powers in polynomial:
        exponents = [powers.get(base, 0) for base in bases]
        if not number.exact or number.imag or any(n < 0 or n != int(n) for n in exponents):
            return None
        monomial = tuple(map(int, exponents))
        found[monomial] = found.get(monomial, Fraction(0)) + Fraction(number.real)
    return {monomial: number for monomial, number in found.items() if number}
