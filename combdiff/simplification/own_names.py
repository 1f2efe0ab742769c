"""The user's names for what a derivative binds and the program did not: c for t in (t[k] − y[k])², where c = tanh(W e).

A program binds what it reads more than once; its derivative reads more. What is bound there anew is looked for among
the values that the traced function had names for.

Invariant: only names change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice

from combdiff.ir import (
    Lambda,
    Names,
    Space,
    Term,
    Var,
    base_name,
    canonical_names,
    inline_all,
    lambda_,
    let,
    put_back,
    share,
    split,
    substitute,
    subterms,
    type_of,
)
from combdiff.simplification.normal_form.canonical import canonical
from combdiff.simplification.normal_form.contraction import normalise

MOST_PARTS = 200  # of a value that is compared, its definitions written out


def with_own_names(body: Term, named: Mapping[Term, str]) -> Term:
    """The body of a derivative, its definitions called what the user calls them; `named` are values by their names."""
    bindings, result = split(body)
    taken = {base_name(var) for var, _ in bindings}
    asked = [value for value, name in named.items() if name not in taken and _is_short(value)]
    if not asked or not any(_is_anew(var) for var, _ in bindings):
        return body
    forms = {_form(inline_all(share(value))): named[value] for value in asked}
    forms.pop(None, None)
    names = Names(body)
    own: dict[Var, Term] = {}
    for var, value in _written_out(bindings).items():
        if _is_anew(var) and (name := forms.get(_form(value))):
            own[var] = names.fresh(Var(name, var.type))
    renamed = [(own.get(var, var), substitute(value, own)) for var, value in bindings]
    return let(renamed, substitute(result, own)) if own else body  # type: ignore[arg-type]


def _is_anew(var: Var) -> bool:
    """Whether a definition has a name that nobody gave: t, t2, …"""
    name = base_name(var)
    return name[:1] == "t" and (name == "t" or name[1:].isdigit())


def _is_short(value: Term) -> bool:
    return sum(1 for _ in islice(subterms(value), MOST_PARTS + 1)) <= MOST_PARTS


def _written_out(bindings: Sequence[tuple[Var, Term]]) -> dict[Var, Term]:
    """The definitions without names in them, as far as they are short."""
    found: dict[Var, Term] = {}
    long: set[Var] = set()
    for var, value in bindings:
        whole = put_back(value, found) if value.free.isdisjoint(long) else None
        if whole is not None and _is_short(whole):
            found[var] = whole
        else:
            long.add(var)
    return found


def _form(value: Term) -> Term | None:
    """A number or tensor without the names of its indices, in normal form; None for other values."""
    if not isinstance(type_of(value), Space):
        return None
    parameters, inner = (value.parameters, value.body) if isinstance(value, Lambda) else ((), value)
    return canonical_names(lambda_(parameters, canonical(normalise(inner, Names(value)))))
