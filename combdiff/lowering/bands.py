"""Convolutions and correlations of emitted NumPy source: windows that slide along an axis, multiplied by blocks.

    y[i] = Σ_k x[i + k]·w[k]      i by blocks of 32:  y[32n : 32n + 32] = x[32n : 32n + 31 + len(w)] @ band
    band[m, i] = w[m − i]         made once per call, its width chosen by `block_size`

Windows that lie side by side share most of their elements, so a block of them is little more than one. Some 5·10⁴
elements of windows are copied at a time, always to the same place, which stays in the cache, and are enough for a
product on several threads. More axes may be summed over (channels of images, other windows), kept, or come with the
weights. Windows of up to 11 elements are left to `np.correlate` and `np.einsum`.

Emitted source holds the very text of these functions.

Invariant: results are those of the plain sums, with infinite elements and nan too, which a band's zeros would spread.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

import numpy as np

from combdiff.numerics import wrapped as _wrapped

CHUNK = 49152  # elements of windows that are copied at a time


def block_size(width: int, inner: int, outer: int, stride: int, count: int) -> int:
    """How many windows to multiply at once: more are copied less often, but make the band wider."""

    def price(size: Any) -> Any:
        return ((size - 1) * stride + width) * inner * (outer * max(1, 32 / (size * outer)) + 10 / size)

    return min((1 << n for n in range(9) if 1 << n < 2 * count), key=price)


def _lay(room: Any, array: Any, axis: Any, start: Any, wrap: Any) -> Any:
    """Write the elements from start on along an axis over zeros, or the array again and again where it wraps."""
    total, size, rest = room.shape[axis], array.shape[axis], (slice(None),) * (array.ndim - 1 - axis)
    if wrap:
        room[...] = _wrapped(array, axis, start, total)
    else:
        low, high = min(max(start, 0), size), min(max(start + total, 0), size)
        room[(..., slice(low - start, high - start), *rest)] = array[(..., slice(low, high), *rest)]
    return room


def _stretch(array: Any, axis: Any, start: Any, total: Any, wrap: Any) -> Any:
    """total elements along an axis from start on; outside of the array zeros, or the array again where it wraps."""
    if 0 <= start <= start + total <= array.shape[axis]:
        return array[(..., slice(start, start + total), *(slice(None),) * (array.ndim - 1 - axis))]
    return _lay(np.zeros((*array.shape[:axis], total, *array.shape[axis + 1 :]), array.dtype), array, axis, start, wrap)


def _band(weights: Any, block: Any, stride: Any) -> Any:
    """The matrix that multiplies block windows, stride apart, by weights of axes (k, before, after, other)."""
    width, first, last, outer = weights.shape
    band = np.zeros((first, (block - 1) * stride + width, last, block, outer), weights.dtype)
    one, down, two, right, three = band.strides
    strides = (stride * down + right, down, one, two, three)
    np.lib.stride_tricks.as_strided(band, (block, *weights.shape), strides)[...] = weights
    return band.reshape(-1, block * outer)


def _every_window(array: Any, kept: Any, axis: Any, wide: Any, step: Any, count: Any) -> Any:
    """A view of count windows of wide elements, step apart along an axis, by an axis after the kept ones."""
    shape = (*array.shape[:kept], count, *array.shape[kept:axis], wide, *array.shape[axis + 1 :])
    strides = (*array.strides[:kept], step * array.strides[axis], *array.strides[kept:])
    return np.lib.stride_tricks.as_strided(array, shape, strides, writeable=False)


def _share(rows: Any, blocks: Any, window: Any) -> Any:
    """How much to copy at once: the axes of rows from `split` on, many rows of the one before, few of the blocks."""
    split, size = len(rows), blocks * window
    while split > 1 and size * rows[split - 1] <= CHUNK:
        split -= 1
        size *= rows[split]
    return split, min(rows[split - 1], max(1, CHUNK // size)), blocks if size <= CHUNK else max(1, CHUNK // window)


def _windows(array: Any, kept: Any, axis: Any, start: Any, wrap: Any, wide: Any, step: Any, blocks: Any) -> Any:
    """Windows of wide elements, step apart along an axis, as rows of matrices with their places; some at a time.

    Each matrix lies where the one before it lay, so that its memory stays in the cache.
    """
    rest = (*array.shape[kept:axis], wide, *array.shape[axis + 1 :])
    window, total = int(np.prod(rest)), (blocks - 1) * step + wide
    split, many, few = _share(array.shape[:kept], blocks, window)
    rows, along, over = array.shape[split - 1], axis - split + 1, (slice(None),) * (kept - split + 1)
    room = np.empty((many, *array.shape[split:kept], few, *rest), array.dtype)
    inside = start >= 0 and start + total <= array.shape[axis]
    if inside:
        views = _every_window(_stretch(array, axis, start, total, wrap), kept, axis, wide, step, blocks)
    else:
        held = np.zeros((many, *array.shape[split:axis], total, *array.shape[axis + 1 :]), array.dtype)
        views = _every_window(held, kept - split + 1, along, wide, step, blocks)
    for lead in np.ndindex(*array.shape[: split - 1]):
        for row in range(0, rows, many):
            place = (*lead, slice(row, row + many))
            if not inside:
                _lay(held[: rows - row], array[place], along, start, wrap)
            view = views[place] if inside else views[: rows - row]
            for low in range(0, blocks, few):
                high = min(low + few, blocks)
                part = room[: rows - row][(*over, slice(high - low))]
                part[...] = view[(*over, slice(low, high))]
                yield part.reshape(-1, window), place, low, high


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
    result, many = np.empty((len(rows), count), np.result_type(rows, weights)), max(1, CHUNK // 2 // span)
    room = np.zeros((min(many, len(rows)), span), rows.dtype)
    for n in range(0, len(rows), many):
        part = rows[n : n + many]
        result[n : n + many] = product(_lay(room[: len(part)], part, 1, start, wrap))
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
        if count >= 512 and stride == 1 and dtype.kind == "f":
            pairs = zip(rows.reshape(-1, rows.shape[-1]), other.reshape(-1, count), strict=True)
            return sum(np.correlate(*pair, "valid") for pair in pairs)
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


_HELPERS = (block_size, _lay, _stretch, _band, _every_window, _share, _windows, _each_lag, _short, _correlate, _lags)
BANDS = {function.__name__: _text(function) for function in _HELPERS}
