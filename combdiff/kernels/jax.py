"""Kernels on JAX's arrays, which never change: what `kernels.numpy` has under the same names.

    _scatter(k, idx, n)                       the sum of k at each index
    _on_host(solver, given, dtype)            what NumPy solves, by a callback where arrays are traced

Invariant: each kernel works under jax.jit, jax.grad and jax.vmap; nothing is decided by the values of arrays.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from combdiff.kernels.boxes import _boxes, _by_host


def _gather(array: Any, axes: Any, shape: Any) -> Any:
    """array at positions (start + steps · t) / divisor along each axis; zeros outside and between the elements."""
    if 0 in shape or 0 in array.shape:
        return jnp.zeros(shape, array.dtype)
    grid = jnp.indices(shape, sparse=True)
    inside, index = True, []
    for size, (start, steps, divisor, wrap) in zip(array.shape, axes, strict=True):
        position = start + sum(step * t for step, t in zip(steps, grid, strict=True))
        inside = inside & (position % divisor == 0)
        position = position // divisor % size if wrap else position // divisor
        inside = inside & (position >= 0) & (position < size)
        index.append(jnp.clip(position, 0, size - 1))
    return jnp.where(inside, array[tuple(index)], array.dtype.type(0))


def _scatter(values: Any, index: Any, size: Any) -> Any:
    """The sum of values at each index below size; the axes of index come first in values."""
    flat, rest = index.reshape(-1), values.shape[index.ndim :]
    return jnp.zeros((size, *rest), values.dtype).at[flat].add(values.reshape(flat.shape + rest))


def _running(array: Any, axis: Any, sign: Any, bound: Any) -> Any:
    """The sums of array over the positions l along an axis with sign·l + bound ≥ 0, for each bound in its place."""
    size = array.shape[axis]
    if sign > 0:
        array, bound = jnp.flip(array, axis), bound + (size - 1)
    none = jnp.zeros((*array.shape[:axis], 1, *array.shape[axis + 1 :]), dtype=array.dtype)
    sums = jnp.concatenate([none, jnp.cumsum(array, axis)], axis)
    return sums[(slice(None),) * axis + (jnp.clip(bound + 1, 0, size),)]


def _fold(array: Any, stride: Any, start: Any, size: Any) -> Any:
    """The sums of the elements (i, j, …) at stride·i + j + start along one axis of that size, for the first two."""
    if stride < 0:
        array, stride, start = jnp.flip(array, 0), -stride, start + stride * (array.shape[0] - 1)

    def placed(first: Any) -> Any:  # the columns from there on that lie side by side
        part = array[:, first : first + stride]
        count, width, *rest = part.shape
        if stride > width:
            gap = jnp.zeros((count, stride - width, *rest), dtype=array.dtype)
            part = jnp.concatenate([part, gap], 1)
        place = start + first
        row = part.reshape((count * stride, *rest))[max(0, -place) : max(0, size - place)]
        before = min(max(0, place), size)
        lengths = before, size - before - row.shape[0]
        ends = [jnp.zeros((length, *rest), dtype=array.dtype) for length in lengths]
        return jnp.concatenate([ends[0], row, ends[1]], 0)

    total = placed(0)
    for first in range(stride, array.shape[1], stride):
        total = total + placed(first)
    return total


def _spread(array: Any, along: Any, shape: Any) -> Any:
    """Zeros of a shape, with the array where the axes that go along one of its axes coincide."""
    sizes = [shape[along.index(n)] for n in range(max(along) + 1)]
    places = jnp.meshgrid(*map(jnp.arange, sizes), indexing="ij", sparse=True)
    return jnp.zeros(shape, array.dtype).at[tuple(places[n] for n in along)].set(array)


def _on_host(solver: Any, given: Any, dtype: Any, *captures: Any) -> Any:
    """A solution that NumPy finds for arrays, by a callback where they are traced, as an array of that type."""
    from jax import ShapeDtypeStruct, core, pure_callback

    def found(given: Any, *captures: Any) -> Any:
        solution = solver(np.asarray(given), np.dtype(dtype), *[np.asarray(value) for value in captures])
        return np.asarray(solution, dtype)

    if any(isinstance(value, core.Tracer) for value in (given, *captures)):
        result = ShapeDtypeStruct(jnp.shape(given), dtype)
        return pure_callback(found, result, given, *captures, vmap_method="sequential")
    return jnp.asarray(found(given, *captures))


def _magnitude(array: Any, axes: Any, degree: Any) -> Any:
    """A power of 2 near the largest size of the finite elements along axes; 1 where its powers are safe.

    Powers of more than that degree, of sums. No result depends on it, so that no derivative goes through it.
    """
    from jax import lax

    sizes = jnp.abs(lax.stop_gradient(array))
    if not jnp.issubdtype(sizes.dtype, jnp.floating):
        return jnp.ones([size for axis, size in enumerate(array.shape) if axis not in axes])
    limits = jnp.finfo(sizes.dtype)
    safe = float(limits.max) ** (1 / (4 * degree))
    largest = jnp.where(jnp.isfinite(sizes), sizes, 0).max(axes, initial=0)
    exponent = jnp.frexp(jnp.maximum(largest, limits.tiny))[1] - 1
    is_one = ((largest > 1 / safe) & (largest < safe)) | (largest == 0)
    return jnp.where(is_one, jnp.ones_like(largest), jnp.ldexp(jnp.ones_like(largest), exponent))


def _rescaled(array: Any, scale: Any) -> Any:
    """array / scale."""
    return array / scale


def _kept(array: Any, bounds: Any, box: Any, pattern: Any) -> Any:
    """An array over a box, with the labels of a pattern, where bounds hold; zeros elsewhere."""
    for _, steps, form, apart in bounds:
        for axis, label in enumerate(pattern):
            if steps[label]:
                places = jnp.arange(box[label].start, box[label].stop, box[label].step)
                form = form + steps[label] * places.reshape((-1, *(1,) * (len(pattern) - 1 - axis)))
        array = jnp.where(form != 0 if apart else form >= 0, array, 0)
    return array


def _selected(function: Any, parts: Any, patterns: Any, out: Any, box: Any, bounds: Any, hosts: Any) -> Any:
    """The function of parts over a box, of what meets the bounds alone; each bound is one of its host's labels.

    Where a part is infinite or nan beside what meets them, finite numbers stand for it.
    """
    own, last = _by_host(bounds, hosts, out, len(parts))
    kept = [_kept(part, group, box, pattern) for part, group, pattern in zip(parts, own, patterns, strict=True)]
    result = function(*kept)
    if any(own) and len(parts) > 1:
        whole = [_kept(jnp.ones_like(p), group, box, q) for p, group, q in zip(parts, own, patterns, strict=True)]
        finite = [jnp.isfinite(part) for part in kept]
        clean = function(*(jnp.where(well, part, 0) for well, part in zip(finite, kept, strict=True)))
        left, right = (jnp.where(well, 0, ones) for well, ones in zip(finite, whole, strict=True))
        spoilt = function(left, whole[1]) + function(whole[0], right)
        result = jnp.where(spoilt == 0, clean, result)
    return _kept(result, last, box, out)


def _part(array: Any, slices: Any) -> Any:
    """An array with zeros beside the slices of it."""
    return jnp.zeros_like(array).at[slices].set(array[slices])


@functools.partial(jax.jit, static_argnums=1)
def _keep(array: Any, conditions: Any) -> Any:
    """An array at the positions at which conditions hold; zeros elsewhere. Boxes of several multiples may overlap."""
    result = jnp.zeros_like(array)
    for box, bounds in _boxes(tuple(array.shape), conditions):
        result = result.at[box].add(_kept(array[box], bounds, box, range(array.ndim)))
    return result


@functools.partial(jax.jit, static_argnums=(0, 2, 3, 4, 5, 6))
def _within(function: Any, arrays: Any, patterns: Any, out: Any, sizes: Any, conditions: Any, hosts: Any) -> Any:
    """The function of arrays, a product summed over labels, of the positions alone at which conditions hold."""
    product = functools.partial(jnp.einsum, function)
    result = jnp.zeros([sizes[label] for label in out], jnp.result_type(*arrays))
    for box, bounds in _boxes(sizes, conditions):
        pairs = zip(arrays, patterns, strict=True)
        parts = [array[tuple(box[label] for label in p)] if p else array for array, p in pairs]
        part = _selected(product, parts, patterns, out, box, bounds, hosts) if bounds else product(*parts)
        result = result.at[tuple(box[label] for label in out)].add(part)
    return result
