"""Derivatives of complex maps from real ones: two sweeps, with the units 1 and i, give ∂f/∂z and ∂f/∂z̄.

    P f (x, (i ↦ δ(i, o))) = conj(∂f[o]/∂z) + ∂f[o]/∂z̄          T f (x, (j ↦ δ(j, d))) = ∂f/∂z[d] + ∂f/∂z̄[d]

With the unit i in place of 1 the two halves change their relative sign. For real points and results one sweep is
enough.

Invariant: a `Linear` map k ↦ direct·k + mirrored·k̄ has no mirrored part where k is real.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from combdiff.domains import Space
from combdiff.indexing import delta
from combdiff.substitution import Names
from combdiff.terms import ONE, ZERO, Lambda, Number, Term, Var, add, conj, mul

IMAGINARY_UNIT = Number(0, 1)
HALF = Number(Fraction(1, 2))
Sweep = Callable[[Number], Term]


@dataclass(frozen=True)
class Linear:
    """Elements of ∂/∂z and ∂/∂z̄; the second is 0 for a real z."""

    direct: Term
    mirrored: Term = ZERO


def unit(names: Names, space: Space, location: tuple[Var, ...], number: Number) -> Term:
    """The tensor that is `number` at a location and 0 elsewhere."""
    indices = names.indices(space.axes)
    masses = [delta(i, o, axis) for i, o, axis in zip(indices, location, space.axes, strict=True)]
    return Lambda(indices, mul(number, *masses)) if indices else number


def by_pullback(pulled: Sweep, complex_point: bool, complex_result: bool) -> Linear:
    """The derivative from pullbacks of the unit cotangents."""
    one = pulled(ONE)
    if not complex_point:
        return Linear(add(one, mul(IMAGINARY_UNIT, pulled(IMAGINARY_UNIT))) if complex_result else one)
    if not complex_result:
        return Linear(mul(HALF, conj(one)), mul(HALF, one))
    turned = pulled(IMAGINARY_UNIT)
    return Linear(conj(_half_sum(one, turned, -1)), _half_sum(one, turned, 1))


def by_pushforward(pushed: Sweep, complex_point: bool) -> Linear:
    """The derivative from pushforwards of the unit tangents."""
    one = pushed(ONE)
    if not complex_point:
        return Linear(one)
    turned = pushed(IMAGINARY_UNIT)
    return Linear(_half_sum(one, turned, -1), _half_sum(one, turned, 1))


def _half_sum(one: Term, turned: Term, sign: int) -> Term:
    """(one ± i·turned) / 2."""
    return mul(HALF, add(one, mul(Number(0, sign), turned)))
