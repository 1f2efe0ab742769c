"""Reads and writes along axes at affine positions, in words that the libraries share: `xp` is the library.

    _gathered(np, np.arange, x, ((0, (2,), 1, 0),), (3,))      x[0], x[2], x[4], zeros outside

Invariant: no kernel writes to its argument, nor looks at the values of an array.
"""

from __future__ import annotations

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
