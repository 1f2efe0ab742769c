"""Convolutions and correlations of emitted NumPy source: windows that slide along an axis.

    y[i] = Σ_k x[i + k]·w[k]      lag by lag:  y += x[k : k + n]·w[k] for each k
                                  by blocks of 32:  y[32n : 32n + 32] = x[32n : 32n + 31 + len(w)] @ band
    band[m, i] = w[m − i]         made once per call

By lags few lines say it, and where there are channels before and after (images) each lag is a matrix product of its
own, and as quick. By blocks what has no channels is a matrix product, too. Blocks overlap, as rows of matrices for BLAS
must not; every second one does not, or every third, and those of short rows are copied, some at a time:

    x = 0 1 2 3 4 5 6 7 …      windows of 4, by blocks of 2:    0 1 2 3 4    and    2 3 4 5 6
                                                                 4 5 6 7 8           6 7 8 9 …

More axes may be summed over (channels of images, other windows), kept, or come with the weights. Windows of a few
elements alone are left to `np.convolve`.

Invariant: results are those of the plain sums, with infinite elements and nan too, which a band's zeros would spread.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

CHUNK = 1 << 15  # elements that are laid out at a time: more fill a cache, of fewer products take one thread


def _each_lag(rows: Any, start: Any, stride: Any, width: Any, count: Any) -> Any:
    """rows[:, start + stride·i + k] for each k < width, with k and the i < count for which there is an element."""
    size = rows.shape[1]
    for k, first in enumerate(range(start, start + width)):
        low, high = max(0, -(first // stride)), min(count, (size - 1 - first) // stride + 1)
        if low < high:
            last = first + stride * (high - 1)
            yield k, slice(low, high), rows[:, first + stride * low : last + 1 : stride]


def _some(rows: Any, count: Any, wide: Any, least: Any) -> Any:
    """Slices of rows and of count places in them: as many as a cache holds, with so many elements at each place."""
    long = max(1, min(count, CHUNK // wide))
    many, parts = max(1, CHUNK // max(long * wide, least)), range(0, count, long)
    return ((slice(n, n + many), slice(m, min(m + long, count))) for n in range(0, rows, many) for m in parts)


def _window_sums(array: Any, kept: Any, start: Any, stride: Any, weights: Any, count: Any) -> Any:
    """Σ array[…, start + stride·i + k, …]·weights[k, …] over k and the axes after; i < count, after the kept axes."""
    width, inner, outer = len(weights), math.prod(array.shape[kept + 1 :]), weights.shape[array.ndim - kept :]
    rows = array.reshape(math.prod(array.shape[:kept]), array.shape[kept], inner)
    matrix = weights.reshape(width, inner, math.prod(outer))
    result = np.zeros((len(rows), count, matrix.shape[2]), np.result_type(array, weights))
    for some, places in _some(len(rows), count, max(1, *matrix.shape[1:]), 1):
        sums = result[some, places]
        for k, place, part in _each_lag(rows[some], start + stride * places.start, stride, width, sums.shape[1]):
            sums[:, place] += part * matrix[k] if inner == 1 else part @ matrix[k]
    return result.reshape(*array.shape[:kept], count, *outer)


def _lag_sums(array: Any, kept: Any, start: Any, stride: Any, other: Any, width: Any) -> Any:
    """Σ array[…, start + stride·i + k, …]·other[…, i, …] over i and the kept axes, the first of both; k < width."""
    inner, outer, count = array.shape[kept + 1 :], other.shape[kept + 1 :], other.shape[kept]
    rows = array.reshape(math.prod(array.shape[:kept]), array.shape[kept], math.prod(inner))
    factors = other.reshape(len(rows), count, math.prod(outer))
    result = np.zeros((width, rows.shape[2], factors.shape[2]), np.result_type(array, other))
    for some, places in _some(len(rows), count, max(1, *result.shape[1:]), math.prod(result.shape[1:])):
        part = factors[some, places]
        for k, place, read in _each_lag(rows[some], start + stride * places.start, stride, width, part.shape[1]):
            result[k] += (read.swapaxes(1, 2) @ part[:, place]).sum(0)
    return result.reshape(width, *inner, *outer)


def _stretch(rows: Any, start: Any, total: Any) -> Any:
    """rows[:, start : start + total], with zeros where there are no elements."""
    low, high = max(0, start), min(rows.shape[1], start + total)
    if high - low == total:
        return rows[:, low:high]
    result = np.zeros((len(rows), total, *rows.shape[2:]), rows.dtype)
    if low < high:
        result[:, low - start : high - start] = rows[:, low:high]
    return result


def _together(rows: Any, start: Any, stride: Any, width: Any, count: Any) -> Any:
    """Rows as one, with the windows from one's beginning to the next one's, where few of them go over an end."""
    size, reach = rows.shape[1], start + (count - 1) * stride + width
    begins_all = size % stride == 0 and 4 * size <= 5 * count * stride
    if begins_all and start >= 0 and reach <= size and rows.flags.c_contiguous:
        return rows.reshape(1, -1, rows.shape[2]), size // stride, (len(rows) - 1) * (size // stride) + count
    return rows, count, count


def _blocks(rows: Any, start: Any, step: Any, wide: Any, count: Any) -> Any:
    """count blocks of wide elements in each row, step apart: their places, by row and number, and matrices of them."""
    (many, size, inner), last = rows.shape, start + (count - 1) * step
    if many == 1 and start >= 0 and last - step + wide <= size < last + wide:  # one reaches behind the end
        yield (slice(None), slice(count - 1, count)), _stretch(rows, last, wide).reshape(1, -1)
        count -= 1
    rows = _stretch(rows, start, (count - 1) * step + wide)
    down, along, one = rows.strides
    apart = -(-wide // step)
    if count >= 32 * apart and (along, one) == (inner * rows.itemsize, rows.itemsize):
        strides: Any = (down, step * along, one)
        blocks = np.lib.stride_tricks.as_strided(rows, (many, count, wide * inner), strides, writeable=False)
        yield from (((row, slice(n, count, apart)), blocks[row, n::apart]) for row in range(many) for n in range(apart))
    elif count:
        strides = (down, step * along, along, one)
        blocks = np.lib.stride_tricks.as_strided(rows, (many, count, wide, inner), strides, writeable=False)
        for some in _some(many, count, -(-wide * inner // 4), 1):
            yield some, blocks[some].reshape(-1, wide * inner)


def _correlate(array: Any, kept: Any, start: Any, stride: Any, weights: Any, count: Any, block: Any) -> Any:
    """_window_sums, so many windows at once, by a matrix that has the weights along its diagonals."""
    if 0 in (*array.shape, *weights.shape, count):
        return _window_sums(array, kept, start, stride, weights, count)
    width, inner, outer = len(weights), math.prod(array.shape[kept + 1 :]), weights.shape[array.ndim - kept :]
    rows, matrix = array.reshape(-1, array.shape[kept], inner), weights.reshape(width, inner, -1)
    wide, last, dtype = (block - 1) * stride + width, matrix.shape[2], np.result_type(array, weights)
    band = np.zeros((wide, inner, block, last), weights.dtype)
    down, one, right, two = band.strides
    strides = (stride * down + right, down, one, two)
    np.lib.stride_tricks.as_strided(band, (block, *matrix.shape), strides)[...] = matrix
    band = band.reshape(-1, block * last)
    lines, (rows, pitch, total) = len(rows), _together(rows, start, stride, width, count)
    result = np.empty((len(rows), -(-total // block), block * last), dtype)
    with np.errstate(invalid="ignore"):
        for place, windows in _blocks(rows, start, block * stride, wide, result.shape[1]):
            np.matmul(windows, band, out=result[place].reshape(-1, block * last))
    if not np.isfinite(np.vdot(result, result)):
        del windows, result  # the other way takes room of its own
        return _window_sums(array, kept, start, stride, weights, count)
    return _rows_of(result, lines, pitch, count, last).reshape(*array.shape[:kept], count, *outer)


def _lags(array: Any, kept: Any, start: Any, stride: Any, other: Any, width: Any, block: Any) -> Any:
    """_lag_sums, so many i at once: sums along the diagonals of products of windows and blocks."""
    if 0 in (*array.shape, *other.shape, width):
        return _lag_sums(array, kept, start, stride, other, width)
    inner, outer, count = array.shape[kept + 1 :], other.shape[kept + 1 :], other.shape[kept]
    rows, factors = array.reshape(-1, array.shape[kept], math.prod(inner)), other.reshape(-1, count, math.prod(outer))
    wide, first, last = (block - 1) * stride + width, rows.shape[2], factors.shape[2]
    rows, pitch, total = _together(rows, start, stride, width, count)
    laid = np.zeros((len(rows), -(-total // block), block * last), other.dtype)
    _rows_of(laid, len(factors), pitch, count, last)[...] = factors
    product = np.zeros((block * last, wide * first), np.result_type(array, other))
    with np.errstate(invalid="ignore"):
        for place, windows in _blocks(rows, start, block * stride, wide, laid.shape[1]):
            product += laid[place].reshape(-1, block * last).T @ windows
    if not np.isfinite(np.vdot(product, product)):
        return _lag_sums(array, kept, start, stride, other, width)
    product = product.reshape(block, last, wide, first)
    down, two, right, one = product.strides
    strides = (down + stride * right, right, one, two)
    diagonals = np.lib.stride_tricks.as_strided(product, (block, width, first, last), strides)
    return diagonals.sum(0, product.dtype).reshape(width, *inner, *outer)


def _rows_of(blocks: Any, many: Any, pitch: Any, count: Any, last: Any) -> Any:
    """The first count of each pitch results that lie in blocks, and where these are rows of their own, of each row."""
    pitch = blocks.size // last // many if len(blocks) == many else pitch
    strides = (pitch * last * blocks.itemsize, last * blocks.itemsize, blocks.itemsize)
    return np.lib.stride_tricks.as_strided(blocks, (many, count, last), strides)


def _exchanged(array: Any, kept: Any, start: Any, stride: Any, weights: Any, count: Any, block: Any) -> Any:
    """_correlate with the weights as what the array slides along, backwards, for an array shorter than windows are."""
    summed = array.ndim - kept
    outer = weights.ndim - summed
    along = weights.transpose(*range(summed, weights.ndim), *range(summed))
    factors = array.transpose(*range(kept, array.ndim), *range(kept))
    found = _correlate(along, outer, -start - stride * (count - 1), stride, factors, count, block)
    found = found[(slice(None),) * outer + (slice(None, None, -1),)]
    return found.transpose(*range(outer + 1, found.ndim), outer, *range(outer))


def _by_phases(array: Any, kept: Any, start: Any, stride: Any, other: Any, width: Any, block: Any) -> Any:
    """_lags with k = stride·q + r: the array, some elements of each phase r, multiplies windows of the other one."""
    size, turns = array.shape[kept], -(-width // stride)
    first = -((start + stride - 1) // stride)
    many = max(1, (size - 1 - start) // stride + 1 - first)
    rows = array.reshape(math.prod(array.shape[:kept]), size, math.prod(array.shape[kept + 1 :]))
    laid = _stretch(rows, start + stride * first, many * stride)
    laid = laid.reshape(*array.shape[:kept], many, stride, *array.shape[kept + 1 :])
    weights = laid.transpose(kept, *range(kept), *range(kept + 1, laid.ndim))
    outer = other.ndim - kept - 1
    along = other.transpose(*range(kept + 1, other.ndim), kept, *range(kept))
    found = _correlate(along, outer, first - (turns - 1), 1, weights, turns, block)
    found = found[(slice(None),) * outer + (slice(None, None, -1),)]
    found = found.transpose(*range(outer, found.ndim), *range(outer))
    result = found.reshape(turns * stride, *found.shape[2:])[:width]
    return result if np.isfinite(result).all() else _lag_sums(array, kept, start, stride, other, width)


def _short(array: Any, start: Any, weights: Any, count: Any) -> Any:
    """Σ array[…, start + i + k]·weights[k] over a few k; i < count: rows laid end to end, as one vector."""
    if 0 in (*array.shape, *weights.shape, count) or not np.isfinite(weights).all():
        return _window_sums(array, array.ndim - 1, start, 1, weights, count)
    rows = _stretch(array.reshape(-1, array.shape[-1]), start, count + len(weights) - 1)
    flat = np.convolve(rows.reshape(-1), weights[::-1], "valid")
    strides = (rows.shape[1] * flat.itemsize, flat.itemsize)
    return np.lib.stride_tricks.as_strided(flat, (len(rows), count), strides).reshape(*array.shape[:-1], count)


def _slide(array: Any, start: Any, weights: Any, count: Any) -> Any:
    """Σ array[start + i + k]·weights[k] over k for i < count, of two vectors; nothing is outside of the array."""
    low, high = max(0, start), min(len(array), start + count + len(weights) - 1)
    if low >= high or 0 in (len(weights), count):
        return np.zeros(count, np.result_type(array, weights))
    if high - low == count + len(weights) - 1:
        return np.convolve(array[low:high], weights[::-1], "valid")
    full = np.convolve(array[low:high], weights[::-1])
    first = start - low + len(weights) - 1
    result = np.zeros(count, full.dtype)
    part = full[max(0, first) : first + count]
    result[max(0, -first) :][: len(part)] = part
    return result
