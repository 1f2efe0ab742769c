"""Terms: the one immutable, hash-consed language that every stage reads and writes.

A tensor is a map from indices, so one application node serves tensors `A[i, j]`, fields `f(r)` and named maps
`R(u)`. The program `x ↦ Σ_i x[i]·x[i]` is

    x, i = Var("x", Space("n")), Var("i", Range("n"))
    Lambda((x,), Sum((i,), Mul((Apply(x, (i,)), Apply(x, (i,))))))

Equal terms are one object (construction interns them), so a program is a graph and never a tree that repeats
itself, and `is` decides equality. Build terms with the lower-case helpers (`add`, `mul`, `total`, …): they fold
what is trivially foldable, such as products with 0, and nothing else.

Invariant: a binder never binds a name that occurs free around it (`substitution` renames to keep it so).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from fractions import Fraction
from functools import cached_property, lru_cache, wraps
from math import isfinite, pi, ulp
from threading import RLock
from typing import Any, TypeVar
from weakref import ref

from combdiff.errors import UnsupportedError
from combdiff.ir.domains import Domain, Function, Space, Whole
from combdiff.records import dataclass

Type = Domain | Space | Function | Whole
Scalar = int | Fraction | float
Result = TypeVar("Result")

MOST_HALF_TURNS, MOST_PARTS_OF_TURNS = 64, 4096  # of a multiple of π: above and below
MOST_BITS = 10_000  # of an exact number, some 3000 digits: Python prints no more than 4300

_interning = RLock()


class _KeptTerm(ref[Any]):
    """A weak reference to a term, under its key among the terms that there are."""

    __slots__ = ("key",)
    key: tuple[object, ...]


_interned: dict[tuple[object, ...], _KeptTerm] = {}


def _forget(reference: _KeptTerm) -> None:
    """Drop the key of a term that is gone, unless an equal term has been made since."""
    with _interning:
        if _interned.get(reference.key) is reference:
            del _interned[reference.key]


class _Interning(type):
    """Makes construction return the one object that stands for an equal term."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        key: tuple[object, ...] = ()
        if not kwargs and "identity" not in cls.__dict__:  # the arguments are the identity, but for defaults left out
            reference = _interned.get(key := (cls, *args))
            if reference is not None and (known := reference()) is not None:
                return known
        term = super().__call__(*args, **kwargs)
        if len(key) <= len(term.__match_args__):
            key = cls, *term.identity()
        with _interning:  # or two threads would make one term twice
            reference = _interned.get(key)
            if reference is not None and (known := reference()) is not None:
                return known
            made = _interned[key] = _KeptTerm(term, _forget)
            made.key = key
        return term


@dataclass(frozen=True, eq=False, repr=False)
class Term(metaclass=_Interning):
    """Base of all terms."""

    def identity(self) -> tuple[object, ...]:
        """What makes two terms of one class the same."""
        return tuple([getattr(self, name) for name in self.__match_args__])  # type: ignore[var-annotated]

    @property
    def children(self) -> tuple[Term, ...]:
        """The direct subterms, binders' variables not counted."""
        return ()

    def with_children(self, children: tuple[Term, ...]) -> Term:
        """The same node over other subterms, given in the order of `children`."""
        return self

    @property
    def bound(self) -> tuple[Var, ...]:
        """The variables this node binds in (some of) its children."""
        return ()

    def over(self, bound: tuple[Var, ...], body: Term) -> Term:
        """The same node of another body, over other variables. Raises TypeError for one that binds none in a body."""
        raise TypeError(f"a {type(self).__name__} is over no variables")

    @cached_property
    def label(self) -> tuple[str, ...]:
        """What a node is but for its children and the names that it binds: what it is of, the kind of a result."""
        own = (repr(part) for part in self.identity() if not _holds_terms(part))
        return type(self).__name__, *own, *(repr(var.type) for var in self.bound)

    @cached_property
    def free(self) -> frozenset[Var]:
        """The variables that occur free."""
        return _from_the_leaves(self, "free", lambda term: term._free())

    def _free(self) -> frozenset[Var]:
        """The same, of those of the children."""
        inside = frozenset().union(*(child.free for child in self.children))
        return inside - frozenset(self.bound)

    @cached_property
    def levels(self) -> int:
        """How many variables are bound in one another, at most."""
        return _from_the_leaves(self, "levels", lambda term: len(term.bound) + _most(term.children))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, f.name) for f in fields(self))

    def __repr__(self) -> str:
        return _describe(self, 4)


def _holds_terms(part: object) -> bool:
    return isinstance(part, Term) or (isinstance(part, tuple) and any(map(_holds_terms, part)))


def _describe(value: object, depth: int) -> str:
    """A term down to a depth: the whole of a graph would repeat what it shares."""
    if isinstance(value, tuple):
        return f"({', '.join(_describe(item, depth) for item in value)}{',' if len(value) == 1 else ''})"
    if not isinstance(value, Term) or isinstance(value, Var):
        return repr(value)
    inside = ", ".join(_describe(getattr(value, f.name), depth - 1) for f in fields(value)) if depth else "…"
    return f"{type(value).__name__}({inside})"


@dataclass(frozen=True, eq=False, repr=False)
class Number(Term):
    """A constant: exact (int or Fraction parts) unless the user wrote a float."""

    real: Scalar
    imag: Scalar = 0

    def identity(self) -> tuple[object, ...]:
        return _part_identity(self.real), _part_identity(self.imag)

    @cached_property
    def exact(self) -> bool:
        """Whether both parts are integers or fractions."""
        return not isinstance(self.real, float) and not isinstance(self.imag, float)

    @property
    def finite(self) -> bool:
        """Whether both parts are finite."""
        return self.exact or all(part - part == 0 for part in (self.real, self.imag))

    def value(self) -> complex | float:
        """The number as Python computes with it. Raises UnsupportedError for one that no float holds."""
        return complex(as_float(self.real), as_float(self.imag)) if self.imag else as_float(self.real)


def _part_identity(part: Scalar) -> object:
    """What tells a part of a number from others: 2, 2.0 and a fraction 2/1 are three, 0.0 and −0.0 two."""
    if isinstance(part, float):
        return "float", repr(part)
    if type(part) is int and part.bit_length() <= MOST_BITS:
        return part
    if max(part.numerator.bit_length(), part.denominator.bit_length()) > MOST_BITS:
        raise UnsupportedError(
            f"an exact number has more than {digits(MOST_BITS)} digits", hint="write a float, or use other units"
        )
    return part if type(part) is int else (type(part).__name__, part.numerator, part.denominator)


def digits(bits: int) -> int:
    """About how many decimal digits a whole number of so many bits has."""
    return bits * 30103 // 100000 + 1


def as_float(part: Scalar) -> float:
    """The floating point number nearest to an exact one. Raises UnsupportedError where that would be infinite."""
    try:
        return float(part)
    except OverflowError:
        bits = part.numerator.bit_length() if not isinstance(part, float) else 0
        raise UnsupportedError(
            f"a number of {digits(bits)} digits is greater than any floating point number, 1.8e308",
            hint="measure in other units",
        ) from None


@dataclass(frozen=True, eq=False, repr=False)
class Var(Term):
    """A variable: a tensor, a scalar, a named map, an index, or (type Whole) a size name."""

    name: str
    type: Type

    def _free(self) -> frozenset[Var]:
        return frozenset({self})

    def __repr__(self) -> str:
        return f"Var({self.name!r})"


@dataclass(frozen=True, eq=False, repr=False)
class Apply(Term):
    """`function(arguments)`: an element of a tensor or field, or a call of a named map."""

    function: Term
    arguments: tuple[Term, ...]

    @property
    def children(self) -> tuple[Term, ...]:
        return (self.function, *self.arguments)

    def with_children(self, children: tuple[Term, ...]) -> Term:
        return Apply(children[0], children[1:])


@dataclass(frozen=True, eq=False, repr=False)
class Lambda(Term):
    """`(parameters) ↦ body`: a tensor when the parameters are indices, a program otherwise."""

    parameters: tuple[Var, ...]
    body: Term

    @property
    def children(self) -> tuple[Term, ...]:
        return (self.body,)

    def with_children(self, children: tuple[Term, ...]) -> Term:
        return Lambda(self.parameters, children[0])

    @property
    def bound(self) -> tuple[Var, ...]:
        return self.parameters

    def over(self, bound: tuple[Var, ...], body: Term) -> Term:
        return Lambda(bound, body)


@dataclass(frozen=True, eq=False, repr=False)
class OverIndices(Term):
    """One body, taken over the domains of bound indices."""

    indices: tuple[Var, ...]
    body: Term

    @property
    def children(self) -> tuple[Term, ...]:
        return (self.body,)

    @property
    def bound(self) -> tuple[Var, ...]:
        return self.indices

    def over(self, bound: tuple[Var, ...], body: Term) -> Term:
        return type(self)(bound, body)


@dataclass(frozen=True, eq=False, repr=False)
class PrintedNumber(Term):
    """A number written in another way, which occurs in prints alone; its last child is of the type of the number."""


@dataclass(frozen=True, eq=False, repr=False)
class Sum(OverIndices):
    """Σ of body over the domains of the indices: a finite sum, or an integral over the real line."""

    def with_children(self, children: tuple[Term, ...]) -> Term:
        return total(self.indices, children[0])


@dataclass(frozen=True, eq=False, repr=False)
class Add(Term):
    """A sum of two or more terms."""

    terms: tuple[Term, ...]

    @property
    def children(self) -> tuple[Term, ...]:
        return self.terms

    def with_children(self, children: tuple[Term, ...]) -> Term:
        return add(*children)


@dataclass(frozen=True, eq=False, repr=False)
class Mul(Term):
    """A product of two or more factors."""

    factors: tuple[Term, ...]

    @property
    def children(self) -> tuple[Term, ...]:
        return self.factors

    def with_children(self, children: tuple[Term, ...]) -> Term:
        return mul(*children)


@dataclass(frozen=True, eq=False, repr=False)
class Conj(Term):
    """The complex conjugate of a scalar."""

    body: Term

    @property
    def children(self) -> tuple[Term, ...]:
        return (self.body,)

    def with_children(self, children: tuple[Term, ...]) -> Term:
        return conj(children[0])


@dataclass(frozen=True, eq=False, repr=False)
class Primitive(Term):
    """A function of the table in `primitives`, applied: `exp(x)`, `power(x, 2)`, `inv(A)`."""

    name: str
    arguments: tuple[Term, ...]

    @property
    def children(self) -> tuple[Term, ...]:
        return self.arguments

    def with_children(self, children: tuple[Term, ...]) -> Term:
        return Primitive(self.name, children)


@dataclass(frozen=True, eq=False, repr=False)
class Tuple(Term):
    """Several results."""

    items: tuple[Term, ...]

    @property
    def children(self) -> tuple[Term, ...]:
        return self.items

    def with_children(self, children: tuple[Term, ...]) -> Term:
        return Tuple(children)


@dataclass(frozen=True, eq=False, repr=False)
class Let(Term):
    """`let v₁ = t₁, v₂ = t₂, … in body`: each variable is visible in the later values and in the body."""

    bindings: tuple[tuple[Var, Term], ...]
    body: Term

    @property
    def children(self) -> tuple[Term, ...]:
        return (*(value for _, value in self.bindings), self.body)

    def with_children(self, children: tuple[Term, ...]) -> Term:
        return let(zip(self.bound, children[:-1], strict=True), children[-1])

    @property
    def bound(self) -> tuple[Var, ...]:
        return tuple(var for var, _ in self.bindings)

    def _free(self) -> frozenset[Var]:
        inside = self.body.free
        for var, value in reversed(self.bindings):
            inside = (inside - {var}) | value.free
        return inside


@dataclass(frozen=True, eq=False, repr=False)
class Pullback(Term):
    """The pullback of a named map with respect to one argument: `P_position function (arguments, cotangent)`.

    `∇R(u)` is the pullback of R with cotangent 1; for a linear D it is the adjoint Dᵀ of the cotangent.
    """

    function: Term
    position: int
    arguments: tuple[Term, ...]
    cotangent: Term

    @property
    def children(self) -> tuple[Term, ...]:
        return (self.function, *self.arguments, self.cotangent)

    def with_children(self, children: tuple[Term, ...]) -> Term:
        return Pullback(children[0], self.position, children[1:-1], children[-1])


def remembered(function: Callable[[Any], Result]) -> Callable[[Any], Result]:
    """A function of one term whose values are kept with the terms: they are there as long as the term is, no longer."""
    key = f"{function.__module__}.{function.__qualname__}"

    @wraps(function)
    def remembering(term: Any) -> Result:
        known = term.__dict__
        if key in known:
            return known[key]  # type: ignore[no-any-return]
        value = known[key] = function(term)
        return value

    return remembering


def composed(function: Callable[[Any], Result]) -> Callable[[Any], Result]:
    """A remembered function whose value for a term is made of its values for the term's children.

    It is asked from the leaves up, so that the steps of a loop, one in another, fill no stack of calls.
    """
    key = f"{function.__module__}.{function.__qualname__}"

    @wraps(function)
    def composing(term: Any) -> Result:
        known = term.__dict__
        return known[key] if key in known else _from_the_leaves(term, key, function)

    return composing


def _from_the_leaves(term: Term, key: str, function: Callable[[Any], Result]) -> Result:
    """The value of a function for a term, which is kept under a key with it and with each of its parts."""
    path = [term]
    while path:
        node = path[-1]
        if key in node.__dict__:  # below two others, or twice below one
            path.pop()
        elif below := [child for child in node.children if key not in child.__dict__]:
            path.extend(below)
        else:
            node.__dict__[key] = function(path.pop())
    return term.__dict__[key]  # type: ignore[no-any-return]


def _most(children: Iterable[Term]) -> int:
    return max((child.levels for child in children), default=0)


# --- construction --------------------------------------------------------------------------------------------------

ZERO, ONE, MINUS_ONE = Number(0), Number(1), Number(-1)
LARGEST_DENOMINATOR = 1000  # of a fraction that a float is taken for; an ulp beside one there are none by chance
DECIMAL_DIGITS = 12  # of a float, without its point, up to which it was written in decimals
MOST_JOINED = {Add: 256, Mul: 32}  # parts that joining may give; the n products of a product rule share theirs


def exact(value: Scalar) -> Scalar:
    """An int or Fraction for a float that is one but for rounding: 0.5 is 1/2, and 4/3 is not 1.3333333333333333.

    Dyadic fractions of up to ten binary digits are exact as they are. Of others, one within an ulp of a fraction with a
    small denominator is that fraction, unless few decimal digits say it as well: 0.3 stays what the user wrote.
    """
    if not isinstance(value, float) or not abs(value) < 2**53:
        return value if isinstance(value, float) else tidy(value)
    if (value * 1024).is_integer():
        return tidy(Fraction(value))
    near = Fraction(value).limit_denominator(LARGEST_DENOMINATOR)
    close = near != 0 and abs(near - Fraction(value)) <= Fraction(ulp(value))
    return near if close and len(repr(value).strip("-0.")) > DECIMAL_DIGITS else value


def _in_few_digits(value: Scalar) -> Scalar:
    """A float as one beside it that few decimal digits say, or a fraction of π: 3 · 0.1 is 0.3, 2π · 1/6 is π/3."""
    if not isinstance(value, float) or not isfinite(value):
        return value
    near = float(f"{value:.{DECIMAL_DIGITS}g}")
    turns = half_turns(value)
    near = turns.numerator * pi / turns.denominator if turns else near
    return near if abs(near - value) <= 2 * ulp(value) else value


def half_turns(value: Scalar) -> Fraction:
    """k of a float that is k π but for rounding, with small numbers above and below; 0 of others."""
    if not isinstance(value, float) or not 0 < abs(value) <= MOST_HALF_TURNS * pi:
        return Fraction(0)
    found = Fraction(value / pi).limit_denominator(MOST_PARTS_OF_TURNS)
    near = found.numerator * pi / found.denominator
    small = 0 < abs(found.numerator) <= MOST_HALF_TURNS
    return found if small and abs(near - value) <= 2 * ulp(value) else Fraction(0)


def tidy(value: int | Fraction) -> int | Fraction:
    """An int where a fraction is whole."""
    return value.numerator if type(value) is Fraction and value.denominator == 1 else value


def number(value: complex | Fraction) -> Number:
    """The constant term of a Python number."""
    if isinstance(value, complex):
        return Number(exact(value.real), exact(value.imag))
    return Number(exact(value))


def total(indices: Iterable[Var], body: Term) -> Term:
    """Σ of body over indices; sums of sums are joined, sums of 0 and over no index vanish."""
    indices = tuple(indices)
    if isinstance(body, Sum):
        return total((*_renamed(indices, body), *body.indices), body.body)
    return Sum(indices, body) if indices and body is not ZERO else body


def _renamed(indices: Sequence[Var], body: Sum) -> list[Var]:
    """Indices around a sum: under a name that the sum has, too, nothing in it is read, so that others are as good."""
    inner = {index.name for index in body.indices}
    if inner.isdisjoint(index.name for index in indices):
        return list(indices)
    taken = inner.union(var.name for var in (*indices, *body.body.free))
    found: list[Var] = []
    for index in indices:
        found.append(fresh(index, taken) if index.name in inner else index)
        taken.add(found[-1].name)
    return found


def fresh(var: Var, taken: Iterable[str]) -> Var:
    """A variable like var whose name is not among those taken: i, i.1, i.2, …"""
    taken = taken if isinstance(taken, set) else set(taken)
    base = var.name.split(".")[0]
    name, count = var.name, 0
    while name in taken:
        count += 1
        name = f"{base}.{count}"
    return Var(name, var.type)


def add(*terms: Term) -> Term:
    """The sum of terms: nested sums joined, numbers and exact multiples of one term collected."""
    constant, rest = _fold(_flatten(terms, Add), ZERO, _plus)
    kept = [*_collect(rest), *([] if constant is ZERO else [constant])]
    return Add(tuple(kept)) if len(kept) > 1 else kept[0] if kept else ZERO


def mul(*factors: Term) -> Term:
    """The product of factors: nested products joined, numbers collected in front, 0 absorbs."""
    constant, rest = _fold(_flatten(factors, Mul), ONE, _multiply)
    if constant is ZERO:
        return ZERO
    kept = rest if constant is ONE else [constant, *rest]
    return Mul(tuple(kept)) if len(kept) > 1 else kept[0] if kept else ONE


def _flatten(parts: tuple[Term, ...], kind: type[Term]) -> list[Term]:
    """The parts with those of the same kind opened, unless one occurs twice or the result would be long.

    So y·y stays a graph of one shared y, and repeated squaring does not multiply terms.
    """
    if kind not in map(type, parts):
        return list(parts)
    nested = [part for part in parts if isinstance(part, kind)]
    flat = [inner for part in parts for inner in (part.children if isinstance(part, kind) else (part,))]
    return list(parts) if len(set(nested)) < len(nested) or (nested and len(flat) > MOST_JOINED[kind]) else flat


@lru_cache(maxsize=4096)  # numbers are often added and multiplied again
def _plus(a: Number, b: Number) -> Number:
    return _tidied(a.real + b.real, a.imag + b.imag)


def _collect(terms: list[Term]) -> list[Term]:
    """The terms with exact multiples of the same one added up, each where it stood first."""
    multiples: dict[Term, list[Number]] = {}
    for term in terms:
        factor, rest = _multiple(term)
        multiples.setdefault(rest, []).append(factor)
    if len(multiples) == len(terms):
        return terms
    sums = ((rest, _fold(factors, ZERO, _plus)[0]) for rest, factors in multiples.items())
    return [mul(factor, rest) for rest, factor in sums if factor is not ZERO]


def number_and_rest(term: Term) -> tuple[Number, Term]:
    """A term as the number in front of it times the rest."""
    if isinstance(term, Mul) and isinstance(term.factors[0], Number):
        return term.factors[0], _without_number(term)
    return (term, ONE) if isinstance(term, Number) else (ONE, term)


def _multiple(term: Term) -> tuple[Number, Term]:
    """A term as an exact number times the rest."""
    number, rest = number_and_rest(term)
    return (number, rest) if number.exact else (ONE, term)


@remembered
def _without_number(term: Mul) -> Term:
    """A product without the number in front."""
    return mul(*term.factors[1:])


@lru_cache(maxsize=4096)
def _multiply(a: Number, b: Number) -> Number:
    if not a.imag and not b.imag:
        return _tidied(a.real * b.real, 0) if a.real and b.real else ZERO
    return _tidied(a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real)


def _tidied(real: Scalar, imag: Scalar) -> Number:
    """A number with floats in few digits, and what is a fraction but for rounding as one."""
    return Number(*(exact(_in_few_digits(part)) for part in (real, imag)))


def _fold(
    terms: Iterable[Term], start: Number, combine: Callable[[Number, Number], Number]
) -> tuple[Number, list[Term]]:
    """The numbers among the terms combined into one, and the others."""
    constant, rest = start, []
    for term in terms:
        if type(term) is not Number:
            rest.append(term)
        elif term is not start:
            constant = combine(constant, term)
    return constant, rest


def negate(term: Term) -> Term:
    """−term."""
    return mul(MINUS_ONE, term)


def conj(body: Term) -> Term:
    """The conjugate; of a number, or of a conjugate, it is taken at once."""
    if isinstance(body, Number):
        return Number(body.real, -body.imag) if body.imag else body
    return body.body if isinstance(body, Conj) else Conj(body)


def let(bindings: Iterable[tuple[Var, Term]], body: Term) -> Term:
    """`let bindings in body`; no bindings, no let; a let in the body is joined."""
    bindings = tuple(bindings)
    if isinstance(body, Let):
        return let((*bindings, *body.bindings), body.body)
    return Let(bindings, body) if bindings else body


def lambda_(parameters: Iterable[Var], body: Term) -> Term:
    """`(parameters) ↦ body`; with no parameters, body itself."""
    parameters = tuple(parameters)
    return Lambda(parameters, body) if parameters else body


def is_linear(function: Term) -> bool:
    """Whether a term is a named map that is declared linear."""
    return isinstance(function, Var) and isinstance(function.type, Function) and function.type.linear
