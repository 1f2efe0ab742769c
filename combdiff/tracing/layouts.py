"""NumPy's functions that lay out, choose and repeat whole arrays, and the methods of its functions of elements.

    np.block([[A, B], [C, D]])      np.insert(x, 1, 0)      np.meshgrid(x, y)      np.add.reduce(A, axis=1)

Invariant: value, shape and keywords are NumPy's; places are numbers that the program says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import combdiff.tracing.rearranging as rearranging
from combdiff.errors import TypeMismatchError, UnsupportedError, shown
from combdiff.ir import Range, is_complex
from combdiff.tracing import functions as cd
from combdiff.tracing.iteration import scan
from combdiff.tracing.numpy_protocol import HANDLERS, METHODS, UFUNC_METHODS, answer
from combdiff.tracing.special_functions import i0
from combdiff.tracing.truths import as_truth, where
from combdiff.tracing.values import on_parts
from combdiff.tracing.whole_arrays import logsumexp

# --- joining and choosing --------------------------------------------------------------------------------------------


def _block(arrays: Any) -> Any:
    depth = _depth(arrays)

    def joined(part: Any, level: int) -> Any:
        if level == depth:
            return _with_axes(cd.taken(part), depth)
        return np.concatenate([joined(each, level + 1) for each in part], axis=level - depth)

    return joined(arrays, 0)


def _depth(arrays: Any) -> int:
    return 1 + max(map(_depth, arrays)) if isinstance(arrays, list) else 0


def _with_axes(value: Any, order: int) -> Any:
    return np.expand_dims(value, tuple(range(order - value.ndim))) if value.ndim < order else value


def _size(value: Any, axis: int, what: str) -> int:
    return rearranging.length(value.space.axes[axis], what)


def _on_axis(arr: Any, axis: Any, what: str) -> tuple[Any, int, int]:
    """The tensor, raveled where no axis is given, the axis and its size."""
    value: Any = np.ravel(cd.taken(arr)) if axis is None else cd.taken(arr)
    place = rearranging.axis_of(value.term, axis or 0, what)
    return value, place, _size(value, place, what)


def _insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Any:
    value, place, size = _on_axis(arr, axis, "np.insert")
    kept, new = np.arange(size), cd.taken(values)
    places = np.insert(kept, obj, -1)  # where something new stands
    count = int((places < 0).sum())
    shape = list(value.space.axes)
    shape[place] = count
    if np.ndim(obj) == 0 and new.ndim == value.ndim - 1 and new.ndim:
        new = np.expand_dims(new, place)
    both = np.concatenate([value, np.broadcast_to(new, tuple(shape))], axis=place)
    order = np.where(places < 0, size + np.cumsum(places < 0) - 1, places)
    return np.take(both, order, axis=place)


def _delete(arr: Any, obj: Any, axis: int | None = None) -> Any:
    value, place, size = _on_axis(arr, axis, "np.delete")
    return np.take(value, np.delete(np.arange(size), obj), axis=place)


def _compress(condition: Any, a: Any, axis: int | None = None) -> Any:
    value, place, size = _on_axis(a, axis, "np.compress")
    if cd.is_traced(condition):
        raise UnsupportedError(
            "np.compress by values is not supported in a program: how many it leaves depends on them",
            hint="keep all of them, np.where(x > 0, x, 0)",
        )
    return np.take(value, np.compress(condition, np.arange(size)), axis=place)


def _choose(a: Any, choices: Sequence[Any]) -> Any:
    found = choices[-1]
    for n in range(len(choices) - 2, -1, -1):
        found = where(cd.taken(a) == n, choices[n], found)
    return found


def _piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Any:
    conditions = list(condlist) if isinstance(condlist, list | tuple) else [condlist]
    if len(funclist) not in (len(conditions), len(conditions) + 1):
        raise TypeMismatchError(f"np.piecewise has {len(conditions)} conditions and {len(funclist)} functions")
    values = [each(x, *args, **kw) if callable(each) else each for each in funclist]
    found: Any = values[-1] if len(values) > len(conditions) else 0
    for condition, value in zip(conditions, values, strict=False):  # the last that holds decides
        found = where(condition, value, found)
    return found


def _meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    if indexing not in ("xy", "ij"):
        raise TypeMismatchError(f"np.meshgrid has no indexing {shown(indexing)}", hint="it is 'xy' or 'ij'")
    order = len(xi)
    places = list(range(order))
    if indexing == "xy" and order > 1:
        places[:2] = [1, 0]
    axes = [np.ravel(cd.taken(x)) for x in xi]
    grids = [
        axis[tuple(slice(None) if n == place else None for n in range(order))]
        for axis, place in zip(axes, places, strict=True)
    ]
    return tuple(grids if sparse else _broadcast_arrays(*grids))


def _broadcast_arrays(*args: Any, subok: bool = False) -> Any:
    values = [cd.taken(a) for a in args]
    total: Any = sum((0 * value for value in values[1:]), 0 * values[0])
    return tuple(np.broadcast_to(value, total.space.axes) for value in values)


def _unstack(x: Any, *, axis: int = 0) -> Any:
    value: Any = np.moveaxis(cd.taken(x), axis, 0)
    return tuple(value[n] for n in range(_size(value, 0, "np.unstack")))


def _diagflat(v: Any, k: int = 0) -> Any:
    return np.diag(np.ravel(cd.taken(v)), k)


def _resize(a: Any, new_shape: Any) -> Any:
    value: Any = np.ravel(cd.taken(a))
    shape = (new_shape,) if isinstance(new_shape, int) else tuple(new_shape)
    places = np.resize(np.arange(_size(value, 0, "np.resize")), shape)
    return np.take(value, places.ravel()).reshape(shape)


def _apply_along_axis(func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kw: Any) -> Any:
    value: Any = np.moveaxis(cd.taken(arr), axis, -1)

    def along(rows: Any) -> Any:
        if rows.ndim == 1:
            return func1d(rows, *args, **kw)
        return cd.tensor(lambda i: along(rows[i]), i=rows.space.axes[0])

    found: Any = along(value)
    others, place = value.ndim - 1, axis % value.ndim
    new = range(found.ndim - others)
    return np.moveaxis(found, [others + n for n in new], [place + n for n in new])


def _apply_over_axes(func: Callable[..., Any], a: Any, axes: Any) -> Any:
    value: Any = cd.taken(a)
    for axis in [axes] if isinstance(axes, int) else axes:
        found = func(value, axis)
        value = found if found.ndim == value.ndim else np.expand_dims(found, axis)
    return value


# --- numbers cut to whole ones ---------------------------------------------------------------------------------------


def _round(a: Any, decimals: int = 0, out: None = None) -> Any:
    if isinstance(decimals, int) and decimals:
        scale = 10.0 ** abs(decimals)
        return _nearest(cd.taken(a) * scale) / scale if decimals > 0 else _nearest(cd.taken(a) / scale) * scale
    return _nearest(a)


def _nearest(x: Any) -> Any:
    """np.rint, of complex numbers part by part."""
    value = cd.taken(x)
    return on_parts(cd.rint, value) if is_complex(value.term) else cd.rint(value)


def _astype(a: Any, dtype: Any, **_: Any) -> Any:
    value, kind = cd.taken(a), np.dtype(dtype).kind
    if kind == "c" or (kind == "f" and not is_complex(value.term)):
        return value
    if kind == "f":
        return value.real
    if kind in "iu":
        return cd.trunc(value)
    if kind == "b":
        return as_truth(value)
    raise UnsupportedError(
        f"astype({shown(dtype)}) of a {value.kind} is not supported in a program",
        hint="give float, int, bool or complex",
    )


def _modf(x: Any) -> Any:
    whole = cd.trunc(x)
    return x - whole, whole


# --- methods of functions of elements --------------------------------------------------------------------------------

_REDUCTIONS: dict[Any, tuple[Any, Any]] = {
    np.add: (np.sum, np.cumsum),
    np.multiply: (np.prod, np.cumprod),
    np.maximum: (np.max, None),
    np.minimum: (np.min, None),
    np.fmax: (np.nanmax, None),
    np.fmin: (np.nanmin, None),
    np.logical_and: (np.all, None),
    np.logical_or: (np.any, None),
}
_BY_STEPS = {np.maximum, np.minimum, np.fmax, np.fmin, np.logaddexp, np.logaddexp2, np.hypot, np.subtract, np.divide}


def _no_reduction(ufunc: np.ufunc, method: str) -> UnsupportedError:
    return UnsupportedError(
        f"np.{ufunc.__name__}.{method} is not supported in a program",
        hint="write the steps in a Python loop, or as cd.scan",
    )


def _reduce(
    ufunc: np.ufunc,
    array: Any,
    axis: Any = 0,
    dtype: Any = None,
    *,
    keepdims: bool = False,
    where: Any = True,
    **more: Any,
) -> Any:
    name = f"np.{ufunc.__name__}.reduce"
    cd.check_dtype(name, dtype, array)
    more |= {} if where is True else {"where": where}
    if ufunc is np.logaddexp:
        return answer(name, _logaddexp_reduce, array, axis, keepdims, **more)
    if ufunc not in _REDUCTIONS:
        raise _no_reduction(ufunc, "reduce")
    return answer(name, HANDLERS[_REDUCTIONS[ufunc][0]], array, axis, keepdims=keepdims, **more)


def _logaddexp_reduce(array: Any, axis: Any, keepdims: bool, initial: Any = None, where: Any = None) -> Any:
    found = logsumexp(array if where is None else HANDLERS[np.where](where, array, -np.inf), axis, keepdims)
    return found if initial is None else cd.logaddexp(found, initial)


def _accumulate(ufunc: np.ufunc, array: Any, axis: int = 0, dtype: Any = None) -> Any:
    cd.check_dtype(f"np.{ufunc.__name__}.accumulate", dtype, array)
    running = _REDUCTIONS.get(ufunc, (None, None))[1]
    if running is not None:
        return HANDLERS[running](array, axis)
    if ufunc not in _BY_STEPS:
        raise _no_reduction(ufunc, "accumulate")
    value: Any = np.moveaxis(cd.taken(array), axis, 0)
    if value.space.axes[0] == Range(1):
        return array

    def step(y: Any, x: Any) -> tuple[Any, Any]:  # which prints call the states by their name
        after = ufunc(y, x)
        return after, after

    return np.moveaxis(np.concatenate([value[:1], scan(step, value[0], value[1:])[1]]), 0, axis)


def _outer(ufunc: np.ufunc, A: Any, B: Any) -> Any:
    one, other = cd.taken(A), cd.taken(B)
    wide: Any = np.expand_dims(one, tuple(range(one.ndim, one.ndim + other.ndim)))
    return ufunc(wide, other)


def _cumulative(function: Any, first: float) -> Callable[..., Any]:
    def cumulative(x: Any, *, axis: int | None = None, include_initial: bool = False) -> Any:
        value: Any = cd.taken(x)
        place = value.ndim - 1 if axis is None else rearranging.axis_of(value.term, axis, "a running sum")
        found = HANDLERS[function](value, place)
        if not include_initial:
            return found
        shape = list(value.space.axes)
        shape[place] = 1
        return np.concatenate([np.broadcast_to(cd.taken(first), tuple(shape)), found], axis=place)

    return cumulative


def _cond(x: Any, p: Any = None) -> Any:
    norm = HANDLERS[np.linalg.norm]
    if p in (None, 2, -2):
        ratio = norm(x, 2, (-2, -1)) / norm(x, -2, (-2, -1))
        return 1 / ratio if p == -2 else ratio
    return norm(x, p, (-2, -1)) * norm(HANDLERS[np.linalg.inv](x), p, (-2, -1))


def _tensorsolve(a: Any, b: Any) -> Any:
    matrix, right = cd.taken(a), cd.taken(b)
    result = matrix.space.axes[right.ndim :]
    size = int(np.prod([rearranging.length(axis, "np.linalg.tensorsolve") for axis in result]))
    found = HANDLERS[np.linalg.solve](matrix.reshape(size, size), np.ravel(right))
    return found.reshape(tuple(result))


def _tensorinv(a: Any, ind: int = 2) -> Any:
    tensor = cd.taken(a)
    rows, columns = tensor.space.axes[:ind], tensor.space.axes[ind:]
    size = int(np.prod([rearranging.length(axis, "np.linalg.tensorinv") for axis in rows]))
    return HANDLERS[np.linalg.inv](tensor.reshape(size, size)).reshape((*columns, *rows))


UFUNC_METHODS.update({"reduce": _reduce, "accumulate": _accumulate, "outer": _outer})

HANDLERS.update(
    {
        np.block: _block,
        np.insert: _insert,
        np.delete: _delete,
        np.compress: _compress,
        np.choose: _choose,
        np.piecewise: _piecewise,
        np.meshgrid: _meshgrid,
        np.broadcast_arrays: _broadcast_arrays,
        np.unstack: _unstack,
        np.diagflat: _diagflat,
        np.resize: _resize,
        np.dsplit: lambda ary, n: HANDLERS[np.split](ary, n, 2),
        np.apply_along_axis: _apply_along_axis,
        np.apply_over_axes: _apply_over_axes,
        np.i0: i0,
        np.round: _round,
        np.around: _round,
        np.rint: _nearest,
        np.fix: cd.trunc,
        np.divmod: divmod,
        np.modf: _modf,
        np.ldexp: lambda x1, x2: x1 * 2.0**x2,
        np.copysign: lambda x1, x2: cd.abs(x1) * where(cd.taken(x2) < 0, -1, 1),
        np.signbit: lambda x: cd.taken(x) < 0,
        np.real_if_close: lambda a, tol=100: a if is_complex(cd.taken(a).term) else cd.taken(a),
        np.vecmat: lambda x1, x2: (cd.taken(x1).conj()[..., None, :] @ x2)[..., 0, :],
        np.matvec: lambda x1, x2: (cd.taken(x1) @ cd.taken(x2)[..., :, None])[..., 0],
        np.empty_like: lambda prototype: HANDLERS[np.zeros_like](prototype),
        np.isclose: lambda a, b, rtol=1e-05, atol=1e-08: abs(cd.taken(a) - b) <= atol + rtol * abs(cd.taken(b)),
        np.cumulative_sum: _cumulative(np.cumsum, 0),
        np.cumulative_prod: _cumulative(np.cumprod, 1),
        np.iscomplexobj: lambda x: is_complex(cd.taken(x).term),
        np.isrealobj: lambda x: not is_complex(cd.taken(x).term),
        np.linalg.outer: lambda x1, x2: HANDLERS[np.outer](x1, x2),
        np.linalg.cross: lambda x1, x2, *, axis=-1: HANDLERS[np.cross](x1, x2, axis),
        np.linalg.tensordot: lambda x1, x2, *, axes=2: HANDLERS[np.tensordot](x1, x2, axes),
        np.linalg.matmul: lambda x1, x2: cd.taken(x1) @ x2,
        np.linalg.trace: lambda x, *, offset=0: HANDLERS[np.trace](x, offset, -2, -1),
        np.linalg.diagonal: lambda x, *, offset=0: HANDLERS[np.diagonal](x, offset, -2, -1),
        np.linalg.vector_norm: lambda x, *, axis=None, keepdims=False, ord=2: HANDLERS[np.linalg.norm](
            x if axis is not None else np.ravel(x), ord, 0 if axis is None else axis, keepdims
        ),
        np.linalg.matrix_norm: lambda x, *, keepdims=False, ord="fro": HANDLERS[np.linalg.norm](
            x, ord, (-2, -1), keepdims
        ),
        np.linalg.cond: _cond,
        np.linalg.tensorsolve: _tensorsolve,
        np.linalg.tensorinv: _tensorinv,
    }
)


if hasattr(np, "astype"):
    HANDLERS[np.astype] = _astype
METHODS.update({"round": _round, "astype": _astype})
