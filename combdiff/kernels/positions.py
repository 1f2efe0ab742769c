"""Reads and sums along axes at affine positions, in words that the libraries share: `xp` is the library.

    _gathered(np, np.arange, x, ((0, (2,), 1, 0),), (3,))      x[0], x[2], x[4], zeros outside

Invariant: no kernel writes to its argument, nor looks at the values of an array.
"""

from __future__ import annotations

import math
from typing import Any


def _gathered(xp: Any, arange: Any, array: Any, axes: Any, shape: Any) -> Any:
    """array, of one element at least, at positions (start + steps · t) / divisor along each axis; zeros elsewhere.

    `arange` makes the positions where the array is.
    """
    grid = [
        arange(size).reshape([-1 if n == axis else 1 for n in range(len(shape))]) for axis, size in enumerate(shape)
    ]
    inside, index = True, []
    for size, (start, steps, divisor, wrap) in zip(array.shape, axes, strict=True):
        position = sum((step * t for step, t in zip(steps, grid, strict=True)), start + arange(1)[0])
        inside = inside & (position % divisor == 0)
        position = position // divisor % size if wrap else position // divisor
        inside = inside & (position >= 0) & (position < size)
        index.append(xp.clip(position, 0, size - 1))
    return xp.where(inside, array[tuple(index)], 0)


def _sums_up_to(xp: Any, array: Any, axis: Any, sign: Any, bound: Any) -> Any:
    """0 and the sums of the first 1, 2, … elements along an axis, from its end where the sign is positive.

    With them where among these the sum of the positions l with sign·l + bound ≥ 0 is, for each bound.
    """
    size = array.shape[axis]
    if sign > 0:
        array = xp.flip(array, (axis,))
    none = xp.zeros_like(array.sum(axis))[(slice(None),) * axis + (None,)]
    return xp.concatenate([none, xp.cumsum(array, axis)], axis), xp.clip(bound + (size if sign > 0 else 1), 0, size)


def _maxima_up_to(xp: Any, array: Any, axis: Any, sign: Any, bound: Any) -> Any:
    """−∞ and the largest of the first 1, 2, … elements along an axis, from its end where the sign is positive.

    With them where among these the largest over the positions l with sign·l + bound ≥ 0 is, for each bound.
    """
    size = array.shape[axis]
    array = xp.moveaxis(xp.flip(array, (axis,)) if sign > 0 else array, axis, 0)

    def larger(one: Any, other: Any) -> Any:
        return (xp.maximum(one[0], other[0]),)

    maxima = xp.concatenate([array[:0].sum(0)[None] - math.inf, _so_far(xp, larger, (array,))[0]], 0)
    return xp.moveaxis(maxima, 0, axis), xp.clip(bound + (size if sign > 0 else 1), 0, size)


def _exponentials_up_to(xp: Any, exponent: Any, weight: Any, axis: Any, sign: Any, bound: Any) -> Any:
    """Σ_l weight[l]·exp(exponent[l] − m) over the first 0, 1, … elements along an axis, m the largest exponent of them.

    And these, and places among them, as `_maxima_up_to` has them. The sum so far is multiplied by exp(m − m′) where m
    grows to m′.
    """
    maxima, places = _maxima_up_to(xp, exponent, axis, sign, bound)

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
    return xp.moveaxis(xp.concatenate([sums[:0].sum(0)[None], sums], 0), 0, axis), maxima, places


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


def _folded(xp: Any, zeros: Any, array: Any, stride: Any, start: Any, size: Any) -> Any:
    """The sums of the elements (i, j, …) at stride·i + j + start along one axis of that size, for the first two.

    `zeros` makes arrays of a shape, of the type of the array and where it is.
    """
    if stride < 0:
        array, stride, start = xp.flip(array, (0,)), -stride, start + stride * (array.shape[0] - 1)

    def placed(first: Any) -> Any:  # the columns from there on that lie side by side
        part = array[:, first : first + stride]
        count, width, *rest = part.shape
        if stride > width:
            part = xp.concatenate([part, zeros((count, stride - width, *rest))], 1)
        place = start + first
        row = part.reshape((count * stride, *rest))[max(0, -place) : max(0, size - place)]
        before = min(max(0, place), size)
        after = size - before - row.shape[0]
        return xp.concatenate([zeros((before, *rest)), row, zeros((after, *rest))], 0)

    return sum((placed(first) for first in range(stride, array.shape[1], stride)), placed(0))
