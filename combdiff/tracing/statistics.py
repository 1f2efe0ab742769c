"""NumPy's functions of samples, and of numbers some of which are none, on traced tensors.

    np.cov(X)                  (X − mean)(X − mean)ᴴ / (N − 1)
    np.nanmean(x)              Σ [x = x] x / Σ [x = x]
    np.count_nonzero(x > 0)    Σ [x > 0]

Invariant: value, shape and keywords are NumPy's.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from combdiff.errors import UnsupportedError
from combdiff.tracing import functions as cd
from combdiff.tracing.numpy_protocol import HANDLERS
from combdiff.tracing.truths import where
from combdiff.tracing.values import on_parts, traced


def _cov(
    m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: int | None = None, **weights: Any
) -> Any:
    if any(given is not None for given in weights.values()):
        raise UnsupportedError("np.cov with weights is not supported in a program", hint="multiply the samples by them")
    parts = [_rows(traced(each), rowvar) for each in (m, y) if each is not None]
    X: Any = parts[0] if len(parts) == 1 else np.concatenate(parts, 0)
    away = X - X.mean(axis=1, keepdims=True)
    freedom = ddof if ddof is not None else 0 if bias else 1
    found = away @ np.swapaxes(away, 0, 1).conj() / (X.shape[1] - freedom)
    return found[0, 0] if _is_one(X.shape[0]) else found


def _is_one(size: Any) -> bool:
    return isinstance(size, int) and size == 1


def _rows(value: Any, rowvar: bool) -> Any:
    if value.ndim < 2:
        return value[None]
    return value if rowvar or _is_one(value.shape[0]) else value.T


def _corrcoef(x: Any, y: Any = None, rowvar: bool = True) -> Any:
    found = _cov(x, y, rowvar)
    if not found.ndim:
        return found / found
    deviations = cd.sqrt(cd.real(np.diagonal(found)))
    return found / deviations[:, None] / deviations[None, :]


def _count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    return where(traced(a) != 0, 1, 0).sum(axis, keepdims)


def _numbers(a: Any, otherwise: Any) -> tuple[Any, Any]:
    """The elements, another number for those that are no number, and 1 where there is one."""
    value = traced(a)
    missing = HANDLERS[np.isnan](value)
    return where(missing, otherwise, value), where(missing, 0, 1)


def _nanmean(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    numbers, there = _numbers(a, 0)
    return numbers.sum(axis, keepdims) / there.sum(axis, keepdims)


def _nanvar(a: Any, axis: Any = None, *, ddof: float = 0, keepdims: bool = False) -> Any:
    numbers, there = _numbers(a, 0)
    mean = numbers.sum(axis, True) / there.sum(axis, True)
    square = abs(where(HANDLERS[np.isnan](traced(a)), 0, numbers - mean)) ** 2
    return square.sum(axis, keepdims) / (there.sum(axis, keepdims) - ddof)


def _nanstd(a: Any, axis: Any = None, *, ddof: float = 0, keepdims: bool = False) -> Any:
    return cd.sqrt(_nanvar(a, axis, ddof=ddof, keepdims=keepdims))


def _of_numbers(function: Any, otherwise: float) -> Any:
    def reduced(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
        return HANDLERS[function](_numbers(a, otherwise)[0], axis, keepdims)

    return reduced


def _running_of_numbers(function: Any, otherwise: float) -> Any:
    return lambda a, axis=None: HANDLERS[function](_numbers(a, otherwise)[0], axis)


def _nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    """np.nan_to_num, of complex numbers part by part."""
    value = traced(x)
    if value.space.dtype is complex:
        return on_parts(lambda part: _nan_to_num(part, copy, nan, posinf, neginf), value)
    largest = float(np.finfo(np.float64).max)
    found = where(HANDLERS[np.isnan](value), nan, value)
    found = where(value == math.inf, largest if posinf is None else posinf, found)
    return where(value == -math.inf, -largest if neginf is None else neginf, found)


HANDLERS.update(
    {
        np.cov: _cov,
        np.corrcoef: _corrcoef,
        np.count_nonzero: _count_nonzero,
        np.nanmean: _nanmean,
        np.nanvar: _nanvar,
        np.nanstd: _nanstd,
        np.nanprod: _of_numbers(np.prod, 1),
        np.nanmax: _of_numbers(np.max, -math.inf),
        np.nanmin: _of_numbers(np.min, math.inf),
        np.nancumsum: _running_of_numbers(np.cumsum, 0),
        np.nancumprod: _running_of_numbers(np.cumprod, 1),
        np.nan_to_num: _nan_to_num,
    }
)
