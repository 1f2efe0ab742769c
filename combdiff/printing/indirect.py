"""Reads at integers that arrays hold, as they are written: Σ_k δ(k, idx[i] + j) x[k]² is x[idx[i] + j]².

    (x, idx) ↦ Σ_{i,k} δ(k, idx[i]) x[k]²        becomes        (x, idx) ↦ Σ_i x[idx[i]]²

Invariant: the term that is written has the value of the term given, an integer standing for an index that it equals.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from combdiff.ir import (
    Coordinate,
    Delta,
    Indicator,
    Sum,
    Term,
    Var,
    as_integer,
    denominator,
    factors_of,
    mul,
    subterms,
    total,
    without_shadows,
)
from combdiff.printing.digits import read_at, without_digits


def read_directly(term: Term) -> Term:
    """The term with integers in place of the summed indices that are equal to them."""
    guards = [node for node in subterms(term) if isinstance(node, Delta | Indicator)]
    if not guards:
        return term
    term = without_shadows(term)
    looked_up = any(isinstance(node, Delta) and node.lookup for node in guards)
    written: dict[Term, Term] = {}
    for node in subterms(term):  # children first
        children = tuple(written[child] for child in node.children)
        new = node.with_children(children) if children != node.children else node
        if isinstance(new, Sum):
            new = without_digits(_without_lookups(new))
        written[node] = _spread(new) if looked_up else new
    return written[term]


def _spread(term: Term) -> Term:
    """An index expression as an integer term by term, `idx[i] + 2 j - 1`, to be written like other sums."""
    if not isinstance(term, Coordinate) or term.dtype is not int:
        return term
    return as_integer(term.form)


def _looked_up(given: Mapping[Var, Term], form: Term) -> Term:
    return as_integer(form, given) if denominator(form) == 1 else form


def _without_lookups(term: Sum) -> Term:
    factors = list(factors_of(term.body))
    for condition in [f for f in factors if isinstance(f, Delta) and f.lookup]:
        assert isinstance(condition, Delta)
        assert condition.lookup
        index, value = condition.lookup
        rest = [f for f in factors if f is not condition]
        if not isinstance(index, Var) or index not in term.indices or index in value.free:
            continue  # an index may equal what an array holds at that very index
        read = mul(*(read_at(factor, (index,), partial(_looked_up, {index: value})) for factor in rest))
        if index.type == condition.domain and index in mul(*rest).free and index not in read.free:
            body = total((other for other in term.indices if other is not index), read)
            return _without_lookups(body) if isinstance(body, Sum) else body
    return term
