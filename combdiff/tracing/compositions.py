"""NumPy's functions that are a few words of other functions of NumPy's, on traced tensors.

    np.average(x, weights=w)     Σ w x / Σ w
    np.degrees(x)                180/π x
    np.ptp(x)                    x.max() − x.min()

Invariant: value, shape and keywords are NumPy's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import combdiff.tracing.rearranging as rearranging
from combdiff.errors import TypeMismatchError
from combdiff.tracing import functions as cd
from combdiff.tracing.numpy_protocol import HANDLERS, SCIPY_HANDLERS
from combdiff.tracing.truths import where
from combdiff.tracing.values import Value, lift, traced


def _average(a: Any, axis: Any = None, weights: Any = None, *, keepdims: bool = False) -> Any:
    if weights is None:
        return HANDLERS[np.mean](a, axis, keepdims)
    value, along = traced(a), traced(weights)
    if along.ndim != value.ndim:
        if not isinstance(axis, int) or along.ndim != 1:
            raise TypeMismatchError(
                f"np.average of a tensor of order {value.ndim} with weights of order {along.ndim}",
                hint="give weights of the tensor's shape, or a vector and one axis",
            )
        shape: list[Any] = [None] * value.ndim
        shape[axis] = slice(None)
        along = along[tuple(shape)]
    along = HANDLERS[np.broadcast_to](along, value.space.axes)
    return (value * along).sum(axis, keepdims) / along.sum(axis, keepdims)


def _append(arr: Any, values: Any, axis: int | None = None) -> Any:
    return HANDLERS[np.concatenate]([arr, values], axis)


def _dstack(tup: Sequence[Any]) -> Any:
    return HANDLERS[np.concatenate]([_at_least_3d(each) for each in tup], 2)


def _at_least_3d(a: Any) -> Value:
    value = traced(a)
    if value.ndim == 0:
        return value[None, None, None]
    return value[None, :, None] if value.ndim == 1 else value[..., None] if value.ndim == 2 else value


def _rollaxis(a: Any, axis: int, start: int = 0) -> Any:
    order = traced(a).ndim
    source, target = axis % order, start + order if start < 0 else start
    return HANDLERS[np.moveaxis](a, source, target - 1 if source < target else target)


def _fftshift(x: Any, axes: Any = None) -> Any:
    return _rolled_by_half(x, axes, 1, "np.fft.fftshift")


def _ifftshift(x: Any, axes: Any = None) -> Any:
    return _rolled_by_half(x, axes, -1, "np.fft.ifftshift")


def _rolled_by_half(x: Any, axes: Any, sign: int, name: str) -> Any:
    value = traced(x)
    chosen = list(range(value.ndim) if axes is None else [axes] if isinstance(axes, int) else axes)
    places = [rearranging.axis_of(lift(value), axis, name) for axis in chosen]
    halves = [rearranging.length(value.space.axes[place], name) // 2 for place in places]
    return HANDLERS[np.roll](value, [sign * half for half in halves], places) if places else value


def _select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Any:
    found = default
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        found = where(condition, choice, found)
    return found


def _ptp(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    return HANDLERS[np.max](a, axis, keepdims) - HANDLERS[np.min](a, axis, keepdims)


def _trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    value = HANDLERS[np.moveaxis](traced(y), axis, -1)
    widths = dx if x is None else HANDLERS[np.diff](x)
    return ((value[..., 1:] + value[..., :-1]) * widths / 2).sum(-1)


def _nan_sum(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    value = traced(a)
    return where(HANDLERS[np.isnan](value), 0, value).sum(axis, keepdims)


def _polyval(p: Any, x: Any) -> Any:
    coefficients = traced(p)
    found: Any = 0 * traced(x)
    for n in range(len(coefficients)):
        found = found * x + coefficients[n]
    return found


def _vecdot(x1: Any, x2: Any, axis: int = -1) -> Any:
    return (traced(x1).conj() * x2).sum(axis)


def _special(name: str, *values: Any) -> Any:
    return SCIPY_HANDLERS[name](*values)


def _rel_entr(x: Any, y: Any) -> Any:
    """x log(x / y), each logarithm by itself, so that neither quotient nor product leaves the range of numbers."""
    return _special("xlogy", x, x) - _special("xlogy", x, y)


SCIPY_HANDLERS.update(
    {
        "cbrt": lambda x: np.cbrt(x),
        "exp2": lambda x: np.exp2(x),
        "expm1": lambda x: np.expm1(x),
        "log1p": lambda x: np.log1p(x),
        "beta": lambda a, b: _special("gamma", a) * _special("gamma", b) / _special("gamma", a + b),
        "entr": lambda x: -_special("xlogy", x, x),
        "rel_entr": _rel_entr,
        "kl_div": lambda x, y: _rel_entr(x, y) - x + y,
    }
)
HANDLERS.update(
    {
        np.copy: lambda a, order="K", subok=False: traced(a),
        np.fabs: cd.abs,
        np.degrees: lambda x: x * (180 / math.pi),
        np.rad2deg: lambda x: x * (180 / math.pi),
        np.radians: lambda x: x * (math.pi / 180),
        np.deg2rad: lambda x: x * (math.pi / 180),
        np.logaddexp2: lambda x1, x2: cd.logaddexp(x1 * math.log(2), x2 * math.log(2)) / math.log(2),
        np.average: _average,
        np.append: _append,
        np.dstack: _dstack,
        np.atleast_3d: _at_least_3d,
        np.rollaxis: _rollaxis,
        np.fft.fftshift: _fftshift,
        np.fft.ifftshift: _ifftshift,
        np.select: _select,
        np.ptp: _ptp,
        np.trapezoid: _trapezoid,
        np.nansum: _nan_sum,
        np.polyval: _polyval,
        np.vecdot: _vecdot,
        np.matrix_transpose: lambda x: HANDLERS[np.swapaxes](x, -1, -2),
    }
)
for _name in ("vecdot", "matrix_transpose"):
    HANDLERS[getattr(np.linalg, _name)] = HANDLERS[getattr(np, _name)]
