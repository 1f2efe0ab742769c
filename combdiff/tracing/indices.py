"""Index expressions, and what may be asked of them.

    i <= j = [j − i ≥ 0]        i % 3 == 1 = [i − 1 ≡ 0 (mod 3)]        abs(i) <= 2 = [2 − i ≥ 0]·[2 + i ≥ 0]

An index expression is affine: whole multiples of indices, and a whole number.

Invariant: a condition is numbers that sum to 1 where it is true and to 0 elsewhere, and numbers that do the opposite.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any, NoReturn, TypeGuard

import numpy as np

from combdiff.errors import IndexingError, TraceError, shown
from combdiff.ir import (
    MOST_INDICES,
    ONE,
    ZERO,
    Coordinate,
    Cyclic,
    Number,
    Range,
    Real,
    Size,
    Term,
    Var,
    Whole,
    add,
    affine,
    affine_parts,
    as_integer,
    denominator,
    equal_modulo,
    exact,
    function,
    index_form,
    index_left,
    indicator,
    mul,
    negate,
    opposite,
    relation,
    show_index,
    size_form,
    size_of_parts,
    substitute,
    unequal,
)
from combdiff.ir import delta as delta_term
from combdiff.records import dataclass
from combdiff.tracing.arrays import FIRST
from combdiff.tracing.context import Binder, Trace, TracedValue, check_live, current
from combdiff.tracing.numpy_protocol import HANDLERS, NumpyAware, python_number

Rational = int | Fraction
PARENTHESES_HINT = "put each comparison in parentheses: (i <= j) & (j < 3)"
MOST_PARTS = 10**12  # of a multiple of an index that is not on the real line: others are numbers
FEW = 8  # residues that are written out
MODULUS_HINT = "on an axis declared as cd.Cyclic(n), x[i + k] wraps by itself"


@dataclass(frozen=True, eq=False, repr=False)
class Index(NumpyAware):
    """An affine expression of the indices of the lambdas that are running."""

    term: Term
    owner: Trace

    kind = "traced index"

    def __array__(self, *_: object, **__: object) -> NoReturn:
        hint = (
            "an array of the surrounding scope is read with indices as a constant of the program: cd.constant(K)[i, j]"
        )
        self._refuse("NumPy asks for the numbers of", hint)

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"<index {self}>"

    def __str__(self) -> str:
        return show_index(self.term)

    @property
    def is_number(self) -> bool:
        """Whether all of its indices were given the real line, so that it is a number too."""
        return all(isinstance(binder.domain, Real) for binder in binders_of(self.term, self.owner))

    def integer(self) -> Term:
        """The integer that it is, as a number: one `Coordinate` for each of its indices, which stay whole."""
        form = self.live()
        if not is_whole(self.term):
            raise IndexingError(f"{self} is added to an integer, but is not whole")
        for binder in binders_of(self.term, self.owner):
            binder.whole_use = "an integer"
        return as_integer(form)

    def number(self) -> Any:
        """The index as the number that it is."""
        return HANDLERS[np.asarray](self)

    def _combine(self, other: object, mine: Rational, others: Rational) -> Any:
        """`mine·self + others·other`; traced numbers answer for themselves, others make a number of the index."""
        other = python_number(other)
        if _answers_itself(other):
            return NotImplemented
        if isinstance(other, numbers.Complex | np.ndarray) and not self._takes(other):
            return mine * self.number() + others * other
        return Index(affine([(self.live(), mine), (index_term(other, self), others)]), self.owner)

    def live(self) -> Term:
        """The term, after checking that the index may be used now."""
        check_live(self.term, self.owner)
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
        if _answers_itself(other):
            return NotImplemented
        return self._scaled(_fraction(other)) if self._takes(other) else self.number() * other

    __rmul__ = __mul__

    def __truediv__(self, other: object) -> Any:
        other = python_number(other)
        if _answers_itself(other):
            return NotImplemented
        return self._scaled(1 / _fraction(other)) if self._takes(other) and other else self.number() / other

    def __rtruediv__(self, other: object) -> Any:
        return other / self.number()

    def _scaled(self, factor: int | Fraction) -> Index:
        return Index(affine([(self.live(), factor)]), self.owner)

    def _takes(self, other: Any) -> TypeGuard[float | Fraction]:
        """Whether this and a number make an index expression: π j is a number, and f[π x] on the real line is read."""
        return _is_rational(other) and (self.is_number or _fraction(other).denominator <= MOST_PARTS)

    def __pow__(self, other: object) -> Any:
        return self.number() ** other

    def __rpow__(self, other: object) -> Any:
        return other ** self.number()

    def __floordiv__(self, other: object) -> Index:
        divisor = self._divisor("//", other)
        if isinstance(divisor, str):
            raise IndexingError(
                f"{self._operand} // {divisor}: the divisor is a size that has only a name",
                hint="declare it with a number, or give the tensor an axis for each of the two: x[a, b]",
            )
        whole = affine([(self.live(), Fraction(1, divisor)), (self._rest(divisor), Fraction(-1, divisor))])
        return IndexQuotient(whole, self.owner, self, divisor)

    def __mod__(self, other: object) -> Index:
        divisor = self._divisor("%", other)
        return Remainder(self._rest(divisor), self.owner, self, divisor)

    @property
    def _operand(self) -> str:
        """The index as it is written beside an operator."""
        return f"({self})" if " " in str(self) else str(self)

    def _divisor(self, operator: str, other: object) -> Size:
        other = python_number(other)
        form = None if isinstance(other, Index) else as_index(other)
        if isinstance(form, Index) and all(isinstance(var.type, Whole) for var in form.term.free):
            parts, offset = affine_parts(form.term)
            return size_of_parts({var.name: int(factor) for var, factor in parts}, int(offset))
        if not isinstance(other, int) or isinstance(other, bool) or other < 1:
            kind = "modulus" if operator == "%" else "divisor"
            raise IndexingError(
                f"{self._operand} {operator} {_written(other)}: the {kind} must be a positive whole number or a size",
                hint=MODULUS_HINT,
            )
        return other

    def _rest(self, divisor: Size) -> Var:
        """An index that stands for what is left of this one when it is divided: summed where it is used."""
        if not (is_whole(self.term) if isinstance(divisor, str) else is_divided(self.term, self.owner)):
            raise IndexingError(f"{self} is divided with a rest, but is not whole")
        for binder in binders_of(self.term, self.owner):
            binder.compared = True
        for rest, divided in self.owner.rests.items():
            if divided is self.term and rest.type == Range(divisor):
                return rest
        rest = self.owner.names.fresh(Var("r", Range(divisor)))
        self.owner.rests[rest] = self.live()
        return rest

    def __abs__(self) -> Any:
        return HANDLERS[np.abs](self) if self.is_number else IndexDistance(self)

    def __and__(self, other: object) -> NoReturn:
        raise TraceError(f"& and | join conditions, not the index {self}", hint=PARENTHESES_HINT)

    __rand__ = __or__ = __ror__ = __and__

    def __le__(self, other: object) -> Any:
        return NotImplemented if _answers_itself(other) else self._at_most(other, 0)

    def __lt__(self, other: object) -> Any:
        return NotImplemented if _answers_itself(other) else self._at_most(other, 1)

    def __ge__(self, other: object) -> Any:
        return NotImplemented if _answers_itself(other) else ~self._at_most(other, 1)

    def __gt__(self, other: object) -> Any:
        return NotImplemented if _answers_itself(other) else ~self._at_most(other, 0)

    def _at_most(self, other: object, gap: int) -> Condition:
        """The condition `self + gap ≤ other`."""
        left, right = _compared(self, other)
        room = affine([(right, 1), (left, -1)], -gap)
        holds, fails = (_not_negative(form, self.owner) for form in (room, affine([(room, -1)], -1)))
        return _condition([holds], [fails], self.owner)

    def __eq__(self, other: object) -> Any:
        if _answers_itself(other):
            return NotImplemented
        left, right = _compared(self, other)
        if not (left.free | right.free).isdisjoint(self.owner.rests):
            below, above = self <= other, self >= other
            return _condition((below & above).holds, (*below.fails, *above.fails), self.owner)
        return _condition([equality(left, right)], [unequal(affine([(left, 1), (right, -1)]))], self.owner)

    def __ne__(self, other: object) -> Any:
        return NotImplemented if _answers_itself(other) else ~(self == other)


def _answers_itself(other: object) -> bool:
    """Whether what an index is compared with knows what that means: a traced value."""
    return isinstance(other, TracedValue) and not isinstance(other, Index)


@dataclass(frozen=True, eq=False, repr=False)
class Remainder(Index):
    """`index % modulus`, an index that is compared for being equal without being summed."""

    index: Index
    modulus: Size

    kind = "remainder of an index"
    __hash__ = object.__hash__

    def __str__(self) -> str:
        return f"{self.index._operand} % {self.modulus}"

    def __eq__(self, other: object) -> Any:
        if _answers_itself(other):
            return NotImplemented
        alike = isinstance(other, Remainder) and other.modulus == self.modulus
        left, right = _compared(self.index, other.index if alike else other)  # type: ignore[attr-defined]
        difference, modulus = affine([(left, 1), (right, -1)]), self.modulus
        if isinstance(modulus, str) or _rests_in(difference, self.owner):
            sides = (number_of_form(side, self.owner, as_integer) for side in (self.term, index_term(other)))
            holds = relation("equal", *sides)
            return _condition([holds], [opposite(holds) or ZERO], self.owner)
        if not right.free and not alike and not 0 <= affine_parts(right)[1] < modulus:
            return _condition([], [ONE], self.owner)
        holds, *fails = [indicator(affine([(difference, 1)], -n), modulus) for n in range(min(modulus, FEW))]
        congruent = _condition([holds], fails if modulus <= FEW else [ONE, negate(holds)], self.owner)
        rest = Index(right, self.owner)
        return congruent if alike else congruent & (rest >= 0) & (rest < modulus)

    def __ne__(self, other: object) -> Any:
        return NotImplemented if _answers_itself(other) else ~(self == other)


@dataclass(frozen=True, eq=False, repr=False)
class IndexQuotient(Index):
    """`index // divisor`, which is divided on: (i // 2) // 3 is i // 6, and (i // 2) % 3 is (i % 6) // 2."""

    index: Index
    divisor: int

    __hash__ = object.__hash__

    def __str__(self) -> str:
        return f"{self.index._operand} // {self.divisor}"

    def __floordiv__(self, other: object) -> Index:
        return self.index // (self._whole("//", other) * self.divisor)

    def __mod__(self, other: object) -> Index:
        return (self.index % (self._whole("%", other) * self.divisor)) // self.divisor

    def _whole(self, operator: str, other: object) -> int:
        divisor = self._divisor(operator, other)
        if isinstance(divisor, str):
            raise IndexingError(
                f"({self}) {operator} {divisor}: what was divided is divided by a size that has only a name",
                hint="declare the axis with a number",
            )
        return divisor


@dataclass(frozen=True, eq=False)
class IndexDistance(TracedValue):
    """`abs(index)`, which can only be compared with index expressions and whole numbers."""

    index: Index

    kind = "magnitude of an index"
    __hash__ = object.__hash__

    def __le__(self, other: object) -> Any:
        return (self.index <= other) & (-self.index <= other)

    def __lt__(self, other: object) -> Any:
        return (self.index < other) & (-self.index < other)

    def __ge__(self, other: object) -> Any:
        return ~(self < other)

    def __gt__(self, other: object) -> Any:
        return ~(self <= other)

    def __eq__(self, other: object) -> Any:
        within, owner = (self <= other) & (self >= other), self.index.owner
        left, right = _compared(self.index, other)
        if not _is_positive(right) or _may_wrap(left, right, owner):
            return within
        return _condition([equality(left, right), equality(left, affine([(right, -1)]))], within.fails, owner)

    def __ne__(self, other: object) -> Any:
        return ~(self == other)

    def number(self) -> Any:
        """The magnitude as the number that it is."""
        return HANDLERS[np.abs](self.index.number())

    def __neg__(self) -> Any:
        return -self.number()

    def __add__(self, other: object) -> Any:
        return self.number() + other

    def __sub__(self, other: object) -> Any:
        return self.number() - other

    def __rsub__(self, other: object) -> Any:
        return other - self.number()

    def __mul__(self, other: object) -> Any:
        return self.number() * other

    def __truediv__(self, other: object) -> Any:
        return self.number() / other

    def __rtruediv__(self, other: object) -> Any:
        return other / self.number()

    def __pow__(self, other: object) -> Any:
        return self.number() ** other

    def __rpow__(self, other: object) -> Any:
        return other ** self.number()

    __radd__, __rmul__ = __add__, __mul__


@dataclass(frozen=True, eq=False, repr=False)
class Condition(NumpyAware):
    """A condition on indices: numbers `holds` that sum to 1 where it is true, to 0 elsewhere, and `fails` the opposite.

    Where possible they are products of indicators and δ's, which guard what they multiply: the opposite of i = j gives
    [i ≠ j]·a, which does not look at a where i = j, as a − δ(i, j)·a would.
    """

    holds: tuple[Term, ...]
    fails: tuple[Term, ...]
    owner: Trace

    kind = "condition on indices"

    def __and__(self, other: object) -> Any:
        if _answers_itself(other) and not isinstance(other, Condition):
            return NotImplemented
        if not isinstance(other, Condition):
            raise TraceError(f"& and | join conditions on indices, not {shown(other)}", hint=PARENTHESES_HINT)
        both = [mul(one, two) for one in self.holds for two in other.holds]
        only_second_fails = [mul(one, two) for one in self.holds for two in other.fails]
        return _condition(both, [*self.fails, *only_second_fails], self.owner)

    def __or__(self, other: object) -> Any:
        if _answers_itself(other) and not isinstance(other, Condition):
            return NotImplemented
        return ~(~self & (~other if isinstance(other, Condition) else other))

    def __invert__(self) -> Condition:
        return Condition(self.fails, self.holds, self.owner)

    def live(self) -> Term:
        """1 where the condition is true and 0 elsewhere, after checking that it may be used now."""
        return self.choose(ONE, ZERO)

    def choose(self, one: Term, other: Term) -> Term:
        """`one` where the condition is true and `other` elsewhere, after checking that it may be used now."""
        chosen = add(*(mul(guard, one) for guard in self.holds), *(mul(guard, other) for guard in self.fails))
        check_live(chosen, self.owner)
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
    domains = [binder.domain for side in (left, right) for binder in binders_of(side, trace)]
    return any(domain is None or isinstance(domain, Cyclic) for domain in domains)


def _written(other: object) -> str:
    return str(other) if isinstance(other, TracedValue) else shown(other)


def as_index(value: object) -> object:
    """A whole number made of sizes and indices alone as the index expression that it is, a slice between numbers of
    NumPy's as one between Python's; anything else as it stands."""
    if isinstance(value, slice):
        return slice(*map(python_number, (value.start, value.stop, value.step)))
    if not isinstance(value, TracedValue) or isinstance(value, Index):
        return value
    term = getattr(value, "term", None)
    form = index_form(term) if isinstance(term, Term) else None
    return value if form is None else Index(form, current("an index"))


def index_term(value: object, beside: object = None) -> Term:
    """An index expression or number as a term; `beside` is what it is combined with, for the error."""
    value = python_number(value)
    if isinstance(value, Index):
        return value.live()
    if _is_rational(value):
        return affine([], _fraction(value))
    place = f" beside the index {beside}" if beside is not None else ""
    raise IndexingError(
        f"{shown(value)} is not an index expression{place}",
        hint="an index expression is made of whole multiples of indices and whole numbers, such as 2*i - j + 1",
    )


def _is_rational(value: Any) -> TypeGuard[int | float | Fraction]:
    real = isinstance(value, numbers.Rational | float) and not isinstance(value, bool)
    return real and abs(value) <= MOST_INDICES and Fraction(value).denominator <= MOST_INDICES


def _fraction(value: float | Fraction) -> Fraction:
    """A number as the fraction that it is, a float as the one that few digits of it say: 0.1 is 1/10."""
    found = exact(float(value)) if isinstance(value, float) else value
    in_digits = Fraction(repr(found)) if isinstance(found, float) else Fraction(found)
    return in_digits if in_digits.denominator <= MOST_PARTS else Fraction(found)


def with_rests(forms: Sequence[Term], trace: Trace) -> tuple[list[Term], dict[Var, Term]]:
    """Index expressions with new indices for the rests of divisions in them, and the condition that determines each."""
    renamed: dict[Var, Term] = {}
    conditions: dict[Var, Term] = {}
    bare = all(is_whole(form) for form in forms)

    def told(form: Term) -> Term:
        for var in _rests_in(form, trace):
            if var not in renamed:
                divided, size = trace.rests[var], var.type.size  # type: ignore[union-attr]
                if (known := index_left(told(divided), size)) is not None:
                    renamed[var] = known
                    continue
                renamed[var] = rest = trace.names.fresh(var)
                if isinstance(size, str) or (bare and not _rests_in(divided, trace)):
                    conditions[rest] = equal_modulo(rest, told(divided), size)
                    continue
                scale = denominator(divided)
                conditions[rest] = indicator(affine([(told(divided), scale), (rest, -scale)]), scale * size)
        return substitute(form, renamed)

    return [told(form) for form in forms], conditions


def _rests_in(form: Term, trace: Trace) -> list[Var]:
    return [var for var, _ in affine_parts(form)[0] if var in trace.rests]


def is_whole(term: Term) -> bool:
    """Whether the coefficients of an index expression are whole."""
    return denominator(term) == 1


def is_divided(term: Term, trace: Trace) -> bool:
    """Whether an index expression is whole for the rests of divisions in it: i/2 - r/2 with the rest r of i by 2."""
    for var, coefficient in affine_parts(term)[0]:
        if isinstance(coefficient, Fraction) and (divided := trace.rests.get(var)) is not None:
            if (coefficient * var.type.size).denominator > 1:  # type: ignore[union-attr, operator]
                return False
            return is_divided(affine([(term, 1), (var, -coefficient), (divided, coefficient)]), trace)
    return is_whole(term)


def _not_negative(form: Term, trace: Trace) -> Term:
    """1 where an index expression is at least 0: of (i - r)/d + k with the rest r of i by d, where i + d k is."""
    scale = denominator(form)
    whole = affine([(form, scale)])
    for rest, coefficient in affine_parts(whole)[0]:
        if rest in trace.rests and rest.type == Range(scale) and abs(coefficient) == 1:
            up = scale - 1 if coefficient > 0 else 0
            return _not_negative(affine([(whole, 1), (rest, -coefficient)], up), trace)
    if not _rests_in(form, trace):
        return indicator(form)
    parts, offset = affine_parts(whole)
    right = affine([part for part in parts if part[1] > 0], max(offset, 0))
    sides = (affine([(right, 1), (whole, -1)]), right)
    return relation("less_equal", *(number_of_form(side, trace, as_integer) for side in sides))


def number_of_form(form: Term, trace: Trace, of_indices: Callable[[Term], Term] = Coordinate) -> Term:
    """The number that an index expression is: `(i - r)/2` with the rest r of i is ½ (i − (i mod 2)).

    `of_indices` is one without rests as a number: a Coordinate, or the integer for what is compared.
    """
    parts, offset = affine_parts(form)
    real = all(isinstance(binder.domain, Real) for binder in binders_of(form, trace))
    divisor = 1 if real else denominator(form)
    rests = _rests_in(form, trace)
    whole = affine([(var, c * divisor) for var, c in parts if var not in rests], offset * divisor)
    number = of_indices(whole) if whole.free else Number(affine_parts(whole)[1])
    divided = [mul(Number(c * divisor), _rest(var, trace, of_indices)) for var, c in parts if var in rests]
    return mul(Number(Fraction(1, divisor)), add(number, *divided))


def _rest(rest: Var, trace: Trace, of_indices: Callable[[Term], Term]) -> Term:
    """The number that is left of a division, of fractions as that of their multiples that are whole."""
    divided, size = trace.rests[rest], size_form(rest.type.size)  # type: ignore[union-attr]
    scale = denominator(divided)
    value = number_of_form(affine([(divided, scale)]), trace, of_indices)
    return mul(Number(Fraction(1, scale)), function("remainder", value, as_integer(affine([(size, scale)]))))


def _is_positive(term: Term) -> bool:
    parts, offset = affine_parts(term)
    return not parts and offset > 0


def _compared(index: Index, other: object) -> tuple[Term, Term]:
    """Both sides of a comparison, noted as compared: over the real line that has no meaning here."""
    left, right = index.live(), index_term(other, index)
    for side in (left, right):
        if not is_divided(side, index.owner):
            raise IndexingError(f"{index} is compared with {show_index(right)}: both must be whole")
        for binder in binders_of(side, index.owner):
            binder.compared = True
    return left, right


def binders_of(term: Term, trace: Trace) -> Iterator[Binder]:
    """The lambdas under way whose indices are in an index expression."""
    return (trace.open[var] for var, _ in affine_parts(term)[0] if var in trace.open)
