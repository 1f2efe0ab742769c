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

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

from combdiff.ir import (
    ONE,
    ZERO,
    Action,
    Add,
    Affine,
    Apply,
    Conj,
    Coordinate,
    Delta,
    Indicator,
    Mul,
    Names,
    Number,
    Primitive,
    Space,
    Sum,
    Term,
    Unequal,
    Var,
    add,
    affine,
    affine_parts,
    conj,
    delta,
    factors_of,
    indicator,
    is_matrix_function,
    mul,
    negate,
    parity,
    substitute,
    subterms,
    total,
    type_of,
    unequal,
)
from combdiff.records import dataclass
from combdiff.simplification.normal_form.reindexings import moves

Key = Any  # nested tuples of strings, numbers and keys, comparable among themselves
Colours = Mapping[Var, Key]
BOUND = "~"  # sorts behind the "=" of free indices, which so come first where a symmetry leaves the choice: J[d, p, …]


def canonical(term: Term, forms: dict[Key, int] | None = None) -> Term:
    """The canonical form of a scalar term in contraction normal form.

    `forms` numbers the outermost sums met so far, so that equal sums get equal and different sums different names of
    bound indices; pass one dict for terms that are to be compared. Free indices may be named like those, @…, as they
    are in a part of a canonical form.
    """
    like_bound = sorted((var for var in term.free if var.name.startswith("@")), key=lambda var: var.name)
    if like_bound:
        names = Names(term)
        away: dict[Var, Term] = {var: names.fresh(Var("i", var.type)) for var in like_bound}
        back: dict[Var, Term] = {new: var for var, new in away.items() if isinstance(new, Var)}
        return substitute(canonical(substitute(term, away), forms), back)
    return _Naming({} if forms is None else forms).run(term, {}, 0).signed


def form_key(term: Term) -> Key:
    """A key that puts canonical forms in order, whatever the names of their bound indices."""
    return _Naming({}).run(term, {}, 0).key


def canonical_order(term: Sum) -> tuple[Var, ...]:
    """The summed indices of a network, ordered by the tensors that they read and not by names or sizes."""
    return _NamedNetwork(_Naming({}), term, 0).search(dict.fromkeys(term.indices, (BOUND, 0, 0)), {}).order


class _SignedForm(NamedTuple):
    """A term as sign · canonical term, where the key stands for the canonical term alone; sign 0 means zero."""

    key: Key
    sign: int
    term: Term

    @property
    def signed(self) -> Term:
        """The canonical term with its sign."""
        return self.term if self.sign > 0 else negate(self.term) if self.sign < 0 else ZERO

    @property
    def signed_key(self) -> Key:
        """A key for the term with its sign, where a sign cannot be taken out in front."""
        return (self.sign, self.key) if self.sign else (0,)


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
        self.done: dict[tuple[object, ...], _SignedForm] = {}

    # --- keys and canonical terms ----------------------------------------------------------------------------------

    def run(self, term: Term, colours: Colours, depth: int) -> _SignedForm:
        """The canonical form of a term under the colours of the indices around it."""
        inside = frozenset((v, colours[v]) for v in term.free if v in colours)
        known = (term, inside, depth)
        if known not in self.done:
            self.done[known] = self._node(term, colours, depth)
        return self.done[known]

    def _node(self, term: Term, colours: Colours, depth: int) -> _SignedForm:
        match term:
            case Number():
                return _number(term)
            case Apply() | Conj() if _is_access(term):
                return _access(term, colours)
            case Sum():
                return self._sum(term, colours, depth)
            case Mul():
                return self._product(term, colours, depth)
            case Add():
                return self._addition(term, colours, depth)
            case Delta():
                sides = sorted((self.run(side, colours, depth) for side in term.children), key=_key)
                key = ("d", repr(term.domain), *(side.signed_key for side in sides))
                return _SignedForm(key, 1, delta(sides[0].signed, sides[1].signed, term.domain))
            case Indicator():
                form = indicator(_index_form(term.form, colours), term.modulus)
                return _SignedForm(("w", term.modulus, _index_key(term.form, colours)), 1, form)
            case Unequal():
                key = min(_index_key(form, colours) for form in (term.form, affine([(term.form, -1)])))
                return _SignedForm(
                    ("u", repr(term.domain), key), 1, unequal(_index_form(term.form, colours), term.domain)
                )
            case Var() | Affine():
                return _SignedForm(_index_key(term, colours), 1, _index_form(term, colours))
        return self._function(term, colours, depth)

    def _function(self, term: Term, colours: Colours, depth: int) -> _SignedForm:
        """A function of parts; the sign of the argument of an even or odd one is left out or comes out in front."""
        parts = [self.run(child, colours, depth) for child in term.children]
        sign, symmetry = 1, parity(term)
        if parts[0].sign < 0 and symmetry:
            parts[0], sign = parts[0]._replace(sign=1), symmetry
        if symmetry == 1 and isinstance(number := term.children[0], Coordinate):
            parts[0] = self._either_way(number, colours, depth)
        key = ("f", term.label, *(part.signed_key for part in parts))
        return _SignedForm(key, sign, term.with_children(tuple(part.signed for part in parts)))

    def _either_way(self, number: Coordinate, colours: Colours, depth: int) -> _SignedForm:
        """A number that is squared, or of which the absolute value is taken: |i − d| is |d − i|."""
        opposite = number.with_children((affine([(number.form, -1)]),))
        return min((self.run(each, colours, depth) for each in (number, opposite)), key=_key)

    def of_factors(self, factors: Sequence[Term], colours: Colours, depth: int) -> list[_SignedForm]:
        """The canonical forms of the factors of a product, in their order: (i − d)² is (d − i)²."""

        def form(factor: Term) -> _SignedForm:
            if isinstance(factor, Coordinate) and factors.count(factor) % 2 == 0:
                return self._either_way(factor, colours, depth)
            return self.run(factor, colours, depth)

        return sorted(map(form, factors), key=_key)

    def _product(self, term: Mul, colours: Colours, depth: int) -> _SignedForm:
        parts = self.of_factors(term.factors, colours, depth)
        sign = prod(part.sign for part in parts)
        one = _number(ONE).key  # what is left of −1; a δ between indices of one colour has a key of its own
        parts = [part for part in parts if part.key != one]
        key = ("*", *(part.key for part in parts)) if len(parts) > 1 else parts[0].key
        return _SignedForm(key, sign, mul(*(part.term for part in parts)))

    def _addition(self, term: Add, colours: Colours, depth: int) -> _SignedForm:
        """A sum; of it and its negative the one that reads better is canonical. What equals its negative is 0."""
        parts = [part for part in (self.run(t, colours, depth) for t in term.terms) if part.sign]
        forms = {sign: sorted((part.key, sign * part.sign) for part in parts) for sign in (1, -1)}
        if forms[1] == forms[-1]:
            return _SignedForm(("+", *forms[1]), 0, ZERO)
        sign = min((1, -1), key=lambda sign: _subtracted(forms[sign]))
        ordered = sorted(parts, key=lambda part: (part.key[0] != "a", part.key, sign * part.sign))
        terms = (part.term if sign * part.sign > 0 else negate(part.term) for part in ordered)
        return _SignedForm(("+", *forms[sign]), sign, add(*terms))

    # --- networks --------------------------------------------------------------------------------------------------

    def _sum(self, term: Sum, colours: Colours, depth: int) -> _SignedForm:
        leaves: dict[Key, _Leaf] = {}
        for network in self._promising(term, colours, depth):
            found = network.search({**colours, **network.start()}, {})
            if found.sign == 0 or leaves.setdefault(found.key, found).sign != found.sign:
                return _SignedForm(found.key, 0, ZERO)
        leaf = min(leaves.values(), key=lambda leaf: (_subtractions(leaf.term), leaf.key))
        outermost = depth == 0
        named = _numbered(leaf.term, self.forms.setdefault(leaf.key, len(self.forms))) if outermost else leaf.term
        return _SignedForm(leaf.key, leaf.sign, named)

    def _promising(self, term: Sum, colours: Colours, depth: int) -> list[_NamedNetwork]:
        """The networks of the changed sums that read best as far as can be told before their indices are named."""
        networks = [_NamedNetwork(self, moved, depth) for moved in moves(term)]
        if len(networks) == 1:
            return networks
        outlooks = [network.outlook({**colours, **network.start()}) for network in networks]
        best = min(outlooks)
        return [network for network, outlook in zip(networks, outlooks, strict=True) if outlook == best]


def _subtracted(signed: list[tuple[Key, int]]) -> tuple[Any, ...]:
    """How many terms are subtracted, and which: accesses rather than products and sums, A x − b, and these than 1."""
    ranks = {"n": 0, "a": 2}
    first = sorted((ranks.get(key[0], 1), key, -sign) for key, sign in signed)
    return sum(sign < 0 for _, sign in signed), [sign for *_, sign in first]


def _number(term: Number) -> _SignedForm:
    """A number without the sign of its real part, or of its imaginary part where it has no other."""
    sign = -1 if term.real < 0 or (not term.real and term.imag < 0) else 1
    plain = term if sign > 0 else negate(term)
    assert isinstance(plain, Number)
    return _SignedForm(("n", repr(plain.real), repr(plain.imag)), sign, plain)


def _access(term: Term, colours: Colours) -> _SignedForm:
    """The least form of an access under the symmetries of its tensor; 0 where that form comes with both signs."""
    starred = isinstance(term, Conj)
    access = term.body if isinstance(term, Conj) else term
    assert isinstance(access, Apply)
    tensor, space = access.function, type_of(access.function)
    assert isinstance(space, Space)
    complex_, name = space.dtype is complex, _tensor_name(tensor)
    plain = [_index_key(argument, colours) for argument in access.arguments]
    if len(_group(space)) == 1:  # as of most tensors
        shifted = sum(key[0] == "x" for key in plain)
        form = Apply(tensor, tuple([_index_form(argument, colours) for argument in access.arguments]))
        starred = complex_ and starred
        return _SignedForm(("a", name, shifted, starred, *plain), 1, conj(form) if starred else form)
    minus = [_index_key(affine([(a, -1)]), colours) for a in access.arguments] if _mirrors(space) else plain
    variants = []
    for action in _group(space):
        keys = [(minus if negated else plain)[a] for a, negated in zip(action.axes, action.negated, strict=True)]
        shifted = sum(key[0] == "x" for key in keys)  # a conjugate reads better than a negated index
        variants.append((("a", name, shifted, complex_ and starred != action.conjugate, *keys), action))
    key, best = min(variants, key=lambda variant: variant[0])
    both = any(k == key and action.sign != best.sign for k, action in variants)
    form = Apply(tensor, tuple(_index_form(argument, colours) for argument in _moved(access, best)))
    return _SignedForm(key, 0 if both else best.sign, conj(form) if key[3] else form)


def _group(space: Space) -> tuple[Action, ...]:
    """The symmetries under which an access has a least form."""
    return space.group


@lru_cache(maxsize=1024)
def _mirrors(space: Space) -> bool:
    """Whether a symmetry of the space negates an index."""
    return any(any(action.negated) for action in space.group)


def _moved(access: Apply, action: Action) -> Iterator[Term]:
    """The arguments of an access after a symmetry."""
    for axis, negated in zip(action.axes, action.negated, strict=True):
        argument = access.arguments[axis]
        yield affine([(argument, -1)]) if negated else argument


class _NamedNetwork:
    """One Σ whose indices are to be named; `depth` is the number of sums around it."""

    def __init__(self, naming: _Naming, term: Sum, depth: int) -> None:
        self.naming = naming
        self.indices = term.indices
        self.factors = factors_of(term.body)
        self.depth = depth

    def start(self) -> Colours:
        """Indices coloured by their domains alone."""
        kinds = sorted({repr(i.type) for i in self.indices})
        return {i: (BOUND, self.depth, kinds.index(repr(i.type))) for i in self.indices}

    def outlook(self, colours: Colours) -> tuple[Any, ...]:
        """How many indices are subtracted, and the keys, of the factors without sums, under the first colours."""
        plain = [factor for factor in self.factors if not any(isinstance(node, Sum) for node in subterms(factor))]
        parts = self.naming.of_factors(plain, colours, self.depth + 1)
        return (*_subtractions(mul(*(part.term for part in parts))), [part.key for part in parts])

    def search(self, colours: Colours, leaves: dict[Key, _Leaf]) -> _Leaf:
        """The least naming of those that colour refinement leaves open; sign 0 for a network that is its negative.

        `leaves` collects the namings met. A member of a tie whose first naming is one already met is the image of
        another under an automorphism, and need not be searched.
        """
        colours = self._refine(colours)
        tie = self._first_tie(colours)
        if not tie:
            leaf = self._leaf(colours)
            return self._met(leaf, leaves)
        mine: dict[Key, _Leaf] = {}
        best: _Leaf | None = None
        orbits = _IndexOrbits()
        for index in tie:
            if best is not None and any(orbits.same(index, other) for other in tie[: tie.index(index)]):
                continue
            singled = {**colours, index: (*colours[index], "!")}
            first = self._first(singled)
            if first.key in mine:
                orbits.join(mine[first.key].order, first.order)
                leaf = self._met(first, mine)
            else:
                leaf = self.search(singled, mine)
            if leaf.sign == 0:
                return leaf
            best = leaf if best is None or leaf.key < best.key else best
        assert best is not None
        for leaf in mine.values():
            if self._met(leaf, leaves).sign == 0:
                return _Leaf(leaf.key, 0, ZERO, leaf.order)
        return best

    def _met(self, leaf: _Leaf, leaves: dict[Key, _Leaf]) -> _Leaf:
        """The leaf, recorded; with sign 0 if the same naming was met with the other sign."""
        earlier = leaves.setdefault(leaf.key, leaf)
        return leaf if earlier.sign == leaf.sign else _Leaf(leaf.key, 0, ZERO, leaf.order)

    def _first(self, colours: Colours) -> _Leaf:
        """The naming that always singles out the first member of a tie."""
        colours = self._refine(colours)
        while tie := self._first_tie(colours):
            colours = self._refine({**colours, tie[0]: (*colours[tie[0]], "!")})
        return self._leaf(colours)

    def _refine(self, colours: Colours) -> Colours:
        """Colour every index by its occurrences until no colour splits any more; colours become ranks."""
        classes = 0
        while True:
            seen = {i: (colours[i], *self._occurrences(i, colours)) for i in self.indices}
            ranks = {key: rank for rank, key in enumerate(sorted(set(seen.values())))}
            colours = {**colours, **{i: (BOUND, self.depth, ranks[seen[i]]) for i in self.indices}}
            if len(ranks) == classes or len(ranks) == len(self.indices):
                return colours
            classes = len(ranks)

    def _occurrences(self, index: Var, colours: Colours) -> list[Key]:
        marked = {**colours, index: (*colours[index], "*")}
        reading = [factor for factor in self.factors if index in factor.free]
        return [part.key for part in self.naming.of_factors(reading, marked, self.depth + 1)]

    def _first_tie(self, colours: Colours) -> list[Var]:
        """The indices of the first colour that several share."""
        groups: dict[Key, list[Var]] = {}
        for index in self.indices:
            groups.setdefault(colours[index], []).append(index)
        ties = [colour for colour, members in groups.items() if len(members) > 1]
        return groups[min(ties)] if ties else []

    def _leaf(self, colours: Colours) -> _Leaf:
        parts = self.naming.of_factors(self.factors, colours, self.depth + 1)
        order = tuple(sorted(self.indices, key=lambda i: colours[i]))
        key = ("s", tuple(repr(i.type) for i in order), *(part.key for part in parts))
        body = mul(*(part.term for part in parts))
        return _Leaf(key, prod(p.sign for p in parts), total(tuple(_named(i, colours[i]) for i in order), body), order)


def _subtractions(term: Term) -> tuple[int, int]:
    """How many bound indices are subtracted: in accesses to a free index, which a reader sees first, and in all."""
    counts = [0, 0]
    for node in subterms(term):
        if isinstance(node, Apply):
            forms = [a for a in node.arguments if isinstance(a, Affine)]
            less = sum(c < 0 for form in forms for v, c in affine_parts(form)[0] if v.name.startswith("@"))
            free = any(not v.name.startswith("@") for a in node.arguments for v in a.free)
            counts[0] += less * free
            counts[1] += less
    return counts[0], counts[1]


class _IndexOrbits:
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


def _key(form: _SignedForm) -> Key:
    return form.key


def _named(var: Var, colour: Key | None) -> Var:
    """The final variable of a coloured index: @depth.rank; a variable without colour keeps its name."""
    return Var(f"@{colour[1]}.{colour[2]}", var.type) if colour is not None and colour[0] == BOUND else var


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
        return node if children == node.children else node.with_children(children)

    return rename(term)


def _is_access(term: Term) -> bool:
    """Whether a term is an element of a tensor, or the conjugate of one."""
    inner = term.body if isinstance(term, Conj) else term
    if not isinstance(inner, Apply) or not (isinstance(inner.function, Var) or is_matrix_function(inner.function)):
        return False
    return isinstance(type_of(inner.function), Space)


def _tensor_name(tensor: Term) -> str:
    """A name for a variable, or for a matrix function of one."""
    if isinstance(tensor, Primitive):
        return f"{tensor.name}({_tensor_name(tensor.arguments[0])})"
    assert isinstance(tensor, Var)
    return tensor.name


def _index_key(term: Term, colours: Colours) -> Key:
    """The key of an index form."""
    if isinstance(term, Var):
        return ("v", colours.get(term, ("=", term.name)))
    parts, offset = affine_parts(term)
    return ("x", tuple(sorted((colours.get(v, ("=", v.name)), str(c)) for v, c in parts)), str(offset))


def _index_form(term: Term, colours: Colours) -> Term:
    """An index form with final names."""
    if isinstance(term, Var):
        return _named(term, colours.get(term))
    parts, offset = affine_parts(term)
    return affine([(_named(v, colours.get(v)), c) for v, c in parts], offset)
