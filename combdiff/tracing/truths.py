"""Numbers compared while a program is traced, and what is chosen by that.

    x > 0             a Truth: [0 < x[i]] and its opposite, which add up to 1
    np.where(x > 0, a, b)     [0 < x[i]]·a[i] + [¬(0 < x[i])]·b[i]
    (x > 0) * x               [0 < x[i]]·x[i]

Invariant: both halves of a Truth are sums of products of relations and conditions, so that they guard what they
multiply: nothing of the side not taken, and of no derivative of it, comes through.
"""

from __future__ import annotations

import math
import numbers
import operator
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from combdiff.errors import TraceError, TypeMismatchError, UnsupportedError, shown
from combdiff.ir import (
    ONE,
    OPPOSITES,
    ZERO,
    Add,
    Apply,
    Lambda,
    Number,
    Term,
    add,
    affine,
    apply,
    describe,
    dtype_of,
    function,
    index_form,
    indicator,
    is_complex,
    mul,
    opposite,
    unequal,
)
from combdiff.records import dataclass
from combdiff.tracing.arrays import elementwise
from combdiff.tracing.context import TracedValue, current
from combdiff.tracing.indices import Condition, Index, IndexDistance, as_index, equality
from combdiff.tracing.numpy_protocol import HANDLERS, on_arrays, python_number
from combdiff.tracing.values import Value, combined, lift, named_sizes, traced, wrap

PARENTHESES_HINT = "put each comparison in parentheses: (x > 0) & (y < 1)"


@dataclass(frozen=True, eq=False, repr=False)
class Truth(Value):
    """1 where numbers compare, 0 elsewhere, element by element; `fails` is 1 where they do not."""

    fails: Term

    kind = "comparison of traced values"
    is_mask = True

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        if names := named_sizes(self.live()):
            raise TraceError(
                f"Python's if, or a function of NumPy's, needs the truth of a comparison of the size {names}, which is "
                "only named while the program is traced",
                hint="write np.tri(x.shape[0], like=x) for np.tri, cd.where(…) for a choice, or declare the axis with "
                "a number",
            )
        self._refuse(
            "Python's if, and, or, not, in, max, min or a chain such as 0 < x < 1 needs the truth of",
            "write cd.where(x > 0, a, b), joined by & and | with parentheses: (x > 0) & (x < 1); "
            "cd.maximum and cd.minimum for the larger and smaller of two",
        )

    def __and__(self, *others: object) -> Any:
        (other,) = others
        return _joined(self, other)

    def __or__(self, *others: object) -> Any:
        (other,) = others
        return ~(~self & ~_truth(other))

    def __xor__(self, *others: object) -> Any:
        (other,) = others
        second = _truth(other)
        return (self & ~second) | (~self & second)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __invert__(self, *_: object) -> Any:
        return Truth(self.fails, self.owner, self.live())

    def __add__(self, other: object) -> Any:
        """Truth values are added as if by |, as NumPy does; numbers are counted with."""
        return self | other if is_truth(other) else super().__add__(other)

    __radd__ = __add__

    def __mul__(self, other: object) -> Any:
        """Truth values are multiplied as if by &, as NumPy does."""
        return self & other if is_truth(other) else super().__mul__(other)

    __rmul__ = __mul__

    def __sub__(self, other: object) -> Any:
        """The difference from a number. Raises TypeMismatchError for that of truth values, as NumPy does."""
        return self._no_difference() if is_truth(other) else super().__sub__(other)

    def __rsub__(self, other: object) -> Any:
        return self._no_difference() if is_truth(other) else super().__rsub__(other)

    def __neg__(self) -> NoReturn:
        self._no_difference()

    def __matmul__(self, other: object) -> Any:
        if is_truth(other):
            raise no_numbers("matmul")
        return super().__matmul__(other)

    def __rmatmul__(self, other: object) -> Any:
        if is_truth(other):
            raise no_numbers("matmul")
        return super().__rmatmul__(other)

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's type of truth values."""
        return np.dtype(bool)

    def _no_difference(self) -> NoReturn:
        raise TypeMismatchError(
            "a comparison is subtracted, as NumPy does with no truth values",
            hint="write a ^ b where just one holds, ~a for the opposite, 1.0 * (x > 0) for a number",
        )

    def __getitem__(self, key: object) -> Any:
        return as_truth(super().__getitem__(key))

    @property
    def T(self) -> Any:
        """The comparisons with their axes reversed."""
        return as_truth(super().T)

    def transpose(self, *axes: Any) -> Any:
        """The comparisons with their axes reversed, or in the order given."""
        return as_truth(super().transpose(*axes))


def no_numbers(name: str) -> UnsupportedError:
    """The error for a function of comparisons alone, which has truth values for its result in NumPy."""
    return UnsupportedError(
        f"np.{name} of comparisons alone: NumPy gives truth values for it, and no numbers",
        hint="make numbers of one of them: 1.0 * (x > 0)",
    )


def is_truth(value: object) -> bool:
    """Whether NumPy takes a value for truth values: a comparison, a condition on indices, True, an array of such."""
    value = python_number(value)
    return isinstance(value, Truth | Condition | bool) or (isinstance(value, np.ndarray) and value.dtype == bool)


def _truth(value: object) -> Truth:
    """A comparison, or a condition on indices, as a Truth."""
    value = python_number(value)
    if isinstance(value, Truth):
        return value
    if isinstance(value, Condition):
        return Truth(add(*value.holds), value.owner, add(*value.fails))
    if isinstance(value, bool):
        holds, fails = (ONE, ZERO) if value else (ZERO, ONE)
        return Truth(holds, current("a truth value"), fails)
    if is_truth(value):
        return compared("not_equal", value, 0)
    raise TraceError(f"& and | join comparisons, not {shown(value)}", hint=PARENTHESES_HINT)


def _joined(one: Truth, other: object) -> Truth:
    two = _truth(other)
    holds = elementwise(guarded, one.live(), two.live())
    second_fails = elementwise(guarded, one.live(), two.fails)
    fails = elementwise(lambda first, second: add(_opened(first), _opened(second)), one.fails, second_fails)
    return Truth(holds, one.owner, fails)


def _opened(term: Term) -> Term:
    """An element of a computed tensor written out, so that the relations in it are seen."""
    is_element = isinstance(term, Apply) and isinstance(term.function, Lambda)
    return apply(term.function, term.arguments) if is_element else term  # type: ignore[attr-defined]


def guarded(guards: Term, value: Term) -> Term:
    """A sum of products of guards times a value, which each of them guards."""
    opened = _opened(guards)
    value = _opened(value) if dtype_of(value) is int else value
    return add(*(mul(one, value) for one in (opened.terms if isinstance(opened, Add) else (opened,))))


def compared(name: str, left: object, right: object) -> Truth:
    """The relation of that name between the elements of two values.

    Raises TypeMismatchError for complex ones, unless they are compared for equality.
    """
    given = [lift(side) for side in (left, right)]
    if name in ("equal", "not_equal") and any(map(is_complex, given)):
        real, imaginary = ([HANDLERS[part](wrap(side)) for side in given] for part in (np.real, np.imag))
        same: Truth = compared("equal", *real) & compared("equal", *imaginary)
        return ~same if name == "not_equal" else same
    terms = [_real(side) for side in given]
    holds = elementwise(lambda a, b: _related(name, a, b), *terms)
    fails = elementwise(lambda a, b: _related(OPPOSITES[name], a, b), *terms)
    return Truth(holds, current("a comparison"), fails)


def _related(name: str, left: Term, right: Term) -> Term:
    """A relation; of what indices decide it is a condition on them: [[i ≥ j] > 0] = [i ≥ j], [i < 2] = [i ≤ 1]."""
    left, right = (_opened(side) if dtype_of(side) is int else side for side in (left, right))
    forms = index_form(left), index_form(right)
    if forms[0] is not None and forms[1] is not None and (left.free or right.free):
        return _of_indices(name, forms[0], forms[1])
    for n, side in enumerate((left, right)):
        mask, number = _opened(side), (right, left)[n]
        without = opposite(mask)
        if without is not None and isinstance(number, Number):
            related = [function(name, *((each, number) if not n else (number, each))) for each in (ONE, ZERO)]
            return add(mul(mask, related[0]), mul(without, related[1]))
    return function(name, left, right)


def _of_indices(name: str, left: Term, right: Term) -> Term:
    room = affine([(right, 1), (left, -1)])
    match name:
        case "less":
            return indicator(affine([(room, 1)], -1))
        case "less_equal":
            return indicator(room)
        case "not_less":
            return indicator(affine([(room, -1)]))
        case "not_less_equal":
            return indicator(affine([(room, -1)], -1))
        case "equal":
            return equality(left, right)
    return unequal(room)


def _real(term: Term) -> Term:
    if is_complex(term):
        raise TypeMismatchError(
            f"{describe(term)} is complex and is compared: complex numbers have no order",
            hint="compare cd.real(z), cd.imag(z) or cd.abs(z)",
        )
    return term


def _comparison(name: str, mirrored: str, of_indices: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """A comparison of values, or of index expressions among themselves. `mirrored` has its sides exchanged."""

    def compare(left: Any, right: Any) -> Any:
        if isinstance(left, Index | IndexDistance) or isinstance(right, Index | IndexDistance):
            left, right = as_index(left), as_index(right)
        indices = [isinstance(python_number(side), Index | IndexDistance | numbers.Real) for side in (left, right)]
        if all(indices):
            return of_indices(left, right)
        return compared(mirrored, right, left) if mirrored else compared(name, left, right)

    return compare


HANDLERS.update(
    {
        np.less: _comparison("less", "", operator.lt),
        np.less_equal: _comparison("less_equal", "", operator.le),
        np.greater: _comparison("", "less", operator.gt),
        np.greater_equal: _comparison("", "less_equal", operator.ge),
        np.equal: _comparison("equal", "", operator.eq),
        np.not_equal: _comparison("not_equal", "", operator.ne),
        np.logical_and: lambda x1, x2: as_truth(x1) & as_truth(x2),
        np.logical_or: lambda x1, x2: as_truth(x1) | as_truth(x2),
        np.logical_xor: lambda x1, x2: as_truth(x1) ^ as_truth(x2),
        np.logical_not: lambda x: ~as_truth(x),
        np.isnan: lambda x: compared("not_equal", x, x),
        np.isfinite: lambda x: compared("less", abs(traced(x)), math.inf),
        np.isinf: lambda x: compared("equal", abs(traced(x)), math.inf),
        np.isposinf: lambda x: compared("equal", x, math.inf),
        np.isneginf: lambda x: compared("equal", x, -math.inf),
        np.isreal: lambda x: compared("equal", traced(x).imag, 0),
        np.iscomplex: lambda x: compared("not_equal", traced(x).imag, 0),
    }
)


def as_truth(value: Any) -> Any:
    """What NumPy takes for true: what is not 0."""
    return value if isinstance(value, Truth | Condition) else compared("not_equal", value, 0)


def where(condition: Any, one: Any = None, other: Any = None, /) -> Any:
    """`one` where a condition holds, `other` elsewhere: `cd.where(x > 0, x, 0)`, `cd.where((i <= j) & (j < 3), a, b)`.

    A condition compares values or indices. The part that is not chosen has no influence, not even by an infinity or a
    nan, on the value and on derivatives; the derivative by what is compared is 0. On plain arrays it is NumPy's where.
    Raises TraceError for what is no condition, TypeMismatchError where the parts cannot be broadcast with it and each
    other, UnsupportedError for a condition alone.
    """
    if one is None or other is None:
        raise UnsupportedError(
            "np.where is given a condition alone: how many elements it finds depends on the values",
            hint="give both values, cd.where(x > 0, a, b), or find the indices outside and pass them as a parameter",
        )
    traced = any(isinstance(value, TracedValue) for value in (condition, one, other))
    if not traced:
        return on_arrays("where", np.where, condition, one, other)
    condition = python_number(condition)
    if isinstance(condition, bool | int):
        return one if condition else other
    if isinstance(condition, Condition):
        return combined(condition.choose, one, other)
    if not isinstance(condition, Truth | Value | np.ndarray):
        raise TraceError(
            f"the condition of cd.where is {shown(condition)}",
            hint="write a comparison of values or of indices, such as x > 0 or i <= j",
        )
    chosen = as_truth(condition)
    parts = [lift(value) for value in (one, other)]
    return wrap(elementwise(_chosen, chosen.live(), chosen.fails, *parts))


def _chosen(holds: Term, fails: Term, one: Term, other: Term) -> Term:
    return add(guarded(holds, one), guarded(fails, other))


def _by_comparison(first_wins: Callable[[Any, Any], Truth]) -> Callable[[Any, Any], Any]:
    """The larger or smaller of two, or the one that is a number; of equal ones the second, as in JAX."""
    return lambda x1, x2: where(first_wins(x1, x2) | compared("not_equal", x2, x2), x1, x2)


HANDLERS[np.where] = where
HANDLERS[np.fmax] = _by_comparison(lambda x1, x2: compared("less", x2, x1))
HANDLERS[np.fmin] = _by_comparison(lambda x1, x2: compared("less", x1, x2))
