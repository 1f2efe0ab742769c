"""Plane waves over the real line: where their phases cancel, an integral is Dirac's δ.

    ∫ exp(i a k x) exp(−i a k y) dk  =  2π/|a| δ(x, y)          so that Fourier after inverse Fourier is the identity

A factor exp(i a k x) is a wave in k where a is a number and x another index of the real line; the factors of a network
that mention k must all be waves in it, and two indices must be left in the sum of their phases.

Invariant: the law is Fourier's inversion; networks where it does not apply stay as they are.
"""

from __future__ import annotations

import math

from combdiff.ir import (
    Add,
    Conj,
    Coordinate,
    Mul,
    Number,
    Primitive,
    Real,
    SummedProduct,
    Term,
    Var,
    affine_parts,
    delta,
    number,
)

Phases = dict[Var, float]


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


def _mass(k: Var, waves: list[Term]) -> list[Term] | None:
    """What the integral over k of a product of waves is; None where it is not known."""
    phases: Phases = {}
    for wave in waves:
        inner, sign = (wave.body, -1) if isinstance(wave, Conj) else (wave, 1)
        if not (isinstance(inner, Primitive) and inner.name == "exp"):
            return None
        if not _add_phase(inner.arguments[0], k, sign, phases):
            return None
    left = {var: phase for var, phase in phases.items() if phase}
    if len(left) != 2:
        return None
    (x, a), (y, b) = left.items()
    if a != -b:
        return None
    return [number(2 * math.pi / abs(a)), delta(x, y)]


def _add_phase(exponent: Term, k: Var, sign: int, phases: Phases) -> bool:
    """Adds sign times the coefficients of `i k x` in an exponent to the phases; False where it has other parts."""
    if isinstance(exponent, Add):
        return all(_add_phase(part, k, sign, phases) for part in exponent.terms)
    if not isinstance(exponent, Mul) or k not in exponent.free:
        return False
    numbers = [factor for factor in exponent.factors if isinstance(factor, Number)]
    forms = [factor.form for factor in exponent.factors if isinstance(factor, Coordinate)]
    if len(numbers) != 1 or numbers[0].real or len(forms) != 2 or len(exponent.factors) != 3:
        return False
    waved, other = sorted(forms, key=lambda form: k not in form.free)
    (steps, start), (parts, offset) = affine_parts(waved), affine_parts(other)
    if start or offset or len(steps) != 1 or k in other.free:
        return False
    for var, coefficient in parts:
        phases[var] = phases.get(var, 0.0) + float(sign * coefficient * steps[0][1] * numbers[0].imag)
    return True
