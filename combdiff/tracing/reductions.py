"""The largest and smallest of numbers along axes, or over indices.

    X.max(axis=1)              amax of the rows of X, each as a matrix of one column
    cd.min(lambda j: d[i, j])  amin of (j, 0) ↦ d[i, j]

They are rows of the table of matrix functions: of the last two axes, the elements that are largest have equal shares of
the derivative.

Invariant: value and shape are NumPy's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import combdiff.tracing.arrays as arrays
import combdiff.tracing.rearranging as rearranging
from combdiff.errors import TypeMismatchError, shown
from combdiff.ir import Lambda, Primitive, Term, axes_of, describe
from combdiff.tracing.context import current
from combdiff.tracing.functions import abstracted, is_traced
from combdiff.tracing.numpy_protocol import HANDLERS, METHODS, on_arrays
from combdiff.tracing.values import Value, lift, wrap


def _extreme(name: str, tensor: Term, axis: Any, keepdims: bool) -> Term:
    order = len(axes_of(tensor))
    gone = list(range(order)) if axis is None else arrays.positions(axis, order)
    if any(not 0 <= place < order for place in gone) or len(set(gone)) != len(gone):
        raise TypeMismatchError(
            f"the axes of a largest or smallest element are {shown(axis)}, but {describe(tensor)} has the axes "
            f"0 … {order - 1}"
        )
    if not gone:
        return tensor
    kept = [place for place in range(order) if place not in gone]
    turned = arrays.transpose(tensor, [*kept, *gone])
    shape = axes_of(turned)
    if len(gone) > 2:
        turned = rearranging.reshaped(turned, [*shape[: len(kept)], -1])
    if len(gone) != 2:
        turned = rearranging.expanded_dims(turned, [len(kept) + 1])
    found = Primitive(name, (turned,))
    return rearranging.expanded_dims(found, gone) if keepdims else found


def _along(name: str, numpy_function: Callable[..., Any], said: str) -> Callable[..., Any]:
    def reduction(a: Any, /, axis: Any = None, keepdims: bool = False, **domains: object) -> Any:
        if callable(a) and not is_traced(a):
            if axis is not None:
                domains["axis"] = axis
            indices, body = abstracted(f"cd.{said}", a, domains)
            return wrap(_extreme(name, _tensor(indices, body), None, False))
        if not is_traced(a):
            return on_arrays(said, numpy_function, a, axis=axis, keepdims=keepdims, **domains)
        if domains:
            raise TypeMismatchError(f"{said} has no option {min(domains)!r}", hint="it takes axis and keepdims")
        return wrap(_extreme(name, lift(a), axis, bool(keepdims)))

    reduction.__name__ = reduction.__qualname__ = said
    reduction.__doc__ = (
        f"The {said}imum of a tensor along axes, `X.{said}(axis=1)`, or of a lambda, `cd.{said}(lambda j: x[j])`.\n\n"
        "    `axis` and `keepdims` are NumPy's. At a tie the elements have equal shares of the derivative.\n"
        "    Raises TypeMismatchError for axes that there are not, and for complex numbers.\n    "
    )
    return reduction


def _tensor(indices: Sequence[Any], body: Term) -> Term:
    rest = current("a reduction").fresh_indices(axes_of(body))
    return Lambda((*indices, *rest), arrays.element(body, rest) if rest else body)


max = _along("amax", np.max, "max")
min = _along("amin", np.min, "min")


def _method(reduction: Callable[..., Any]) -> Callable[..., Value]:
    def reduce(a: Any, axis: Any = None, keepdims: bool = False) -> Value:
        found: Value = reduction(a, axis, keepdims)
        return found

    return reduce


for _function, _reduction in ((np.max, max), (np.amax, max), (np.min, min), (np.amin, min)):
    HANDLERS[_function] = _method(_reduction)
METHODS.update({"max": _method(max), "min": _method(min)})
