"""Arrays of numbers by formulas of their indices: what `np.arange(n)`, `1 - np.eye(n)` and `np.tri(n)` are.

    np.arange(4)             i ↦ i                 1 - np.eye(4)           (i, j) ↦ [i ≠ j]
    np.linspace(0, 1, 5)     i ↦ i/4               np.tri(4)               (i, j) ↦ [i ≥ j]
    np.eye(4, k=1)           (i, j) ↦ δ(i + 1, j)  np.triu(-np.inf, 1)     (i, j) ↦ −∞ [j ≥ i + 1]

An array that varies along one axis is a sequence; so is one along two whose elements depend on the difference or on the
sum of their indices, and one of a diagonal. A sequence has a formula where its steps are equal or grow by one number,
where few elements are none of one number, or more than it, where it is one number before a place and another behind, or
two by turns.

Invariant: a formula has the elements of the array, beyond rounding where its steps are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from combdiff.errors import was_there
from combdiff.ir import (
    Coordinate,
    Number,
    Range,
    Term,
    Var,
    add,
    affine,
    delta,
    function,
    indicator,
    lambda_,
    mul,
    negate,
    opposite,
    square,
)
from combdiff.ir import number as number_term
from combdiff.records import dataclass
from combdiff.tracing.context import current

MOST_EXCEPTIONS = 3  # elements of a sequence that are none of the number that the others are
LEAST = 3  # elements along an axis of what is more than two numbers
LEAST_TOLD = 4  # elements of a sequence that are told by two numbers which are not 0
MOST_WRITTEN_OUT = 5  # numbers of a vector that are written out one by one
EXACT = 2**53  # below it integers are floats
ROUNDING = 4  # units in the last place of the largest element, which equal steps are off by
MOST_CANCELLED = 4  # times a number is what is added to another for it, or digits cancel

Array = np.ndarray[Any, Any]


def by_formula(array: Array, given: Array | None = None) -> Term | None:
    """The tensor of an array that the program under way has made, or has made of a `given` one.

    None where no formula is found, and for what had a name before, or is a part of what had: its user may change it.
    """
    indices = current("a constant array").fresh_indices(map(Range, array.shape))
    body = _element(array, indices)
    return None if body is None or _had_name(array if given is None else given) else lambda_(indices, body)


def _had_name(array: Array) -> bool:
    """Whether an array, or what it is a part of, was there before the program under way was traced."""
    memory, code = _memory(array), current("a constant array").code
    return was_there(lambda held: isinstance(held, np.ndarray) and _memory(held) is memory, code)


def _memory(array: Array) -> object:
    """What the elements of an array are kept in."""
    return array if array.base is None else array.base


def numbers_of(given: object) -> list[Any] | None:
    """The few numbers of a vector that the program has made, which are written out; None of others."""
    array = np.asarray(given) if isinstance(given, list | tuple | np.ndarray) else None
    if array is None or array.ndim != 1 or array.dtype.kind not in "biufc" or array.size > MOST_WRITTEN_OUT:
        return None
    return None if _had_name(array) else array.tolist()


def _element(array: Array, indices: Sequence[Var]) -> Term | None:
    """The element of an array at these indices, one for each axis."""
    if not array.size or array.dtype.kind not in "biufc":
        return None
    array = array.astype(int) if array.dtype == bool else array
    if np.isnan(array).any() or (np.signbit(array.real) & (array == 0)).any():  # −0 is no formula's value
        return None
    along = [axis for axis in range(array.ndim) if (array != array[_first(axis)]).any()]
    inner = array[tuple(slice(None) if axis in along else 0 for axis in range(array.ndim))]
    match [indices[axis] for axis in along]:
        case []:
            return _number(inner[()]) if np.isfinite(inner) else None
        case [index]:
            return _formula(_along(inner, index))
        case [row, column] if max(inner.shape) >= LEAST or _is_unit(inner):
            found = (_formula(each) for each in _diagonals(inner, row, column))
            return next((formula for formula in found if formula is not None), None) or _on_diagonal(inner, row, column)
    return None


def _on_diagonal(matrix: Array, row: Var, column: Var) -> Term | None:
    """δ(i, j) (i + 1) of np.diag([1, 2, 3])."""
    diagonal = matrix.diagonal()
    if matrix.shape[0] != matrix.shape[1] or not np.array_equal(matrix, np.diag(diagonal)):
        return None
    formula = _formula(_along(diagonal, row))
    return None if formula is None else mul(formula, delta(row, column))


@dataclass(frozen=True)
class _Sequence:
    """Numbers that depend on one index expression, which counts them from 0 on; `at` is the δ of a place."""

    values: Array
    form: Term
    at: Callable[[int], Term]

    @property
    def kind(self) -> type:
        """The element type of numbers that are the index expression, or as many."""
        return float if self.values.dtype.kind == "f" else int


def _along(values: Array, index: Var) -> _Sequence:
    """The numbers of a vector, by its index."""
    return _Sequence(values, index, lambda place: delta(index, affine([], place)))


def _first(axis: int) -> tuple[slice, ...]:
    return (*(slice(None) for _ in range(axis)), slice(0, 1))


def _is_unit(matrix: Array) -> bool:
    """Whether a matrix is a multiple of the unit matrix."""
    return np.array_equal(matrix, matrix[0, 0] * np.eye(*matrix.shape))


def _diagonals(matrix: Array, row: Var, column: Var) -> Iterator[_Sequence]:
    """The sequence of the elements by column − row, or by column + row, where they depend on that alone."""
    if np.array_equal(matrix[1:, 1:], matrix[:-1, :-1]):
        last = len(matrix) - 1
        values, form = np.concatenate([matrix[:0:-1, 0], matrix[0]]), affine([(column, 1), (row, -1)], last)
        yield _Sequence(values, form, lambda place: delta(affine([(row, 1)], place - last), column))
    if np.array_equal(matrix[1:, :-1], matrix[:-1, 1:]):
        values, form = np.concatenate([matrix[0], matrix[1:, -1]]), affine([(column, 1), (row, 1)])
        yield _Sequence(values, form, lambda place: delta(affine([(row, -1)], place), column))


def _formula(sequence: _Sequence) -> Term | None:
    values = sequence.values
    counts = len(values) >= LEAST and values.dtype.kind != "c" and np.isfinite(values).all()
    forms = (*((_by_steps, _by_distance, _by_squares) if counts else ()), _by_halves, _by_exceptions, _by_turns)
    return next((found for form in forms if (found := form(sequence)) is not None), None)


def _by_steps(sequence: _Sequence) -> Term | None:
    """first + step · form."""
    values = sequence.values
    first, step = values[0].item(), (values[-1].item() - values[0].item()) / (len(values) - 1)
    if not _are(values, first + step * np.arange(len(values))):
        return None
    if float(first).is_integer() and float(step).is_integer():
        return Coordinate(affine([(sequence.form, int(step))], int(first)), sequence.kind)
    if len(values) < LEAST_TOLD:
        return None
    return add(number_term(first), mul(number_term(step), Coordinate(sequence.form)))


def _by_distance(sequence: _Sequence) -> Term | None:
    """least + step · |form − place|, of a place with several on either side."""
    values, place = sequence.values, int(sequence.values.argmin())
    if not LEAST <= place + 1 <= len(values) + 1 - LEAST:
        return None
    least, step = values[place].item(), values[0].item() - values[1].item()
    if not _are(values, least + step * np.abs(np.arange(len(values)) - place)):
        return None
    distance = function("abs", Coordinate(affine([(sequence.form, 1)], -place), sequence.kind))
    return add(number_term(least), mul(number_term(step), distance))


def _by_squares(sequence: _Sequence) -> Term | None:
    """first + slope · form + bend · form², or least + bend · (form − place)², of more numbers than these."""
    values = sequence.values
    if len(values) <= LEAST_TOLD:
        return None
    first, second, third = values[:3].tolist()
    bend = (third - 2 * second + first) / 2
    slope, places = second - first - bend, np.arange(len(values))
    if not bend or not _are(values, first + slope * places + bend * places**2):
        return None
    place = -slope / (2 * bend)
    if place.is_integer():
        first, slope = first - bend * place**2, 0
    number = Coordinate(affine([(sequence.form, 1)], -int(place) if place.is_integer() else 0), sequence.kind)
    return add(number_term(first), mul(number_term(slope), number), mul(number_term(bend), square(number)))


def _are(values: Array, others: Array) -> bool:
    """Whether numbers are others, but for rounding of those that are no integers."""
    if values.dtype.kind != "f":
        return bool(np.abs(values).max() < EXACT and (values == others).all())
    return bool(np.abs(values - others).max() <= ROUNDING * np.finfo(float).eps * np.abs(values).max())


def _by_exceptions(sequence: _Sequence) -> Term | None:
    """One number, and others at few places."""
    values = sequence.values
    numbers, counts = np.unique(values, return_counts=True)
    base = numbers[counts.argmax()]
    places = np.flatnonzero(values != base).tolist()
    told = len(values) >= LEAST_TOLD or base == 0
    if len(places) > MOST_EXCEPTIONS or 2 * len(places) >= len(values) or not told:
        return None
    conditions = [sequence.at(place) for place in places]
    more = [found for place in places if base and (found := _more(values[place], base))]
    if len(more) == len(places):
        return add(_number(base), *map(mul, more, conditions))
    return add(_where(mul(*map(_opposite, conditions)), base), *map(_where, conditions, values[places]))


def _more(value: Any, base: Any) -> Term | None:
    """By how much one number is more than another, where that says all its digits: 1, as 5/6 is 1 − 1/6."""
    if not np.isfinite(value) or not np.isfinite(base):
        return None
    found = add(_number(value), negate(_number(base)))
    assert isinstance(found, Number)
    difference = complex(found.real, found.imag)
    rounding = abs(base + difference - value)
    exact = rounding <= ROUNDING * np.finfo(float).eps * abs(value)
    return found if exact and abs(difference) <= MOST_CANCELLED * abs(value) else None


def _by_halves(sequence: _Sequence) -> Term | None:
    """One number before a place, and another from there on."""
    values = sequence.values
    (place, *others) = np.flatnonzero(values[1:] != values[:-1]).tolist()
    before, behind = values[0], values[-1]
    is_one = (place == 0 and before) or (place == len(values) - 2 and behind)  # an exception among the others
    if others or is_one or (before and behind and len(values) < LEAST_TOLD):
        return None
    return _either(indicator(affine([(sequence.form, -1)], place)), before, behind)


def _by_turns(sequence: _Sequence) -> Term | None:
    """One number at even places, and another at odd ones."""
    values = sequence.values
    even, odd = values[:2]
    if len(values) < LEAST_TOLD or (values[::2] != even).any() or (values[1::2] != odd).any():
        return None
    return _either(indicator(sequence.form, 2), even, odd)


def _either(condition: Term, one: Any, other: Any) -> Term:
    """One number where a condition holds and another elsewhere; their difference would not be exact."""
    return add(_where(condition, one), _where(_opposite(condition), other))


def _where(condition: Term, number: Any) -> Term:
    return mul(_number(number), condition)


def _opposite(condition: Term) -> Term:
    found = opposite(condition)
    assert found is not None
    return found


def _number(value: Any) -> Number:
    return number_term(value.item())
