"""Largest elements that a result does not depend on: what is taken out of exponents by hand, and cancels.

    p[i] = exp(x[i] − max_j x[j]),   y[i] = p[i] / Σ_j p[j]        y is the same whatever number stands for max_j x[j]
    m = max_i x[i],   y = m + log Σ_i exp(x[i] − m)

Another number m + ε in place of the largest element adds a multiple of ε to what is linear in it, multiplies
exponentials of that by a power of exp(ε), their sums and products, too, and adds to logarithms of those again. Where
neither is left of a result, no derivative goes through the largest element.

Invariant: of what is found here, the derivatives through all places where it is read have the sum 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

from combdiff.ir import (
    Add,
    Apply,
    Conj,
    Lambda,
    Let,
    Mul,
    Names,
    Number,
    Primitive,
    Scalar,
    Space,
    Sum,
    Term,
    Var,
    exchanged,
    items_of,
    split,
    substitute,
    subterms,
    type_of,
    values_of,
)
from combdiff.records import dataclass

EXTREMES = ("amax", "amin")

_Amounts = dict[tuple[Term, ...], Scalar]
"""Multiples of ε at places."""


@dataclass(frozen=True)
class _Change:
    """What ε does to a term: multiples of it are added, or multiplied as powers of exp(ε); nothing without amounts."""

    is_factor: bool
    amounts: _Amounts

    def times(self, factor: Scalar) -> _Change:
        return _Change(self.is_factor, {place: factor * amount for place, amount in self.amounts.items()})

    def plus(self, other: _Change) -> _Change:
        whole = {p: self.amounts.get(p, 0) + other.amounts.get(p, 0) for p in (*self.amounts, *other.amounts)}
        return _Change(self.is_factor, {place: amount for place, amount in whole.items() if amount})

    def at(self, replacement: Mapping[Var, Term]) -> _Change:
        moved: _Amounts = {}
        for place, amount in self.amounts.items():
            there = tuple(substitute(index, replacement) for index in place)
            moved[there] = moved.get(there, 0) + amount
        return _Change(self.is_factor, moved)


_NONE = _Change(False, {})


class _OtherwiseError(Exception):
    """A term changes in another way."""


def held(body: Term, names: Names) -> tuple[Term, dict[Var, Term]]:
    """A let program with names in place of its idle extremes, by which nothing has a derivative, and what those are."""
    names_of = {extreme: names.fresh(Var("m", _space(extreme))) for extreme in idle_extremes(body)}
    return exchanged(body, names_of) if names_of else body, {var: extreme for extreme, var in names_of.items()}


def _space(extreme: Term) -> Space:
    space = type_of(extreme)
    assert isinstance(space, Space)
    return space


def idle_extremes(body: Term) -> tuple[Term, ...]:
    """The largest and smallest elements in a let program that its results do not depend on."""
    bindings, result = split(body)
    nodes = dict.fromkeys(node for value in values_of(body) for node in subterms(value))
    known = {*body.free, *(var for var, _ in bindings)}  # what a step of a scan names is held in the body of the step
    extremes = (node for node in nodes if isinstance(node, Primitive) and node.name in EXTREMES and node.free <= known)
    return tuple(extreme for extreme in extremes if _is_idle(extreme, bindings, result))


def _is_idle(extreme: Term, bindings: Iterable[tuple[Var, Term]], result: Term) -> bool:
    changes = _Changes(extreme)
    try:
        for var, value in bindings:
            changes.bind(var, value)
        return not any(changes.of_tensor(item).amounts for item in items_of(result))
    except _OtherwiseError:
        return False


class _Changes:
    """How terms change with what stands for one extreme."""

    def __init__(self, extreme: Term) -> None:
        self.extreme = extreme
        self.reading = set(extreme.free)  # what a term that changes has among its variables
        self.bound: dict[Var, tuple[tuple[Var, ...], _Change]] = {}
        self.known: dict[Term, _Change] = {}

    def bind(self, var: Var, value: Term) -> None:
        """Takes in a binding."""
        change = self.of_tensor(value)
        if change.amounts:
            self.bound[var] = (value.parameters if isinstance(value, Lambda) else (), change)
            self.reading.add(var)

    def of_tensor(self, value: Term) -> _Change:
        """How an element of a tensor, or a number, changes."""
        return self.of(value.body if isinstance(value, Lambda) else value)

    def of(self, term: Term) -> _Change:
        """How a number changes. Raises _OtherwiseError for other changes than these."""
        if self.reading.isdisjoint(term.free):
            return _NONE
        if term not in self.known:
            self.known[term] = self._found(term)
        return self.known[term]

    def _found(self, term: Term) -> _Change:
        function, arguments = (term.function, term.arguments) if isinstance(term, Apply) else (term, ())
        if function is self.extreme:
            return _Change(False, {arguments: 1})
        if function in self.bound:
            parameters, change = self.bound[function]
            if len(parameters) != len(arguments):
                raise _OtherwiseError
            return change.at(dict(zip(parameters, arguments, strict=True)))
        if isinstance(term, Let | Lambda):
            return self._unchanged(term)
        children = [self.of(child) for child in term.children]
        return self._of_parts(term, children) if any(child.amounts for child in children) else _NONE

    def _unchanged(self, term: Term) -> _Change:
        if any(node is self.extreme or node in self.bound for node in subterms(term)):
            raise _OtherwiseError
        return _NONE

    def _of_parts(self, term: Term, parts: list[_Change]) -> _Change:
        changed = [part for part in parts if part.amounts]
        factors = all(part.is_factor for part in changed)
        match term:
            case Conj():
                return parts[0]
            case Sum() if factors and not any(_has(parts[0], index) for index in term.indices):
                return parts[0]
            case Mul() if factors:
                return _total(changed)
            case Mul(factors=(Number(imag=0) as number, _)) if not parts[1].is_factor:
                return parts[1].times(number.real)
            case Add() if not any(part.is_factor for part in changed):
                return _total(changed)
            case Add() if len(changed) == len(parts) and all(part == parts[0] for part in parts):
                return parts[0]
            case Primitive(name="exp") if not factors:
                return _Change(True, parts[0].amounts)
            case Primitive(name="log") if factors:
                return _Change(False, parts[0].amounts)
            case Primitive(name="power", arguments=(_, Number(imag=0) as exponent)) if factors:
                return parts[0].times(exponent.real)
            case Primitive(name="sqrt") if factors:
                return parts[0].times(Fraction(1, 2))
            case Primitive(name="abs" | "real" | "imag") if factors:
                return parts[0]
        raise _OtherwiseError


def _total(parts: list[_Change]) -> _Change:
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.plus(part)
    return whole if whole.amounts else _NONE


def _has(change: _Change, index: Var) -> bool:
    return any(index in term.free for place in change.amounts for term in place)
