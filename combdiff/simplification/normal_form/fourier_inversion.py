"""Plane waves over the real line: where their phases cancel, an integral is Dirac's δ.

    ∫ exp(i a k x) exp(−i a k y) dk  =  2π/|a| δ(x, y)          so that Fourier after inverse Fourier is the identity

A factor exp(i a k x) is a wave in k where a is a number and x another index of the real line; the factors of a network
that mention k must all be waves in it, and two indices must be left in the sum of their phases.

Invariant: the law is Fourier's inversion; networks where it does not apply stay as they are.
"""

from __future__ import annotations

import math

from combdiff.ir import ONE, Real, SummedProduct, Term, Var, Wave, affine_parts, delta, number, waves_of


def collapsed(product: SummedProduct) -> SummedProduct:
    """Σ of a product with waves integrated to δ's."""
    for k in product.indices:
        if not isinstance(k.type, Real):
            continue
        waves = [factor for factor in product.factors if k in factor.free]
        mass = _mass(k, waves)
        if mass is not None:
            left = tuple(i for i in product.indices if i is not k)
            return collapsed(SummedProduct(left, (*(f for f in product.factors if k not in f.free), *mass)))
    return product


def _mass(k: Var, factors: list[Term]) -> list[Term] | None:
    """What the integral over k of a product of waves is; None where it is not known."""
    phases: dict[Var, float] = {}
    for factor in factors:
        waves, left = waves_of(factor)
        if not waves or left is not ONE or not all(_add_phase(wave, k, phases) for wave in waves):
            return None
    left_over = {var: phase for var, phase in phases.items() if phase}
    if len(left_over) != 2:
        return None
    (x, a), (y, b) = left_over.items()
    if a != -b:
        return None
    return [number(2 * math.pi / abs(a)), delta(x, y)]


def _add_phase(wave: Wave, k: Var, phases: dict[Var, float]) -> bool:
    """Adds the coefficients of `i k x` in a wave to the phases; False where it has other parts."""
    waved, other = sorted((wave.one, wave.other), key=lambda form: k not in form.free)
    (steps, start), (parts, offset) = affine_parts(waved), affine_parts(other)
    if start or offset or len(steps) != 1 or k in other.free or wave.points is not ONE:
        return False
    for var, coefficient in parts:
        phases[var] = phases.get(var, 0.0) + float(coefficient * steps[0][1] * wave.radians)
    return True
