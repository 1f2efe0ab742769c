"""Plain NumPy helpers that emitted source carries with it: reading arrays at affine positions, solvers, matrices.

    _view(x, ((-1, (1, 1), 0),), (4, 3))          x of 5 elements
    = the 4 × 3 array of x[i + k − 1], a strided view of x with a 0 put before and after

Each axis of the array is given by `(start, steps, wrap)` (with a divisor for `_gather`): it is read at
`start + Σ steps[n]·t[n]`, modulo its length where `wrap` is set; outside the array there are zeros.

Functions of matrices come from `numerics`, where programs find them too.

Invariant: a helper never writes to its argument; reading never fails, whatever the sizes are.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import cache

from combdiff.ir import adjugate, inverse, linear_solve, logdet_positive, wrapped

VIEW = '''\
def _view(array, axes, shape):
    """array at positions start + steps · t (wrapped or not) along each axis; zeros outside; a view if it can be."""
    if 0 in shape:
        return {np}.zeros(shape, array.dtype)
    origin = []
    for axis, (start, steps, wrap) in enumerate(axes):
        size = array.shape[axis]
        low = start + sum(min(0, step * (n - 1)) for step, n in zip(steps, shape))
        high = start + sum(max(0, step * (n - 1)) for step, n in zip(steps, shape))
        if low < 0 or high >= size:
            if wrap and size:
                array = _wrapped(array, axis, low, high + 1 - low)
            else:
                first, total = max(low, 0), high + 1 - low
                inner = array[(slice(None),) * axis + (slice(first, max(high + 1, first)),)]
                before = min(first - low, total)
                after = total - before - inner.shape[axis]
                array = {np}.pad(inner, [(before, after) if n == axis else (0, 0) for n in range(array.ndim)])
            start -= low
        origin.append(slice(start, None))
    strides = [sum(steps[n] * stride for (_, steps, _), stride in zip(axes, array.strides)) for n in range(len(shape))]
    return {np}.lib.stride_tricks.as_strided(array[tuple(origin)], shape, strides{flags})
'''

GATHER = '''\
def _gather(array, axes, shape):
    """array at positions (start + steps · t) / divisor along each axis; zeros outside and between the elements."""
    if 0 in shape or 0 in array.shape:
        return {np}.zeros(shape, array.dtype)
    grid = {np}.indices(shape, sparse=True)
    inside, index = True, []
    for size, (start, steps, divisor, wrap) in zip(array.shape, axes):
        position = start + sum(step * t for step, t in zip(steps, grid))
        inside = inside & (position % divisor == 0)
        position = position // divisor % size if wrap else position // divisor
        inside = inside & (position >= 0) & (position < size)
        index.append({np}.clip(position, 0, size - 1))
    return {np}.where(inside, array[tuple(index)], array.dtype.type(0))
'''

TORCH_GATHER = '''\
def _gather(array, axes, shape):
    """array at positions (start + steps · t) / divisor along each axis; zeros outside and between the elements."""
    if 0 in shape or 0 in array.shape:
        return array.new_zeros(shape)
    ranges = [torch.arange(n, device=array.device) for n in shape]
    grid = [t.reshape([-1 if n == axis else 1 for n in range(len(shape))]) for axis, t in enumerate(ranges)]
    inside, index = torch.ones((), dtype=torch.bool, device=array.device), []
    for size, (start, steps, divisor, wrap) in zip(array.shape, axes):
        position = sum((step * t for step, t in zip(steps, grid)), torch.tensor(start, device=array.device))
        inside = inside & (position % divisor == 0)
        position = position // divisor
        position = position % size if wrap else position
        inside = inside & (position >= 0) & (position < size)
        index.append(position.clamp(0, size - 1))
    return torch.where(inside, array[tuple(index)], 0)
'''

_CONTRACT = '''\
def _contract(subscripts, left, right):
    """einsum of two chunked arrays: chunk by chunk, what chunks along summed axes give is added pair by pair."""
    inputs, output = subscripts.split("->")
    labels = inputs.split(",")
    summed = [label for label in dict.fromkeys(labels[0] + labels[1]) if label not in output]

    def partial(*blocks):
        return np.einsum(subscripts, *blocks, optimize=True)

    def product(left, right):
        arrays = [part for pair in zip((left, right), labels) for part in pair]
        kind = np.result_type(left, right)
        return da.blockwise(partial, output, *arrays, dtype=kind, concatenate=True, align_arrays=False)

    def total(left, right, axes):
        if not axes:
            return product(left, right)
        places = [text.find(axes[0]) for text in labels]
        chunks = left.chunks[places[0]]
        if len(chunks) == 1:
            return total(left, right, axes[1:])
        half = sum(chunks[: len(chunks) // 2])
        parts = []
        for part in (slice(None, half), slice(half, None)):
            cut = [array[(slice(None),) * place + (part,)] for array, place in zip((left, right), places)]
            parts.append(total(*cut, axes))
        return parts[0] + parts[1]

    _, (left, right) = da.core.unify_chunks(left, labels[0], right, labels[1], warn=False)
    return total(left, right, summed)
'''

_DIAGONAL = '''\
def _diagonal(subscripts, array):
    """The elements of an array whose indices are equal, of the array in one chunk."""
    labels, output = subscripts.split("->")
    sizes = dict(zip(labels, array.shape))
    pick = lambda block: np.einsum(subscripts, block).copy()
    return _whole(pick, array, tuple(sizes[label] for label in output))
'''

_WHOLE = '''\
def _whole(function, array, shape):
    """A function of the whole array, which gives an array of that shape."""
    block = array.rechunk(array.shape) if array.ndim else array
    dropped, added = list(range(array.ndim)), list(range(len(shape)))
    meta = np.empty((0,) * len(shape), array.dtype)
    return block.map_blocks(function, chunks=shape, drop_axis=dropped, new_axis=added, meta=meta)
'''

_DASK_GATHER = (
    GATHER.format(np="np").replace("_gather(", "_gather_block(")
    + '''\


def _gather(array, axes, shape):
    """_gather_block of an array in one chunk."""
    return _whole(lambda block: _gather_block(block, axes, shape), array, shape)
'''
)
_DASK_TAKE = '''\
def _take(array, along, indices, patterns, rank):
    """array at indices along some axes, for which `along` is None; the others become the axes of the result that it
    names, as `patterns` do for those of each index. Chunk by chunk of the result."""
    block = sorted({axis for pattern in patterns for axis in pattern})
    read = [n for n, axis in enumerate(along) if axis is None or axis in block]
    kept = [n for n in range(len(along)) if n not in read]
    labels = [*block, *(along[n] for n in kept)]

    def placed(index, pattern):
        sizes, order = dict(zip(pattern, index.shape)), sorted(range(index.ndim), key=pattern.__getitem__)
        return index.transpose(order).reshape([sizes.get(axis, 1) for axis in block])

    def pick(part, *parts):
        held = iter([placed(index, pattern) for index, pattern in zip(parts, patterns)])
        items = []
        for n in read:
            size = part.shape[n]
            items.append(placed(np.arange(size), (along[n],)) if along[n] in block else next(held))
        return part.transpose(read + kept)[tuple(items)].transpose([labels.index(axis) for axis in range(rank)])

    places = [rank + n if axis is None else axis for n, axis in enumerate(along)]
    held = [part for index, pattern in zip(indices, patterns) for part in (da.asarray(index), pattern)]
    meta = np.empty((0,) * rank, array.dtype)
    return da.blockwise(pick, tuple(range(rank)), array, places, *held, concatenate=True, meta=meta)
'''

_DASK_SCATTER = '''\
def _scatter(values, index, size):
    """The sum of values at each index below size; the axes of index come first in values. Added up chunk by chunk."""
    index = da.asarray(index)
    count = index.ndim
    summed, rest = tuple(range(count)), tuple(range(count, values.ndim))

    def partial(part, places):
        result = np.zeros((*(1,) * count, size, *part.shape[count:]), part.dtype)
        flat = places.reshape(-1)
        np.add.at(result.reshape(result.shape[count:]), flat, part.reshape(flat.shape + part.shape[count:]))
        return result

    operands = (values, (*summed, *rest), index, summed)
    lengths = {"adjust_chunks": dict.fromkeys(summed, 1), "new_axes": {values.ndim: size}}
    meta = np.empty((0,) * (values.ndim + 1), values.dtype)
    parts = da.blockwise(partial, (*summed, values.ndim, *rest), *operands, **lengths, concatenate=True, meta=meta)
    return parts.sum(axis=summed) if summed else parts
'''
DASK = {"_contract": _CONTRACT, "_diagonal": _DIAGONAL, "_gather": _DASK_GATHER, "_whole": _WHOLE}
DASK |= {"_take": _DASK_TAKE, "_scatter": _DASK_SCATTER}


@cache
def matrix_helpers(np: str) -> Mapping[str, str]:
    """The texts of numerical functions as helpers, without types, for the library with that name in the text."""
    texts = {
        f"_{function.__name__}": inspect.getsource(function)
        for function in (inverse, linear_solve, adjugate, logdet_positive, wrapped)
    }
    return {
        name: text.replace(f"def {name[1:]}(", f"def {name}(")
        .replace(": Any", "")
        .replace(" -> Any", "")
        .replace("np.", f"{np}.")
        for name, text in texts.items()
    }
