"""Index forms, and what depends on indices alone: δ and indicators.

    2i − j + 1    =  affine([(i, 2), (j, -1)], 1)      δ(i, j)    [i − j ≥ 0]    [i + j ≡ 0 (mod 2)]    [i − j ≠ 0]

Invariant: an `Affine` is never just a variable, holds no coefficient 0 and is sorted by name, so equal forms are one
object; the form of an `Unequal` begins with a positive coefficient, so that i ≠ j and j ≠ i are one object, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from math import gcd, lcm

from combdiff.errors import UnsupportedError
from combdiff.ir.domains import Cyclic, Domain, Function, Range, Real, Space, Symmetric, Whole
from combdiff.ir.relations import Relation
from combdiff.ir.sizes import size_parts
from combdiff.ir.terms import ONE, ZERO, Add, Mul, Number, Term, Var, add, mul, tidy
from combdiff.records import dataclass


@dataclass(frozen=True, eq=False, repr=False)
class Affine(Term):
    """An index expression `Σ coefficient·variable + offset` that is not just a variable.

    Variables are indices, or size names of type Whole. Over the real line coefficients may be fractions.
    Sorted by variable name; no coefficient is 0. Build with `affine`.
    """

    coefficients: tuple[tuple[Var, int | Fraction], ...]
    offset: int | Fraction = 0

    @property
    def children(self) -> tuple[Term, ...]:
        return tuple(var for var, _ in self.coefficients)

    def with_children(self, children: tuple[Term, ...]) -> Term:
        return affine(zip(children, (c for _, c in self.coefficients), strict=True), self.offset)


@dataclass(frozen=True, eq=False, repr=False)
class Delta(Term):
    """δ(left, right): 1 where the two are equal and 0 elsewhere (Kronecker), or Dirac's on the real line.

    `domain` is where the two are compared (on a cycle, modulo its size); None for numbers and tensors.
    """

    left: Term
    right: Term
    domain: Domain | None

    @property
    def children(self) -> tuple[Term, ...]:
        return (self.left, self.right)

    def with_children(self, children: tuple[Term, ...]) -> Term:
        return delta(children[0], children[1], self.domain)

    @property
    def lookup(self) -> tuple[Term, Term] | None:
        """An index expression and the integer value it is compared with, as in δ(d, idx[i]); None if there is none."""
        sides = [(self.left, self.right), (self.right, self.left)]
        return next(((i, v) for i, v in sides if not is_index(v) and is_index(i)), None)


def is_index(term: Term) -> bool:
    """Whether a term is an index expression."""
    return isinstance(term, Affine) or (isinstance(term, Var) and not isinstance(term.type, Space | Function))


@dataclass(frozen=True, eq=False, repr=False)
class Indicator(Term):
    """1 where `form ≥ 0` (modulus 0) or `form ≡ 0 (mod modulus)`, and 0 elsewhere; form is an index expression."""

    form: Term
    modulus: int = 0

    @property
    def children(self) -> tuple[Term, ...]:
        return (self.form,)

    def with_children(self, children: tuple[Term, ...]) -> Term:
        return indicator(children[0], self.modulus)


@dataclass(frozen=True, eq=False, repr=False)
class Unequal(Term):
    """1 where `form ≠ 0`, on a cycle where it is no multiple of its size; 0 elsewhere: 1 − δ(form, 0) as one factor.

    `domain` is where it is compared, a cycle or the whole numbers; None while that is not known, as while a lambda is
    traced. Build with `unequal`.
    """

    form: Term
    domain: Cyclic | Whole | None

    @property
    def children(self) -> tuple[Term, ...]:
        return (self.form,)

    def with_children(self, children: tuple[Term, ...]) -> Term:
        return unequal(children[0], self.domain)

    @property
    def cycle(self) -> Cyclic | None:
        """The cycle modulo whose size it is compared; None where that changes nothing, as for two of its indices."""
        parts, offset = affine_parts(self.form)
        reduced = not offset and sorted(c for _, c in parts) == [-1, 1] and all(v.type == self.domain for v, _ in parts)
        return self.domain if isinstance(self.domain, Cyclic) and not reduced else None

    @property
    def opposite(self) -> Term:
        """The δ that is 1 where this is 0."""
        parts, offset = affine_parts(self.form)
        domain = self.domain if isinstance(self.domain, Cyclic) else None
        return delta(affine(parts[:1]), affine([(v, -c) for v, c in parts[1:]], -offset), domain)


IndexGuard = Delta | Indicator | Unequal
"""What is 0 or 1 by its indices alone."""

Guard = IndexGuard | Relation
"""What is 0 or 1: where it is 0, nothing else in its product is looked at."""


@dataclass(frozen=True, eq=False, repr=False)
class Coordinate(Term):
    """An index as a number: x in `exp(2π i k x)` on the real line, an integer (dtype int) elsewhere: j in `idx[i] + j`.

    `form` is an index expression; where it becomes a constant, the number is that.
    """

    form: Term
    dtype: type = float

    @property
    def children(self) -> tuple[Term, ...]:
        return (self.form,)

    def with_children(self, children: tuple[Term, ...]) -> Term:
        return coordinate(children[0], self.dtype)


def coordinate(form: Term, dtype: type = float) -> Term:
    """An index expression as a number, that number itself when it is a constant."""
    parts, offset = affine_parts(form)
    return Coordinate(form, dtype) if parts else Number(offset)


def affine(coefficients: Iterable[tuple[Term, int | Fraction]], offset: int | Fraction = 0) -> Term:
    """`Σ coefficient·term + offset` for index terms (variables or affine), collected; a bare variable stays one.

    On a Cyclic domain the expression is understood modulo its size; it is not reduced here.
    """
    collected: dict[Var, int | Fraction] = {}
    for term, coefficient in coefficients:
        parts, constant = affine_parts(term)
        offset += coefficient * constant
        for var, inner in parts:
            collected[var] = collected.get(var, 0) + coefficient * inner
    kept = sorted(((v, tidy(c)) for v, c in collected.items() if c), key=lambda pair: pair[0].name)
    if not offset and len(kept) == 1 and kept[0][1] == 1:
        return kept[0][0]
    return Affine(tuple(kept), tidy(offset))


def affine_parts(term: Term) -> tuple[tuple[tuple[Var, int | Fraction], ...], int | Fraction]:
    """The (variable, coefficient) pairs and the offset of an index term."""
    if isinstance(term, Var):
        return ((term, 1),), 0
    assert isinstance(term, Affine), term
    return term.coefficients, term.offset


def denominator(form: Term) -> int:
    """The smallest number that makes the coefficients of an index expression whole."""
    parts, offset = affine_parts(form)
    return lcm(*(Fraction(number).denominator for number in (offset, *(coefficient for _, coefficient in parts))))


def as_integer(form: Term, given: Mapping[Var, Term] | None = None) -> Term:
    """An index expression as an integer term by term, each index a number, or the integer that is given for it.

    One with fractions, which a condition says is whole, has parts that are none: it is one integer.
    """
    parts, offset = affine_parts(form)
    known = given or {}
    if denominator(form) > 1 and known.keys().isdisjoint(form.free):
        return Coordinate(form, int)
    return add(*(mul(Number(c), known[v] if v in known else Coordinate(v, int)) for v, c in parts), Number(offset))


def delta(left: Term, right: Term, domain: Domain | None = None) -> Term:
    """δ(left, right) on a domain, decided where both differ by a number. By default it is that of the indices.

    One of a single index, by numbers and sizes, says what that is: δ(n, d + 1) is δ(d, n − 1), and δ(2d, 1) is 0.
    What an array holds may be none of them beside an expression of indices on a line: δ(idx[i], j + 1) has no domain.
    """
    if left is right:
        return ONE
    domain = domain or _told_domain(left, right)
    if domain is not None and is_index(left) and is_index(right):
        parts, distance = affine_parts(affine([(left, 1), (right, -1)]))
        size = domain.size if isinstance(domain, Cyclic) else 0
        if not parts and isinstance(size, int):
            return ZERO if (distance % size if size else distance) else ONE
        if isinstance(domain, Range | Symmetric) and (found := _of_one_index(parts, distance)) is not None:
            return found
    return Delta(left, right, domain)


def _of_one_index(parts: Sequence[tuple[Var, int | Fraction]], distance: int | Fraction) -> Term | None:
    """The δ for `form = 0` that says what the one index in a form is; None where several are, or none may be."""
    counted = [(var, factor) for var, factor in parts if not isinstance(var.type, Whole)]
    if len(counted) != 1 or not isinstance(counted[0][0].type, Range | Symmetric):
        return None
    ((index, factor),) = counted
    value = affine([(var, -c / Fraction(factor)) for var, c in parts if var is not index], -distance / Fraction(factor))
    if denominator(value) == 1:
        return Delta(index, value, index.type)  # type: ignore[arg-type]
    return None if value.free else ZERO


def _told_domain(left: Term, right: Term) -> Domain | None:
    """The domain of what a δ compares, as its indices tell it."""
    domain = _common_domain(left, right)
    indices = [side for side in (left, right) if is_index(side)]
    told = len(indices) == 2 or isinstance(domain, Cyclic) or any(isinstance(index, Var) for index in indices)
    return domain if told else None


def _common_domain(*forms: Term) -> Domain | None:
    """The domain of the indices in some index forms; a cycle if there is one."""
    indices = [v for form in forms if isinstance(form, Var | Affine) for v, _ in affine_parts(form)[0]]
    domains = [v.type for v in indices if not isinstance(v.type, Space | Function | Whole)]
    return next((d for d in domains if isinstance(d, Cyclic)), domains[0] if domains else None)


def indicator(form: Term, modulus: int = 0) -> Term:
    """The indicator of form ≥ 0, or of form ≡ 0 (mod modulus), decided here when form is a constant."""
    parts, offset = affine_parts(form)
    if parts:
        return Indicator(form, modulus)
    return ONE if (offset % modulus == 0 if modulus else offset >= 0) else ZERO


def unequal(form: Term, domain: Domain | Whole | None = None) -> Term:
    """The indicator of form ≠ 0, on a cycle of form ≢ 0 modulo its size; decided here when form is a constant.

    By default the domain is that of the indices. Whole numbers have coprime coefficients.
    """
    domain = domain or _common_domain(form)
    kind = domain if domain is None or isinstance(domain, Cyclic) else Whole()
    parts, offset = affine_parts(form)
    sign = -1 if parts and parts[0][1] < 0 else 1
    if not parts and not (offset and isinstance(size := getattr(kind, "size", 0), str)):
        return ONE if (offset % size if offset and size else offset) else ZERO
    if parts and isinstance(kind, Whole):
        scale = lcm(*(Fraction(c).denominator for _, c in parts))
        common = gcd(*(int(c * scale) for _, c in parts))
        if (offset * scale) % common:
            return ONE
        return Unequal(affine([(form, Fraction(sign * scale, common))]), kind)
    return Unequal(affine([(form, sign)]), kind)


def opposite(condition: Term) -> Term | None:
    """The condition that holds where another does not; None where it has no such form."""
    match condition:
        case Relation():
            return condition.opposite
        case Indicator() if not condition.modulus:
            return indicator(affine([(condition.form, -1)], -1))
        case Indicator(modulus=2):
            parts, offset = affine_parts(condition.form)
            return indicator(affine(parts, (offset + 1) % 2), 2)
        case Unequal():
            return condition.opposite
        case Delta() if not condition.lookup:
            return unequal(affine([(condition.left, 1), (condition.right, -1)]), condition.domain)
    return None


def united(one: Term, other: Term) -> Term | None:
    """The condition that either of two holds which exclude each other; None where it has no such form.

    i < d or i > d: i ≠ d;   i < d or i = d: i ≤ d;   i < d or i ≥ d: 1
    """
    if other is opposite(one):
        return ONE
    for condition, rest in ((one, other), (other, one)):
        if isinstance(condition, Indicator) and not condition.modulus:
            start = affine([(condition.form, 1)], 1)
            if rest is indicator(affine([(start, -1)], -1)):
                return unequal(start, Whole())
            if isinstance(rest, Delta) and opposite(rest) is unequal(start, Whole()):
                return indicator(start)
    return None


def index_form(term: Term, *, around: bool = False, fractions: bool = False) -> Term | None:
    """The index expression that a whole number is: i + 1 of a counted axis; None for other numbers.

    One of an index on a cycle is none, as it would count modulo its size, but where it is reduced, `around` a cycle.
    With `fractions` i/2 is one, too.
    """
    match term:
        case Number(int() | Fraction() as value, 0) if fractions or isinstance(value, int):
            return affine([], value)
        case Coordinate(dtype=kind) if kind is int:
            return None if any(isinstance(var.type, Cyclic) for var in term.free) and not around else term.form
        case Mul((Number(int() | Fraction() as factor, 0), other)) if fractions or isinstance(factor, int):
            form = index_form(other, around=around, fractions=fractions)
            return None if form is None else affine([(form, factor)])
        case Add():
            forms = [index_form(part, around=around, fractions=fractions) for part in term.terms]
            return None if None in forms else affine([(form, 1) for form in forms if form is not None])
    return None


def size_form(size: int | str) -> Term:
    """A size as an index expression: a constant, or a sum of size names as variables."""
    names, offset = size_parts(size)
    return affine([(Var(name, Whole()), value) for name, value in names.items()], offset)


def size_of_axis(axis: Domain) -> Term:
    """The number of indices of an axis as a number of a program: `n` for Range("n"), 2B + 1 for Symmetric("B")."""
    if isinstance(axis, Real):
        raise UnsupportedError("the real line has no number of elements", hint="over it there are integrals")
    size = affine([(size_form(axis.bound), 2)], 1) if isinstance(axis, Symmetric) else size_form(axis.size)
    return coordinate(size, int)
