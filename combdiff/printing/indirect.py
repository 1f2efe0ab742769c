"""Reads at integers that arrays hold, as they are written: Σ_k δ(k, idx[i] + j) x[k]² is x[idx[i] + j]².

    (x, idx) ↦ Σ_{i,k} δ(k, idx[i]) x[k]²        becomes        (x, idx) ↦ Σ_i x[idx[i]]²
    Σ_{r<3} [(i - r) mod 3 = 0] x[(i - r)/3, r]  becomes        x[⌊i/3⌋, i mod 3]

Invariant: the term that is written has the value of the term given, an integer standing for an index that it equals.
"""

from __future__ import annotations

from collections.abc import Iterable

from combdiff.ir import (
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
    is_index,
    mul,
    substitute,
    subterms,
    tidy,
    total,
    type_of,
)


def read_directly(term: Term) -> Term:
    """The term with integers in place of the summed indices that are equal to them."""
    if not any((isinstance(n, Delta) and n.lookup) or (isinstance(n, Indicator) and n.modulus) for n in subterms(term)):
        return term
    written: dict[Term, Term] = {}
    for node in subterms(term):  # children first
        children = tuple(written[child] for child in node.children)
        new = node.with_children(children) if children != node.children else node
        written[node] = _without_rests(_without_lookups(new)) if isinstance(new, Sum) else _spread(new)
    return written[term]


def _spread(term: Term) -> Term:
    """An index expression as an integer term by term, `idx[i] + 2 j - 1`, to be written like other sums."""
    if not isinstance(term, Coordinate) or term.dtype is not int:
        return term
    return as_integer(term.form)


def _without_rests(term: Term) -> Term:
    """A Σ without the index that is what is left of another that is divided, where elements alone are read at it."""
    if not isinstance(term, Sum):
        return term
    factors = factors_of(term.body)
    for condition in factors:
        if not isinstance(condition, Indicator) or not condition.modulus:
            continue
        for rest, sign in affine_parts(condition.form)[0]:
            if rest in term.indices and rest.type == Range(condition.modulus) and abs(sign) == 1:
                divided = affine([(condition.form, -sign), (rest, 1)])
                left = [_divided(f, rest, divided, condition.modulus) for f in factors if f is not condition]
                if rest not in mul(*left).free:
                    return _without_rests(total([i for i in term.indices if i is not rest], mul(*left)))
    return term


def _divided(factor: Term, rest: Var, divided: Term, divisor: int) -> Term:
    """A factor whose elements are read at ⌊form/n⌋ and form mod n for (form − r)/n and r."""

    def read_at(place: Term) -> Term:
        share = dict(affine_parts(place)[0]).get(rest) if is_index(place) else None
        if share is None:
            return place
        if isinstance(share, int):
            name, step, base = "remainder", share, 0
        else:
            name, step, base = "floor_divide", tidy(-share * divisor), share
        form = affine([(place, 1), (rest, -share), (divided, base)])
        if not isinstance(step, int) or denominator(form) > 1:
            return place
        return add(as_integer(form), mul(Number(step), function(name, as_integer(divided), Number(divisor))))

    reads = [n for n in subterms(factor) if rest in n.free and isinstance(n, Apply) and _is_held(n)]
    return exchanged(factor, {read: Apply(read.function, tuple(map(read_at, read.arguments))) for read in reads})


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
