"""Sums of the numbers that belong together: to one bin, or to one stretch of an axis.

    np.bincount(b, weights=w)     (k) ↦ Σ_i δ(k, b[i]) w[i]
    np.add.reduceat(x, [0, 3])    x[:3].sum(), x[3:].sum()

Invariant: value and shape are NumPy's; how many sums there are is known before the program is given any numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import combdiff.tracing.arrays as arrays
import combdiff.tracing.rearranging as rearranging
from combdiff.errors import TypeMismatchError, UnsupportedError
from combdiff.ir import ONE, Range, Term, axes_of, delta, describe, mul, total
from combdiff.tracing.context import current
from combdiff.tracing.functions import is_traced
from combdiff.tracing.numpy_protocol import HANDLERS, UFUNC_METHODS
from combdiff.tracing.reading import constant_indices
from combdiff.tracing.values import Value, lift, traced, wrap


def _bincount(x: Any, /, weights: Any = None, minlength: int = 0) -> Value:
    """As many sums as NumPy finds for known bins, and `minlength` of them for bins that are given with a call."""
    if is_traced(x):
        bins, count = lift(x), minlength
        _check_bins(bins, wrap(bins).space.dtype is int)
        if not count:
            raise UnsupportedError(
                "np.bincount of bins that are a parameter: how many there are depends on the values",
                hint="say how many there are, np.bincount(b, weights=w, minlength=8)",
            )
    else:
        known = np.asarray(x)
        count = max(minlength, int(known.max(initial=-1)) + 1)
        bins = constant_indices(known, Range(count))
        _check_bins(bins, known.dtype.kind in "iu" and not (known < 0).any())
    return wrap(_summed(bins, None if weights is None else lift(weights), count))


def _check_bins(bins: Term, counted: bool) -> None:
    if not counted or len(axes_of(bins)) != 1:
        raise TypeMismatchError(
            f"np.bincount of {describe(bins)}: bins are a row of whole numbers from 0 on",
            hint="declare them as cd.Space(n, dtype=int)",
        )


def _summed(bins: Term, numbers: Term | None, count: int) -> Term:
    """The sums of those of the numbers, ones where there are none, that are in each of so many bins."""
    (axis,), (own, *rest) = axes_of(bins), axes_of(numbers) if numbers else axes_of(bins)
    if own != axis:
        raise TypeMismatchError(
            f"np.bincount of {describe(bins)} with weights of {describe(numbers)}",  # type: ignore[arg-type]
            hint="give as many weights as there are places",
        )
    place, source, *others = current("np.bincount").fresh_indices([Range(count), axis, *rest])
    number = arrays.element(numbers, (source, *others)) if numbers else ONE
    hit = delta(place, arrays.element(bins, (source,)), Range(count))
    return arrays.tabulate((place, *others), total([source], mul(hit, number)))


def _add_reduceat(ufunc: np.ufunc, array: Any, indices: Any, axis: int = 0, dtype: Any = None) -> Value:
    """Sums from each of the given places up to the next of them, as `numpy.add.reduceat`, for places that ascend."""
    starts = indices if is_traced(indices) else np.asarray(indices)
    if ufunc is not np.add or dtype is not None or is_traced(starts) or not (np.diff(starts) > 0).all():
        raise UnsupportedError(
            f"np.{ufunc.__name__}.reduceat is not supported in a program, but for sums from known places, in ascending "
            "order, each up to the next",
            hint="write the parts, np.stack([x[:3].max(), x[3:].max()])",
        )
    value = HANDLERS[np.moveaxis](traced(array), axis, 0)
    size = rearranging.length(value.space.axes[0], "np.add.reduceat")
    bins = np.searchsorted(starts, np.arange(starts[0], size), side="right") - 1
    sums = _summed(constant_indices(bins, Range(len(starts))), value[starts[0] :].live(), len(starts))
    return HANDLERS[np.moveaxis](wrap(sums), 0, axis)  # type: ignore[no-any-return]


HANDLERS[np.bincount] = _bincount
UFUNC_METHODS["reduceat"] = _add_reduceat
