"""Tensors made of sizes: ones, unit matrices, counted numbers, of named sizes too.

    cd.eye("n")     np.eye(n, like=x)     (i, j) ↦ δ(i, j)
    cd.arange(n)    np.arange(n, like=x)  i ↦ i                  for n = x.shape[0]

NumPy's own functions see no traced value in `np.eye(n)` but a number that they need at once. With `like=` NumPy asks
the traced value (NEP 35), and the functions here answer, as they do under their own names.

Invariant: shape, elements and keywords are NumPy's.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from combdiff.errors import TypeMismatchError, UnsupportedError, shown
from combdiff.ir import (
    Coordinate,
    Cyclic,
    Domain,
    Range,
    Real,
    Size,
    Symmetric,
    affine,
    delta,
    size_form,
    size_of_axis,
    size_sum,
)
from combdiff.tracing.arrays import tabulate
from combdiff.tracing.context import current
from combdiff.tracing.functions import flag, whole_number
from combdiff.tracing.numpy_protocol import HANDLERS
from combdiff.tracing.rearranging import broadcasted
from combdiff.tracing.values import Value, as_size, lift, traced, wrap


def shape_of(shape: Any) -> list[Domain | int]:
    """A shape as axes: whole numbers, names, axes, and numbers of the program such as `x.shape[0] - 1`."""
    given = list(shape) if isinstance(shape, tuple | list) else [shape]
    return [_axis(size) for size in given]


def _axis(size: Any) -> Domain | int:
    if isinstance(size, Range | Cyclic | Symmetric | Real):
        return size
    if isinstance(size, str):
        return Range(size)
    if isinstance(size, Value):
        found = as_size(size)
        return found if isinstance(found, int) else Range(found)
    try:
        return operator.index(size)
    except TypeError:
        raise TypeMismatchError(
            f"{shown(size)} is no size of an axis", hint="sizes are whole numbers or names"
        ) from None


def _domains(shape: Any) -> list[Domain]:
    axes = shape_of(shape)
    for axis in axes:
        if isinstance(axis, int) and axis < 0:
            raise TypeMismatchError(
                f"a tensor with {shown(axis)} elements along an axis", hint="sizes are numbers from 0 on"
            )
    return [Range(axis) if isinstance(axis, int) else axis for axis in axes]


def _end(value: Any) -> Size:
    axis = _axis(value)
    if isinstance(axis, int | Range):
        return axis if isinstance(axis, int) else axis.size
    raise TypeMismatchError(f"arange ends at {shown(value)}", hint="give a whole number or a size")


def _only_known(name: str, dtype: Any, order: str = "C", device: object = None) -> None:
    if not (isinstance(order, str) and order == "C"):
        raise UnsupportedError(f"{name} in the order {shown(order)}", hint="leave it out: programs have no memory")
    if device is not None:
        raise UnsupportedError(f"{name} on the device {shown(device)}", hint="a program runs where its arguments are")
    try:
        kind = np.dtype(dtype).kind  # of None, float
    except (TypeError, ValueError, SyntaxError, RecursionError):
        raise TypeMismatchError(
            f"{name} of {shown(dtype)}, which is no type of elements", hint="leave it out"
        ) from None
    if kind not in "biufc":
        raise UnsupportedError(f"{name} of {shown(dtype)}", hint="leave it out: programs are of numbers")


# --- public --------------------------------------------------------------------------------------------------------


def full(shape: Any, fill_value: Any, dtype: Any = None, order: str = "C", *, device: None = None) -> Any:
    """The tensor of a shape with one number everywhere, as `numpy.full`.

    `shape`: sizes, which are whole numbers, names ("n"), or numbers of the program (`x.shape[0]`, `x.shape[0] - 1`).
    Raises TypeMismatchError for what is no size, UnsupportedError for a size that depends on values.
    """
    _only_known("full", dtype, order, device)
    return wrap(broadcasted(lift(fill_value), tuple(_domains(shape))))


def ones(shape: Any, dtype: Any = None, order: str = "C", *, device: None = None) -> Any:
    """The tensor of ones, as `numpy.ones`; for the shape and the errors see `full`."""
    return full(shape, 1, dtype, order, device=device)


def zeros(shape: Any, dtype: Any = None, order: str = "C", *, device: None = None) -> Any:
    """The tensor of zeros, as `numpy.zeros`; for the shape and the errors see `full`."""
    return full(shape, 0, dtype, order, device=device)


def eye(N: Any, M: Any = None, k: int = 0, dtype: Any = None, order: str = "C", *, device: None = None) -> Any:
    """The N × M matrix with ones on its diagonal, or on the k-th above it, as `numpy.eye`: δ(i + k, j).

    For the sizes and the errors see `full`.
    """
    _only_known("eye", dtype, order, device)
    row, column = current("eye").fresh_indices(_domains([N, N if M is None else M]))
    return wrap(tabulate((row, column), delta(affine([(row, 1)], whole_number(k, "an offset or step of eye")), column)))


def arange(start: Any, stop: Any = None, step: int = 1, dtype: Any = None, *, device: None = None) -> Any:
    """The numbers from `start` (0) to before `stop`, as `numpy.arange`: start + i·step.

    Start and stop are whole numbers, or numbers of the program such as `x.shape[0]`; then the step is 1 or −1.
    Raises TypeMismatchError for what is no whole number, UnsupportedError for another step between named sizes.
    """
    _only_known("arange", dtype, device=device)
    first, last = (0, start) if stop is None else (start, stop)
    begin, end, step = _end(first), _end(last), whole_number(step, "an offset or step of arange")
    if isinstance(begin, int) and isinstance(end, int) and step:
        size: Size = max(0, -((begin - end) // step))  # as len(range(…)) of numbers of any size
    elif abs(step) == 1:
        size = size_sum((end, step), (begin, -step))
    else:
        raise UnsupportedError(
            f"arange with steps of {shown(step)}", hint="with sizes that are only named, steps are 1 or -1"
        )
    (index,) = current("arange").fresh_indices([Range(size)])
    return wrap(tabulate([index], Coordinate(affine([(size_form(begin), 1), (index, step)]), int)))


def linspace(
    start: Any, stop: Any, num: Any = 50, endpoint: bool = True, dtype: Any = None, *, device: None = None
) -> Any:
    """`num` numbers from `start` to `stop` at equal distances, as `numpy.linspace`; both may be numbers of the program.

    For the size `num` and the errors see `full`.
    """
    _only_known("linspace", dtype, device=device)
    (axis,) = _domains([num])
    first, last, size = traced(start), traced(stop), wrap(size_of_axis(axis))
    (index,) = current("linspace").fresh_indices([axis])
    counted = wrap(tabulate([index], Coordinate(index, int)))
    return first + (last - first) * counted / (size - 1 if flag(endpoint, "endpoint") else size)


def _logspace(start: Any, stop: Any, num: Any = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None) -> Any:
    """`num` numbers from base^start to base^stop, each by the same factor larger."""
    return base ** linspace(start, stop, num, endpoint, dtype)


def _geomspace(start: Any, stop: Any, num: Any = 50, endpoint: bool = True, dtype: Any = None) -> Any:
    """`num` numbers from start to stop, of one sign, each by the same factor larger."""
    return start * (traced(stop) / start) ** linspace(0, 1, num, endpoint, dtype)


def _tri(N: Any, M: Any = None, k: int = 0, dtype: Any = None) -> Any:
    return HANDLERS[np.tril](ones([N, N if M is None else M], dtype), k)


HANDLERS.update(
    {
        np.eye: eye,
        np.identity: lambda n, dtype=None: eye(n, dtype=dtype),
        np.ones: ones,
        np.zeros: zeros,
        np.full: full,
        np.arange: arange,
        np.linspace: linspace,
        np.logspace: _logspace,
        np.geomspace: _geomspace,
        np.tri: _tri,
    }
)
