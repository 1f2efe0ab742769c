"""The order of numbers in programs: where they stand when sorted, and what is made of that.

    np.argsort(x)     whole numbers, which nothing is differentiated by
    np.sort(x)        (i) ↦ x[argsort(x)[i]]
    np.median(x)      the middle of np.sort(x)

Invariant: value, shape and axis are NumPy's; equal elements stay in their order, as in JAX.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import floor
from typing import Any

import numpy as np

import combdiff.tracing.arrays as arrays
import combdiff.tracing.rearranging as rearranging
from combdiff.errors import IndexingError, TypeMismatchError, UnsupportedError, shown
from combdiff.ir import (
    ONE,
    Coordinate,
    Number,
    Primitive,
    Range,
    Term,
    add,
    affine,
    axes_of,
    delta,
    describe,
    function,
    indicator,
    mul,
    size_form,
    total,
)
from combdiff.tracing.arrays import element, tabulate
from combdiff.tracing.context import current
from combdiff.tracing.functions import is_traced
from combdiff.tracing.numpy_protocol import HANDLERS, METHODS, on_arrays, python_number
from combdiff.tracing.reading import constant_indices
from combdiff.tracing.reductions import along_axis
from combdiff.tracing.values import Value, lift, wrap


def argsort(a: Any, axis: Any = -1, *, stable: bool | None = None) -> Any:
    """The places of the elements along an axis in ascending order, as `numpy.argsort`; equal ones as they stand.

    Whole numbers, which nothing is differentiated by. Raises UnsupportedError for axis=None.
    """
    if not is_traced(a):
        return on_arrays("argsort", np.argsort, a, axis, stable=True)
    return wrap(_order(*_along(a, axis, "argsort"), "argsort"))


def sort(a: Any, axis: Any = -1, *, stable: bool | None = None) -> Any:
    """The elements along an axis in ascending order: `a` read at `argsort(a)`, by which it is differentiated.

    As `numpy.sort`; axis=None sorts all elements as one axis. Raises TypeMismatchError for complex numbers.
    """
    if not is_traced(a):
        return on_arrays("sort", np.sort, a, axis)
    if axis is None:
        a, axis = wrap(rearranging.flattened(lift(a), "np.sort")), 0
    term, place = _along(a, axis, "sort")
    return _taken(term, _order(term, place, "sort"), place)


def _order(tensor: Term, place: int, said: str) -> Term:
    """The places of the elements along an axis in ascending order."""
    return along_axis(lambda rows: Primitive("argsort", (rows,)), tensor, place, said)


def _along(a: Any, axis: Any, what: str) -> tuple[Term, int]:
    """The tensor and its axis from 0 on."""
    term = lift(a)
    if axis is None:
        raise UnsupportedError(
            f"np.{what} with axis=None is not supported in a program: it sorts all elements as one axis",
            hint=f"write np.{what}(x.reshape(-1)), with sizes that are numbers",
        )
    return term, rearranging.axis_of(term, axis, what)


def _take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Value:
    term = lift(arr)
    given = np.asarray(indices) if isinstance(indices, list | tuple) else indices
    if axis is None:
        term, axis = rearranging.flattened(term, "np.take_along_axis"), 0
    place = rearranging.axis_of(term, axis, "take_along_axis")
    known = isinstance(given, np.ndarray) and given.dtype.kind in "iu"
    chosen = constant_indices(given, axes_of(term)[place]) if known else lift(given)
    if (kind := wrap(chosen).space.dtype) is not int:
        raise IndexingError(
            f"np.take_along_axis takes whole numbers as indices, but {describe(chosen)} is {kind.__name__}",
            hint="declare the indices as cd.Space(…, dtype=int)",
        )
    return _taken(term, chosen, place)


def _taken(tensor: Term, chosen: Term, place: int) -> Value:
    """`tensor[…, chosen[…, i, …], …]`, other axes broadcast against each other."""
    shape, given = axes_of(tensor), axes_of(chosen)
    if len(shape) != len(given):
        raise TypeMismatchError(
            f"np.take_along_axis of {describe(tensor)} of order {len(shape)} and indices of order {len(given)}",
            hint="give indices with as many axes: add some with indices[:, None]",
        )
    others = [
        given[n] if n == place else arrays.broadcast([tensor, chosen], [(shape[n],), (given[n],)])[0]
        for n in range(len(shape))
    ]
    trace = current("take_along_axis")
    indices = trace.fresh_indices(others)
    (source,) = trace.fresh_indices([shape[place]])
    at = arrays.aligned(shape, (*indices[:place], source, *indices[place + 1 :]))
    hit = delta(source, arrays.element(chosen, arrays.aligned(given, indices)), shape[place])
    return wrap(arrays.tabulate(indices, total([source], mul(hit, arrays.element(tensor, at)))))


def _place_of(name: str) -> Callable[..., Value]:
    """Where the first largest or smallest element stands."""

    def place_of(a: Any, axis: Any = None, *, keepdims: bool = False) -> Value:
        term = lift(a)
        term = rearranging.flattened(term, f"np.{name}") if axis is None else term
        place = rearranging.axis_of(term, 0 if axis is None else axis, name)
        order = len(axes_of(term))
        last = arrays.transpose(term, [*(n for n in range(order) if n != place), place])
        found = Primitive(name, (last,))
        if not keepdims:
            return wrap(found)
        return wrap(rearranging.expanded_dims(found, range(len(axes_of(lift(a)))) if axis is None else [place]))

    return place_of


def _at_share(ordered: Value, share: Fraction) -> Value:
    """What stands at a share of the way along the first axis, by linear interpolation between two elements.

    Of a named number n of elements it is Σ_i (1 − |i − share·(n − 1)|) x[i] over those that are less than 1 from there.
    """
    term = lift(ordered)
    axis = axes_of(term)[0]
    if isinstance(axis, Range) and isinstance(axis.size, int):
        if not axis.size:
            raise TypeMismatchError(f"a quantile of {describe(term)}, which has no elements")
        at = share * (axis.size - 1)
        below, rest = floor(at), float(at % 1)
        return ordered[below] if not rest else ordered[below] * (1 - rest) + ordered[below + 1] * rest
    indices = current("a quantile").fresh_indices(axes_of(term))
    size, parts = rearranging.lengths((axis, 1), what="a quantile").size, share.denominator
    away = affine([(indices[0], parts), (size_form(size), -share.numerator)], share.numerator)
    near = [indicator(affine([(away, sign)], parts - 1)) for sign in (1, -1)]
    distance = mul(Number(Fraction(-1, parts)), function("abs", Coordinate(away)))
    weighed = mul(*near, add(ONE, distance), element(term, indices))
    return wrap(tabulate(indices[1:], total(indices[:1], weighed)))


def _quantile(a: Any, q: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    """By linear interpolation between the elements, as NumPy without a method."""
    if isinstance(q, list | tuple | np.ndarray):
        parts = [_quantile(a, each, axis, keepdims=keepdims) for each in q]
        return wrap(rearranging.stack([lift(part) for part in parts], 0, "a quantile"))
    if not isinstance(q := python_number(q), int | float | Fraction) or not 0 <= q <= 1:
        raise UnsupportedError(
            f"np.quantile of {shown(q)} in a program: it is a number from 0 to 1", hint="take one quantile at a time"
        )
    term = lift(a)
    flat = rearranging.flattened(term, "a quantile") if axis is None else term
    place = rearranging.axis_of(flat, 0 if axis is None else axis, "quantile")
    ordered = HANDLERS[np.moveaxis](sort(wrap(flat), place), place, 0)
    found = _at_share(ordered, Fraction(q).limit_denominator(10**12) if isinstance(q, float) else Fraction(q))
    if not keepdims:
        return found
    return wrap(rearranging.expanded_dims(lift(found), range(len(axes_of(term))) if axis is None else [place]))


HANDLERS.update(
    {
        np.sort: sort,
        np.argsort: argsort,
        np.take_along_axis: _take_along_axis,
        np.argmax: _place_of("argmax"),
        np.argmin: _place_of("argmin"),
        np.quantile: _quantile,
        np.percentile: lambda a, q, axis=None, *, keepdims=False: _quantile(
            a, np.asarray(q) / 100 if isinstance(q, list | tuple) else q / 100, axis, keepdims=keepdims
        ),
        np.median: lambda a, axis=None, *, keepdims=False: _quantile(a, Fraction(1, 2), axis, keepdims=keepdims),
    }
)


def _in_place(*_: object, **__: object) -> Value:
    raise UnsupportedError("x.sort() sorts in place, and a tensor of a program stays what it is", hint="np.sort(x)")


METHODS["sort"] = _in_place
