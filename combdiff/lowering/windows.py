"""Helpers of emitted NumPy source that write into arrays of zeros, or slide windows by blocks.

    _place(t, ((0, (1,), 2),), (8,))      t of 4 elements: t[0] 0 t[1] 0 t[2] 0 t[3] 0
    _correlate(x, 1, 0, w, m)             Σ_k x[:, i + k]·w[k] for i < m

Invariant: a helper never writes to its argument, and never fails, whatever the sizes are.
"""

from __future__ import annotations

_PLACE = '''\
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

_STRETCH = '''\
def _stretch(array, start, total):
    """total elements along the last axis from start on, which may lie outside; zeros there."""
    size = array.shape[-1]
    low, high = min(max(start, 0), size), min(max(start + total, 0), size)
    if low == start and high == start + total:
        return array[..., low:high]
    result = np.zeros((*array.shape[:-1], total), array.dtype)
    if low < high:
        result[..., low - start : high - start] = array[..., low:high]
    return result
'''

_WINDOWS = '''\
def _windows(rows, start, count, width):
    """Windows of block + width - 1 elements along the last axis, block apart, as the rows of a matrix; and block."""
    block = min(max(32, width), 128, count)
    blocks, wide = -(-count // block), block + width - 1
    rows = _stretch(rows, start, blocks * block + width - 1)
    strides = (*rows.strides[:-1], block * rows.strides[-1], rows.strides[-1])
    windows = np.lib.stride_tricks.as_strided(rows, (*rows.shape[:-1], blocks, wide), strides, writeable=False)
    return windows.reshape(-1, wide), block
'''

_CORRELATE = '''\
def _correlate(array, axis, start, weights, count):
    """Σ_k array[start + i + k]·weights[k] along the axis for i < count: windows times a banded matrix."""
    rows, width, dtype = np.moveaxis(array, axis, -1), len(weights), np.result_type(array, weights)
    if 0 in (count, width, array.size):
        return np.moveaxis(np.zeros((*rows.shape[:-1], count), dtype), -1, axis)
    windows, block = _windows(rows, start, count, width)
    band = np.zeros((windows.shape[1], block), dtype)
    np.lib.stride_tricks.as_strided(band, (block, width), (sum(band.strides), band.strides[0]))[...] = weights
    product = (windows @ band).reshape(*rows.shape[:-1], -1)
    return np.moveaxis(product[..., :count], -1, axis)
'''

_LAGS = '''\
def _lags(array, axis, start, other, width):
    """Σ array[start + i + k]·other[i] over all axes for k < width, where i and k go along the axis."""
    rows, other, dtype = np.moveaxis(array, axis, -1), np.moveaxis(other, axis, -1), np.result_type(array, other)
    count = other.shape[-1]
    if 0 in (width, array.size, other.size):
        return np.zeros(width, dtype)
    windows, block = _windows(rows, start, count, width)
    other = _stretch(other, 0, -(-count // block) * block)
    product = np.ascontiguousarray(other.reshape(-1, block).T @ windows)
    return np.lib.stride_tricks.as_strided(product, (block, width), (sum(product.strides), product.strides[1])).sum(0)
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

WINDOWS = {
    "_place": _PLACE,
    "_stretch": _STRETCH,
    "_windows": _WINDOWS,
    "_correlate": _CORRELATE,
    "_lags": _LAGS,
}
