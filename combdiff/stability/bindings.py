"""The bindings of a program rewritten in order, some of them from new ones that are bound before.

    x ↦ let t = f(x) in g(t)   →   x ↦ let u = …, t = f'(u), v = … in g'(t, v)

Invariant: what is bound is abstracted over the indices it mentions, and equal values are bound once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

from combdiff.ir import (
    Apply,
    Cyclic,
    Lambda,
    Names,
    Number,
    Space,
    Term,
    Tuple,
    Var,
    canonical_names,
    dtype_of,
    element,
    free_indices,
    lambda_,
    let,
    share,
    split,
    substitute,
    used,
)


class Rewriting(ABC):
    """Rewrites the bindings of one program in order; `kept` are those made so far."""

    def __init__(self, program: Lambda) -> None:
        bindings, self.result = split(program.body)
        self.program = program
        self.scope: Mapping[Var, Term] = dict(bindings)
        self.names = Names(program)
        self.kept: dict[Var, Term] = {}
        self._bound: dict[Term, Var] = {}

    @abstractmethod
    def value(self, term: Term) -> Term:
        """A number or tensor, rewritten."""

    def rewritten(self) -> Lambda:
        """The program, of which only bindings that something needs are left."""
        for var, value in self.scope.items():
            self.kept[var] = self.value(value)
        items = self.result.items if isinstance(self.result, Tuple) else (self.result,)
        found = tuple(map(self.value, items))
        whole = Tuple(found) if isinstance(self.result, Tuple) else found[0]
        return Lambda(self.program.parameters, share(let(used(list(self.kept.items()), whole), whole)))

    def read(self, term: Term) -> tuple[Mapping[Var, Term], Term] | None:
        """Of an element of a binding: its indices, by the names they have there, and what the element is."""
        var = term.function if isinstance(term, Apply) else term
        if not isinstance(var, Var) or var not in self.scope:
            return None
        value, arguments = self.scope[var], term.arguments if isinstance(term, Apply) else ()
        if not arguments:
            return None if isinstance(value, Lambda | Tuple) else ({}, value)
        if not isinstance(value, Lambda) or len(value.parameters) != len(arguments):
            return None
        pairs = dict(zip(value.parameters, arguments, strict=True))
        turned = any(isinstance(p.type, Cyclic) and getattr(a, "type", None) != p.type for p, a in pairs.items())
        return None if turned else (pairs, value.body)  # on a cycle what is read is reduced first

    def opened(self, term: Term) -> Term:
        """What an element of a binding is; another term itself."""
        while isinstance(term, Var | Apply) and (found := self.read(term)):
            term = substitute(found[1], found[0])
        return term

    def named(self, term: Term, like: Var, computed: Term | None = None) -> Term:
        """A term that takes some computing as an element of a binding; equal ones are one.

        `computed` is what the binding is, if not the term itself but an equal one.
        """
        if isinstance(term, Number | Var) or (isinstance(term, Apply) and isinstance(term.function, Var)):
            return term
        indices = free_indices(term)
        value = lambda_(indices, term)
        key = canonical_names(value)
        if key not in self._bound:
            axes = [index.type for index in indices]
            new = self.names.fresh(Var(like.name, Space(*axes, dtype=dtype_of(term))))  # type: ignore[arg-type]
            self._bound[key] = new
            self.kept[new] = value if computed is None else lambda_(indices, computed)
        var = self._bound[key]
        return element(var, indices)
