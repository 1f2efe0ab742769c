"""Plain NumPy helpers that emitted source carries with it: reading arrays at affine positions, and solvers.

    _view(x, ((-1, (1, 1), 0),), (4, 3))          x of 5 elements
    = the 4 × 3 array of x[i + k − 1], a strided view of x with a 0 put before and after

Each axis of the array is given by `(start, steps, wrap)` (with a divisor for `_gather`): it is read at
`start + Σ steps[n]·t[n]`, modulo its length where `wrap` is set; outside the array there are zeros.

Invariant: a helper never writes to its argument; reading never fails, whatever the sizes are.
"""

from __future__ import annotations

from combdiff.lowering.solvers import SOLVERS

_VIEW = '''\
def _view(array, axes, shape):
    """array at positions start + steps · t (wrapped or not) along each axis; zeros outside; a view if it can be."""
    if 0 in shape:
        return np.zeros(shape, array.dtype)
    origin = []
    for axis, (start, steps, wrap) in enumerate(axes):
        size = array.shape[axis]
        low = start + sum(min(0, step * (n - 1)) for step, n in zip(steps, shape))
        high = start + sum(max(0, step * (n - 1)) for step, n in zip(steps, shape))
        if low < 0 or high >= size:
            if wrap and size:
                array = array.take(np.arange(low, high + 1) % size, axis)
            else:
                first, total = max(low, 0), high + 1 - low
                inner = array[(slice(None),) * axis + (slice(first, max(high + 1, first)),)]
                before = min(first - low, total)
                after = total - before - inner.shape[axis]
                array = np.pad(inner, [(before, after) if n == axis else (0, 0) for n in range(array.ndim)])
            start -= low
        origin.append(slice(start, None))
    strides = [sum(steps[n] * stride for (_, steps, _), stride in zip(axes, array.strides)) for n in range(len(shape))]
    return np.lib.stride_tricks.as_strided(array[tuple(origin)], shape, strides, writeable=False)
'''

_GATHER = '''\
def _gather(array, axes, shape):
    """array at positions (start + steps · t) / divisor along each axis; zeros outside and between the elements."""
    if 0 in shape or 0 in array.shape:
        return np.zeros(shape, array.dtype)
    grid = np.indices(shape, sparse=True)
    inside, index = True, []
    for size, (start, steps, divisor, wrap) in zip(array.shape, axes):
        position = start + sum(step * t for step, t in zip(steps, grid))
        inside = inside & (position % divisor == 0)
        position = position // divisor % size if wrap else position // divisor
        inside = inside & (position >= 0) & (position < size)
        index.append(np.clip(position, 0, size - 1))
    return np.where(inside, array[tuple(index)], array.dtype.type(0))
'''

TEXTS = {"_view": _VIEW, "_gather": _GATHER} | SOLVERS
