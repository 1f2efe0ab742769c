"""Index expressions, what may be asked of them, and reading tensors with them.

    x[2*i - j + 1] = Apply(x, (2·i − j + 1,))        A[i] = (j) ↦ A[i, j]        i <= j = [j − i ≥ 0]

An index expression is affine: whole multiples of indices, and a whole number. An index that stands bare on an axis
takes its domain from there.

Invariant: an expression that reads an axis is affine with whole coefficients, unless the axis is the real line.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import EllipsisType
from typing import Any, NoReturn, TypeGuard

import numpy as np

from combdiff.checking import type_of
from combdiff.domains import Cyclic, Domain, Range, Real, Space, Symmetric
from combdiff.errors import IndexingError, TraceError, UnsupportedError, user_location
from combdiff.indexing import Affine, Coordinate, affine, affine_parts, indicator, size_form
from combdiff.indexing import delta as delta_term
from combdiff.terms import ONE, ZERO, Number, Term, Var, add, lambda_, mul, negate, total
from combdiff.tracing.arrays import FIRST, access_name, axes_of, describe, element, show_index
from combdiff.tracing.context import Binder, Trace, TracedValue, check_live, current, show_domain
from combdiff.tracing.numpy_protocol import HANDLERS, NumpyAware, python_number

Whole = int | Fraction
PARENTHESES_HINT = "put each comparison in parentheses: (i <= j) & (j < 3)"
FEW = 8  # residues that are written out
MODULUS_HINT = "on an axis declared as cd.Cyclic(n), x[i + k] wraps by itself"


@dataclass(frozen=True, eq=False, repr=False)
class Index(NumpyAware):
    """An affine expression of the indices of the lambdas that are running."""

    term: Term
    trace: Trace

    kind = "traced index"
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"<index {self}>"

    def __str__(self) -> str:
        return show_index(self.term)

    @property
    def is_number(self) -> bool:
        """Whether all of its indices were given the real line, so that it is a number too."""
        return all(isinstance(binder.domain, Real) for binder in _binders(self.term, self.trace))

    def integer(self) -> Term:
        """The integer that it is, as a number: one `Coordinate` for each of its indices, which stay whole."""
        parts, offset = affine_parts(self.live())
        if not _is_whole(self.term):
            raise IndexingError(f"{self} is added to an integer, but is not whole")
        for binder in _binders(self.term, self.trace):
            binder.whole_use = "an integer"
        return add(*(mul(Number(c), Coordinate(v, int)) for v, c in parts), Number(offset))

    def _combine(self, other: object, mine: Whole, others: Whole) -> Any:
        """`mine·self + others·other`; traced numbers answer for themselves."""
        if isinstance(other, TracedValue) and not isinstance(other, Index):
            return NotImplemented
        return Index(affine([(self.live(), mine), (index_term(other, self), others)]), self.trace)

    def live(self) -> Term:
        """The term, after checking that the index may be used now."""
        check_live(self.term, self.trace)
        return self.term

    def __add__(self, other: object) -> Any:
        return self._combine(other, 1, 1)

    def __radd__(self, other: object) -> Any:
        return self._combine(other, 1, 1)

    def __sub__(self, other: object) -> Any:
        return self._combine(other, 1, -1)

    def __rsub__(self, other: object) -> Any:
        return self._combine(other, -1, 1)

    def __neg__(self) -> Index:
        return self._scaled(-1)

    def __pos__(self) -> Index:
        return self

    def __mul__(self, other: object) -> Any:
        other = python_number(other)
        if isinstance(other, TracedValue) and not isinstance(other, Index):
            return NotImplemented
        if _is_rational(other):
            return self._scaled(other)
        return HANDLERS[np.asarray](self) * other if self.is_number else self._refuse_affine("*", other)

    __rmul__ = __mul__

    def __truediv__(self, other: object) -> Any:
        other = python_number(other)
        if isinstance(other, TracedValue) and not isinstance(other, Index):
            return NotImplemented
        return self._scaled(1 / Fraction(other)) if _is_rational(other) and other else self._refuse_affine("/", other)

    def _scaled(self, factor: Any) -> Index:
        return Index(affine([(self.live(), Fraction(factor))]), self.trace)

    def _refuse_affine(self, operator: str, other: object) -> NoReturn:
        other = f"({other})" if isinstance(other, Index) and isinstance(other.term, Affine) else other
        raise IndexingError(
            f"{self} {operator} {other} is not an affine index expression",
            hint="an index expression is made of whole multiples of indices and whole numbers, such as 2*i - j + 1",
        )

    def __pow__(self, other: object) -> NoReturn:
        self._refuse_affine("**", other)

    def __floordiv__(self, other: object) -> NoReturn:
        self._refuse_affine("//", other)

    def __mod__(self, other: object) -> Remainder:
        other = python_number(other)
        if not isinstance(other, int) or isinstance(other, bool) or other < 1:
            raise IndexingError(f"{self} % {other}: the modulus must be a positive whole number", hint=MODULUS_HINT)
        return Remainder(self, other)

    def __and__(self, other: object) -> NoReturn:
        raise TraceError(f"& and | join conditions, not the index {self}", hint=PARENTHESES_HINT)

    __rand__ = __or__ = __ror__ = __and__

    def __le__(self, other: object) -> Condition:
        return self._at_most(other, 0)

    def __lt__(self, other: object) -> Condition:
        return self._at_most(other, 1)

    def __ge__(self, other: object) -> Condition:
        return ~self._at_most(other, 1)

    def __gt__(self, other: object) -> Condition:
        return ~self._at_most(other, 0)

    def _at_most(self, other: object, gap: int) -> Condition:
        """The condition `self + gap ≤ other`."""
        left, right = _compared(self, other)
        room = affine([(right, 1), (left, -1)], -gap)
        return _condition([indicator(room)], [indicator(affine([(room, -1)], -1))], self.trace)

    def __eq__(self, other: object) -> Condition:  # type: ignore[override]
        left, right = _compared(self, other)
        equal = equality(left, right)
        if _may_wrap(left, right, self.trace):
            return _condition([equal], [ONE, negate(equal)], self.trace)
        more = affine([(left, 1), (right, -1)])
        apart = [indicator(affine([(more, 1)], -1)), indicator(affine([(more, -1)], -1))]
        return _condition([equal], apart, self.trace)

    def __ne__(self, other: object) -> Condition:  # type: ignore[override]
        return ~(self == other)


@dataclass(frozen=True, eq=False)
class Remainder(TracedValue):
    """`index % modulus`, which can only be compared with a whole number."""

    index: Index
    modulus: int

    kind = "remainder of an index"
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> Condition:  # type: ignore[override]
        left, right = _compared(self.index, other)
        rest = affine([(left, 1), (right, -1)])
        holds, *fails = [indicator(affine([(rest, 1)], -n), self.modulus) for n in range(min(self.modulus, FEW))]
        return _condition([holds], fails if self.modulus <= FEW else [ONE, negate(holds)], self.index.trace)

    def __ne__(self, other: object) -> Condition:  # type: ignore[override]
        return ~(self == other)

    def _refuse_order(self, other: object) -> NoReturn:
        raise IndexingError(
            f"{self.index} % {self.modulus} can only be compared by == and != with a whole number", hint=MODULUS_HINT
        )

    __lt__ = __le__ = __gt__ = __ge__ = __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _refuse_order


@dataclass(frozen=True, eq=False, repr=False)
class Condition(NumpyAware):
    """A condition on indices: numbers `holds` that sum to 1 where it is true, to 0 elsewhere, and `fails` the opposite.

    Where possible they are products of indicators and δ's, which guard what they multiply: the opposite of i = j gives
    [i − j − 1 ≥ 0]·a + [j − i − 1 ≥ 0]·a, which does not look at a where i = j, as a − δ(i, j)·a would.
    """

    holds: tuple[Term, ...]
    fails: tuple[Term, ...]
    trace: Trace

    kind = "condition on indices"

    def __and__(self, other: object) -> Condition:
        if not isinstance(other, Condition):
            raise TraceError(f"& and | join conditions on indices, not {other!r}", hint=PARENTHESES_HINT)
        both = [mul(one, two) for one in self.holds for two in other.holds]
        only_second_fails = [mul(one, two) for one in self.holds for two in other.fails]
        return _condition(both, [*self.fails, *only_second_fails], self.trace)

    def __or__(self, other: object) -> Condition:
        return ~(~self & (~other if isinstance(other, Condition) else other))

    def __invert__(self) -> Condition:
        return Condition(self.fails, self.holds, self.trace)

    def live(self) -> Term:
        """1 where the condition is true and 0 elsewhere, after checking that it may be used now."""
        return self.choose(ONE, ZERO)

    def choose(self, one: Term, other: Term) -> Term:
        """`one` where the condition is true and `other` elsewhere, after checking that it may be used now."""
        chosen = add(*(mul(guard, one) for guard in self.holds), *(mul(guard, other) for guard in self.fails))
        check_live(chosen, self.trace)
        return chosen


def _condition(holds: Iterable[Term], fails: Iterable[Term], trace: Trace) -> Condition:
    """The condition without the cases known to be impossible."""
    return Condition(tuple(t for t in holds if t is not ZERO), tuple(t for t in fails if t is not ZERO), trace)


def equality(left: Term, right: Term) -> Term:
    """δ of two index expressions; of two whole numbers it is known."""
    return delta_term(left, right) if left.free or right.free or left is right else ZERO


def _may_wrap(left: Term, right: Term, trace: Trace) -> bool:
    """Whether two expressions may be equal modulo a size without being the same number."""
    if all(isinstance(side, Var) or side is FIRST for side in (left, right)):
        return False
    domains = [binder.domain for side in (left, right) for binder in _binders(side, trace)]
    return any(domain is None or isinstance(domain, Cyclic) for domain in domains)


def index_term(value: object, beside: object = None) -> Term:
    """An index expression or number as a term; `beside` is what it is combined with, for the error."""
    value = python_number(value)
    if isinstance(value, Index):
        return value.live()
    if _is_rational(value):
        return affine([], Fraction(value))
    place = f" beside the index {beside}" if beside is not None else ""
    raise IndexingError(
        f"{value!r} is not an index expression{place}",
        hint="an index expression is made of whole multiples of indices and whole numbers, such as 2*i - j + 1",
    )


def _is_rational(value: Any) -> TypeGuard[int | float | Fraction]:
    real = isinstance(value, numbers.Rational | float) and not isinstance(value, bool)
    return real and value == value and abs(value) != float("inf")


def _is_whole(term: Term) -> bool:
    parts, offset = affine_parts(term)
    return all(isinstance(number, int) for number in (offset, *(coefficient for _, coefficient in parts)))


def _compared(index: Index, other: object) -> tuple[Term, Term]:
    """Both sides of a comparison, noted as compared: over the real line that has no meaning here."""
    left, right = index.live(), index_term(other, index)
    for side in (left, right):
        if not _is_whole(side):
            raise IndexingError(f"{index} is compared with {show_index(right)}: both must be whole")
        for binder in _binders(side, index.trace):
            binder.compared = True
    return left, right


def _binders(term: Term, trace: Trace) -> Iterator[Binder]:
    return (trace.open[var] for var, _ in affine_parts(term)[0] if var in trace.open)


# --- reading a tensor ----------------------------------------------------------------------------------------------


def read(tensor: Term, key: object) -> Term:
    """`tensor[key]`: an element, or a tensor over the axes that stay whole (`A[i]`, `A[:, j]`).

    An element of an integer parameter may stand for an index: `x[idx[i]]`. Raises IndexingError for too many indices,
    an index that is not affine or does not fit its axis, UnsupportedError for slices other than `:` and index arrays.
    """
    axes = axes_of(tensor)
    entries = _complete(key if isinstance(key, tuple) else (key,), tensor, len(axes))
    kept = [axis for axis, entry in enumerate(entries) if _is_full(entry)]
    fresh = dict(zip(kept, current("an element").fresh_indices(axes[axis] for axis in kept), strict=True))
    looked_up = {axis: value for axis, entry in enumerate(entries) if (value := _looked_up(entry)) is not None}
    found = {axis: _stand_in(tensor, axis) for axis in looked_up}
    known = fresh | found
    indices = [known.get(axis) or _axis_index(entry, tensor, axis) for axis, entry in enumerate(entries)]
    hits = [delta_term(found[axis], value, axes[axis]) for axis, value in looked_up.items()]
    _note_place(tensor, indices)
    return lambda_(fresh.values(), total(found.values(), mul(*hits, element(tensor, indices))))


def _note_place(tensor: Term, indices: Sequence[Term]) -> None:
    """Tells the trace on which line of the user's an element is read."""
    if location := user_location():
        for axis, index in enumerate(indices):
            current("an element").places.setdefault(access_name(describe(tensor), axis, index), location)


def _looked_up(entry: object) -> Term | None:
    """The integer that stands for an index: an element of an integer parameter, or what is computed from such."""
    if isinstance(entry, Index) or not isinstance(entry, TracedValue):
        return None
    term = getattr(entry, "term", None)
    if not isinstance(term, Term) or type_of(term) != Space(dtype=int) or not term.free:
        return None
    check_live(term, current("an element"))
    return term


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
    return isinstance(entry, slice) and entry == slice(None)


def _axis_index(entry: object, tensor: Term, axis: int) -> Term:
    """The term for one entry of a key, after checking that it fits the axis."""
    domain, where = axes_of(tensor)[axis], f"axis {axis} of {describe(tensor)}"
    _refuse_other_entries(entry, where)
    term = index_term(entry)
    if isinstance(domain, Real):
        _note_bare_use(entry, domain, where)
        return term
    if isinstance(entry, float) or not _is_whole(term):
        raise IndexingError(
            f"{entry} is not a whole index, but reads {where}, which is {show_domain(domain)}",
            hint="an index expression has whole coefficients, such as 2*i - j + 1",
        )
    if not term.free:
        return _constant(affine_parts(term)[1], domain, where)  # type: ignore[arg-type]
    _note_bare_use(entry, domain, where)
    return term


def _refuse_other_entries(entry: object, where: str) -> None:
    if isinstance(entry, slice):
        raise UnsupportedError(
            f"{where} is read with a part of its indices; only a full : is supported",
            hint="write the part with an index: cd.tensor(lambda i: x[2*i + 1], i=5)",
        )
    if entry is None or isinstance(python_number(entry), list | tuple):
        raise UnsupportedError(
            f"{where} is read with {entry!r}", hint="write the new tensor with its indices: cd.tensor(lambda i, j: …)"
        )
    if isinstance(entry, TracedValue) and not isinstance(entry, Index):
        raise IndexingError(
            f"{where} is read with a {entry.kind}, but an index is an expression of the indices of a lambda",
            hint="write cd.sum(lambda i: x[i]) or cd.tensor(lambda i: x[i]); indices in an array are a parameter, "
            "x[idx[i]] with idx: cd.Space(…, dtype=int)",
        )


def _note_bare_use(entry: object, domain: Domain, where: str) -> None:
    """Tells the binders of an index expression where it stands."""
    if not isinstance(entry, Index):
        return
    if isinstance(entry.term, Var):
        entry.trace.open[entry.term].indexes(domain, where)
    elif not isinstance(domain, Real):
        for binder in _binders(entry.term, entry.trace):
            binder.whole_use = where


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
