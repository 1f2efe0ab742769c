"""NumPy's functions of whole arrays on traced tensors, under NumPy's names and with its keywords.

    np.concatenate([x, y])      np.stack([x, y], axis=1)      x[1:].reshape(2, -1)      np.var(x, axis=0)

Each is a few words about an operation of `rearranging` or of elements. What NumPy has and a program cannot have is
refused by a sentence of its own.

Invariant: shape, elements and keywords are NumPy's.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import combdiff.tracing.arrays as arrays
import combdiff.tracing.rearranging as rearranging
from combdiff.errors import TypeMismatchError, UnsupportedError, shown
from combdiff.ir import (
    Range,
    Term,
    axes_of,
    describe,
    is_complex,
    size_sum,
)
from combdiff.tracing import functions as cd
from combdiff.tracing.creation import shape_of
from combdiff.tracing.decompositions import matrix_norm, svdvals
from combdiff.tracing.functions import whole_number
from combdiff.tracing.numpy_protocol import HANDLERS, METHODS, on_arrays
from combdiff.tracing.values import Value, combined, lift, traced, wrap

Axis = int | Sequence[int] | None


# --- axes and shapes -----------------------------------------------------------------------------------------------


def _swapaxes(a: Any, axis1: int, axis2: int) -> Value:
    term = lift(a)
    one, two = (rearranging.axis_of(term, axis, "swapaxes") for axis in (axis1, axis2))
    order = list(range(len(axes_of(term))))
    order[one], order[two] = two, one
    return wrap(arrays.transpose(term, order))


def _moveaxis(a: Any, source: Any, destination: Any) -> Value:
    term = lift(a)
    order = len(axes_of(term))
    sources, places = arrays.positions(source, order), arrays.positions(destination, order)
    if len(sources) != len(places) or not {*sources, *places} <= set(range(order)):
        raise TypeMismatchError(f"moveaxis moves axes {shown(source)} to {shown(destination)} of {describe(term)}")
    rest = iter(axis for axis in range(order) if axis not in sources)
    to = dict(zip(places, sources, strict=True))
    return wrap(arrays.transpose(term, [to[n] if n in to else next(rest) for n in range(order)]))


def _expand_dims(a: Any, axis: Any) -> Value:
    return wrap(rearranging.expanded_dims(lift(a), axis))


def _squeeze(a: Any, axis: Axis = None) -> Value:
    return wrap(rearranging.squeezed(lift(a), axis))


def _reshape(a: Any, /, shape: Any, order: str = "C") -> Value:
    if order == "F":
        return _reshape(traced(a).T, shape_of(shape)[::-1]).T
    if order not in ("C", "A"):
        raise UnsupportedError(f"reshape in the order {order!r}", hint="the orders are 'C' and 'F'")
    return wrap(rearranging.reshaped(lift(a), shape_of(shape)))


def _reshape_method(a: Any, *shape: Any, order: str = "C") -> Value:
    return _reshape(a, shape[0] if len(shape) == 1 else shape, order)


def _ravel(a: Any, order: str = "C") -> Value:
    return _reshape(a, -1, order)


def _broadcast_to(array: Any, shape: Any) -> Value:
    axes = shape_of(shape)
    return wrap(rearranging.broadcasted(lift(array), tuple(Range(a) if isinstance(a, int) else a for a in axes)))


def _at_least(order: int) -> Any:
    def at_least(a: Any) -> Value:
        term = lift(a)
        return wrap(rearranging.expanded_dims(term, range(order - len(axes_of(term)))))

    return at_least


# --- joining and cutting -------------------------------------------------------------------------------------------


def _concatenate(arrays_: Sequence[Any], axis: int | None = 0) -> Value:
    terms = _several(arrays_, "concatenate")
    if axis is None:
        return wrap(
            rearranging.concatenate([rearranging.flattened(t, "np.concatenate") for t in terms], 0, "concatenate")
        )
    return wrap(rearranging.concatenate(terms, rearranging.axis_of(terms[0], axis, "concatenate"), "concatenate"))


def _several(values: Any, what: str) -> list[Term]:
    if isinstance(values, Value) or not isinstance(values, Sequence) or not values:
        raise TypeMismatchError(f"np.{what} takes a list of tensors, not {shown(values)}")
    return [lift(value) for value in values]


def _stack(arrays_: Sequence[Any], axis: int = 0) -> Value:
    return wrap(rearranging.stack(_several(arrays_, "stack"), axis, "stack"))


def _vstack(tup: Sequence[Any]) -> Value:
    return _concatenate([_at_least(2)(wrap(t)) for t in _several(tup, "vstack")], 0)


def _hstack(tup: Sequence[Any]) -> Value:
    terms = [lift(_at_least(1)(wrap(t))) for t in _several(tup, "hstack")]
    return _concatenate([wrap(t) for t in terms], 0 if len(axes_of(terms[0])) == 1 else 1)


def _column_stack(tup: Sequence[Any]) -> Value:
    columns = [wrap(t) if len(axes_of(t)) > 1 else _expand_dims(wrap(t), 1) for t in _several(tup, "column_stack")]
    return _concatenate(columns, 1)


def _split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Value]:
    return _parts(ary, indices_or_sections, axis, exact=True)


def _array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Value]:
    return _parts(ary, indices_or_sections, axis, exact=False)


def _parts(ary: Any, where: Any, axis: int, exact: bool) -> list[Value]:
    term = lift(ary)
    axis = rearranging.axis_of(term, axis, "a split")
    if isinstance(where, Sequence | np.ndarray) and not isinstance(where, str) and all(np.asarray(where) >= 0):
        return _cut(term, axis, [whole_number(n, "a place of a split") for n in where])
    size = rearranging.length(axes_of(term)[axis], "a split")
    if not isinstance(where, Sequence | np.ndarray) or isinstance(where, str):
        where = whole_number(where, "the number of parts of a split", 1)
        if exact and size % where:
            raise TypeMismatchError(f"{describe(term)} has {size} elements along axis {axis}: no {where} equal parts")
        long, each = size % where, size // where
        sizes = [each + 1] * long + [each] * (where - long)
        bounds = [sum(sizes[:n]) for n in range(where + 1)]
    else:
        bounds = [0, *(slice(None, whole_number(n, "a place of a split")).indices(size)[1] for n in where), size]
    pairs = itertools.pairwise(bounds)
    return [wrap(rearranging.part(term, axis, start, max(stop - start, 0))) for start, stop in pairs]


def _cut(term: Term, axis: int, places: Sequence[int]) -> list[Value]:
    """The parts between places along an axis, of a named size too."""
    domain = axes_of(term)[axis]
    if isinstance(domain, Range) and isinstance(domain.size, int):
        places = [min(place, domain.size) for place in places]
    bounds = [(start, stop) for start, stop in itertools.pairwise((0, *places))]
    last = rearranging.lengths((domain, 1), (-(places[-1] if places else 0), 1), what="a split").size
    parts = [rearranging.part(term, axis, start, max(stop - start, 0)) for start, stop in bounds]
    return [*map(wrap, parts), wrap(rearranging.part(term, axis, places[-1] if places else 0, last))]


def _flip(m: Any, axis: Axis = None) -> Value:
    return wrap(rearranging.flip(lift(m), axis))


def _roll(a: Any, shift: Any, axis: Axis = None) -> Value:
    term = lift(a)
    if axis is None:
        flat = rearranging.flattened(term, "np.roll")
        turned = rearranging.roll(flat, whole_number(shift, "the shift of a roll"), 0)
        return wrap(rearranging.reshaped(turned, axes_of(term)))
    axes = [axis] if isinstance(axis, int) else list(axis)
    shifts = list(shift) if isinstance(shift, tuple | list) else [shift] * len(axes)
    axes = axes * len(shifts) if len(axes) == 1 else axes
    if len(shifts) != len(axes):
        raise TypeMismatchError(f"np.roll has {len(shifts)} shifts for {len(axes)} axes")
    for one, place in zip(shifts, axes, strict=True):
        shift = whole_number(one, "the shift of a roll")
        term = rearranging.roll(term, shift, rearranging.axis_of(term, place, "a roll"))
    return wrap(term)


def _rot90(m: Any, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Value:
    term = lift(m)
    first, second = (rearranging.axis_of(term, axis, "rot90") for axis in axes)
    if first == second:
        raise TypeMismatchError(f"np.rot90 turns axis {first} of {describe(term)} towards itself")
    k = whole_number(k, "the number of turns of np.rot90")
    return wrap(rearranging.rotated(term, k, first, second))


def _pad(array: Any, pad_width: Any, mode: str = "constant", constant_values: Any = 0) -> Value:
    term = lift(array)
    try:
        widths = np.broadcast_to(np.asarray(pad_width), (len(axes_of(term)), 2)).tolist()
    except ValueError:
        raise TypeMismatchError(
            f"np.pad of {describe(term)} with the widths {shown(pad_width)}", hint="give a pair for each axis"
        ) from None
    pairs = [(whole_number(a, "a width of np.pad", 0), whole_number(b, "a width of np.pad", 0)) for a, b in widths]
    if mode in ("constant", "empty"):  # what NumPy leaves as it is in memory is 0
        return wrap(rearranging.padded(term, pairs, lift(constant_values)))
    if mode not in ("edge", "reflect", "symmetric", "wrap"):
        raise UnsupportedError(f"np.pad with mode {mode!r}", hint="concatenate the parts that are to stand there")
    for axis, pair in enumerate(pairs):
        if not any(pair):
            continue
        domain = axes_of(term)[axis]
        size = domain.size if isinstance(domain, Range) else None
        if isinstance(size, str) or (size and max(pair) < size + (mode != "reflect")):
            term = _padded_by_ends(term, axis, pair, mode)
        else:
            size = rearranging.length(domain, f"np.pad with mode {mode!r}")
            places = np.pad(np.arange(size), pair, mode=mode)  # type: ignore[call-overload]
            term = lift(_take(wrap(term), places, axis))
    return wrap(term)


def _padded_by_ends(term: Term, axis: int, widths: tuple[int, int], mode: str) -> Term:
    """An axis with elements of its own before and after it, no more than it has, as NumPy's mode says which.

    A named size that turns out to be less is refused when it is known, but by mode wrap, which then goes around again.
    """
    before, after = widths
    if mode == "wrap":
        size = rearranging.lengths((axes_of(term)[axis], 1), (before + after, 1), what="np.pad").size
        if isinstance(size, str):
            return rearranging.around(term, axis, -before, size)
    own = int(mode == "reflect")  # the element at an end, which stands there once
    inward = slice(own, own + before), slice(-own - after, -own or None)
    first, last = {"edge": (slice(1), slice(-1, None)), "wrap": (slice(-before, None), slice(after))}.get(mode, inward)

    def end(count: int, part: slice) -> list[Term]:
        if not count:
            return []
        piece = lift(wrap(term)[(*[slice(None)] * axis, part)])
        if mode == "edge":
            return [_repeated(piece, axis, count, axis)]
        return [piece if mode == "wrap" else rearranging.flip(piece, axis)]

    return rearranging.concatenate([*end(before, first), term, *end(after, last)], axis, "np.pad")


def _tile(A: Any, reps: Any) -> Value:
    term = lift(A)
    given = reps if isinstance(reps, tuple | list) else [reps]
    counts = [whole_number(count, "the number of copies in np.tile", 0) for count in given]
    missing = len(counts) - len(axes_of(term))
    term = rearranging.expanded_dims(term, range(missing)) if missing > 0 else term
    counts = [1] * -min(missing, 0) + counts
    for axis, count in enumerate(counts):
        if count != 1:
            term = _repeated(term, axis, count, axis)
    return wrap(term)


def _repeat(a: Any, repeats: Any, axis: int | None = None) -> Value:
    if isinstance(repeats, tuple | list | np.ndarray) and np.ndim(repeats):
        value = wrap(rearranging.flattened(lift(a), "np.repeat")) if axis is None else traced(a)
        place = rearranging.axis_of(value.term, axis or 0, "repeat")
        size = rearranging.length(value.space.axes[place], "np.repeat of different numbers of copies")
        return _take(value, np.repeat(np.arange(size), repeats), place)
    repeats = whole_number(repeats, "the number of copies in np.repeat", 0)
    term = rearranging.flattened(lift(a), "np.repeat") if axis is None else lift(a)
    place = rearranging.axis_of(term, axis or 0, "repeat")
    return wrap(_repeated(term, place, repeats, place + 1))


def _repeated(term: Term, axis: int, count: int, place: int) -> Term:
    """Copies along a new axis at a place, which is then joined with that axis."""
    shape = axes_of(term)
    domain = shape[axis]
    if count and place > axis:
        return rearranging.repeated(term, axis, count)
    if count and isinstance(domain, Range) and isinstance(domain.size, str):
        return rearranging.around(term, axis, 0, size_sum((domain.size, count)))
    wide = rearranging.expanded_dims(term, [place])
    copied = rearranging.broadcasted(wide, (*shape[:place], Range(count), *shape[place:]))
    joined = Range(count * rearranging.length(shape[axis], "repeating"))
    return rearranging.reshaped(copied, (*shape[:axis], joined, *shape[axis + 1 :]))


def _take(a: Any, indices: Any, axis: int | None = None) -> Value:
    value = wrap(rearranging.flattened(lift(a), "np.take")) if axis is None else traced(a)
    place = rearranging.axis_of(value.term, axis or 0, "take")
    chosen = np.asarray(indices) if isinstance(indices, list | tuple) else indices
    found: Value = value[(*[slice(None)] * place, chosen)]
    return found


# --- matrices ------------------------------------------------------------------------------------------------------


def _diag(v: Any, k: int = 0) -> Value:
    term, k = lift(v), whole_number(k, "the offset of a diagonal")
    if len(axes_of(term)) == 1:
        return wrap(rearranging.on_diagonal(term, k))
    return _diagonal(wrap(_matrix(term, "np.diag", exactly=True)), k)


def _matrix(term: Term, what: str, *, exactly: bool = False) -> Term:
    """A tensor that is a matrix, or a stack of them."""
    order = len(axes_of(term))
    if order < 2 or (exactly and order > 2):
        raise TypeMismatchError(f"{what} takes a matrix, but {describe(term)} has order {order}")
    return term


def _diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Value:
    term = lift(a)
    first, second = (rearranging.axis_of(term, axis, "a diagonal") for axis in (axis1, axis2))
    return wrap(rearranging.diagonal(term, offset, first, second))


def _tril(m: Any, k: int = 0) -> Value:
    return wrap(rearranging.triangle(_matrix(lift(m), "np.tril"), whole_number(k, "the offset of np.tril"), lower=True))


def _triu(m: Any, k: int = 0) -> Value:
    k = whole_number(k, "the offset of np.triu")
    return wrap(rearranging.triangle(_matrix(lift(m), "np.triu"), k, lower=False))


def _filled(value: int) -> Any:
    def like(a: Any) -> Value:
        return combined(lambda _: lift(value), a)

    return like


def _full_like(a: Any, fill_value: Any) -> Value:
    return combined(lambda _, value: value, a, fill_value)


# --- along axes ----------------------------------------------------------------------------------------------------


def _var(a: Any, axis: Axis = None, ddof: float = 0, keepdims: bool = False) -> Value:
    value = traced(a)
    away = value - cd.mean(value, axis, True)
    square = away * away.conj() if is_complex(away.term) else away * away
    total = wrap(arrays.sum_axes(cd.real(square).term, axis, keepdims))
    return total / (wrap(arrays.count(value.term, axis)) - ddof)


def _std(a: Any, axis: Axis = None, ddof: float = 0, keepdims: bool = False) -> Value:
    found: Value = cd.sqrt(_var(a, axis, ddof, keepdims))
    return found


def _cumsum(a: Any, axis: int | None = None, dtype: Any = None) -> Value:
    cd.check_dtype("np.cumsum", dtype, a)
    term = rearranging.flattened(lift(a), "np.cumsum") if axis is None else lift(a)
    return wrap(rearranging.running(term, rearranging.axis_of(term, axis or 0, "cumsum")))


def _diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Value:
    term = lift(a)
    place = rearranging.axis_of(term, axis, "diff")
    ends = [None if end is None else _end(term, place, end) for end in (prepend, append)]
    if any(end is not None for end in ends):
        parts = [part for part in (ends[0], wrap(term), ends[1]) if part is not None]
        term = lift(_concatenate(parts, place))
    for _ in range(whole_number(n, "the number of differences", 0)):
        term = rearranging.differences(term, place)
    return wrap(term)


def _end(term: Term, axis: int, value: Any) -> Value:
    """What stands before or behind a tensor along an axis: a number once."""
    end = lift(np.asarray(value) if isinstance(value, list | tuple) else value)
    shape = axes_of(term)
    return wrap(end) if axes_of(end) else _broadcast_to(wrap(end), (*shape[:axis], 1, *shape[axis + 1 :]))


def logsumexp(a: Any, /, axis: Axis = None, keepdims: bool = False, **domains: object) -> Any:
    """log Σ exp(a) along axes, as `scipy.special.logsumexp`, or over the indices of a lambda; no exponential overflows.

    `domains` is as in `cd.sum`. Raises TypeMismatchError for what is neither a tensor, an array nor a lambda.
    """
    value = _elements("logsumexp", a, domains)
    if not cd.is_traced(value):
        return on_arrays("logsumexp", _logsumexp_of_array, value, axis, keepdims)
    return cd.log(wrap(arrays.sum_axes(lift(cd.exp(value)), axis, cd.flag(keepdims))))


def softmax(x: Any, /, axis: Axis = None, **domains: object) -> Any:
    """exp(x) / Σ exp(x) along axes, as `scipy.special.softmax`; no exponential overflows.

    x may be a lambda, and `domains` is as in `cd.tensor`. Raises TypeMismatchError for what is neither a tensor, an
    array nor a lambda.
    """
    value = _elements("softmax", x, domains)
    if not cd.is_traced(value):
        return on_arrays("softmax", lambda array: np.exp(array - _logsumexp_of_array(array, axis, True)), value)
    shares = cd.exp(value)
    return shares / wrap(arrays.sum_axes(lift(shares), axis, True))


def _elements(caller: str, given: Any, domains: dict[str, object]) -> Any:
    """A tensor as it is, and that of the elements which a lambda gives; domains are those of a lambda's indices."""
    if callable(given) and not cd.is_traced(given):
        return cd.tensor(given, **domains)
    if domains:
        name = next(iter(domains))
        raise TypeMismatchError(
            f"cd.{caller} of a tensor has no option {name}",
            hint=f"domains are given for the indices of a lambda: cd.{caller}(lambda {name}: …, {name}=5)",
        )
    return given


def _logsumexp_of_array(array: Any, axis: Axis, keepdims: bool) -> Any:
    high = np.max(array, axis=axis, keepdims=True)
    found = np.log(np.sum(np.exp(array - high), axis=axis, keepdims=True)) + high
    return found if keepdims else np.squeeze(found, axis=axis)


def _norm(x: Any, ord: Any = None, axis: Axis = None, keepdims: bool = False) -> Any:
    """The norm of vectors along an axis, or of matrices along two, with NumPy's `ord`; Frobenius' of all elements.

    Of matrices: "fro", "nuc" (the sum of the singular values), ±2 (the largest and smallest), ±1 and ±inf (the largest
    and smallest sum of a column or row). Of vectors: ±inf, and Σ |x|^p for other numbers, 0 refused.
    """
    value = traced(x)
    axes = list(range(value.ndim)) if axis is None else arrays.positions(axis, value.ndim)
    if ord is None:
        square = cd.real(value * value.conj()) if is_complex(value.term) else value * value
        found: Value = cd.sqrt(wrap(arrays.sum_axes(lift(square), axis, keepdims)))
        return found
    if len(axes) == 1:
        return _vector_norm(value, ord, axes[0], keepdims)
    if len(axes) != 2:
        raise TypeMismatchError(f"np.linalg.norm with ord={shown(ord)} takes one axis or two, not {len(axes)}")
    return _matrix_norm(value, ord, (axes[0], axes[1]), keepdims)


def _vector_norm(value: Value, ord: Any, axis: int, keepdims: bool) -> Any:
    if ord == 2:
        return _norm(value, None, axis, keepdims)
    away: Any = cd.abs(value)
    if ord in (math.inf, -math.inf):
        return HANDLERS[np.max if ord > 0 else np.min](away, axis, keepdims)
    if ord == 1:
        return away.sum(axis, keepdims)
    if not isinstance(ord, int | float) or not ord:
        raise UnsupportedError(
            f"np.linalg.norm of a vector with ord={shown(ord)}",
            hint="ord is a number that is not 0, or ±inf; np.count_nonzero counts",
        )
    return ((away**ord).sum(axis, keepdims)) ** (traced(1) / ord)


def _matrix_norm(value: Value, ord: Any, axes: tuple[int, int], keepdims: bool) -> Any:
    if ord == "fro":
        return _norm(value, None, axes, keepdims)
    if ord in ("nuc", 2):
        norm: Any = matrix_norm(_moveaxis(value, axes, (-2, -1)), ord)
    elif ord == -2:
        norm = HANDLERS[np.min](svdvals(_moveaxis(value, axes, (-2, -1))), -1)
    elif ord in (1, -1, math.inf, -math.inf):
        summed, kept = axes if abs(ord) == 1 else axes[::-1]
        sums = cd.abs(value).sum(summed)
        norm = HANDLERS[np.max if ord > 0 else np.min](sums, kept - (kept > summed))
    else:
        raise UnsupportedError(
            f"np.linalg.norm of a matrix with ord={shown(ord)}", hint="ord is 'fro', 'nuc', ±1, ±2 or ±inf"
        )
    return _expand_dims(norm, axes) if keepdims else norm


# --- products ------------------------------------------------------------------------------------------------------


def _inner(a: Any, b: Any) -> Value:
    left, right = lift(a), lift(b)
    if not axes_of(left) or not axes_of(right):
        return wrap(left) * wrap(right)
    return _tensordot(a, b, ([-1], [-1]))


def _vdot(a: Any, b: Any) -> Value:
    left, right = lift(a), lift(b)
    if (axes := axes_of(left)) == axes_of(right):
        return _tensordot(wrap(left).conj(), wrap(right), len(axes))
    one, other = (wrap(rearranging.flattened(each, "np.vdot")) for each in (left, right))
    return one.conj() @ other


def _tensordot(a: Any, b: Any, axes: Any = 2) -> Value:
    left, right = lift(a), lift(b)
    many, some = len(axes_of(left)), len(axes_of(right))
    if not isinstance(axes, tuple | list):
        axes = whole_number(axes, "the number of axes of np.tensordot", 0)
        axes = (list(range(many - axes, many)), list(range(axes)))
    if len(axes) != 2:
        raise TypeMismatchError(f"np.tensordot takes a pair of lists of axes, not {shown(axes)}")
    met = [arrays.positions(which, order) for which, order in zip(axes, (many, some), strict=True)]
    if len(met[0]) != len(met[1]) or not (set(met[0]) <= set(range(many)) and set(met[1]) <= set(range(some))):
        raise TypeMismatchError(
            f"np.tensordot of {describe(left)} of order {many} and {describe(right)} of order {some} over the axes "
            f"{shown(axes)}"
        )
    letters = [chr(ord("a") + n) for n in range(many)], [chr(ord("A") + n) for n in range(some)]
    for one, two in zip(*met, strict=True):
        letters[1][two] = letters[0][one]
    result = [c for n, c in enumerate(letters[0]) if n not in met[0]]
    result += [c for n, c in enumerate(letters[1]) if n not in met[1]]
    labels = ["".join(letters[0]), "".join(letters[1])]
    return wrap(arrays.contract([left, right], labels, "".join(result), "np.tensordot"))


def _kron(a: Any, b: Any) -> Value:
    left, right = lift(a), lift(b)
    order = max(len(axes_of(left)), len(axes_of(right)))
    left, right = (rearranging.expanded_dims(t, range(order - len(axes_of(t)))) for t in (left, right))
    sizes = [[rearranging.length(axis, "np.kron") for axis in axes_of(t)] for t in (left, right)]
    one = rearranging.expanded_dims(left, range(1, 2 * order, 2))
    other = rearranging.expanded_dims(right, range(0, 2 * order, 2))
    return _reshape(wrap(one) * wrap(other), [m * n for m, n in zip(*sizes, strict=True)])


def _cross(a: Any, b: Any, axis: int = -1) -> Value:
    vectors = [_moveaxis(v, axis, -1) for v in (a, b)]
    for value in vectors:
        if rearranging.length(value.space.axes[-1], "np.cross") != 3:
            raise UnsupportedError(
                "np.cross takes vectors of 3 elements", hint="of 2 elements it is x[0] * y[1] - x[1] * y[0]"
            )
    (a_after, a_before), (b_after, b_before) = ([_roll(v, shift, -1) for shift in (-1, 1)] for v in vectors)
    return _moveaxis(a_after * b_before - a_before * b_after, -1, axis)


def _multi_dot(arrays_: Sequence[Any]) -> Value:
    first, *rest = _several(arrays_, "linalg.multi_dot")
    product: Value = wrap(first)
    for term in rest:
        product = product @ wrap(term)
    return product


# --- values --------------------------------------------------------------------------------------------------------


def constant(array: Any, /) -> Value:
    """An array of the surrounding scope as a tensor of the program, to be read with indices: `cd.constant(K)[i, j]`.

    In arithmetic and in NumPy's functions an array stands by itself. Raises TypeMismatchError for what is no array.
    """
    try:
        found = np.asanyarray(array)  # with its class, so that a mask is seen
    except (TypeError, ValueError, RecursionError):  # of rows of unlike lengths, of lists in lists
        raise TypeMismatchError(f"constant takes an array, not {shown(array)}") from None
    return traced(found)


def clip(a: Any, /, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Any:
    """The elements, but at least the first bound and at most the second, as `numpy.clip`.

    Bounds are broadcast; None is no bound. Raises TypeMismatchError where they cannot be, and for complex numbers.
    """
    low, high = a_min if min is None else min, a_max if max is None else max
    raised = a if low is None else cd.maximum(a, low)
    return raised if high is None else cd.minimum(raised, high)


def _logarithm(base: float) -> Any:
    return lambda x: cd.log(x) / math.log(base)


def _heaviside(x: Any, at_zero: Any) -> Value:
    step = cd.primitive("step")
    found: Value = step(x) + at_zero * (1 - step(x) - step(-x))
    return found


def _cbrt(x: Any) -> Any:
    return cd.sign(x) * cd.abs(x) ** (traced(1) / 3)


HANDLERS.update(
    {
        np.swapaxes: _swapaxes,
        np.moveaxis: _moveaxis,
        np.expand_dims: _expand_dims,
        np.squeeze: _squeeze,
        np.reshape: _reshape,
        np.ravel: _ravel,
        np.broadcast_to: _broadcast_to,
        np.atleast_1d: _at_least(1),
        np.atleast_2d: _at_least(2),
        np.concatenate: _concatenate,
        np.stack: _stack,
        np.vstack: _vstack,
        np.hstack: _hstack,
        np.column_stack: _column_stack,
        np.split: _split,
        np.array_split: _array_split,
        np.hsplit: lambda ary, n: _split(ary, n, 0 if traced(ary).ndim == 1 else 1),
        np.vsplit: lambda ary, n: _split(ary, n, 0),
        np.flip: _flip,
        np.fliplr: lambda m: _flip(m, 1),
        np.flipud: lambda m: _flip(m, 0),
        np.roll: _roll,
        np.rot90: _rot90,
        np.pad: _pad,
        np.tile: _tile,
        np.repeat: _repeat,
        np.take: _take,
        np.diag: _diag,
        np.diagonal: _diagonal,
        np.tril: _tril,
        np.triu: _triu,
        np.zeros_like: _filled(0),
        np.ones_like: _filled(1),
        np.full_like: _full_like,
        np.var: _var,
        np.std: _std,
        np.cumsum: _cumsum,
        np.diff: _diff,
        np.linalg.norm: _norm,
        np.inner: _inner,
        np.vdot: _vdot,
        np.tensordot: _tensordot,
        np.kron: _kron,
        np.cross: _cross,
        np.linalg.multi_dot: _multi_dot,
        np.clip: clip,
        np.log2: _logarithm(2),
        np.log10: _logarithm(10),
        np.arccosh: lambda x: cd.log(x + cd.sqrt(x - 1) * cd.sqrt(x + 1)),
        np.exp2: lambda x: 2**x,
        np.cbrt: _cbrt,
        np.angle: lambda z: cd.arctan2(cd.imag(z), cd.real(z)),
        np.heaviside: _heaviside,
    }
)
METHODS.update({"reshape": _reshape_method, "flatten": _ravel, "copy": lambda a, order="C": traced(a)})
