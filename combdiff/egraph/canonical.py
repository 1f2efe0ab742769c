"""Canonical names of bound indices under tensor symmetries.

Two terms in contraction normal form are equal up to the names of their summed indices, the order of factors and
terms, and the symmetries of their tensors, exactly when `canonical` makes them one object:

    Σ_{a,b} A[a, b] x[b] y[a]   and   Σ_{p,q} y[p] x[q] A[q, p]   with A[i, j] = A[j, i]
    → Σ_{@0,@1} A[@0, @1] x[@0] y[@1]     (both)

Each network is named by colour refinement: an index is coloured by how it occurs, an access counting as the least of
all its symmetric forms, until colours settle; ties are broken by trying each member, and automorphisms found on the
way prune the search, so that interchangeable indices cost a square and not a factorial. An automorphism with sign −1
shows that the term equals its own negative: it is zero.

Invariant: the value of the term is unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, product
from typing import Any

from combdiff.checking import type_of
from combdiff.domains import Cyclic, Space, Symmetric
from combdiff.indexing import Affine, Delta, Indicator, affine, affine_parts, delta, indicator
from combdiff.substitution import substitute, subterms
from combdiff.terms import ONE, ZERO, Add, Apply, Conj, Mul, Number, Sum, Term, Var, add, conj, mul, negate, total

MOST_MOVES = 128  # changes of summation indices that are tried for one Σ

Key = Any  # nested tuples of strings, numbers and keys, comparable among themselves
Colours = Mapping[Var, Key]


def canonical(term: Term, forms: dict[Key, int] | None = None) -> Term:
    """The canonical form of a scalar term in contraction normal form.

    `forms` numbers the outermost sums met so far, so that equal sums get equal and different sums different names of
    bound indices; pass one dict for terms that are to be compared.
    """
    return _Naming({} if forms is None else forms).run(term, {}, 0)[1]


@dataclass(frozen=True)
class _Leaf:
    """One complete naming of a network: its key, the sign and the term it gives, and the order of the indices."""

    key: Key
    sign: int
    term: Term
    order: tuple[Var, ...]


class _Naming:
    def __init__(self, forms: dict[Key, int]) -> None:
        self.forms = forms

    # --- keys and canonical terms ----------------------------------------------------------------------------------

    def run(self, term: Term, colours: Colours, depth: int) -> tuple[Key, Term]:
        """The key of a term under the colours of the indices around it, and the canonical term."""
        match term:
            case Number():
                return ("n", repr(term.real), repr(term.imag)), term
            case Apply() | Conj() if _is_access(term):
                return self._access(term, colours)
            case Sum():
                return self._sum(term, colours, depth)
            case Mul():
                return self._product(term, colours, depth)
            case Add():
                parts = sorted((self.run(t, colours, depth) for t in term.terms), key=_first)
                return ("+", *(key for key, _ in parts)), add(*(part for _, part in parts))
            case Delta():
                return self._delta(term, colours)
            case Indicator():
                key, form = _index(term.form, colours)
                return ("w", term.modulus, key), indicator(form, term.modulus)
            case Var() | Affine():
                return _index(term, colours)
        parts = [self.run(child, colours, depth) for child in term.children]
        name = getattr(term, "name", "")
        key = ("f", type(term).__name__, name, *(key for key, _ in parts))
        return key, term.with_children(tuple(part for _, part in parts))

    def _delta(self, term: Delta, colours: Colours) -> tuple[Key, Term]:
        sides = sorted((self.run(side, colours, 0) for side in term.children), key=_first)
        return ("d", repr(term.domain), sides[0][0], sides[1][0]), delta(sides[0][1], sides[1][1], term.domain)

    def _access(self, term: Term, colours: Colours) -> tuple[Key, Term]:
        """The least of the forms of an access under the symmetries of its tensor; the sign is part of the term."""
        key, sign, best = min(_variants(term, colours), key=lambda variant: variant[0])
        return key, negate(best) if sign < 0 else best

    def _product(self, term: Mul, colours: Colours, depth: int) -> tuple[Key, Term]:
        parts = sorted((self.run(f, colours, depth) for f in term.factors), key=_first)
        return ("*", *(key for key, _ in parts)), mul(*(part for _, part in parts))

    # --- networks --------------------------------------------------------------------------------------------------

    def _sum(self, term: Sum, colours: Colours, depth: int) -> tuple[Key, Term]:
        leaf: _Leaf | None = None
        for moved in moves(term):
            network = _Network(self, moved, depth)
            found = network.search({**colours, **network.start()})
            if found.sign == 0 or (leaf is not None and found.key == leaf.key and found.sign != leaf.sign):
                return ("0",), ZERO
            leaf = found if leaf is None or found.key < leaf.key else leaf
        assert leaf is not None
        named = leaf.term
        if depth == 0:
            named = _numbered(named, self.forms.setdefault(leaf.key, len(self.forms)))
        return leaf.key, negate(named) if leaf.sign < 0 else named


# --- moves of summed indices ---------------------------------------------------------------------------------------


def moves(term: Sum) -> Iterator[Sum]:
    """A Σ under every change of summation index that its domains allow.

    A Symmetric index may be negated. An index on a cycle may be shifted and reflected so that any index form in which
    it stands with coefficient ±1 becomes the bare index. Changes beyond MOST_MOVES are left out.
    """
    choices = [[(index, value) for value in _values(index, term.body)] for index in term.indices]
    choices = [options for options in choices if len(options) > 1]
    for combination in islice(product(*choices), MOST_MOVES):
        replacement = {index: value for index, value in combination if value is not index}
        yield Sum(term.indices, substitute(term.body, replacement)) if replacement else term


def _values(index: Var, body: Term) -> list[Term]:
    """What may stand for a summed index, itself first."""
    match index.type:
        case Symmetric():
            return [index, affine([(index, -1)])]
        case Cyclic() if _only_on_its_cycle(index, body):
            found: list[Term] = [index, affine([(index, -1)])]
            for form in subterms(body):
                sign = dict(form.coefficients).get(index, 0) if isinstance(form, Affine) else 0
                if abs(sign) == 1:
                    rest = affine([(form, 1), (index, -sign)])
                    found += [affine([(index, turn), (rest, -sign)]) for turn in (sign, -sign)]
            return list(dict.fromkeys(found))
    return [index]


def _only_on_its_cycle(index: Var, body: Term) -> bool:
    """Whether an index occurs only where indices count modulo the size of its cycle."""
    for node in subterms(body):
        if isinstance(node, Indicator) and index in node.free:
            return False
        if isinstance(node, Delta) and index in node.free and node.domain != index.type:
            return False
        if isinstance(node, Apply) and any(index in argument.free for argument in node.arguments):
            space = type_of(node.function)
            axes = space.axes if isinstance(space, Space) else ()
            if any(index in a.free and axis != index.type for a, axis in zip(node.arguments, axes, strict=False)):
                return False
    return True


class _Network:
    """One Σ whose indices are to be named; `depth` is the number of sums around it."""

    def __init__(self, naming: _Naming, term: Sum, depth: int) -> None:
        self.naming = naming
        self.indices = term.indices
        self.factors = term.body.factors if isinstance(term.body, Mul) else (term.body,)
        self.depth = depth

    def start(self) -> Colours:
        """Indices coloured by their domains alone."""
        kinds = sorted({repr(i.type) for i in self.indices})
        return {i: ("#", self.depth, kinds.index(repr(i.type))) for i in self.indices}

    def search(self, colours: Colours) -> _Leaf:
        """The least naming of those that colour refinement leaves open; sign 0 for a network that is its negative."""
        colours = self._refine(colours)
        tie = self._first_tie(colours)
        if not tie:
            return self._leaf(colours)
        leaves: list[tuple[Var, _Leaf]] = []
        orbits = _Orbits()
        for index in tie:
            if any(orbits.same(index, other) for other, _ in leaves):
                continue
            leaf = self.search({**colours, index: (*colours[index], "!")})
            if leaf.sign == 0:
                return leaf
            for _, earlier in leaves:
                if earlier.key == leaf.key:
                    if earlier.sign != leaf.sign:
                        return _Leaf(leaf.key, 0, ZERO, leaf.order)
                    orbits.join(earlier.order, leaf.order)
            leaves.append((index, leaf))
        return min((leaf for _, leaf in leaves), key=lambda leaf: leaf.key)

    def _refine(self, colours: Colours) -> Colours:
        """Colour every index by its occurrences until no colour splits any more; colours become ranks."""
        classes = 0
        while True:
            seen = {i: (colours[i], *self._occurrences(i, colours)) for i in self.indices}
            ranks = {key: rank for rank, key in enumerate(sorted(set(seen.values())))}
            colours = {**colours, **{i: ("#", self.depth, ranks[seen[i]]) for i in self.indices}}
            if len(ranks) == classes or len(ranks) == len(self.indices):
                return colours
            classes = len(ranks)

    def _occurrences(self, index: Var, colours: Colours) -> list[Key]:
        marked = {**colours, index: (*colours[index], "*")}
        return sorted(self.naming.run(f, marked, self.depth + 1)[0] for f in self.factors if index in f.free)

    def _first_tie(self, colours: Colours) -> list[Var]:
        """The indices of the first colour that several share."""
        groups: dict[Key, list[Var]] = {}
        for index in self.indices:
            groups.setdefault(colours[index], []).append(index)
        ties = [colour for colour, members in groups.items() if len(members) > 1]
        return groups[min(ties)] if ties else []

    def _leaf(self, colours: Colours) -> _Leaf:
        parts = sorted((self.naming.run(f, colours, self.depth + 1) for f in self.factors), key=_first)
        order = tuple(sorted(self.indices, key=lambda i: colours[i]))
        body = mul(*(part for _, part in parts))
        sign = 1
        if isinstance(body, Mul) and isinstance(body.factors[0], Number):
            sign = 1 if body.factors[0] is ONE else -1
            body = mul(*body.factors[1:])
        if body is ZERO:
            sign = 0
        key = ("s", tuple(repr(i.type) for i in order), *(key for key, _ in parts))
        return _Leaf(key, sign, total(tuple(_named(i, colours[i]) for i in order), body), order)


class _Orbits:
    """The orbits of the automorphisms found so far, as a union-find forest over indices."""

    def __init__(self) -> None:
        self.parent: dict[Var, Var] = {}

    def _root(self, index: Var) -> Var:
        while index in self.parent:
            index = self.parent[index]
        return index

    def same(self, one: Var, other: Var) -> bool:
        """Whether an automorphism takes one index to the other."""
        return self._root(one) is self._root(other)

    def join(self, order: tuple[Var, ...], image: tuple[Var, ...]) -> None:
        """Record the automorphism that takes the indices of order to those of image."""
        for one, other in zip(order, image, strict=True):
            first, second = self._root(one), self._root(other)
            if first is not second:
                self.parent[first] = second


def _first(pair: tuple[Key, object]) -> Key:
    return pair[0]


def _named(var: Var, colour: Key | None) -> Var:
    """The final variable of a coloured index: @depth.rank; a variable without colour keeps its name."""
    return Var(f"@{colour[1]}.{colour[2]}", var.type) if colour is not None and colour[0] == "#" else var


def _numbered(term: Term, number: int) -> Term:
    """The bound indices @depth.rank of a whole network renamed to @number.depth.rank."""
    done: dict[Term, Term] = {}

    def rename(node: Term) -> Term:
        if node not in done:
            done[node] = visit(node)
        return done[node]

    def visit(node: Term) -> Term:
        if isinstance(node, Var):
            return Var(f"@{number}.{node.name[1:]}", node.type) if node.name.startswith("@") else node
        children = tuple(rename(child) for child in node.children)
        if isinstance(node, Sum):
            return Sum(tuple(rename(i) for i in node.indices), children[0])  # type: ignore[misc]
        return node.with_children(children)

    return rename(term)


def _is_access(term: Term) -> bool:
    """Whether a term is an element of a tensor, or the conjugate of one."""
    inner = term.body if isinstance(term, Conj) else term
    return isinstance(inner, Apply) and isinstance(inner.function, Var) and isinstance(inner.function.type, Space)


def _variants(term: Term, colours: Colours) -> Iterator[tuple[Key, int, Term]]:
    """Every form of an access under the symmetries of its tensor: key, sign, and the form with final names."""
    starred = isinstance(term, Conj)
    access = term.body if isinstance(term, Conj) else term
    assert isinstance(access, Apply)
    tensor = access.function
    assert isinstance(tensor, Var)
    assert isinstance(tensor.type, Space)
    complex_ = tensor.type.dtype is complex
    for action in tensor.type.group:
        arguments = [
            affine([(access.arguments[a], -1)]) if negated else access.arguments[a]
            for a, negated in zip(action.axes, action.negated, strict=True)
        ]
        forms = [_index(argument, colours) for argument in arguments]
        conjugated = complex_ and starred != action.conjugate
        form: Term = Apply(tensor, tuple(final for _, final in forms))
        key = ("a", tensor.name, conjugated, *(key for key, _ in forms))
        yield key, action.sign, conj(form) if conjugated else form


def _index(term: Term, colours: Colours) -> tuple[Key, Term]:
    """The key of an index form, and the form with final names."""
    if isinstance(term, Var):
        colour = colours.get(term, ("=", term.name))
        return ("v", colour), _named(term, colour)
    parts, offset = affine_parts(term)
    keys = sorted((colours.get(v, ("=", v.name)), str(c)) for v, c in parts)
    return ("x", tuple(keys), str(offset)), affine([(_named(v, colours.get(v)), c) for v, c in parts], offset)
