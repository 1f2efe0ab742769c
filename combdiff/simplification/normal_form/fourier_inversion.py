"""Plane waves: where their phases cancel, a sum over a whole period is a δ, and an integral Dirac's.

    ∫ exp(i a k x) exp(−i a k y) dk              =  2π/|a| δ(x, y)
    Σ_{k<n} exp(2π i k x / n) exp(−2π i k y / n)  =  n δ(x, y)
    Σ_{k<n} exp(2π i k (x + 1 − y) / n)           =  n δ(y, (x + 1) mod n)

so that Fourier after inverse Fourier is the identity. A factor exp(i a k x) is a wave in k where a is a number and x
another index; the factors of a network that mention k must all be waves in it, and two indices be left in the sum of
their phases. Of three, as in Σ_k exp(2π i k (x − y − z) / n), the δ would be a convolution: more work than transforms.

Invariant: the law is Fourier's inversion; networks where it does not apply stay as they are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from combdiff.ir import (
    ONE,
    Real,
    Size,
    SummedProduct,
    Term,
    Var,
    Wave,
    Whole,
    affine,
    affine_parts,
    counts,
    delta,
    equal_modulo,
    is_at_most,
    number,
    number_of_values,
    size_of_axis,
    transform_along,
    waves_of,
)


def collapsed(product: SummedProduct) -> SummedProduct:
    """Σ of a product with waves summed to δ's."""
    for k in product.indices:
        inside = [factor for factor in product.factors if k in factor.free]
        waves = _waves(inside)
        if not waves:
            continue
        mass = _mass(k, waves) if isinstance(k.type, Real) else _period(k, waves, product.indices)
        if mass is not None:
            left = tuple(i for i in product.indices if i is not k)
            return collapsed(SummedProduct(left, (*(f for f in product.factors if k not in f.free), *mass)))
    return product


def _waves(factors: Sequence[Term]) -> list[Wave]:
    """The waves that a product consists of; none where it has other factors."""
    parts = [waves_of(factor) for factor in factors]
    return [wave for waves, _ in parts for wave in waves] if all(left is ONE for _, left in parts) else []


def _mass(k: Var, waves: Sequence[Wave]) -> list[Term] | None:
    """What the integral over k of a product of waves is; None where it is not known."""
    phases: dict[Var, float] = {}
    if not all(_add_phase(wave, k, phases) for wave in waves):
        return None
    left = {var: phase for var, phase in phases.items() if phase}
    if len(left) != 2:
        return None
    (x, a), (y, b) = left.items()
    if a != -b:
        return None
    return [number(2 * math.pi / abs(a)), delta(x, y)]


def _period(k: Var, waves: Sequence[Wave], summed: Sequence[Var]) -> list[Term] | None:
    """What the sum over k of a product of waves over one period is; None where it is not known."""
    found, size = transform_along(k, waves), number_of_values(k)
    if found is None or found.alone or found.points != size:
        return None
    parts = [(var, step) for var, step in affine_parts(found.position)[0] if not isinstance(var.type, Whole)]
    if not parts or len(parts) > 2 or any(abs(step) != 1 for _, step in parts):
        return None
    mass = _congruence(found.position, parts, size, summed)
    if mass is None:
        return None
    return [size_of_axis(k.type), mass, *(wave.term for wave in found.beside)]  # type: ignore[arg-type]


def _congruence(position: Term, parts: Sequence[tuple[Var, Any]], size: Size, summed: Sequence[Var]) -> Term | None:
    """The δ of a position that is 0 modulo a size, by one of its indices, a summed one if there is one."""
    for var, step in sorted(parts, key=lambda part: part[0] not in summed):
        if counts(var, size):
            return equal_modulo(var, affine([(var, 1), (position, -step)]), size)
    one, other = parts[0][0], parts[-1][0]
    many = number_of_values(one)
    is_difference = position in (affine([(one, sign), (other, -sign)]) for sign in (1, -1))
    nearer = one.type == other.type and many is not None and is_at_most(many, size)
    return delta(one, other) if is_difference and nearer else None


def _add_phase(wave: Wave, k: Var, phases: dict[Var, float]) -> bool:
    """Adds the coefficients of `i k x` in a wave to the phases; False where it has other parts."""
    waved, other = sorted((wave.one, wave.other), key=lambda form: k not in form.free)
    (steps, start), (parts, offset) = affine_parts(waved), affine_parts(other)
    if start or offset or [var for var, _ in steps] != [k] or k in other.free or wave.points is not ONE:
        return False
    for var, coefficient in parts:
        phases[var] = phases.get(var, 0.0) + float(coefficient * steps[0][1] * wave.radians)
    return True
