"""Kernels on PyTorch's tensors, which autograd goes through: what `kernels.numpy` has under the same names.

    _gather(x, ((0, (2,), 1, 0),), (3,))      x[0], x[2], x[4], zeros outside
    _on_host(solver, given, dtype)            what NumPy solves, brought there and back

Invariant: no kernel writes to its arguments; new tensors are on their device.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from combdiff.kernels.boxes import _boxes, _by_host


def _gather(array: Any, axes: Any, shape: Any) -> Any:
    """array at positions (start + steps · t) / divisor along each axis; zeros outside and between the elements."""
    if 0 in shape or 0 in array.shape:
        return array.new_zeros(shape)
    ranges = [torch.arange(n, device=array.device) for n in shape]
    grid = [t.reshape([-1 if n == axis else 1 for n in range(len(shape))]) for axis, t in enumerate(ranges)]
    inside, index = torch.ones((), dtype=torch.bool, device=array.device), []
    for size, (start, steps, divisor, wrap) in zip(array.shape, axes, strict=True):
        position = sum(
            (step * t for step, t in zip(steps, grid, strict=True)), torch.tensor(start, device=array.device)
        )
        inside = inside & (position % divisor == 0)
        position = position // divisor
        position = position % size if wrap else position
        inside = inside & (position >= 0) & (position < size)
        index.append(position.clamp(0, size - 1))
    return torch.where(inside, array[tuple(index)], 0)


def _scatter(values: Any, index: Any, size: Any) -> Any:
    """The sum of values at each index below size; the axes of index come first in values."""
    flat, rest = index.reshape(-1), values.shape[index.ndim :]
    return values.new_zeros((size, *rest)).index_add(0, flat, values.reshape(flat.shape + rest))


def _running(array: Any, axis: Any, sign: Any, bound: Any) -> Any:
    """The sums of array over the positions l along an axis with sign·l + bound ≥ 0, for each bound in its place."""
    size = array.shape[axis]
    if sign > 0:
        array, bound = torch.flip(array, (axis,)), bound + (size - 1)
    none = torch.zeros((*array.shape[:axis], 1, *array.shape[axis + 1 :]), dtype=array.dtype, device=array.device)
    sums = torch.concatenate([none, torch.cumsum(array, axis)], axis)
    return sums[(slice(None),) * axis + (torch.clip(bound + 1, 0, size),)]


def _fold(array: Any, stride: Any, start: Any, size: Any) -> Any:
    """The sums of the elements (i, j, …) at stride·i + j + start along one axis of that size, for the first two."""
    if stride < 0:
        array, stride, start = torch.flip(array, (0,)), -stride, start + stride * (array.shape[0] - 1)

    def placed(first: Any) -> Any:  # the columns from there on that lie side by side
        part = array[:, first : first + stride]
        count, width, *rest = part.shape
        if stride > width:
            gap = torch.zeros((count, stride - width, *rest), dtype=array.dtype, device=array.device)
            part = torch.concatenate([part, gap], 1)
        place = start + first
        row = part.reshape((count * stride, *rest))[max(0, -place) : max(0, size - place)]
        before = min(max(0, place), size)
        lengths = before, size - before - row.shape[0]
        ends = [torch.zeros((length, *rest), dtype=array.dtype, device=array.device) for length in lengths]
        return torch.concatenate([ends[0], row, ends[1]], 0)

    total = placed(0)
    for first in range(stride, array.shape[1], stride):
        total = total + placed(first)
    return total


def _spread(array: Any, along: Any, shape: Any) -> Any:
    """Zeros of a shape, with the array where the axes that go along one of its axes coincide."""
    sizes = [shape[along.index(n)] for n in range(max(along) + 1)]
    axes, array = list(range(len(sizes))), array.expand(sizes)
    for n in axes[:]:
        for _ in range(along.count(n) - 1):
            place = axes.index(n)
            array = torch.diag_embed(array.movedim(place, -1), dim1=place, dim2=len(axes))
            axes.append(n)
    order = []
    for n in along:
        order.append(next(place for place, axis in enumerate(axes) if axis == n and place not in order))
    return array.permute(order)


def _on_host(solver: Any, given: Any, dtype: Any, *captures: Any) -> Any:
    """A solution that NumPy finds for tensors, as a tensor of that type on their device."""
    tensors = [value for value in (given, *captures) if torch.is_tensor(value)]
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        raise NotImplementedError("an equation is solved with NumPy, which PyTorch does not differentiate")
    arrays = [
        value.detach().resolve_conj().resolve_neg().cpu().numpy() if torch.is_tensor(value) else value
        for value in (given, *captures)
    ]
    found = np.asarray(solver(arrays[0], np.dtype(str(dtype).removeprefix("torch.")), *arrays[1:]))
    return torch.as_tensor(found, dtype=dtype, device=tensors[0].device if tensors else None)


def _largest(array: Any, axes: Any) -> Any:
    """The largest element along some axes; −∞ of none."""
    if 0 in array.shape:
        return array.new_full([n for axis, n in enumerate(array.shape) if axis not in axes], -torch.inf)
    return array.amax(axes)


def _magnitude(array: Any, axes: Any, degree: Any) -> Any:
    """A power of 2 near the largest size of the finite elements along axes; 1 where its powers are safe.

    Powers of more than that degree, of sums. No result depends on it, so that no derivative goes through it.
    """
    sizes = array.detach().abs()
    if not sizes.is_floating_point() or 0 in sizes.shape:
        kind = sizes.dtype if sizes.is_floating_point() else torch.get_default_dtype()
        return sizes.new_ones([n for axis, n in enumerate(sizes.shape) if axis not in axes], dtype=kind)
    limits = torch.finfo(sizes.dtype)
    safe = float(limits.max) ** (1 / (4 * degree))
    largest = torch.where(torch.isfinite(sizes), sizes, 0)
    largest = largest.amax(axes) if axes else largest
    exponent = torch.frexp(largest.clamp(limits.tiny))[1] - 1
    is_one = ((largest > 1 / safe) & (largest < safe)) | (largest == 0)
    return torch.where(is_one, 1, torch.ldexp(torch.ones_like(largest), exponent))


def _rescaled(array: Any, scale: Any) -> Any:
    """array / scale."""
    return array / scale


def _kept(array: Any, bounds: Any, box: Any, pattern: Any) -> Any:
    """An array over a box, with the labels of a pattern, where bounds hold; zeros elsewhere."""
    for _, steps, form, apart in bounds:
        for axis, label in enumerate(pattern):
            if steps[label]:
                places = torch.arange(box[label].start, box[label].stop, box[label].step, device=array.device)
                form = form + steps[label] * places.reshape((-1, *(1,) * (len(pattern) - 1 - axis)))
        array = torch.where(form != 0 if apart else form >= 0, array, 0)
    return array


def _selected(function: Any, parts: Any, patterns: Any, out: Any, box: Any, bounds: Any, hosts: Any) -> Any:
    """The function of parts over a box, of what meets the bounds alone; each bound is one of its host's labels.

    Where a part is infinite or nan beside what meets them, finite numbers stand for it.
    """
    own, last = _by_host(bounds, hosts, out, len(parts))
    kept = [_kept(part, group, box, pattern) for part, group, pattern in zip(parts, own, patterns, strict=True)]
    result = function(*kept)
    if any(own) and len(parts) > 1:
        whole = [_kept(torch.ones_like(p), group, box, q) for p, group, q in zip(parts, own, patterns, strict=True)]
        finite = [torch.isfinite(part) for part in kept]
        clean = function(*(torch.where(well, part, 0) for well, part in zip(finite, kept, strict=True)))
        left, right = (torch.where(well, 0, ones) for well, ones in zip(finite, whole, strict=True))
        spoilt = function(left, whole[1]) + function(whole[0], right)
        result = torch.where(spoilt == 0, clean, result)
    return _kept(result, last, box, out)


def _part(array: Any, slices: Any) -> Any:
    """An array with zeros beside the slices of it."""
    result = torch.zeros_like(array)
    result[slices] = array[slices]
    return result


def _keep(array: Any, conditions: Any) -> Any:
    """An array at the positions at which conditions hold; zeros elsewhere. Boxes of several multiples may overlap."""
    result = torch.zeros_like(array)
    for box, bounds in _boxes(tuple(array.shape), conditions):
        result[box] += _kept(array[box], bounds, box, range(array.ndim))
    return result


def _within(function: Any, arrays: Any, patterns: Any, out: Any, sizes: Any, conditions: Any, hosts: Any) -> Any:
    """The function of arrays, a product summed over labels, of the positions alone at which conditions hold."""
    result = sum(array.new_zeros(()) for array in arrays).new_zeros([sizes[label] for label in out])
    for box, bounds in _boxes(sizes, conditions):
        pairs = zip(arrays, patterns, strict=True)
        parts = [array[tuple(box[label] for label in p)] if p else array for array, p in pairs]
        part = _selected(function, parts, patterns, out, box, bounds, hosts) if bounds else function(*parts)
        result[tuple(box[label] for label in out)] += part
    return result
