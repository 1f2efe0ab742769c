"""Reading tensors with index expressions.

    x[2*i - j + 1] = Apply(x, (2·i − j + 1,))        A[i] = (j) ↦ A[i, j]        x[idx[i]] = Σ_j δ(j, idx[i])·x[j]

An index that stands bare on an axis takes its domain from there.

Invariant: an expression that reads an axis is affine with whole coefficients, unless the axis is the real line.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import EllipsisType

import numpy as np

from combdiff.errors import IndexingError, UnsupportedError, shown, user_location
from combdiff.ir import (
    Add,
    Apply,
    Coordinate,
    Cyclic,
    Domain,
    Lambda,
    Mul,
    Number,
    Range,
    Real,
    Space,
    Symmetric,
    Term,
    Var,
    access_name,
    add,
    affine,
    affine_parts,
    apply,
    axes_of,
    describe,
    lambda_,
    mul,
    show_index,
    size_form,
    size_of_axis,
    subterms,
    total,
    type_of,
)
from combdiff.ir import delta as delta_term
from combdiff.tracing.arrays import aligned, broadcast, element
from combdiff.tracing.context import Array, TracedValue, check_live, current, show_domain
from combdiff.tracing.formulas import by_formula
from combdiff.tracing.indices import Index, as_index, binders_of, index_term, is_divided, is_whole, with_rests
from combdiff.tracing.rearranging import expanded_dims, sliced


def read(tensor: Term, key: object) -> Term:
    """`tensor[key]`, with NumPy's meaning: elements, slices, new axes, and arrays of indices.

    An element or a tensor of an integer parameter may stand for an index: `x[idx[i]]`, `x[idx]`. Raises IndexingError
    for too many indices and for an index that is not affine or does not fit its axis.
    """
    given = key if isinstance(key, tuple) else (key,)
    entries = _complete([as_index(entry) for entry in given if entry is not None], tensor, len(axes_of(tensor)))
    found = _read_axes(tensor, entries)
    new = any(entry is None for entry in given)
    return expanded_dims(found, _new_axes(given, tensor, len(axes_of(found)))) if new else found


def _new_axes(given: Sequence[object], tensor: Term, order: int) -> list[int]:
    """Where in the result the new axes of a key stand."""
    if any(_held(entry) is not None or integer_value(entry) is not None for entry in given):
        raise UnsupportedError(
            f"{describe(tensor)} is read with None beside an array of indices",
            hint="add the axis afterwards: x[idx][:, None]",
        )
    shown_axes = [entry for entry in given if entry is None or isinstance(entry, slice | EllipsisType)]
    if not any(isinstance(entry, EllipsisType) for entry in shown_axes):
        shown_axes.append(...)
    rest = order - sum(isinstance(entry, slice) for entry in shown_axes)
    places, place = [], 0
    for entry in shown_axes:
        if entry is None:
            places.append(place)
        place += rest if isinstance(entry, EllipsisType) else 1
    return places


def _read_axes(tensor: Term, entries: Sequence[object]) -> Term:
    """A tensor read with one entry for each of its axes; arrays of indices give axes where NumPy has them."""
    axes = axes_of(tensor)
    kept = {
        n: _kept(axes[n], entry, f"axis {n} of {describe(tensor)}")
        for n, entry in enumerate(entries)
        if isinstance(entry, slice)
    }
    fresh = dict(zip(kept, current("an element").fresh_indices(axis for axis, _, _ in kept.values()), strict=True))
    looked_up = {n: value for n, entry in enumerate(entries) if (value := _looked_up(entry, axes[n])) is not None}
    elements, batch = _broadcast(list(looked_up.values()))
    values = dict(zip(looked_up, elements, strict=True))
    counted = {axis: form for axis, value in values.items() if (form := _counted(value)) is not None}
    found = {axis: _stand_in(tensor, axis) for axis in values.keys() - counted.keys()}
    forms = {axis: affine([(fresh[axis], step), (start, 1)]) for axis, (_, step, start) in kept.items()}
    known: dict[int, Term] = {**forms, **counted, **found}
    read_at = [known.get(axis) or _axis_index(entry, tensor, axis) for axis, entry in enumerate(entries)]
    indices, rests = with_rests(read_at, current("an element"))
    hits = [delta_term(index, values[axis], axes[axis]) for axis, index in found.items()]
    _note_place(tensor, indices)
    places = list(looked_up)
    adjacent = places == list(range(places[0], places[-1] + 1)) if places else False
    before = [fresh[axis] for axis in kept if adjacent and axis < places[0]]
    after = [fresh[axis] for axis in kept if not (adjacent and axis < places[0])]
    return lambda_(
        (*before, *batch, *after),
        total((*found.values(), *rests), mul(*hits, *rests.values(), element(tensor, indices))),
    )


def _kept(domain: Domain, entry: slice, where: str) -> tuple[Domain, int, Term]:
    """What a slice leaves of an axis: the new axis, the step of the old index, and where that starts."""
    return (domain, 1, affine([])) if _is_full(entry) else sliced(domain, entry, where)


def _looked_up(entry: object, axis: Domain) -> Term | None:
    """The integers that an entry of a key holds: an array or list of them, or what is made of integer parameters."""
    array = _held(entry)
    return integer_value(entry) if array is None else constant_indices(array, axis)


def _counted(value: Term) -> Term | None:
    """The index expression that an element of an array of indices is: 2i + 1 of 2 * cd.arange(n) + 1; else None."""
    match value:
        case Apply(Lambda() as function, arguments):
            return _counted(apply(function, arguments))
        case Coordinate(form) if is_whole(form):
            return form
        case Number(real=int() as number, imag=0):
            return affine([], number)
        case Add(terms):
            forms = [counted for term in terms if (counted := _counted(term)) is not None]
            return affine([(each, 1) for each in forms]) if len(forms) == len(terms) else None
        case Mul((Number(real=int() as number, imag=0), rest)):
            counted = _counted(rest)
            return None if counted is None else affine([(counted, number)])
    return None


def _held(entry: object) -> Array | None:
    """An entry of a key that is an array of whole numbers, or a list of such."""
    if isinstance(entry, list):
        try:
            entry = np.asarray(entry, dtype=None if entry else int)
        except ValueError:
            raise IndexingError(f"a tensor is read with {shown(entry)}", hint="all rows have one length") from None
    if not isinstance(entry, np.ndarray) or not entry.ndim:
        return None
    if entry.dtype.kind == "b" and entry.ndim == 1:
        entry = np.flatnonzero(entry)  # a mask that is known
    if entry.dtype.kind not in "iu":
        raise UnsupportedError(
            f"a tensor is read with an array of {entry.dtype}",
            hint="arrays of indices hold whole numbers; in place of a mask multiply by zeros and ones, or use cd.where",
        )
    return entry


def constant_indices(array: Array, axis: Domain) -> Term:
    """An array of the surrounding scope as indices of an axis; on a Range its negative ones count from the end.

    What is counted is known where the size is a number. Else it is `c[i] + n·back[i]`, with 1 where c is negative.
    Indices at equal distances are an index expression, x[2i] of x[np.arange(0, 6, 2)].
    """
    trace = current("an array of indices")
    negative = array < 0
    if not isinstance(axis, Range) or not negative.any():
        return _by_steps(array, array) or trace.constant(array)
    if isinstance(axis.size, int):
        counted = np.where(negative & (array >= -axis.size), array + axis.size, array)
        return _by_steps(counted, array) or trace.constant(counted, of=(array, axis.size))
    held, back = trace.constant(array), trace.constant(negative.astype(int), of=(array, -1), name="back")
    indices = trace.fresh_indices(axes_of(held))
    return lambda_(indices, add(element(held, indices), mul(size_of_axis(axis), element(back, indices))))


def _by_steps(array: Array, given: Array) -> Term | None:
    """An array that the program has made of a given one as an index expression; None where it is none."""
    found = by_formula(array, given)
    return found if isinstance(found, Lambda) and _counted(found.body) is not None else None


def _broadcast(values: Sequence[Term]) -> tuple[Sequence[Term], tuple[Var, ...]]:
    """The elements of arrays of indices at the indices of their broadcast."""
    shapes = [axes_of(value) for value in values]
    if not any(shapes):
        return values, ()
    batch = current("an array of indices").fresh_indices(broadcast(values, shapes))
    return [element(v, aligned(shape, batch)) for v, shape in zip(values, shapes, strict=True)], batch


def _note_place(tensor: Term, indices: Sequence[Term]) -> None:
    """Tells the trace on which line of the user's an element is read."""
    if location := user_location():
        for axis, index in enumerate(indices):
            current("an element").places.setdefault(access_name(describe(tensor), axis, index), location)


def integer_value(entry: object) -> Term | None:
    """The integer that stands for an index: an element of an integer parameter, or what is computed from such."""
    if isinstance(entry, Index) or not isinstance(entry, TracedValue):
        return None
    if entry.is_mask:
        raise UnsupportedError(
            "a tensor is read with a mask, which depends on values: how many elements it leaves is not known",
            hint="keep all of them, cd.where(x > 0, x, 0), or find the indices outside and pass them as a parameter",
        )
    term = getattr(entry, "term", None)
    if not isinstance(term, Term) or not isinstance(space := type_of(term), Space) or space.dtype is not int:
        return None
    if not term.free and not any(isinstance(part, Coordinate) for part in subterms(term)):
        return None
    check_live(term, current("an element"))
    return term


def hit(index: Index, value: Term) -> Term:
    """δ of an index and an integer computed from parameters: 1 where the index is that integer."""
    if not isinstance(index.term, Var) or index.is_number:
        raise IndexingError(
            f"an integer is compared with {index}, but only an index by itself can be",
            hint="add to the integer: cd.delta(idx[e] - 1, i) for idx[e] = i + 1",
        )
    for binder in binders_of(index.term, index.owner):
        binder.whole_use = "an integer"
    return delta_term(index.live(), value)


def _stand_in(tensor: Term, axis: int) -> Var:
    """A summed index for an axis that is read at an integer value: `Σ_j δ(j, idx[i])·x[j]` is x[idx[i]]."""
    domain = axes_of(tensor)[axis]
    if isinstance(domain, Real):
        raise IndexingError(f"axis {axis} of {describe(tensor)} is the real line and cannot be read at integers")
    return current("an element").fresh_indices([domain])[0]


def _complete(entries: Sequence[object], tensor: Term, order: int) -> list[object]:
    """One entry per axis: an ellipsis and missing last entries stand for whole axes."""
    gaps = [position for position, entry in enumerate(entries) if isinstance(entry, EllipsisType)]
    missing = order - len(entries) + len(gaps[:1])
    if missing < 0 or len(gaps) > 1:
        raise IndexingError(
            f"{describe(tensor)} has order {order}, but is read with {len(entries)} indices",
            hint=f"give {order} {'index' if order == 1 else 'indices'}" if order else "a number has no elements",
        )
    start = gaps[0] if gaps else len(entries)
    return [*entries[:start], *[slice(None)] * missing, *entries[start + 1 :]]


def _is_full(entry: object) -> bool:
    return isinstance(entry, slice) and entry.start is entry.stop is entry.step is None


def _axis_index(entry: object, tensor: Term, axis: int) -> Term:
    """The term for one entry of a key, after checking that it fits the axis."""
    domain, where = axes_of(tensor)[axis], f"axis {axis} of {describe(tensor)}"
    _refuse_other_entries(entry, where)
    term = index_term(entry)
    if isinstance(domain, Real):
        _note_bare_use(entry, domain, where)
        return term
    if isinstance(entry, float) or not is_divided(term, current("an element")):
        written = shown(entry) if isinstance(entry, float) else show_index(term)
        raise IndexingError(
            f"{written} is not a whole index, but reads {where}, which is {show_domain(domain)}",
            hint="an index expression has whole coefficients, such as 2*i - j + 1",
        )
    if not term.free:
        return _constant(affine_parts(term)[1], domain, where)  # type: ignore[arg-type]
    _note_bare_use(entry, domain, where)
    return term


def _refuse_other_entries(entry: object, where: str) -> None:
    if isinstance(entry, TracedValue) and not isinstance(entry, Index):
        raise IndexingError(
            f"{where} is read with a {entry.kind}, but an index is an expression of the indices of a lambda",
            hint=_hint_for_rounded(entry)
            or "write cd.sum(lambda i: x[i]) or cd.tensor(lambda i: x[i]); indices in an array are a parameter, "
            "x[idx[i]] with idx: cd.Space(…, dtype=int)",
        )


def _hint_for_rounded(entry: TracedValue) -> str:
    """What to write where integers of arrays are divided, or else made real, on the way to an index; or nothing."""
    term = getattr(entry, "term", None)
    spaces = {var.name: var.type for var in term.free if isinstance(var.type, Space)} if isinstance(term, Term) else {}
    if not spaces or not all(space.dtype is int for space in spaces.values()):
        return ""
    return (
        "integers of an array are added and multiplied within an index; what else is done with them, such as "
        f"{min(spaces)}[i] // 2, NumPy computes before, and it is a parameter: "
        "x[idx[i]] with idx: cd.Space(…, dtype=int)"
    )


def _note_bare_use(entry: object, domain: Domain, where: str) -> None:
    """Tells the binders of an index expression where it stands."""
    if not isinstance(entry, Index):
        return
    if entry.term in entry.owner.open:
        entry.owner.open[entry.term].indexes(domain, where)
    elif not isinstance(domain, Real):
        binders = list(binders_of(entry.term, entry.owner))
        for binder in binders:
            binder.whole_use = where
        coefficients = [coefficient for _, coefficient in affine_parts(entry.term)[0]]
        if isinstance(domain, Cyclic) and len(binders) == 1 and coefficients in ([1], [-1]):
            binders[0].cycle = binders[0].cycle or (domain, where)


def _constant(value: int, domain: Domain, where: str) -> Term:
    """A constant index; on a Range a negative one counts from the end, as in NumPy."""
    size = domain.bound if isinstance(domain, Symmetric) else domain.size if isinstance(domain, Range) else None
    if isinstance(size, int):
        last = size if isinstance(domain, Symmetric) else size - 1
        if not -size <= value <= last:
            raise IndexingError(f"the index {value} is outside of {where}, which is {show_domain(domain)}")
    if isinstance(domain, Range) and value < 0:
        return affine([(size_form(domain.size), 1)], value)
    return affine([], value)
