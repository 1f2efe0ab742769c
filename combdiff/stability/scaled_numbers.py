"""Numbers as exp(E)·r or s^k·r: what may over- or underflow is kept apart, and cancels before anything is evaluated.

    exp(x) / exp(y)     = exp(x − y)                E = {x: 1, y: −1},  r = 1
    x / sqrt(Σ x²)      = (x/s) / sqrt(Σ (x/s)²)    {s: 1 − 1},  s a power of 2 near the largest |x|

Invariant: the factors of equal terms are added up, and none is 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from combdiff.ir import ONE, Guard, Number, Scalar, Term, Var, factors_of, function, mul, substitute
from combdiff.records import dataclass

Exponent = Mapping[Term, Scalar]
"""A sum as multiples of terms; the term 1 has what is a number."""


@dataclass(frozen=True)
class ScaledNumber:
    """exp(exponent)·rest."""

    exponent: Exponent
    rest: Term

    def __mul__(self, other: ScaledNumber) -> ScaledNumber:
        """The product; a condition of both is one, and stands among the factors of the rest."""
        own = factors_of(self.rest)
        more = [f for f in factors_of(other.rest) if not (isinstance(f, Guard) and f in own)]
        return ScaledNumber(plus(self.exponent, other.exponent), mul(*own, *more))

    def to(self, power: Number) -> ScaledNumber:
        """The number to a real power; a condition to a positive power is itself, and still seen to be one."""
        factors = factors_of(self.rest)
        guards = [f for f in factors if isinstance(f, Guard) and power.real > 0]
        others = mul(*(f for f in factors if f not in guards))
        rest = mul(*guards, others if others is ONE else function("power", others, power))
        return ScaledNumber(times(self.exponent, power.real), rest)


def plus(one: Exponent, other: Exponent) -> Exponent:
    """The sum of two."""
    if not other:
        return one
    both = dict(one)
    for atom, factor in other.items():
        both[atom] = both.get(atom, 0) + factor
    return {atom: factor for atom, factor in both.items() if factor}


def times(exponent: Exponent, factor: Scalar) -> Exponent:
    """A multiple."""
    return {atom: own * factor for atom, own in exponent.items()}


def substituted(exponent: Exponent, replacement: Mapping[Var, Term]) -> Exponent:
    """The same at other indices, or of other tensors."""
    found: Exponent = {}
    for atom, factor in exponent.items():
        found = plus(found, {substitute(atom, replacement): factor})
    return found


def common_part(exponents: Sequence[Exponent]) -> Exponent:
    """What all exponents have as a part."""
    found: dict[Term, Scalar] = {}
    for atom in exponents[0]:
        factors = [exponent.get(atom, 0) for exponent in exponents]
        if all(factor > 0 for factor in factors) or all(factor < 0 for factor in factors):
            found[atom] = min(factors) if factors[0] > 0 else max(factors)
    return found
