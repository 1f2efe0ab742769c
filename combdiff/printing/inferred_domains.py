"""Which indices need their range written: those that no tensor tells.

    x ↦ d ↦ 2 x[d]            d runs over the axis of x
    x ↦ d<n ↦ 1               nothing else says how many elements there are
    (d<n, e) ↦ δ(d, e)        e runs over the range of d
    Σ_{k<2} x[k]              k runs over less than the axis of x

Invariant: a reader who knows the Spaces of the parameters knows the domain of every index from what is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields

from combdiff.ir import (
    Affine,
    Apply,
    Cyclic,
    Delta,
    Domain,
    Lambda,
    Range,
    Real,
    Space,
    Sum,
    Symmetric,
    Term,
    Type,
    Unequal,
    Var,
    Whole,
    subterms,
    type_of,
)
from combdiff.printing.documents import Doc, Literal, Name, Ranging
from combdiff.printing.folds import FoldSign
from combdiff.records import dataclass

SIGNS: Mapping[type, str] = {Range: "<", Cyclic: "mod", Symmetric: "≤", Real: "∈"}

Axis = tuple[Var, int]  # of a definition, by its number
Bound = tuple[Term, Sequence[tuple[Axis, Var]]]  # the value of a definition, and the index of each axis


@dataclass(frozen=True)
class Uses:
    """How indices are used in a term: told by an axis of their domain, read at another, equal to others by a δ.

    `given` are those that an axis tells that is no definition's, `axes` the definitions' axes that indices read.
    """

    told: frozenset[Var] = frozenset()
    other: frozenset[Var] = frozenset()
    pairs: frozenset[tuple[Var, Var]] = frozenset()
    given: frozenset[Var] = frozenset()
    axes: frozenset[tuple[Var, Axis]] = frozenset()

    def outside(self, bound: frozenset[Var]) -> Uses:
        """The uses around a binder: an index that is equal to one that is told inside is told."""
        inside = bound & self.told - self.other
        equal = frozenset(v for pair in self.pairs for v in pair if not inside.isdisjoint(pair))
        pairs = frozenset(pair for pair in self.pairs if bound.isdisjoint(pair))
        axes = frozenset((v, axis) for v, axis in self.axes if v not in bound)
        return Uses((self.told | equal) - bound, self.other - bound, pairs, self.given - bound, axes)

    def joined(self, more: Iterable[Uses]) -> Uses:
        """These and more."""
        parts = [self, *more]
        return Uses(*(frozenset().union(*(getattr(u, f.name) for u in parts)) for f in fields(Uses)))


class InferredDomains:
    """Which indices are told by what is below their binder, those of definitions also by how these are read."""

    def __init__(self, nodes: Iterable[Term], definitions: Iterable[Var]) -> None:
        self._definitions = frozenset(definitions)
        self._uses: dict[Term, Uses] = {}
        self._read: set[Axis] = set()  # axes of definitions that are read at an index told by something else
        for node in nodes:  # children first
            self.uses(node)
            if isinstance(node, Lambda | Sum | FoldSign):
                uses = self.uses(node.children[0])
                told = uses.given.intersection(node.bound) - uses.other
                self._read |= {axis for var, axis in uses.axes if var in told}

    def uses(self, term: Term) -> Uses:
        """The uses of indices in a term."""
        if term not in self._uses:
            inner = [self.uses(child) for child in term.children]
            uses = self._own(term).joined(inner) if inner else self._own(term)
            self._uses[term] = uses.outside(frozenset(term.bound)) if term.bound else uses
        return self._uses[term]

    def _own(self, term: Term) -> Uses:
        match term:
            case Apply(function) if not isinstance(function, Lambda) and isinstance(space := type_of(function), Space):
                places = enumerate(zip(term.arguments, space.axes, strict=True))
                read = [(v, n, axis) for n, (a, axis) in places for v in _plain(a, axis)]
                told = frozenset(v for v, _, axis in read if v.type == axis)
                other = frozenset(v for v, _, axis in read if v.type != axis)
                if isinstance(function, Var) and function in self._definitions:
                    return Uses(told, other, axes=frozenset((v, (function, n)) for v, n, _ in read))
                by_definitions = not self._definitions.isdisjoint(function.free)  # inv(t) has the axes of t
                return Uses(told, other) if by_definitions else Uses(told, other, given=told)
            case Delta(Var() as one, Var() as two) if one.type == two.type:
                return Uses(pairs=frozenset({(one, two)}))
            case FoldSign(indices=(one,), apart=Var() as two) if one.type == two.type:
                return Uses(pairs=frozenset({(one, two)}))
        return Uses()

    def only_equal(self, term: Sum) -> frozenset[Var]:
        """The summed indices on cycles that nothing tells beside δ's, and inequalities around the cycle."""
        own = frozenset(v for v in term.indices if isinstance(v.type, Cyclic)) - self.uses(term.body).told
        nodes = (node for node in subterms(term.body) if isinstance(node, Delta | Unequal)) if own else ()
        return own.intersection(v for node in nodes if isinstance(node.domain, Cyclic) for v in node.free)

    def untold(self, states: Sequence[Bound], others: Sequence[Bound]) -> frozenset[Axis]:
        """The axes of states that neither their boundary values nor their steps tell, nor how they are read.

        Of the other definitions those count that read such an axis; the ranges of the rest are written.
        """
        reading = [(body, [(axis, v) for axis, v in axes if v in self.uses(body).told]) for body, axes in others]
        untold = {axis for _, axes in (*states, *reading) for axis, _ in axes} - self._read
        while True:
            told = set()
            for body, axes in (*states, *reading):
                uses = self.uses(body)
                known = uses.given | {v for v, axis in uses.axes if axis not in untold}
                told |= {axis for axis, v in axes if v in known}
            if untold.isdisjoint(told):
                return frozenset(untold)
            untold -= told

    def unknown(
        self, variables: Sequence[Var], body: Term, visible: Iterable[Var] = (), definition: Var | None = None
    ) -> list[Var]:
        """Those of the variables, bound together over a body, whose domain a reader could not tell."""
        uses = self.uses(body)
        known, found = {*visible, *(uses.told - uses.other)}, []
        for n, var in enumerate(variables):
            if not isinstance(var.type, Range | Cyclic | Symmetric | Real):
                continue
            partners = {w for pair in uses.pairs if var in pair for w in pair} - {var}
            told = var in uses.told or (definition, n) in self._read or not partners.isdisjoint(known)
            if var in uses.other or not told:
                found.append(var)
            known.add(var)
        return found


def _plain(index: Term, axis: Domain) -> Iterable[Var]:
    """The indices that an axis tells: one by itself, on the real line all of an expression."""
    if isinstance(index, Var):
        yield index
    elif isinstance(axis, Real) and isinstance(index, Affine):
        yield from (v for v, _ in index.coefficients)


def size_of(domain: Type) -> int | str | None:
    """The size in what is written of a domain."""
    return domain.bound if isinstance(domain, Symmetric) else getattr(domain, "size", None)


def ranging(name: Name, domain: Domain | Whole, shown: Mapping[Var, str]) -> Ranging:
    """An index with its domain."""
    size = size_of(domain)
    doc: Doc = Name("ℝ") if size is None else Literal(size) if isinstance(size, int) else Name(size)
    if isinstance(size, str):
        doc = Name(shown.get(Var(size, Whole()), size))
    return Ranging(name, SIGNS[type(domain)], doc)
