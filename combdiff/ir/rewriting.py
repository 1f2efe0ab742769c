"""Rewriting a term from its leaves up, what occurs in it several times once.

    class Doubled(Rewriter):
        def node(self, term):
            return mul(Number(2), term) if isinstance(term, Var) else self.inside(term)

Invariant: equal subterms are rewritten once by one Rewriter, and a term in which nothing changes is itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

from combdiff.ir.terms import Term


class Rewriter(ABC):
    """A way to rewrite terms, which remembers what it has rewritten."""

    def __init__(self) -> None:
        self._done: dict[Term, Term] = {}

    def run(self, term: Term) -> Term:
        """The term rewritten."""
        if term not in self._done:
            self._done[term] = self.node(term)
        return self._done[term]

    @abstractmethod
    def node(self, term: Term) -> Term:
        """What a term becomes; `run` is for its subterms."""

    def inside(self, term: Term) -> Term:
        """The same node over rewritten subterms."""
        children = tuple(map(self.run, term.children))
        return term if children == term.children else term.with_children(children)


class Replacing(Rewriter):
    """Puts other terms in place of some."""

    def __init__(self, replacement: Mapping[Term, Term]) -> None:
        super().__init__()
        self._done.update(replacement)

    def node(self, term: Term) -> Term:
        """The term with others in it."""
        return self.inside(term)
