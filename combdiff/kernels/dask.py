"""Kernels on Dask's arrays, chunk by chunk: what `kernels.numpy` has under the same names.

    _contract("ij,jk->ik", A, B)              what chunks along j give, added pair by pair
    _gather(x, ((0, (2,), 1, 0),), (3,))      x[0], x[2], x[4], of x in one chunk

Those of NumPy are done within a chunk, under a name that ends in `_block`.

Invariant: nothing is computed before the user asks for it.
"""

from __future__ import annotations

import functools
from typing import Any

import dask.array as da
import numpy as np

from combdiff.kernels.numpy import _gather as _gather_block
from combdiff.kernels.numpy import _keep as _keep_block
from combdiff.kernels.numpy import _spread as _spread_block
from combdiff.kernels.numpy import _within as _within_block
from combdiff.kernels.positions import _folded
from combdiff.kernels.running import _counted, _sums
from combdiff.kernels.running import _running_exponentials as _running_exponentials_block
from combdiff.kernels.running import _running_max as _running_max_block


def _number(value: Any) -> Any:
    """What NumPy computed of a Python number as one, which widens no array; a lazy number as it is."""
    return value.item() if isinstance(value, np.generic) else value


def _contract(subscripts: Any, left: Any, right: Any) -> Any:
    """einsum of two chunked arrays: chunk by chunk, what chunks along summed axes give is added pair by pair."""
    inputs, output = subscripts.split("->")
    labels = inputs.split(",")
    summed = [label for label in dict.fromkeys(labels[0] + labels[1]) if label not in output]

    def partial(*blocks: Any) -> Any:
        return np.einsum(subscripts, *blocks, optimize=True)

    def product(left: Any, right: Any) -> Any:
        arrays = [part for pair in zip((left, right), labels, strict=True) for part in pair]
        kind = np.result_type(left, right)
        return da.blockwise(partial, output, *arrays, dtype=kind, concatenate=True, align_arrays=False)

    def total(left: Any, right: Any, axes: Any) -> Any:
        if not axes:
            return product(left, right)
        places = [text.find(axes[0]) for text in labels]
        chunks = left.chunks[places[0]]
        if len(chunks) == 1:
            return total(left, right, axes[1:])
        half = sum(chunks[: len(chunks) // 2])
        parts = []
        for part in (slice(None, half), slice(half, None)):
            one, other = (
                array[(slice(None),) * place + (part,)] for array, place in zip((left, right), places, strict=True)
            )
            parts.append(total(one, other, axes))
        return parts[0] + parts[1]

    _, (left, right) = da.core.unify_chunks(left, labels[0], right, labels[1], warn=False)
    return total(left, right, summed)


def _diagonal(subscripts: Any, array: Any) -> Any:
    """The elements of an array whose indices are equal, of the array in one chunk."""
    labels, output = subscripts.split("->")
    sizes = dict(zip(labels, array.shape, strict=True))

    def pick(block: Any) -> Any:
        return np.einsum(subscripts, block).copy()

    return _whole(pick, array, tuple(sizes[label] for label in output))


def _whole(function: Any, array: Any, shape: Any, dtype: Any = None) -> Any:
    """A function of the whole array, which gives an array of that shape; `dtype` where it is another type's."""
    block = array.rechunk(array.shape) if array.ndim else array
    dropped, added = list(range(array.ndim)), list(range(len(shape)))
    meta = np.empty((0,) * len(shape), array.dtype if dtype is None else dtype)
    return block.map_blocks(function, chunks=shape, drop_axis=dropped, new_axis=added, meta=meta)


def _gather(array: Any, axes: Any, shape: Any) -> Any:
    """_gather_block of an array in one chunk."""
    return _whole(lambda block: _gather_block(block, axes, shape), array, shape)


def _take(array: Any, along: Any, indices: Any, patterns: Any, rank: Any) -> Any:
    """array at indices along some axes, for which `along` is None; the others become the axes of the result that it
    names, as `patterns` do for those of each index. Chunk by chunk of the result."""
    block = sorted({axis for pattern in patterns for axis in pattern})
    read = [n for n, axis in enumerate(along) if axis is None or axis in block]
    kept = [n for n in range(len(along)) if n not in read]
    labels = [*block, *(along[n] for n in kept)]

    def placed(index: Any, pattern: Any) -> Any:
        sizes, order = dict(zip(pattern, index.shape, strict=True)), sorted(range(index.ndim), key=pattern.__getitem__)
        return index.transpose(order).reshape([sizes.get(axis, 1) for axis in block])

    def pick(part: Any, *parts: Any) -> Any:
        held = iter([placed(index, pattern) for index, pattern in zip(parts, patterns, strict=True)])
        items = []
        for n in read:
            size = part.shape[n]
            items.append(placed(np.arange(size), (along[n],)) if along[n] in block else next(held))
        return part.transpose(read + kept)[tuple(items)].transpose([labels.index(axis) for axis in range(rank)])

    places = [rank + n if axis is None else axis for n, axis in enumerate(along)]
    held = [part for index, pattern in zip(indices, patterns, strict=True) for part in (da.asarray(index), pattern)]
    meta = np.empty((0,) * rank, array.dtype)
    return da.blockwise(pick, tuple(range(rank)), array, places, *held, concatenate=True, meta=meta)


def _scatter(values: Any, index: Any, size: Any) -> Any:
    """The sum of values at each index below size; the axes of index come first in values. Added up chunk by chunk."""
    index = da.asarray(index)
    count = index.ndim
    summed, rest = tuple(range(count)), tuple(range(count, values.ndim))

    def partial(part: Any, places: Any) -> Any:
        result = np.zeros((*(1,) * count, size, *part.shape[count:]), part.dtype)
        flat = places.reshape(-1)
        np.add.at(result.reshape(result.shape[count:]), flat, part.reshape(flat.shape + part.shape[count:]))
        return result

    operands = (values, (*summed, *rest), index, summed)
    lengths = {"adjust_chunks": dict.fromkeys(summed, 1), "new_axes": {values.ndim: size}}
    meta = np.empty((0,) * (values.ndim + 1), values.dtype)
    parts = da.blockwise(partial, (*summed, values.ndim, *rest), *operands, **lengths, concatenate=True, meta=meta)
    return parts.sum(axis=summed) if summed else parts


def _spread(array: Any, along: Any, shape: Any) -> Any:
    """_spread_block of an array in one chunk."""
    return _whole(lambda block: _spread_block(block, along, shape), da.asarray(array), shape)


def _running(xp: Any, array: Any, axis: Any, sign: Any, bound: Any) -> Any:
    """The sums of array over the positions l along an axis with sign·l + bound ≥ 0, for each bound in its place."""
    sums, places = _sums(xp, array, axis, sign), _counted(xp, array.shape[axis], sign, bound)
    found = sums[(slice(None),) * axis + (places.reshape(-1) if places.ndim else places,)]
    return found.reshape((*sums.shape[:axis], *places.shape, *sums.shape[axis + 1 :]))


def _running_max(_: Any, array: Any, axis: Any, sign: Any, bound: Any) -> Any:
    """_running_max_block of the array in one chunk."""
    shape = (*array.shape[:axis], *bound.shape, *array.shape[axis + 1 :])
    return _at_once(lambda block, at: _running_max_block(np, block, axis, sign, at), (array, bound), shape, array.dtype)


def _running_exponentials(
    _: Any, exponent: Any, shift: Any, weight: Any, axis: Any, sign: Any, bound: Any, low: Any
) -> Any:
    """_running_exponentials_block of the arrays in one chunk."""
    summed = np.broadcast_shapes(exponent.shape, np.shape(weight))
    shape = np.broadcast_shapes((*summed[:axis], *bound.shape, *summed[axis + 1 :]), shift.shape)

    def block(one: Any, other: Any, at: Any, *terms: Any) -> Any:
        return _running_exponentials_block(np, one, other, terms[0] if terms else weight, axis, sign, at, low)

    arrays = (exponent, shift, bound, *([weight] if np.shape(weight) else []))
    return _at_once(block, arrays, shape, np.result_type(*(array.dtype for array in (*arrays[:2], *arrays[3:]))))


def _at_once(function: Any, arrays: Any, shape: Any, dtype: Any) -> Any:
    """A function of several whole arrays, which gives an array of that shape."""
    pairs, count = [], len(shape)
    for array in map(da.asarray, arrays):
        pairs += [array, tuple(range(count, count + array.ndim))]
        count += array.ndim
    labels, meta = tuple(range(len(shape))), np.empty((0,) * len(shape), dtype)
    return da.blockwise(function, labels, *pairs, new_axes=dict(enumerate(shape)), concatenate=True, meta=meta)


def _fold(array: Any, stride: Any, start: Any, size: Any) -> Any:
    """The sums of the elements (i, j, …) at stride·i + j + start along one axis of that size, for the first two."""
    return _folded(da, functools.partial(da.zeros, dtype=array.dtype), array, stride, start, size)


def _keep(array: Any, conditions: Any) -> Any:
    """_keep_block of each chunk, which is told where it begins."""
    labels = tuple(range(array.ndim))

    def block(part: Any, *places: Any) -> Any:
        return _keep_block(part, _moved(conditions, places))

    places = _places(array.shape, dict(enumerate(array.chunks)))
    meta = np.empty((0,) * array.ndim, array.dtype)
    return da.blockwise(block, labels, array, labels, *places, dtype=array.dtype, meta=meta, align_arrays=False)


def _within(function: Any, arrays: Any, patterns: Any, out: Any, sizes: Any, conditions: Any, hosts: Any) -> Any:
    """_within_block of chunks, which are told where they begin; what chunks along summed labels give is added."""
    arrays = [da.asarray(array) for array in arrays]
    pairs = [part for pair in zip(arrays, patterns, strict=True) for part in pair]
    chunks, arrays = da.core.unify_chunks(*pairs, warn=False)
    summed = tuple(label for label in range(len(sizes)) if label not in out)

    def block(*parts: Any) -> Any:
        known, shape = parts[: len(arrays)], [0] * len(sizes)
        for part, pattern in zip(known, patterns, strict=True):
            for label, size in zip(pattern, part.shape, strict=True):
                shape[label] = size
        moved = _moved(conditions, parts[len(arrays) :])
        found = _within_block(function, known, patterns, out, tuple(shape), moved, hosts)
        return found.reshape((*found.shape, *(1 for _ in summed)))

    pairs = [part for pair in zip(arrays, patterns, strict=True) for part in pair]
    labels, kind = (*out, *summed), np.result_type(*arrays)
    ones = {label: tuple(1 for _ in chunks[label]) for label in summed}
    meta = np.empty((0,) * len(labels), kind)
    places = _places(sizes, chunks)
    parts = da.blockwise(
        block, labels, *pairs, *places, dtype=kind, meta=meta, adjust_chunks=ones, align_arrays=False, concatenate=True
    )
    return parts.sum(axis=tuple(range(len(out), len(labels))))


def _places(sizes: Any, chunks: Any) -> Any:
    """The positions along each label, in its chunks, as arguments of blockwise."""
    return [part for n, size in enumerate(sizes) for part in (da.arange(size, chunks=(chunks[n],)), (n,))]


def _moved(conditions: Any, places: Any) -> Any:
    """Conditions for positions that are counted from those of a chunk."""
    first = [int(place[0]) if place.size else 0 for place in places]
    return tuple(
        (steps, start + sum(step * place for step, place in zip(steps, first, strict=True)), modulus)
        for steps, start, modulus in conditions
    )


def _on_host(solver: Any, given: Any, dtype: Any, *captures: Any) -> Any:
    """A solution that NumPy finds for arrays, each as one chunk, when it is computed."""
    from dask.delayed import delayed

    def found(given: Any, *captures: Any) -> Any:
        return np.asarray(solver(np.asarray(given), np.dtype(dtype), *captures), dtype)

    return da.from_delayed(delayed(found)(given, *captures), np.shape(given), np.dtype(dtype))


def _largest(array: Any, axes: Any) -> Any:
    """The largest element along some axes; −∞ of none."""
    if 0 in array.shape:
        return da.full([n for axis, n in enumerate(array.shape) if axis not in axes], -np.inf)
    return array.max(axes)


def _magnitude(array: Any, axes: Any, degree: Any) -> Any:
    """A power of 2 near the largest size of the finite elements along axes; 1 where its powers are safe.

    Powers of more than that degree, of sums.
    """
    sizes = da.abs(array)
    if sizes.dtype.kind != "f" or 0 in array.shape:
        return da.ones([n for axis, n in enumerate(array.shape) if axis not in axes])
    limits = np.finfo(sizes.dtype)
    safe = float(limits.max) ** (1 / (4 * degree))
    largest = da.where(da.isfinite(sizes), sizes, 0).max(axes)
    exponent = da.frexp(da.maximum(largest, limits.tiny))[1] - 1
    is_one = ((largest > 1 / safe) & (largest < safe)) | (largest == 0)
    return da.where(is_one, 1, da.ldexp(sizes.dtype.type(1), exponent))


def _part(array: Any, slices: Any) -> Any:
    """An array with zeros beside the slices of it."""
    result = da.zeros_like(array)
    result[slices] = array[slices]
    return result
