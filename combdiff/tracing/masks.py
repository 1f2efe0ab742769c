"""Truth values in NumPy's functions that move elements about: what comes out holds truth values, too.

    same = y[:, None] == y[None, :]
    same[:, :, None] & ~same[:, None, :]      reads of comparisons are comparisons, which &, | and ~ join
    ~np.any(A > 0, axis=1)                    [¬(0 < Σ_j [0 < A[i,j]])]

NumPy adds and multiplies truth values as if by | and &, and subtracts none; so does a program, and where products of
them are added up, which NumPy cuts off at 1, it says so.

Invariant: a row of NumPy's table gives a Truth where NumPy gives truth values for such, as far as the rows here go.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from combdiff.tracing import compositions as _compositions  # noqa: F401  (the rows that are taken here)
from combdiff.tracing import layouts as _layouts  # noqa: F401
from combdiff.tracing import orders as _orders  # noqa: F401
from combdiff.tracing import signals as _signals  # noqa: F401
from combdiff.tracing.numpy_protocol import HANDLERS, METHODS
from combdiff.tracing.truths import as_truth, is_truth, no_numbers

MOVES: dict[Any, slice] = {
    **dict.fromkeys(
        (
            *(np.transpose, np.matrix_transpose, np.swapaxes, np.moveaxis, np.rollaxis, np.expand_dims, np.squeeze),
            *(np.reshape, np.ravel, np.resize, np.broadcast_to, np.atleast_1d, np.atleast_2d, np.atleast_3d, np.copy),
            *(np.flip, np.fliplr, np.flipud, np.rot90, np.roll, np.tile, np.repeat, np.take, np.take_along_axis),
            *(np.diag, np.diagonal, np.diagflat, np.tril, np.triu, np.delete),
            *(np.split, np.array_split, np.hsplit, np.vsplit, np.dsplit, np.unstack),
            *(np.concatenate, np.stack, np.vstack, np.hstack, np.column_stack, np.dstack, np.block),
        ),
        slice(1),
    ),
    np.append: slice(2),
}
"""Functions that give elements of arrays at other places, and zeros; which of their arguments are those arrays."""

WITHOUT_NUMBERS: dict[Any, slice] = {
    **dict.fromkeys((np.diff, np.ediff1d), slice(1)),
    **dict.fromkeys(
        (np.dot, np.inner, np.vdot, np.vecdot, np.matvec, np.vecmat, np.tensordot, np.convolve, np.correlate), slice(2)
    ),
    np.einsum: slice(1, None),
}
"""Functions that add up products of elements, or subtract them, as truth values where all of these arrays are such."""


def _holds_truths(value: Any) -> bool:
    """Whether NumPy takes what is given for truth values: comparisons, and lists of such."""
    if isinstance(value, list | tuple):
        return bool(value) and all(map(_holds_truths, value))
    return is_truth(value)


def _moving(handler: Callable[..., Any], arrays: slice) -> Callable[..., Any]:
    """A row of the table for a function that moves elements, which keeps truth values what they are."""

    @wraps(handler)
    def moved(*arguments: Any, **options: Any) -> Any:
        found = handler(*arguments, **options)
        if not _holds_truths(arguments[arrays]):
            return found
        return type(found)(map(as_truth, found)) if isinstance(found, list | tuple) else as_truth(found)

    return moved


def _of_numbers(name: str, handler: Callable[..., Any], arrays: slice) -> Callable[..., Any]:
    """A row of the table for a function that is not taken of truth values alone."""

    @wraps(handler)
    def taken(*arguments: Any, **options: Any) -> Any:
        if _holds_truths(arguments[arrays]):
            raise no_numbers(name)
        return handler(*arguments, **options)

    return taken


def _any(a: Any, axis: Any = None, keepdims: bool = False, *, where: Any = True) -> Any:
    """Whether any of the elements is true, along axes: as many as are are more than none."""
    return HANDLERS[np.where](where, as_truth(a), 0).sum(axis, keepdims) > 0


def _all(a: Any, axis: Any = None, keepdims: bool = False, *, where: Any = True) -> Any:
    return ~_any(~as_truth(a), axis, keepdims, where=where)


def _all_close(a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08) -> Any:
    return _all(HANDLERS[np.isclose](a, b, rtol, atol))


HANDLERS.update({function: _moving(HANDLERS[function], arrays) for function, arrays in MOVES.items()})
HANDLERS.update({f: _of_numbers(f.__name__, HANDLERS[f], arrays) for f, arrays in WITHOUT_NUMBERS.items()})
HANDLERS.update({np.any: _any, np.all: _all, np.allclose: _all_close})
METHODS.update({name: _moving(METHODS[name], slice(1)) for name in ("reshape", "flatten", "copy")})
