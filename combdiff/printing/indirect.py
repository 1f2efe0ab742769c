"""Reads at integers that arrays hold, as they are written: Σ_k δ(k, idx[i] + j) x[k]² is x[idx[i] + j]².

    (x, idx) ↦ Σ_{i,k} δ(k, idx[i]) x[k]²        becomes        (x, idx) ↦ Σ_i x[idx[i]]²
    Σ_{r<3} [(i - r) mod 3 = 0] x[(i - r)/3, r]  becomes        x[⌊i/3⌋, i mod 3]

Invariant: the term that is written has the value of the term given, an integer standing for an index that it equals.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import permutations

from combdiff.ir import (
    ZERO,
    Apply,
    Coordinate,
    Delta,
    Indicator,
    Number,
    Range,
    Space,
    Sum,
    Term,
    Var,
    add,
    affine,
    affine_parts,
    as_integer,
    denominator,
    exchanged,
    factors_of,
    function,
    indicator,
    is_index,
    mul,
    number_left,
    size_form,
    substitute,
    subterms,
    tidy,
    total,
    type_of,
)
from combdiff.polyhedra import implied, linear, premises_of


def read_directly(term: Term) -> Term:
    """The term with integers in place of the summed indices that are equal to them."""
    guards = [node for node in subterms(term) if isinstance(node, Delta | Indicator)]
    if not guards:
        return term
    looked_up = any(isinstance(node, Delta) and node.lookup for node in guards)
    written: dict[Term, Term] = {}
    for node in subterms(term):  # children first
        children = tuple(written[child] for child in node.children)
        new = node.with_children(children) if children != node.children else node
        if isinstance(new, Sum):
            new = _without_rests(_without_lookups(new))
        written[node] = _spread(new) if looked_up else new
    return written[term]


def _spread(term: Term) -> Term:
    """An index expression as an integer term by term, `idx[i] + 2 j - 1`, to be written like other sums."""
    if not isinstance(term, Coordinate) or term.dtype is not int:
        return term
    return as_integer(term.form)


def _without_rests(term: Term) -> Term:
    """A Σ without indices that are another one divided or what is left of it, where elements alone are read at them."""
    if not isinstance(term, Sum):
        return term
    factors = factors_of(term.body)
    for met, rest, divided, divisor, tile in _divisions(term.indices, factors):
        split = {tile: affine([(divided, Fraction(1, divisor)), (rest, Fraction(-1, divisor))])} if tile else {}
        given = (substitute(factor, split) for factor in factors if factor not in met)
        left = mul(*(_divided(factor, rest, divided, divisor) for factor in given))
        if rest not in left.free:
            return _without_rests(total([i for i in term.indices if i not in (rest, tile)], left))
    return term


Division = tuple[tuple[Term, ...], Var, Term, int, Var | None]
"""Conditions that say that an index is what is left of an expression divided by a number, with that of the quotient."""


def _divisions(indices: Sequence[Var], factors: Sequence[Term]) -> Iterator[Division]:
    """[(i - r) mod 3 = 0]; δ(i, 3j + r); [0 ≤ i - 3j ≤ 2], whose rest has no name."""
    for condition in factors:
        match condition:
            case Indicator(form, modulus) if modulus:
                for rest, sign in affine_parts(form)[0]:
                    if rest in indices and rest.type == Range(modulus) and abs(sign) == 1:
                        yield (condition,), rest, affine([(form, -sign), (rest, 1)]), modulus, None
            case Indicator(form) if denominator(form) == 1:
                for tile, step in affine_parts(form)[0]:
                    divided, width = affine([(form, 1), (tile, -step)]), -int(step)
                    upper = indicator(affine([(form, -1)], width - 1))
                    if width > 1 and upper in factors and tile in indices and _fills(divided, tile, width):
                        yield (condition, upper), Var("r", Range(width)), divided, width, tile
            case Delta(left, right, Range()) if is_index(left) and is_index(right):
                form = affine([(left, 1), (right, -1)])
                for (tile, step), (rest, sign) in permutations(affine_parts(form)[0], 2):
                    divided, width = affine([(form, -sign), (tile, sign * step), (rest, 1)]), int(sign * step)
                    known = {tile, rest} <= {*indices} and abs(sign) == 1 and width > 1 and rest.type == Range(width)
                    if known and _fills(divided, tile, width):
                        yield (condition,), rest, divided, width, tile


def _fills(divided: Term, tile: Var, width: int) -> bool:
    """Whether what is divided is among what so many tiles make up."""
    if not isinstance(tile.type, Range) or tile in divided.free:
        return False
    premises = premises_of(divided.free)
    beyond = affine([(size_form(tile.type.size), width), (divided, -1)], -1)
    return all(implied(linear(side), premises) for side in (divided, beyond))


def _divided(factor: Term, rest: Var, divided: Term, divisor: int) -> Term:
    """A factor whose elements are read at ⌊form/n⌋ and form mod n for (form − r)/n and r."""

    def read_at(place: Term) -> Term:
        share = dict(affine_parts(place)[0]).get(rest) if is_index(place) else None
        if share is None:
            return place
        others = affine([(place, 1), (rest, -share)])
        if isinstance(share, int):
            return add(as_integer(others), mul(Number(share), number_left(divided, divisor)))
        whole, step = affine([(others, -1 / share)]), tidy(-share * divisor)
        turns = affine([(whole, Fraction(1, divisor)), (divided, Fraction(-1, divisor))])
        if not isinstance(step, int) or denominator(turns) > 1 or denominator(whole) > 1:
            return place
        inner = _less_than(divisor, whole)
        outer = affine([(whole, Fraction(1, divisor)), (inner, Fraction(-1, divisor))])
        below = [inner, affine([(inner, -1)], divisor - 1)]
        is_zero = all(implied(linear(side), premises_of(inner.free)) for side in below)
        quotient = ZERO if is_zero else function("floor_divide", as_integer(inner), Number(divisor))
        return mul(Number(step), add(as_integer(outer), quotient))

    reads = [n for n in subterms(factor) if rest in n.free and isinstance(n, Apply) and _is_held(n)]
    return exchanged(factor, {read: Apply(read.function, tuple(map(read_at, read.arguments))) for read in reads})


def _less_than(divisor: int, form: Term) -> Term:
    """An index expression without multiples of a number."""
    parts, offset = affine_parts(form)
    return affine([(v, int(math.fmod(c, divisor))) for v, c in parts], int(math.fmod(offset, divisor)))


def _is_held(read: Apply) -> bool:
    """Whether what is read is an array, not a function of the real line or a map."""
    return isinstance(read.function, Var) and isinstance(type_of(read.function), Space)


def _without_lookups(term: Sum) -> Term:
    factors = list(factors_of(term.body))
    for condition in [f for f in factors if isinstance(f, Delta) and f.lookup]:
        assert isinstance(condition, Delta)
        assert condition.lookup
        index, value = condition.lookup
        rest = [f for f in factors if f is not condition]
        if not isinstance(index, Var) or index not in term.indices or index in value.free:
            continue  # an index may equal what an array holds at that very index
        if index.type == condition.domain and _stands(index, rest):
            left = tuple(other for other in term.indices if other is not index)
            body = total(left, mul(*(substitute(f, {index: value}) for f in rest)))
            return _without_lookups(body) if isinstance(body, Sum) else body
    return term


def _stands(index: Var, factors: Iterable[Term]) -> bool:
    """Whether an index occurs, and only where an integer may be written: as the index of an element."""
    uses = [node for factor in factors for node in subterms(factor) if index in node.children]
    return bool(uses) and all(isinstance(node, Apply) and _is_held(node) for node in uses)
