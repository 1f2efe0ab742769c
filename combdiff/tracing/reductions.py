"""The largest and smallest of numbers and their product, along axes or over indices.

    X.max(axis=1)              amax of the rows of X, each as a matrix of one column
    cd.min(lambda j: d[i, j])  amin of (j, 0) ↦ d[i, j]
    np.cumprod(x)              cumprod of the one row (0, i) ↦ x[i]

They are rows of the table of matrix functions: of the last two axes, the elements that are largest have equal shares of
the derivative, and that of a product by an element is the product of the others.

Invariant: value and shape are NumPy's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import combdiff.tracing.arrays as arrays
import combdiff.tracing.rearranging as rearranging
from combdiff.errors import TypeMismatchError, UnsupportedError, shown
from combdiff.ir import Lambda, Primitive, Range, Term, axes_of, describe
from combdiff.tracing.context import current
from combdiff.tracing.functions import abstracted, check_dtype, check_no_options, flag, is_traced
from combdiff.tracing.numpy_protocol import HANDLERS, METHODS, on_arrays
from combdiff.tracing.values import Value, lift, wrap


def _reduced(name: str, said: str, tensor: Term, axis: Any, keepdims: bool) -> Term:
    """A function of the elements along axes."""
    order = len(axes_of(tensor))
    gone = list(range(order)) if axis is None else arrays.positions(axis, order)
    if any(not 0 <= place < order for place in gone) or len(set(gone)) != len(gone):
        raise TypeMismatchError(
            f"the axes of a {said} are {shown(axis)}, but {describe(tensor)} has the axes 0 … {order - 1}"
        )
    if not gone:
        return tensor
    if name == "prod" and len(gone) > 2:  # products of products are as exact, and no elements are numbered
        first, *others = sorted(gone)
        found = _reduced(name, said, _reduced(name, said, tensor, others, False), (first,), False)
    else:
        kept = [place for place in range(order) if place not in gone]
        found = Primitive(name, (_along_two(said, tensor, kept, gone),))
    return rearranging.expanded_dims(found, gone) if keepdims else found


def _along_two(said: str, tensor: Term, kept: Sequence[int], gone: Sequence[int]) -> Term:
    """The tensor with the axes that stay in front of two, in which all elements stand that are reduced."""
    shape = axes_of(tensor)
    numbered = [n for n in gone if isinstance(axis := shape[n], Range) and isinstance(axis.size, int)]
    named = [n for n in gone if n not in numbered]
    if len(gone) < 3:
        turned = arrays.transpose(tensor, [*kept, *gone])
        return turned if len(gone) == 2 else rearranging.expanded_dims(turned, [len(kept) + 1])
    if len(named) + bool(numbered) > 2:
        raise UnsupportedError(
            f"the {said} along {len(gone)} axes of {describe(tensor)}: more than one of them has a name for its size",
            hint="take it along two axes, then along the rest: x.max(axis=(1, 2)).max(); at a tie the rest share first",
        )
    turned = arrays.transpose(tensor, [*kept, *named, *numbered])
    joined = rearranging.reshaped(turned, [*(shape[n] for n in (*kept, *named)), -1]) if numbered else turned
    return rearranging.expanded_dims(joined, [len(kept) + 1]) if len(named) + bool(numbered) == 1 else joined


def _reduction(name: str, own: str, said: str, numpy_function: Callable[..., Any], doc: str) -> Callable[..., Any]:
    """The row `name` of the table as a function of tensors and of lambdas, cd's `own`."""

    def reduction(a: Any, /, axis: Any = None, keepdims: bool = False, **domains: object) -> Any:
        if callable(a) and not is_traced(a):
            if axis is not None:
                domains["axis"] = axis
            indices, body = abstracted(f"cd.{own}", a, domains)
            return wrap(_reduced(name, said, _tensor(indices, body), None, False))
        if not is_traced(a):
            return on_arrays(own, numpy_function, a, axis=axis, keepdims=keepdims, **domains)
        check_no_options(own, domains)
        return wrap(_reduced(name, said, lift(a), axis, flag(keepdims)))

    reduction.__name__ = reduction.__qualname__ = own
    reduction.__doc__ = doc
    return reduction


def _tensor(indices: Sequence[Any], body: Term) -> Term:
    rest = current("a reduction").fresh_indices(axes_of(body))
    return Lambda((*indices, *rest), arrays.element(body, rest) if rest else body)


def _extreme_doc(name: str) -> str:
    return (
        f"The {name}imum of a tensor along axes, `X.{name}(axis=1)`, or of a lambda, `cd.{name}(lambda j: x[j])`.\n\n"
        "    `axis` and `keepdims` are NumPy's. At a tie the elements have equal shares of the derivative.\n"
        "    Raises TypeMismatchError for axes that there are not, and for complex numbers.\n    "
    )


_PROD_DOC = """The product of a tensor along axes, `X.prod(axis=1)`, or of a lambda, `cd.prod(lambda j: x[j])`.

    `axis` and `keepdims` are NumPy's. The derivative by an element is the product of the others, also where they are 0.
    Raises TypeMismatchError for axes that there are not.
    """

max = _reduction("amax", "max", "largest or smallest element", np.max, _extreme_doc("max"))
min = _reduction("amin", "min", "largest or smallest element", np.min, _extreme_doc("min"))
prod = _reduction("prod", "prod", "product", np.prod, _PROD_DOC)


def along_axis(function: Callable[[Term], Term], tensor: Term, axis: Any, said: str) -> Term:
    """A function of the last axis of a tensor along another one, where the result has that axis, too."""
    place = rearranging.axis_of(tensor, axis, said)
    order = len(axes_of(tensor))
    last = [*(n for n in range(order) if n != place), place]
    return arrays.transpose(function(arrays.transpose(tensor, last)), [last.index(n) for n in range(order)])


def _cumprod(a: Any, axis: int | None = None) -> Value:
    term = rearranging.flattened(lift(a), "np.cumprod") if axis is None else lift(a)
    order = len(axes_of(term))

    def of_rows(tensor: Term) -> Term:
        row = rearranging.expanded_dims(tensor, [order - 1])
        return rearranging.squeezed(Primitive("cumprod", (row,)), [order - 1])

    return wrap(along_axis(of_rows, term, axis or 0, "cumprod"))


def _method(name: str, reduction: Callable[..., Any]) -> Callable[..., Value]:
    def reduce(
        a: Any, axis: Any = None, keepdims: bool = False, *, initial: Any = None, where: Any = None, dtype: Any = None
    ) -> Any:
        empty = _EMPTY[name]
        check_dtype(f"np.{name}", dtype, a)
        if where is not None:
            a = HANDLERS[np.where](where, a, empty)
        found = reduction(a, axis, keepdims)
        if initial is None:
            return found
        return (
            found * initial if name == "prod" else HANDLERS[np.maximum if name == "max" else np.minimum](found, initial)
        )

    return reduce


_EMPTY = {"max": -math.inf, "min": math.inf, "prod": 1}
for _function, _reducing in ((np.max, max), (np.amax, max), (np.min, min), (np.amin, min), (np.prod, prod)):
    HANDLERS[_function] = _method(_function.__name__.removeprefix("a"), _reducing)
METHODS.update({"max": _method("max", max), "min": _method("min", min)})
HANDLERS[np.cumprod] = _cumprod
