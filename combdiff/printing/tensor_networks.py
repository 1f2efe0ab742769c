"""Formulas as tensor networks: each term of a sum a number, nodes with legs, and wires between them.

    4 Σ_{q,i} C[q,i] J[d,q] δ(e, i)   →   TermNetwork("4", (C with legs q i, J with legs d q), e = i a wire)

A node is a factor: a tensor with a leg for each of its axes, or anything else with a leg for each index that it
mentions. An index is a wire; one that is summed over ends at nodes alone, one of the result has an open end. A δ joins
two wires to one. Two axes that may be exchanged are marked alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, fields, is_dataclass, replace
from itertools import count
from typing import Any

from combdiff.ir import Space
from combdiff.printing.documents import (
    Arrow,
    BigFold,
    BigSum,
    Division,
    Doc,
    FunctionCall,
    Juxtaposition,
    Kronecker,
    Literal,
    Marked,
    Name,
    Ranging,
    ResultRow,
    Sheet,
    Signed,
    Subscripted,
    Superscript,
)
from combdiff.printing.plain import SHOWN_AS, shown
from combdiff.records import dataclass

Spaces = Mapping[str, Space]


@dataclass(frozen=True)
class Leg:
    """An end of a wire at a node: the wires it joins (several for i + k), its index as written, its orbit of axes."""

    wires: tuple[int, ...]
    label: str
    orbit: int | None = None
    sign: int = 1


@dataclass(frozen=True)
class TensorNode:
    """A factor; `is_tensor` where its legs are the axes of a tensor."""

    label: str
    legs: tuple[Leg, ...]
    is_tensor: bool


@dataclass(frozen=True)
class TermNetwork:
    """A term: the number and sign in front, its factors, the names of its wires, and which of them are open."""

    coefficient: str
    nodes: tuple[TensorNode, ...]
    names: Mapping[int, str]
    open: tuple[int, ...]


@dataclass(frozen=True)
class Equation:
    """A definition or result: what stands on its left, and its terms."""

    left: str
    terms: tuple[TermNetwork, ...]


def equations(sheet: Sheet, spaces: Spaces) -> Iterator[Equation]:
    """Every definition of a sheet, and every result."""
    for left, right in sheet.definitions:
        indices = left.arguments if isinstance(left, Subscripted) else ()
        yield _equation(shown(left), indices, right, spaces)
    yield from _results(sheet.result, (), spaces)


def _results(doc: Doc, indices: tuple[Doc, ...], spaces: Spaces) -> Iterator[Equation]:
    """The results in a row, each with its own indices and those around the row."""
    match doc:
        case Arrow(parameters, body):
            yield from _results(body, (*indices, *parameters), spaces)
        case ResultRow(items):
            for item in items:
                yield from _results(item, indices, spaces)
        case _:
            yield _equation(f"({', '.join(map(shown, indices))}) ↦" if indices else "", indices, doc, spaces)


def _equation(left: str, indices: Iterable[Doc], body: Doc, spaces: Spaces) -> Equation:
    terms = body.terms if isinstance(body, Signed) else ((False, body),)
    names = [_name(index) for index in indices]
    return Equation(left, tuple(_NetworkReader(spaces).network(negative, term, names) for negative, term in terms))


def _name(index: Doc) -> str:
    return shown(index.name if isinstance(index, Ranging) else index)


@dataclass
class _NetworkReader:
    """Collects the factors of one term."""

    spaces: Spaces
    numbers: Iterator[int] = field(default_factory=count)
    names: dict[int, str] = field(default_factory=dict)
    nodes: list[TensorNode] = field(default_factory=list)
    same: dict[int, int] = field(default_factory=dict)
    coefficient: list[str] = field(default_factory=list)

    def network(self, negative: bool, term: Doc, names: list[str]) -> TermNetwork:
        """The term, whose open wires have the given names."""
        scope = {name: self._wire(name) for name in names}
        open_ = tuple(scope.values())
        part, term = _part(term)
        self._factor(term, scope)
        joined = {wire: self._root(wire) for wire in self.names}
        labels: dict[int, list[str]] = {}
        for wire, root in joined.items():
            labels.setdefault(root, []).append(self.names[wire])
        nodes = tuple(replace(n, legs=tuple(_joined(leg, joined) for leg in n.legs)) for n in self.nodes)
        number = " ".join([*(["−"] if negative else []), *part, *self.coefficient])
        shared = {root: " = ".join(dict.fromkeys(each)) for root, each in labels.items()}
        return TermNetwork(number, nodes, shared, tuple(joined[wire] for wire in open_))

    def _wire(self, name: str) -> int:
        wire = next(self.numbers)
        self.names[wire] = name
        return wire

    def _root(self, wire: int) -> int:
        while wire in self.same:
            wire = self.same[wire]
        return wire

    def _factor(self, doc: Doc, scope: dict[str, int]) -> None:
        """Add what a factor is made of."""
        match doc:
            case Juxtaposition(factors):
                for factor in factors:
                    self._factor(factor, scope)
            case BigSum(indices, (), body) if not any(b.lower or b.upper or b.apart for b in indices):
                self._factor(body, {**scope, **{name: self._wire(name) for name in (_name(b.name) for b in indices)}})
            case Literal():
                self.coefficient.append(shown(doc))
            case Division(numerator, denominator):
                self._factor(numerator, scope)
                self._other(shown(Division(Literal(1), denominator)), denominator, scope)
            case Kronecker(Name(one), Name(two)) if one in scope and two in scope:
                one_, two_ = self._root(scope[one]), self._root(scope[two])
                if one_ != two_:
                    self.same[two_] = one_
            case _:
                self._tensor(doc, scope)

    def _tensor(self, doc: Doc, scope: dict[str, int]) -> None:
        """A tensor, its conjugate or power, as a node with its axes; others by the indices they mention."""
        inner, mark = doc, ""
        if isinstance(doc, Superscript) and isinstance(doc.exponent, Literal):
            inner, mark = doc.base, shown(Superscript(Name(""), doc.exponent))
        if isinstance(inner, Marked):
            mark, inner = inner.sign + mark, inner.body
        if isinstance(inner, Subscripted) and isinstance(inner.map, Name) and not inner.round:
            name = inner.map.name
            orbits = _orbits(self.spaces.get(name), len(inner.arguments))
            legs = tuple(
                Leg(self._wires(argument, scope), shown(argument), *orbit)
                for argument, orbit in zip(inner.arguments, orbits, strict=True)
            )
            bare = all(len(leg.wires) == 1 and leg.label == self.names[leg.wires[0]] for leg in legs)
            self.nodes.append(TensorNode(name + mark if bare else shown(doc), legs, True))
        else:
            self._other(shown(doc), doc, scope)

    def _other(self, label: str, doc: Doc, scope: dict[str, int]) -> None:
        wires = self._wires(doc, scope)
        self.nodes.append(TensorNode(label, tuple(Leg((wire,), self.names[wire]) for wire in wires), False))

    def _wires(self, doc: Doc, scope: dict[str, int]) -> tuple[int, ...]:
        """The wires of the indices that a document mentions, each once."""
        return tuple(dict.fromkeys(scope[name] for name in _mentioned(doc) if name in scope))


def _part(term: Doc) -> tuple[list[str], Doc]:
    """The words before a term of which only the real or imaginary part counts, and that term: 2 Re(Σ_i …)."""
    *before, last = term.factors if isinstance(term, Juxtaposition) else (term,)
    match last:
        case FunctionCall("real" | "imag" as name, (body,)) if all(isinstance(each, Literal) for each in before):
            if not isinstance(body, Signed):
                return [*map(shown, before), SHOWN_AS[name]], body
    return [], term


def _joined(leg: Leg, joined: Mapping[int, int]) -> Leg:
    """A leg of the wires that its own have become one with."""
    return replace(leg, wires=tuple(dict.fromkeys(joined[wire] for wire in leg.wires)))


def _mentioned(value: Any, hidden: frozenset[str] = frozenset()) -> Iterator[str]:
    """The names in a document but for those that it binds itself."""
    if isinstance(value, Name):
        if value.name not in hidden:
            yield value.name
    elif isinstance(value, tuple):
        for each in value:
            yield from _mentioned(each, hidden)
    elif is_dataclass(value):
        bound: frozenset[str] = frozenset()
        if isinstance(value, BigSum | BigFold):
            variables = value.variables if isinstance(value, BigSum) else ()
            bound = frozenset({*(_name(b.name) for b in value.indices), *(v.name for v in variables)})
        elif isinstance(value, Arrow):
            bound = frozenset(map(_name, value.parameters))
        for each in fields(value):
            yield from _mentioned(getattr(value, each.name), hidden | bound)


def _orbits(space: Space | None, order: int) -> list[tuple[int | None, int]]:
    """For each axis the orbit of axes that it is exchanged with, if any, and −1 where exchanging changes the sign."""
    if space is None or space.order != order:
        return [(None, 1)] * order
    least = {axis: min(action.axes[axis] for action in space.group) for axis in range(order)}
    firsts = list(least.values())
    numbered = {first: n for n, first in enumerate(sorted({f for f in firsts if firsts.count(f) > 1}))}
    sign = min((action.sign for action in space.group if not action.conjugate), default=1)
    return [(numbered.get(least[axis]), sign) for axis in range(order)]
