"""Convolutions and correlations of emitted NumPy source: windows that slide along an axis, multiplied by blocks.

    y[i] = Σ_k x[i + k]·w[k]      i by blocks of 32:  y[32n : 32n + 32] = x[32n : 32n + 31 + len(w)] @ band
    band[m, i] = w[m − i]         made once per call, its width chosen by `_block_size`

Nothing is copied where rows lie one after the other in memory: all of them slide as one, over the ends of rows too,
with results there that are left out. Blocks of windows overlap, as rows of matrices for BLAS must not; every second
one does not, or every third:

    x = 0 1 2 3 4 5 6 7 …      windows of 4, by blocks of 2:    0 1 2 3 4    and    2 3 4 5 6
                                                                 4 5 6 7 8           6 7 8 9 …

Where there are channels before and after (images), each lag is a matrix product of its own, and as quick as blocks are
(`_window_sums`, `_lag_sums`).

Other arrays are laid out so first, some rows at a time, with zeros around or wrapped. More axes may be summed over
(channels of images, other windows), kept, or come with the weights. Windows of a few elements alone are left to
`np.convolve` (in `_slide`) and `np.einsum`. Windows that are longer than the array are mostly zeros: then the weights
slide, and the array is what they are multiplied by (`_exchanged`); of lags those are computed side by side that are a
stride apart (`_by_phases`). The work is that of the elements that are there.

Invariant: results are those of the plain sums, with infinite elements and nan too, which a band's zeros would spread.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from combdiff.kernels.numerics import _wrapped

CHUNK = 1 << 17  # elements that are laid out at a time: more fill a cache, of fewer products take one thread


def _block_size(width: int, inner: int, outer: int, stride: int, count: int) -> int:
    """How many windows to multiply at once: for few, products are narrow; for many, the band is wide, and too large."""

    def price(size: Any) -> Any:
        return ((size - 1) * stride + width) * inner * (outer + 9 / size)

    def fits(size: Any) -> Any:
        return size == 1 or ((size - 1) * stride + width) * inner * size * outer <= 4 * CHUNK

    return min((1 << n for n in range(9) if 1 << n < 2 * count and fits(1 << n)), key=price)


def _lay(room: Any, array: Any, axis: Any, start: Any, wrap: Any) -> Any:
    """Write the elements from start on along an axis over zeros, or the array again and again where it wraps."""
    total, size, rest = room.shape[axis], array.shape[axis], (slice(None),) * (array.ndim - 1 - axis)
    if wrap and total > 4 * size:
        room[...] = _wrapped(np, array, axis, start, total)
        return room
    turns = range(start // size, (start + total - 1) // size + 1) if wrap else (0,)
    for first in (turn * size - start for turn in turns):  # where in the room the array begins
        low, high = min(max(first, 0), total), min(max(first + size, 0), total)
        room[(..., slice(low, high), *rest)] = array[(..., slice(low - first, high - first), *rest)]
    return room


def _stretch(array: Any, axis: Any, start: Any, total: Any, wrap: Any) -> Any:
    """total elements along an axis from start on; outside of the array zeros, or the array again where it wraps."""
    if 0 <= start <= start + total <= array.shape[axis]:
        return array[(..., slice(start, start + total), *(slice(None),) * (array.ndim - 1 - axis))]
    return _lay(np.zeros((*array.shape[:axis], total, *array.shape[axis + 1 :]), array.dtype), array, axis, start, wrap)


def _band(weights: Any, block: Any, stride: Any) -> Any:
    """The matrix that multiplies block windows, stride apart, by weights of axes (k, inner, other)."""
    width, inner, outer = weights.shape
    band = np.zeros(((block - 1) * stride + width, inner, block, outer), weights.dtype)
    down, one, right, two = band.strides
    strides = (stride * down + right, down, one, two)
    np.lib.stride_tricks.as_strided(band, (block, *weights.shape), strides)[...] = weights
    return band.reshape(-1, block * outer)


def _windows(array: Any, kept: Any, start: Any, stride: Any, wrap: Any, width: Any, count: Any, block: Any) -> Any:
    """How many windows rows take, and blocks of them as rows of matrices with their places among all blocks.

    Rows run along the axis after the kept ones. They take more windows than are asked for where all slide as one.
    """
    size, inner, rows = array.shape[kept], math.prod(array.shape[kept + 1 :]), math.prod(array.shape[:kept])
    step, span = block * stride * inner, (count - 1) * stride + width
    wide = ((block - 1) * stride + width) * inner

    def slides(pitch: Any) -> Any:  # where few windows go over an end, and matrices have many rows
        return 4 * pitch <= 5 * count and rows * pitch * stride * inner >= 8 * wide

    inside = array.flags.c_contiguous and 0 <= start <= start + span <= size and size % stride == 0
    if inside and slides(size // stride):
        pitch, flat = size // stride, array.reshape(-1)[start * inner :]
        return pitch, _in_place(flat, wide, step, block, (rows - 1) * pitch + count)
    pitch = -(-span // (stride * block)) * block
    if slides(pitch):
        return pitch, _laid(array, kept, start, wrap, wide, step, pitch // block)
    blocks = -(-count // block)
    return blocks * block, _copied(array, kept, start, wrap, wide, step, blocks)


def _as_they_lie(flat: Any, wide: Any, step: Any, first: Any, count: Any) -> Any:
    """Count windows of wide elements, step apart, with their places from the first on: such as do not overlap."""
    windows = np.ndarray((count, wide), flat.dtype, flat, 0, (step * flat.itemsize, flat.itemsize))
    apart = -(-wide // step)
    return ((slice(first + n, first + count, apart), windows[n::apart]) for n in range(apart))


def _in_place(flat: Any, wide: Any, step: Any, block: Any, count: Any) -> Any:
    """Full blocks of count windows as they lie, and the one that is left, over zeros."""
    blocks = count // block
    yield from _as_they_lie(flat, wide, step, 0, blocks)
    if count % block:
        last = np.zeros((1, wide), flat.dtype)
        part = flat[blocks * step :][:wide]
        last[0, : len(part)] = part
        yield slice(blocks, blocks + 1), last


def _laid(array: Any, kept: Any, start: Any, wrap: Any, wide: Any, step: Any, blocks: Any) -> Any:
    """Blocks of windows as they lie in rows that are laid out end to end, each row as long as its blocks."""
    length = blocks * step // math.prod(array.shape[kept + 1 :])
    for first, rows, flat in _pieces(array, kept, start, wrap, length, max(0, wide - step), blocks * step):
        yield from _as_they_lie(flat, wide, step, first * blocks, rows * blocks)


def _copied(array: Any, kept: Any, start: Any, wrap: Any, wide: Any, step: Any, blocks: Any) -> Any:
    """Blocks of windows of each row on its own, copied where they overlap."""
    row, few = (blocks - 1) * step + wide, max(16, CHUNK // wide)
    length = row // math.prod(array.shape[kept + 1 :])
    for first, rows, flat in _pieces(array, kept, start, wrap, length, 0, blocks * wide):
        strides = row * flat.itemsize, step * flat.itemsize, flat.itemsize
        windows, place = np.ndarray((rows, blocks, wide), flat.dtype, flat, 0, strides), first * blocks
        for low in range(0, blocks, few):
            part = windows[:, low : low + few].reshape(-1, wide)
            yield slice(place, place + len(part)), part
            place += len(part)


def _pieces(array: Any, kept: Any, start: Any, wrap: Any, length: Any, spare: Any, room: Any) -> Any:
    """Rows of length elements, from start on along the axis after the kept ones, some at a time in the same memory.

    As many as take CHUNK elements, with room for each: the number of the first, how many, and all their elements in
    order, with spare ones after the last.
    """
    split = kept
    while split > 1 and room * array.shape[split - 1] <= CHUNK:
        split -= 1
        room *= array.shape[split]
    many, shape = min(array.shape[split - 1], max(1, CHUNK // room)), array.shape[split:kept]
    number, each = 0, math.prod(shape)
    shape = (many, *shape, length, *array.shape[kept + 1 :])
    flat = np.zeros(math.prod(shape) + spare, array.dtype)
    rows = flat[: math.prod(shape)].reshape(shape)
    for lead in np.ndindex(*array.shape[: split - 1]):
        for n in range(0, array.shape[split - 1], many):
            part = array[(*lead, slice(n, n + many))]
            _lay(rows[: len(part)], part, kept - split + 1, start, wrap)
            yield number, len(part) * each, flat
            number += len(part) * each


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
    long = max(1, min(count, CHUNK // 4 // wide))
    many = max(1, CHUNK // 4 // max(long * wide, least))
    return [(slice(n, n + many), slice(m, m + long)) for n in range(0, rows, many) for m in range(0, count, long)]


def _window_sums(array: Any, kept: Any, start: Any, stride: Any, weights: Any, count: Any) -> Any:
    """Σ array[…, start + stride·i + k, …]·weights[k, …] over k and the axes after; i < count, after the kept axes."""
    width, inner, outer = len(weights), math.prod(array.shape[kept + 1 :]), weights.shape[array.ndim - kept :]
    rows = array.reshape(math.prod(array.shape[:kept]), array.shape[kept], inner)
    matrix = weights.reshape(width, inner, math.prod(outer))
    result = np.zeros((len(rows), count, matrix.shape[2]), np.result_type(array, weights))
    for some, places in _some(len(rows), count, max(1, *matrix.shape[1:]), 1):
        sums = result[some, places]
        for k, place, part in _each_lag(rows[some], start + stride * places.start, stride, width, sums.shape[1]):
            sums[:, place] += part @ matrix[k]
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


def _short(rows: Any, start: Any, wrap: Any, weights: Any, count: Any) -> Any:
    """Σ rows[:, start + i + k]·weights[k] for i < count, some rows at a time, laid end to end, as one vector."""
    span = count + len(weights) - 1

    def product(part: Any) -> Any:
        flat = _slide(part.reshape(-1), 0, weights, part.size - len(weights) + 1)
        return np.lib.stride_tricks.as_strided(flat, (len(part), count), (span * flat.itemsize, flat.itemsize))

    if start == 0 and span == rows.shape[1]:
        return product(rows)
    result, many = np.empty((len(rows), count), np.result_type(rows, weights)), max(1, CHUNK // 2 // span)
    room = np.zeros((min(many, len(rows)), span), rows.dtype)
    for n in range(0, len(rows), many):
        part = rows[n : n + many]
        result[n : n + many] = product(_lay(room[: len(part)], part, 1, start, wrap))
    return result


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


def _correlate(array: Any, kept: Any, start: Any, stride: Any, wrap: Any, weights: Any, count: Any) -> Any:
    """Σ array[…, start + stride·i + k, …]·weights[k, …] over k and the axes after; i < count, after the kept axes."""
    if not kept:
        return _correlate(array[None], 1, start, stride, wrap, weights, count)[0]
    width, summed = len(weights), array.ndim - kept
    shape, dtype = (*array.shape[:kept], count, *weights.shape[summed:]), np.result_type(array, weights)
    if 0 in (*shape, *array.shape, *weights.shape):
        return np.zeros(shape, dtype)
    if width > array.shape[kept] and not wrap:
        result = _exchanged(array, kept, start, stride, weights, count)
        return result if np.isfinite(result).all() else _plainly(array, kept, start, stride, wrap, weights, count)
    if width <= 7 and summed == weights.ndim == stride == 1 and dtype.kind == "f" and np.isfinite(weights).all():
        return _short(array.reshape(-1, array.shape[kept]), start, wrap, weights, count).reshape(shape)
    result = _by_blocks(array, kept, start, stride, wrap, weights, count)
    return _plainly(array, kept, start, stride, wrap, weights, count) if result is None else result.reshape(shape)


def _by_blocks(array: Any, kept: Any, start: Any, stride: Any, wrap: Any, weights: Any, count: Any) -> Any:
    """_correlate, its windows multiplied by blocks; None where an element is infinite or nan."""
    width, summed = len(weights), array.ndim - kept
    matrix = weights.reshape(width, math.prod(weights.shape[1:summed]), -1)
    inner, outer = matrix.shape[1:]
    block = _block_size(width, inner, outer, stride, count)
    pitch, blocks = _windows(array, kept, start, stride, wrap, width, count, block)
    total, band = math.prod(array.shape[:kept]) * pitch, _band(matrix, block, stride)
    dtype = np.result_type(array, weights)
    result = np.empty((-(-total // block), block * outer), dtype)
    with np.errstate(invalid="ignore"):
        for place, rows in blocks:
            np.matmul(rows, band, out=result[place])
    if not np.isfinite(np.vdot(result, result)):
        return None
    result = result.reshape(-1)[: total * outer].reshape(*array.shape[:kept], pitch, outer)
    return result[(slice(None),) * kept + (slice(count),)]


def _plainly(array: Any, kept: Any, start: Any, stride: Any, wrap: Any, weights: Any, count: Any) -> Any:
    """_correlate by _window_sums, some rows at a time: what is infinite or nan is in the windows alone that have it."""
    span, summed = (count - 1) * stride + len(weights), array.ndim - kept
    result = np.zeros((*array.shape[:kept], count, *weights.shape[summed:]), np.result_type(array, weights))

    def add(result: Any, array: Any, kept: Any) -> Any:
        row = span * math.prod(array.shape[1:kept]) * math.prod(array.shape[kept + 1 :])
        if kept > 1 and row > CHUNK:
            for to, part in zip(result, array, strict=True):
                add(to, part, kept - 1)
            return
        many = max(1, CHUNK // row)
        for n in range(0, len(array), many):
            rows = array[n : n + many]
            rows, first = (_stretch(rows, kept, start, span, wrap), 0) if wrap else (rows, start)
            result[n : n + many] = _window_sums(rows, kept, first, stride, weights, count)

    add(result, array, kept)
    return result


def _exchanged(array: Any, kept: Any, start: Any, stride: Any, weights: Any, count: Any) -> Any:
    """_correlate with the weights as what the array slides along, backwards, for an array shorter than windows are."""
    summed = array.ndim - kept
    outer = weights.ndim - summed
    along = weights.transpose(*range(summed, weights.ndim), *range(summed))
    factors = array.transpose(*range(kept, array.ndim), *range(kept))
    found = _correlate(along, outer, -start - stride * (count - 1), stride, 0, factors, count)
    found = found[(slice(None),) * outer + (slice(None, None, -1),)]
    return found.transpose(*range(outer + 1, found.ndim), outer, *range(outer))


def _by_phases(array: Any, kept: Any, start: Any, stride: Any, other: Any, width: Any) -> Any:
    """_lags with k = stride·q + r: the array, some elements of each phase r, multiplies windows of the other one."""
    size, turns = array.shape[kept], -(-width // stride)
    first = -((start + stride - 1) // stride)
    many = max(1, (size - 1 - start) // stride + 1 - first)
    laid = _stretch(array, kept, start + stride * first, many * stride, 0)
    laid = laid.reshape(*array.shape[:kept], many, stride, *array.shape[kept + 1 :])
    weights = laid.transpose(kept, *range(kept), *range(kept + 1, laid.ndim))
    outer = other.ndim - kept - 1
    along = other.transpose(*range(kept + 1, other.ndim), kept, *range(kept))
    found = _correlate(along, outer, first - (turns - 1), 1, 0, weights, turns)
    found = found[(slice(None),) * outer + (slice(None, None, -1),)]
    found = found.transpose(*range(outer, found.ndim), *range(outer))
    return found.reshape(turns * stride, *found.shape[2:])[:width]


def _lags(array: Any, kept: Any, start: Any, stride: Any, wrap: Any, other: Any, width: Any) -> Any:
    """Σ array[…, start + stride·i + k, …]·other[…, i, …] over i and the kept axes, the first of both; k < width."""
    if not kept:
        return _lags(array[None], 1, start, stride, wrap, other[None], width)
    count, dtype = other.shape[kept], np.result_type(array, other)
    shape = (width, *array.shape[kept + 1 :], *other.shape[kept + 1 :])
    if 0 in (*shape, *array.shape, *other.shape):
        return np.zeros(shape, dtype)
    if not wrap and (array.shape[kept] + 2 * stride) * width < count * width * stride / 2:
        result = _by_phases(array, kept, start, stride, other, width)
        return result if np.isfinite(result).all() else _lags_plainly(array, kept, start, stride, wrap, other, width)
    if width <= 11 and len(shape) == 1:
        result = _few_lags(array, kept, start, stride, wrap, other, width)
        return result if np.isfinite(result).all() else _lags_plainly(array, kept, start, stride, wrap, other, width)
    inner, outer = math.prod(array.shape[kept + 1 :]), math.prod(other.shape[kept + 1 :])
    block = _block_size(width, inner, outer, stride, count)
    pitch, blocks = _windows(array, kept, start, stride, wrap, width, count, block)
    total = math.prod(other.shape[:kept]) * pitch
    factors = np.zeros((-(-total // block), block * outer), other.dtype)
    laid = factors.reshape(-1)[: total * outer].reshape(*other.shape[:kept], pitch, *other.shape[kept + 1 :])
    laid[(slice(None),) * kept + (slice(count),)] = other
    product = np.zeros((block * outer, ((block - 1) * stride + width) * inner), dtype)
    with np.errstate(invalid="ignore"):
        for place, rows in blocks:
            product += factors[place].T @ rows
    if not np.isfinite(np.vdot(product, product)):
        return _lags_plainly(array, kept, start, stride, wrap, other, width)
    product = product.reshape(block, outer, -1, inner)
    down, two, right, one = product.strides
    strides = (down + stride * right, right, one, two)
    diagonals = np.lib.stride_tricks.as_strided(product, (block, width, inner, outer), strides)
    return diagonals.sum(0, dtype).reshape(shape)


def _few_lags(array: Any, kept: Any, start: Any, stride: Any, wrap: Any, other: Any, width: Any) -> Any:
    """_lags of a few k, without other axes, by what slides along the array as it lies."""
    count = other.shape[kept]
    rows = _stretch(array, kept, start, (count - 1) * stride + width, wrap)
    if count >= 512 and stride == 1 and np.result_type(rows, other).kind == "f":
        pairs = zip(rows.reshape(-1, rows.shape[-1]), other.reshape(-1, count), strict=True)
        return sum(_slide(row, 0, factors, width) for row, factors in pairs)
    strides = (*rows.strides[:-1], stride * rows.strides[-1], rows.strides[-1])
    windows = np.lib.stride_tricks.as_strided(rows, (*other.shape, width), strides, writeable=False)
    return np.einsum(windows, list(range(kept + 2)), other, list(range(kept + 1)), [kept + 1])


def _lags_plainly(array: Any, kept: Any, start: Any, stride: Any, wrap: Any, other: Any, width: Any) -> Any:
    """_lags by _lag_sums: what is infinite or nan is in those alone that have it."""
    if wrap:
        array, start = _stretch(array, kept, start, (other.shape[kept] - 1) * stride + width, wrap), 0
    return _lag_sums(array, kept, start, stride, other, width)
