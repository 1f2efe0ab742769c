"""Simplification of a whole program: binding by binding, light values put where they are used.

    let t̄ = (i ↦ Σ_j δ(i, j)·2·t[j]) in d ↦ Σ_i t̄[i]·A[i, d]
    → d ↦ 2 Σ_i t[i]·A[i, d]

Each binding of a let program is simplified by the e-graph on its own, so the work is linear in the bindings. A value
that turns out light (no Σ and no function in it) or that still holds a δ is put into its uses before they are
simplified; what is used once goes there too, and equal bindings become one (see `sharing`).

Invariant: the result equals the input in value.
"""

from __future__ import annotations

from combdiff.checking import dtype_of
from combdiff.egraph.extraction import symbols
from combdiff.egraph.saturation import equivalent, simplify
from combdiff.sharing import put_back, share, split
from combdiff.terms import Delta, Lambda, Primitive, Sum, Term, Tuple, Var, conj, let, subterms

MOST_LIGHT = 24  # symbols up to which a value without Σ and functions is repeated rather than bound


def simplify_body(body: Term, rules: tuple[str, ...] = ()) -> Term:
    """The simplified normal form of a program's body (scalar, tensor or tuple, perhaps under a let)."""
    bindings, result = split(share(body))
    replacement: dict[Var, Term] = {}
    kept: list[tuple[Var, Term]] = []
    for var, value in bindings:
        simple = _simplify_tensor(put_back(value, replacement), rules)
        if _is_light(simple):
            replacement[var] = simple
        else:
            kept.append((var, simple))
    return share(let(kept, _simplify_result(put_back(result, replacement), rules)))


def _simplify_result(term: Term, rules: tuple[str, ...]) -> Term:
    if isinstance(term, Tuple):
        return Tuple(tuple(_simplify_result(item, rules) for item in term.items))
    return _simplify_tensor(term, rules)


def _simplify_tensor(term: Term, rules: tuple[str, ...]) -> Term:
    if isinstance(term, Lambda):
        return Lambda(term.parameters, simplify(term.body, rules))
    return simplify(term, rules) if not isinstance(term, Var) else term


def _is_light(term: Term) -> bool:
    """Whether a value needs no array of its own, or holds a δ that its uses may take up."""
    parts = list(subterms(term))
    if any(isinstance(part, Delta) for part in parts):
        return True
    return symbols(term) <= MOST_LIGHT and not any(isinstance(part, Sum | Primitive) for part in parts)


def inline_all(body: Term) -> Term:
    """The result of a let program with every binding put where it is used."""
    bindings, result = split(body)
    replacement: dict[Var, Term] = {}
    for var, value in bindings:
        replacement[var] = put_back(value, replacement)
    return put_back(result, replacement)


def is_real(body: Term, rules: tuple[str, ...] = ()) -> bool:
    """Whether a scalar let program is real: by its type, or because the e-graph finds its conjugate to be itself."""
    if dtype_of(body) is not complex:
        return True
    value = inline_all(body)
    return equivalent(value, conj(value), rules)
