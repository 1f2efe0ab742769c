"""Plane waves: exponentials of an imaginary number times two index expressions.

    exp(−2π i j k / n)        radians −2π, by j and by k, over n points
    exp(i a k x)*             radians −a, by k and by x, on the real line

Invariant: the product of the waves of a factor and of what is left of it is the factor.
"""

from __future__ import annotations

from typing import cast

from combdiff.ir.domains import Whole
from combdiff.ir.indices import Affine, Coordinate, coordinate
from combdiff.ir.primitives import function, power
from combdiff.ir.products import factors_of
from combdiff.ir.terms import MINUS_ONE, ONE, Add, Conj, Number, Primitive, Term, add, mul
from combdiff.records import dataclass


@dataclass(frozen=True)
class Wave:
    """exp(i · radians · one · other / points): index expressions, and a named number of points or 1."""

    radians: float
    one: Term
    other: Term
    points: Term = ONE

    @property
    def term(self) -> Term:
        """The wave as a term."""
        below = () if self.points is ONE else (power(self.points, MINUS_ONE),)
        turned = mul(Number(0, self.radians), coordinate(self.one), coordinate(self.other), *below)
        return function("exp", turned)


def waves_of(factor: Term) -> tuple[tuple[Wave, ...], Term]:
    """The waves that a factor is the product of, and what is left of it; none and itself where it is no exponential."""
    inner, sign = (factor.body, -1) if isinstance(factor, Conj) else (factor, 1)
    if not (isinstance(inner, Primitive) and inner.name == "exp"):
        return (), factor
    exponent = inner.arguments[0]
    parts = exponent.terms if isinstance(exponent, Add) else (exponent,)
    found = [(part, _wave(part, sign)) for part in parts]
    waves = tuple(wave for _, wave in found if wave)
    if not waves:
        return (), factor
    left = [part for part, wave in found if not wave]
    rest = function("exp", add(*left)) if left else ONE
    return waves, Conj(rest) if left and sign < 0 else rest


def _wave(exponent: Term, sign: int) -> Wave | None:
    """A term of an exponent as a wave, by one index expression or by two."""
    number, points, forms = ONE, cast(Term, ONE), list[Term]()
    for factor in factors_of(exponent):
        match factor:
            case Number():
                number = factor
            case Coordinate(form=form) if not _is_size(form):
                forms.append(form)
            case Primitive(name="power", arguments=(Coordinate(form=form) as size, exponent)) if (
                exponent is MINUS_ONE and points is ONE and _is_size(form)
            ):
                points = size
            case _:
                return None
    if number.real or not number.imag or not 1 <= len(forms) <= 2:
        return None
    one, other = (*forms, Affine((), 1))[:2]
    return Wave(float(sign * number.imag), one, other, points)


def _is_size(form: Term) -> bool:
    return all(isinstance(var.type, Whole) for var in form.free)
