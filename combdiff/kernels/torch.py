"""Kernels on PyTorch's tensors, which autograd goes through: what `kernels.numpy` has under the same names.

    _gather(x, ((0, (2,), 1, 0),), (3,))      x[0], x[2], x[4], zeros outside
    _on_host(solver, given, dtype)            what NumPy solves, brought there and back

Invariant: no kernel writes to its arguments; new tensors are on their device.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import torch

from combdiff.kernels.boxes import _kept_parts, _product_of_kept, _product_parts, _selection
from combdiff.kernels.positions import _folded, _gathered


def _arange_of(array: Any) -> Any:
    """torch.arange on the device of a tensor."""
    return functools.partial(torch.arange, device=array.device)


def _gather(array: Any, axes: Any, shape: Any) -> Any:
    """array at positions (start + steps · t) / divisor along each axis; zeros outside and between the elements."""
    if 0 in shape or 0 in array.shape:
        return array.new_zeros(shape)
    return _gathered(torch, _arange_of(array), array, axes, shape)


def _scatter(values: Any, index: Any, size: Any) -> Any:
    """The sum of values at each index below size; the axes of index come first in values."""
    flat, rest = index.reshape(-1), values.shape[index.ndim :]
    return values.new_zeros((size, *rest)).index_add(0, flat, values.reshape(flat.shape + rest))


def _fold(array: Any, stride: Any, start: Any, size: Any) -> Any:
    """The sums of the elements (i, j, …) at stride·i + j + start along one axis of that size, for the first two."""
    return _folded(torch, array.new_zeros, array, stride, start, size)


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


def _placed(part: Any, slices: Any, shape: Any) -> Any:
    """Zeros of a shape, with a part at slices of it."""
    result = part.new_zeros(shape)
    result[slices] = part
    return result


def _keep(array: Any, conditions: Any) -> Any:
    """An array at the positions at which conditions hold; zeros elsewhere. Boxes of several multiples may overlap."""
    result = torch.zeros_like(array)
    for box, part in _kept_parts(torch, _arange_of(array), array, conditions):
        result[box] += part
    return result


def _either(holds: Any, one: Any, other: Any) -> Any:
    """What `other` gives, which is right in either case: to look at values would cut what torch.compile compiles."""
    return other()


def _masked_product(product: Any, parts: Any, masks: Any, spared: Any = None) -> Any:
    """The product of parts where their masks hold: what stands beside has no share, even if it is infinite or nan."""
    return _product_of_kept(torch, _either, product, parts, masks, spared)


def _within(function: Any, arrays: Any, patterns: Any, out: Any, sizes: Any, conditions: Any, hosts: Any) -> Any:
    """The function of arrays, a product summed over labels, of the positions alone at which conditions hold."""
    selected = functools.partial(_selection, (torch, _arange_of(arrays[0]), _either))
    result = sum(array.new_zeros(()) for array in arrays).new_zeros([sizes[label] for label in out])
    for box, part in _product_parts(selected, function, arrays, patterns, out, sizes, conditions, hosts):
        result[box] += part
    return result
