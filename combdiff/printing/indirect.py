"""Reads at integers that arrays hold, as they are written: Σ_k δ(k, idx[i] + j) x[k]² is x[idx[i] + j]².

    (x, idx) ↦ Σ_{i,k} δ(k, idx[i]) x[k]²        becomes        (x, idx) ↦ Σ_i x[idx[i]]²

Invariant: the term that is written has the value of the term given, an integer standing for an index that it equals.
"""

from __future__ import annotations

from collections.abc import Iterable

from combdiff.ir import (
    Apply,
    Coordinate,
    Delta,
    Space,
    Sum,
    Term,
    Var,
    as_integer,
    factors_of,
    mul,
    substitute,
    subterms,
    total,
    type_of,
)


def read_directly(term: Term) -> Term:
    """The term with integers in place of the summed indices that are equal to them."""
    if not any(isinstance(node, Delta) and node.lookup for node in subterms(term)):
        return term
    written: dict[Term, Term] = {}
    for node in subterms(term):  # children first
        children = tuple(written[child] for child in node.children)
        new = node.with_children(children) if children != node.children else node
        written[node] = _without_lookups(new) if isinstance(new, Sum) else _spread(new)
    return written[term]


def _spread(term: Term) -> Term:
    """An index expression as an integer term by term, `idx[i] + 2 j - 1`, to be written like other sums."""
    if not isinstance(term, Coordinate) or term.dtype is not int:
        return term
    return as_integer(term.form)


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
    return bool(uses) and all(
        isinstance(node, Apply) and isinstance(type_of(node.function), Space) and isinstance(node.function, Var)
        for node in uses
    )
