"""Convolutions and correlations of emitted NumPy source: windows that slide along an axis, multiplied by blocks.

    y[i] = Σ_k x[i + k]·w[k]      i by blocks of 32:  y[32n : 32n + 32] = x[32n : 32n + 31 + len(w)] @ band
    band[m, i] = w[m − i]         made once per call, its width chosen by `block_size`

Windows that lie side by side share most of their elements, so a block of them is little more than one; they are copied
some 10⁴ elements at a time, which stay in the cache. More axes may be summed over (channels of images, other windows),
kept, or come with the weights. Windows of up to 11 elements are left to `np.correlate` and `np.einsum`.

Emitted source holds the very text of these functions.

Invariant: results are those of the plain sums, with infinite elements and nan too, which a band's zeros would spread.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

import numpy as np

from combdiff.numerics import wrapped as _wrapped

CHUNK = 24576  # elements of windows that are copied at a time


def block_size(width: int, inner: int, outer: int, stride: int, count: int) -> int:
    """How many windows to multiply at once: more are copied less often, but make the band wider."""

    def price(size: Any) -> Any:
        return ((size - 1) * stride + width) * inner * (outer * max(1, 32 / (size * outer)) + 10 / size)

    return min((1 << n for n in range(9) if 1 << n < 2 * count), key=price)


def _stretch(array: Any, axis: Any, start: Any, total: Any, wrap: Any) -> Any:
    """total elements along an axis from start on; outside of the array zeros, or the array again where it wraps."""
    size, rest = array.shape[axis], (slice(None),) * (array.ndim - 1 - axis)
    low, high = min(max(start, 0), size), min(max(start + total, 0), size)
    if low == start and high == start + total:
        return array[(..., slice(low, high), *rest)]
    if wrap:
        return _wrapped(array, axis, start, total)
    result = np.zeros((*array.shape[:axis], total, *array.shape[axis + 1 :]), array.dtype)
    result[(..., slice(low - start, high - start), *rest)] = array[(..., slice(low, high), *rest)]
    return result


def _band(weights: Any, block: Any, stride: Any) -> Any:
    """The matrix that multiplies block windows, stride apart, by weights of axes (k, before, after, other)."""
    width, first, last, outer = weights.shape
    band = np.zeros((first, (block - 1) * stride + width, last, block, outer), weights.dtype)
    one, down, two, right, three = band.strides
    strides = (stride * down + right, down, one, two, three)
    np.lib.stride_tricks.as_strided(band, (block, *weights.shape), strides)[...] = weights
    return band.reshape(-1, block * outer)


def _windows(array: Any, kept: Any, axis: Any, start: Any, wrap: Any, wide: Any, step: Any, blocks: Any) -> Any:
    """Windows of wide elements, step apart along an axis, as rows of matrices with their places; some at a time."""
    rest = array.shape[kept:axis], array.shape[axis + 1 :]
    window, split, most = int(np.prod(sum(rest, ()))) * wide, kept, CHUNK
    size = blocks * window
    while split > 1 and size * array.shape[split - 1] <= most:
        split -= 1
        size *= array.shape[split]
    many, few = max(1, most // size), blocks if size <= most else max(1, most // window)
    for lead in np.ndindex(*array.shape[: split - 1]):
        for row in range(0, array.shape[split - 1], many):
            place = (*lead, slice(row, row + many))
            part = array[place]
            along = axis - len(lead)
            part = _stretch(part, along, start, (blocks - 1) * step + wide, wrap)
            over = along - len(rest[0])
            shape = (*part.shape[:over], blocks, *rest[0], wide, *rest[1])
            strides = (*part.strides[:over], step * part.strides[along], *part.strides[over:])
            part = np.lib.stride_tricks.as_strided(part, shape, strides, writeable=False)
            for n in range(0, blocks, few):
                rows = part[(slice(None),) * over + (slice(n, n + few),)]
                yield rows.reshape(-1, window), place, n, min(n + few, blocks)


def _each_lag(array: Any, kept: Any, axis: Any, start: Any, stride: Any, wrap: Any, width: Any, count: Any) -> Any:
    """array[…, start + stride·i + k, …] for each k < width, i < count on the axis after the kept ones."""
    span = (count - 1) * stride + 1
    array = np.moveaxis(_stretch(array, axis, start, span + width - 1, wrap), axis, kept)
    return (array[(slice(None),) * kept + (slice(k, k + span, stride),)] for k in range(width))


def _short(rows: Any, start: Any, wrap: Any, weights: Any, count: Any) -> Any:
    """Σ rows[:, start + i + k]·weights[k] for i < count, by np.correlate on some rows at a time, laid end to end."""
    span = count + len(weights) - 1

    def product(part: Any) -> Any:
        flat = np.correlate(part.reshape(-1), weights, "valid")
        return np.lib.stride_tricks.as_strided(flat, (len(part), count), (span * flat.itemsize, flat.itemsize))

    if start == 0 and span == rows.shape[1]:
        return product(rows)
    result, many = np.empty((len(rows), count), np.result_type(rows, weights)), max(1, CHUNK // span)
    for n in range(0, len(rows), many):
        result[n : n + many] = product(_stretch(rows[n : n + many], 1, start, span, wrap))
    return result


def _correlate(array: Any, kept: Any, axis: Any, start: Any, stride: Any, wrap: Any, weights: Any, count: Any) -> Any:
    """Σ array[…, start + stride·i + k, …]·weights[k, …] over k and all but the first axes, the kept ones; i < count."""
    if not kept:
        return _correlate(array[None], 1, axis + 1, start, stride, wrap, weights, count)[0]
    summed, width, dtype = array.ndim - kept, len(weights), np.result_type(array, weights)
    shape = (*array.shape[:kept], count, *weights.shape[summed:])
    if 0 in (*shape, *array.shape, *weights.shape):
        return np.zeros(shape, dtype)
    if width <= 11 and summed == weights.ndim == stride == 1 and dtype.kind == "f":
        return _short(array.reshape(-1, array.shape[axis]), start, wrap, weights, count).reshape(shape)
    first, last = (int(np.prod(axes)) for axes in (array.shape[kept:axis], array.shape[axis + 1 :]))
    matrix = weights.reshape(width, first, last, -1)
    outer = matrix.shape[3]
    block = block_size(width, first * last, outer, stride, count)
    band, blocks, wide = _band(matrix, block, stride), -(-count // block), (block - 1) * stride + width
    result = np.empty((*shape[:kept], blocks * block, outer), dtype)
    with np.errstate(invalid="ignore"):
        for rows, place, low, high in _windows(array, kept, axis, start, wrap, wide, block * stride, blocks):
            np.matmul(rows, band, out=result[place][..., low * block : high * block, :].reshape(-1, block * outer))
        finite = np.isfinite(result.sum())
    if not finite:
        lags = _each_lag(array, kept, axis, start, stride, wrap, width, count)
        result = np.sum([np.tensordot(part, weights[k], summed - 1) for k, part in enumerate(lags)], 0)
    return result[(slice(None),) * kept + (slice(count),)].reshape(shape)


def _lags(array: Any, kept: Any, axis: Any, start: Any, stride: Any, wrap: Any, other: Any, width: Any) -> Any:
    """Σ array[…, start + stride·i + k, …]·other[…, i, …] over i and the kept axes, the first of both; k < width."""
    if not kept:
        return _lags(array[None], 1, axis + 1, start, stride, wrap, other[None], width)
    count, dtype = other.shape[kept], np.result_type(array, other)
    shape = (width, *array.shape[kept:axis], *array.shape[axis + 1 :], *other.shape[kept + 1 :])
    if 0 in (*shape, *array.shape, *other.shape):
        return np.zeros(shape, dtype)
    if width <= 11 and len(shape) == 1:
        rows = _stretch(array, axis, start, (count - 1) * stride + width, wrap)
        strides = (*rows.strides[:-1], stride * rows.strides[-1], rows.strides[-1])
        windows = np.lib.stride_tricks.as_strided(rows, (*other.shape, width), strides, writeable=False)
        return np.einsum(windows, list(range(kept + 2)), other, list(range(kept + 1)), [kept + 1])
    groups = (array.shape[kept:axis], array.shape[axis + 1 :], other.shape[kept + 1 :])
    first, last, outer = (int(np.prod(axes)) for axes in groups)
    block = block_size(width, first * last, outer, stride, count)
    wide, blocks = (block - 1) * stride + width, -(-count // block)
    product = np.zeros((block * outer, first * wide * last), dtype)
    with np.errstate(invalid="ignore"):
        for rows, place, low, high in _windows(array, kept, axis, start, wrap, wide, block * stride, blocks):
            part = _stretch(other[place], kept - len(place) + 1, low * block, (high - low) * block, False)
            product += part.reshape(-1, block * outer).T @ rows
        product = product.reshape(block, outer, first, wide, last)
        down, three, one, right, two = product.strides
        strides = (down + stride * right, right, one, two, three)
        result = np.lib.stride_tricks.as_strided(product, (block, width, first, last, outer), strides).sum(0)
        finite = np.isfinite(result.sum())
    if not finite:
        axes = (list(range(kept + 1)),) * 2
        lags = _each_lag(array, kept, axis, start, stride, wrap, width, count)
        result = np.stack([np.tensordot(part, other, axes) for part in lags])
    return result.reshape(shape)


def _text(function: Any) -> str:
    """The text of a function, without types, that stands alone."""
    return re.sub(r": (Any|int|float)\b| -> \w+", "", inspect.getsource(function)).replace("CHUNK", str(CHUNK))


BANDS = {f.__name__: _text(f) for f in (block_size, _stretch, _band, _windows, _each_lag, _short, _correlate, _lags)}
