"""Names of bound variables for people: the letters the user chose, each free where it is bound.

    Σ_{@0.0.0,@0.0.1} A[@0.0.0, @0.0.1]   →   Σ_{i,j} A[i, j]        if the user indexed that domain by i and j

Canonical forms and pullbacks name what they bind for machines (`@3.0.1`, `i.7`). `readable` renames every bound index:
one with a base name keeps it where it is free, one without takes a letter that the program used for the same domain,
or else one from i, j, k, …

Invariant: only names change; no bound name is one that is visible around its binder.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from combdiff.ir.domains import Whole
from combdiff.ir.let_form import split
from combdiff.ir.substitution import active_in, subterms
from combdiff.ir.terms import Lambda, Let, Term, Var, let
from combdiff.ir.types import is_domain

LETTERS = "ijklmnpqrstuvwabcdefgh"


def letters_of(term: Term) -> dict[object, list[str]]:
    """For each domain the base names of the indices bound over it in a term, in order of appearance."""
    found: dict[object, list[str]] = {}
    for node in subterms(term):
        for var in node.bound:
            base = var.name.split(".")[0]
            if is_domain(var.type) and base.isidentifier() and base not in found.setdefault(var.type, []):
                found[var.type].append(base)
    return found


def readable(program: Lambda, letters: Mapping[object, list[str]]) -> Lambda:
    """A program in let normal form with everything it binds renamed; parameters keep their names."""
    sizes = {v.name for node in subterms(program.body) for v in node.free if isinstance(v.type, Whole)}
    visible = {p.name for p in program.parameters} | sizes
    bindings, result = split(program.body)
    scope: dict[Var, Var] = {}
    given: dict[str, str] = {}  # for the names that bindings had, the names they have now
    last: dict[str, int] = {}
    for var, _ in bindings:
        base = var.name.split(".")[0]
        scope[var] = Var(_numbered(_stem(base, given), visible, last), var.type)
        visible.add(scope[var].name)
        given.setdefault(base, scope[var].name)
    renaming = _PlainNaming(letters)
    around = frozenset(visible)
    values = [(scope[var], renaming.run(value, scope, around)) for var, value in bindings]
    return Lambda(program.parameters, let(values, renaming.run(result, scope, around)))


def _stem(base: str, given: Mapping[str, str]) -> str:
    """What a binding's name begins with: t for those numbered before, and the cotangent of t3 goes with t3."""
    if base.endswith("_bar"):
        return f"{given.get(base[:-4], base[:-4])}_bar"
    return "t" if is_made(base) else base


def is_made(name: str) -> bool:
    """Whether a definition's name is one that nobody gave: t, t2, …"""
    return name == "t" or (name[:1] == "t" and name[1:].isdigit())


def _numbered(base: str, taken: set[str], last: dict[str, int]) -> str:
    """base, or base2, base3, …, whichever is not taken; `last` has the number of each base that was given out last."""
    name, number = base, last.get(base, 1)
    while name in taken:
        number += 1
        name = f"{base}{number}"
    last[base] = number
    return name


class _PlainNaming:
    def __init__(self, letters: Mapping[object, list[str]]) -> None:
        self.letters = letters
        self.done: dict[tuple[Term, frozenset[tuple[Var, Var]], frozenset[str]], Term] = {}

    def run(self, term: Term, scope: Mapping[Var, Var], visible: frozenset[str]) -> Term:
        """The term with the renaming of scope applied; `visible` are the names in use around it."""
        if isinstance(term, Var):
            return scope.get(term, term)
        inner = active_in(term, scope)
        key = (term, frozenset(inner.items()), visible)
        if key not in self.done:
            self.done[key] = self._node(term, inner, visible)
        return self.done[key]

    def _node(self, term: Term, scope: Mapping[Var, Var], visible: frozenset[str]) -> Term:
        if not term.bound:
            return term.with_children(tuple(self.run(child, scope, visible) for child in term.children))
        if isinstance(term, Let):
            return self._let(term, dict(scope), visible)
        renamed = dict(zip(term.bound, self._chosen(term.bound, visible), strict=True))
        inside = visible | {v.name for v in renamed.values()}
        body = self.run(term.children[0], {**scope, **renamed}, inside)
        return term.over(tuple(renamed.values()), body)

    def _let(self, term: Let, scope: dict[Var, Var], visible: frozenset[str]) -> Term:
        """A let inside: each name is visible to what follows."""
        bindings = []
        for var, value in term.bindings:
            value = self.run(value, scope, visible)
            (scope[var],) = self._chosen((var,), visible)
            visible |= {scope[var].name}
            bindings.append((scope[var], value))
        return let(bindings, self.run(term.body, scope, visible))

    def _chosen(self, bound: Iterable[Var], visible: frozenset[str]) -> Iterator[Var]:
        taken: set[str] = set()
        for var in bound:
            name = next(name for name in self._candidates(var) if name not in visible and name not in taken)
            taken.add(name)
            yield Var(name, var.type)

    def _candidates(self, var: Var) -> Iterator[str]:
        base = var.name.split(".")[0]
        if base.isidentifier():
            yield base
        if not is_domain(var.type):
            yield from (f"{base if base.isidentifier() else 't'}{n}" for n in range(2, 10_000))
        yield from self.letters.get(var.type, ())
        yield from LETTERS
        yield from (f"{base if base.isidentifier() else 'i'}{n}" for n in range(1, 10_000))
