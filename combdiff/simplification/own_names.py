"""The user's names for what a derivative binds and the program did not: c for t in (t[k] − y[k])², where c = tanh(W e).

A program binds what it reads more than once; its derivative reads more. What is bound there anew is looked for among
the heavy values that the traced function had names for, both written in the definitions that the derivative has.

Invariant: only names change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from itertools import islice

from combdiff.ir import (
    Lambda,
    Names,
    Space,
    Term,
    Var,
    axes_of,
    base_name,
    bind_heavy,
    canonical_names,
    is_made,
    lambda_,
    let,
    matrices_in,
    put_back,
    settled_parts,
    split,
    substitute,
    subterms,
    type_of,
)
from combdiff.simplification.normal_form.canonical import canonical
from combdiff.simplification.normal_form.contraction import normalise

MOST_PARTS = 100  # of a value that is compared
MOST_VALUES = 50  # that are compared

Traced = tuple[Term, Mapping[Term, str]]
"""What a function computed, operation by operation, and the user's names for its values."""


def with_own_names(body: Term, traced: Traced | None) -> Term:
    """The body of a derivative, its definitions called what the user calls them in what was traced."""
    bindings, result = split(body)
    anew = [(var, value) for var, value in bindings if is_made(base_name(var))]
    kept = [var for var, _ in bindings if not is_made(base_name(var))]
    taken = set(map(base_name, kept))
    if traced is None or not anew or taken.issuperset(traced[1].values()):
        return body
    forms = _forms(traced, _by_names(kept), taken)
    values = _written_out(anew) if forms else {}
    names = Names(body)
    own: dict[Var, Term] = {}
    for var, value in islice(values.items(), MOST_VALUES):
        if (form := _form(value)) is not None and (name := forms.pop(form, None)) is not None:
            own[var] = names.fresh(Var(name, var.type))
    if not own:
        return body
    return let(((own.get(var, var), substitute(value, own)) for var, value in bindings), substitute(result, own))  # type: ignore[misc]


def _by_names(variables: Iterable[Var]) -> dict[str, Var]:
    """The definitions whose name no other one has."""
    found = list(variables)
    counts = Counter(map(base_name, found))
    return {base_name(var): var for var in found if counts[base_name(var)] == 1}


def _forms(traced: Traced, kept: Mapping[str, Var], taken: Container[str]) -> dict[Term, str]:
    """The names of the heavy values that are not bound, by the values' forms in terms of what is bound."""
    written, named = traced
    parts = settled_parts(written)
    own = {parts[value]: name for value, name in named.items() if value in parts}
    bindings = split(bind_heavy(parts[written], own))[0]
    theirs = _by_names(var for var, _ in bindings)
    same: dict[Var, Term] = {var: kept[name] for name, var in theirs.items() if _is_kept(var, kept.get(name))}
    values = _written_out([(var, substitute(value, same)) for var, value in bindings if var not in same])
    given = set(own.values())
    asked = (
        (name, values[var]) for name, var in theirs.items() if name in given and name not in taken and var in values
    )
    forms = ((_form(value), name) for name, value in islice(asked, MOST_VALUES))
    return {form: name for form, name in forms if form is not None}


def _is_kept(var: Var, other: Var | None) -> bool:
    """Whether a definition of the derivative has the shape of one of that name: `c` at a step is not its stack."""
    return other is not None and axes_of(var) == axes_of(other)


def _written_out(bindings: Iterable[tuple[Var, Term]]) -> dict[Var, Term]:
    """Definitions without each other's names in them, as far as they are short: trees of their parts grow fast.

    Matrix functions are of names.
    """
    definitions = list(bindings)
    found: dict[Var, Term] = {}
    long = set[Var]().union(*(matrices_in(value) for _, value in definitions))
    for var, value in definitions:
        whole = put_back(value, found) if value.free.isdisjoint(long) and _is_short(value) else None
        if whole is not None and _is_short(whole):
            found[var] = whole
        else:
            long.add(var)
    return found


def _is_short(value: Term) -> bool:
    """Whether a value has few parts, written out; no more of them are looked at."""
    lengths: dict[Term, int] = {}
    for part in islice(subterms(value), MOST_PARTS + 1):
        lengths[part] = 1 + sum(lengths[child] for child in part.children)
    return lengths.get(value, MOST_PARTS + 1) <= MOST_PARTS


def _form(value: Term) -> Term | None:
    """A number or tensor without the names of its indices, in normal form; None for other values."""
    if not isinstance(type_of(value), Space):
        return None
    parameters, inner = (value.parameters, value.body) if isinstance(value, Lambda) else ((), value)
    return canonical_names(lambda_(parameters, canonical(normalise(inner, Names(value)))))
