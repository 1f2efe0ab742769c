"""Sums and largest elements up to each position along an axis, in words that the libraries share: `xp` is the library.

    _running(np, x, 0, -1, np.arange(3))      x[0], x[0] + x[1], x[0] + x[1] + x[2]

Invariant: no kernel writes to its argument, nor looks at the values of an array.
"""

from __future__ import annotations

import math
from typing import Any


def _running(xp: Any, array: Any, axis: Any, sign: Any, bound: Any) -> Any:
    """The sums of array over the positions l along an axis with sign·l + bound ≥ 0, for each bound in its place."""
    return _up_to(xp, _sums(xp, array, axis, sign), axis, sign, bound)


def _running_max(xp: Any, array: Any, axis: Any, sign: Any, bound: Any) -> Any:
    """The largest of array over the positions l along an axis with sign·l + bound ≥ 0, −∞ of none."""
    return _up_to(xp, _maxima(xp, array, axis, sign), axis, sign, bound)


def _running_exponentials(
    xp: Any, exponent: Any, shift: Any, weight: Any, axis: Any, sign: Any, bound: Any, low: Any
) -> Any:
    """Σ_l weight[l]·exp(exponent[l] + shift) over the positions l along an axis with sign·l + bound ≥ 0.

    The largest exponent is taken as no larger than 0 where `low` is true, so that it is where both are infinite.
    """
    sums, maxima = _exponentials(xp, exponent, weight, axis, sign)
    top = _up_to(xp, maxima, axis, sign, bound) + shift
    return _up_to(xp, sums, axis, sign, bound) * xp.exp(xp.clip(top, None, 0) if low else top)


def _log_sums_so_far(xp: Any, array: Any, axis: Any) -> Any:
    """log Σ exp of the first 1, 2, … elements along an axis."""

    def both(one: Any, other: Any) -> Any:
        return (xp.logaddexp(one[0], other[0]),)

    return xp.moveaxis(_so_far(xp, both, (xp.moveaxis(array, axis, 0),))[0], 0, axis)


def _up_to(xp: Any, found: Any, axis: Any, sign: Any, bound: Any) -> Any:
    """What is found of the first 0, 1, 2, … elements along an axis, from its end where the sign is positive.

    Of these, what is found over the positions l with sign·l + bound ≥ 0, for each bound.
    """
    return found[(slice(None),) * axis + (_counted(xp, found.shape[axis] - 1, sign, bound),)]


def _counted(xp: Any, size: Any, sign: Any, bound: Any) -> Any:
    """How many of as many elements are at positions l with sign·l + bound ≥ 0, which are the last where sign > 0."""
    return xp.clip(bound + (size if sign > 0 else 1), 0, size)


def _sums(xp: Any, array: Any, axis: Any, sign: Any) -> Any:
    """0 and the sums of the first 1, 2, … elements along an axis, from its end where the sign is positive."""
    if sign > 0:
        array = xp.flip(array, (axis,))
    none = xp.zeros_like(array.sum(axis))[(slice(None),) * axis + (None,)]
    return xp.concatenate([none, xp.cumsum(array, axis)], axis)


def _maxima(xp: Any, array: Any, axis: Any, sign: Any) -> Any:
    """−∞ and the largest of the first 1, 2, … elements along an axis, from its end where the sign is positive."""
    array = xp.moveaxis(xp.flip(array, (axis,)) if sign > 0 else array, axis, 0)

    def larger(one: Any, other: Any) -> Any:
        return (xp.maximum(one[0], other[0]),)

    return xp.moveaxis(
        xp.concatenate([array[:0].sum(0)[None] - math.inf, _so_far(xp, larger, (array,))[0]], 0), 0, axis
    )


def _exponentials(xp: Any, exponent: Any, weight: Any, axis: Any, sign: Any) -> Any:
    """Σ_l weight[l]·exp(exponent[l] − m) over the first 0, 1, … elements along an axis, m the largest exponent of them.

    And these. The sum so far is multiplied by exp(m − m′) where m grows to m′.
    """
    maxima = _maxima(xp, exponent, axis, sign)

    def first(array: Any) -> Any:  # with that axis as the first, in the order in which the sums have it
        return xp.moveaxis(xp.flip(array, (axis,)) if sign > 0 else array, axis, 0)

    def power(one: Any, other: Any) -> Any:  # exp(one − other), 1 where both are infinite
        same = one == other
        return xp.exp(xp.where(same, 0, one) - xp.where(same, 0, other))

    def both(one: Any, other: Any) -> Any:
        return one[0] * other[0], other[0] * one[1] + other[1]

    top = xp.moveaxis(maxima, axis, 0)
    terms = power(first(exponent), top[1:]) * (first(weight) if hasattr(weight, "shape") else weight)
    sums = _so_far(xp, both, (power(top[:-1], top[1:]), terms))[1]
    return xp.moveaxis(xp.concatenate([sums[:0].sum(0)[None], sums], 0), 0, axis), maxima


def _so_far(xp: Any, both: Any, parts: Any) -> Any:
    """What the first 1, 2, … elements of arrays along their first axis are together, where `both` joins two of them.

    Neighbours are joined to one element, and so on with these, half as many.
    """
    size = parts[0].shape[0]
    if size < 2:
        return parts
    odd = _so_far(xp, both, both([part[: size - 1 : 2] for part in parts], [part[1::2] for part in parts]))
    even = both([part[: (size - 1) // 2] for part in odd], [part[2::2] for part in parts])

    def joined(part: Any, one: Any, other: Any) -> Any:  # those at 0, 2, … and those at 1, 3, …
        one, count = xp.concatenate([part[:1], one], 0), other.shape[0]
        row = xp.stack([one[:count], other], 1).reshape((2 * count, *other.shape[1:]))
        return xp.concatenate([row, one[count:]], 0)

    return [joined(*three) for three in zip(parts, even, odd, strict=True)]
