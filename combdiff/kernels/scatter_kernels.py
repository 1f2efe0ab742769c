"""Helpers of emitted source that write into arrays of zeros.

    _place(t, ((0, (1,), 2),), (8,))      t of 4 elements: t[0] 0 t[1] 0 t[2] 0 t[3] 0
    _scatter(k, idx, n)                   the sum of k at each index

Invariant: a helper never writes to its argument, and never fails, whatever the sizes are.
"""

from __future__ import annotations

PLACE = '''\
def _place(array, axes, shape):
    """array with element a of each axis at divisor·a - start along one axis of the result; zeros elsewhere."""
    result, order, source, target = np.zeros(shape, array.dtype), [], [], {}
    for size, (start, steps, divisor, _) in zip(array.shape, axes):
        label = steps.index(1)
        low = max(0, -(-start // divisor))
        high = max(low, min(size, (shape[label] - 1 + start) // divisor + 1))
        order.append(label)
        source.append(slice(low, high))
        first = divisor * low - start
        target[label] = slice(first, max(first + divisor * (high - low - 1) + 1, first), divisor)
    axis = [order.index(label) for label in range(len(shape))]
    result[tuple(target[label] for label in range(len(shape)))] = array[tuple(source)].transpose(axis)
    return result
'''

SCATTER = '''\
def _scatter(values, index, size):
    """The sum of values at each index below size; the axes of index come first in values."""
    flat, rest = index.reshape(-1), values.shape[index.ndim :]
    if not rest and values.dtype == float:
        return {np}.bincount(flat, values.reshape(-1), size)
    result = {np}.zeros((size, *rest), values.dtype)
    {np}.add.at(result, flat, values.reshape(flat.shape + rest))
    return result
'''

JAX_SCATTER = '''\
def _scatter(values, index, size):
    """The sum of values at each index below size; the axes of index come first in values."""
    flat, rest = index.reshape(-1), values.shape[index.ndim :]
    return jnp.zeros((size, *rest), values.dtype).at[flat].add(values.reshape(flat.shape + rest))
'''

TORCH_SCATTER = '''\
def _scatter(values, index, size):
    """The sum of values at each index below size; the axes of index come first in values."""
    flat, rest = index.reshape(-1), values.shape[index.ndim :]
    return values.new_zeros((size, *rest)).index_add(0, flat, values.reshape(flat.shape + rest))
'''
