"""Iterations without results that nothing reads, and without the states that only these depend on.

    x = Scan((t, x) ↦ (g(x), Σ_i x[i]), (a,), "last", 0)    =    Scan((t, x) ↦ (g(x),), (a,), "last", 0)

The gradient of a loss that adds up what the steps give does not read what they give.

Invariant: what is left has its value, and the steps their order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from combdiff.ir import (
    Lambda,
    Rewriter,
    Scan,
    Term,
    Tuple,
    iteration_of,
    let,
    subterms,
    used,
)


def without_unread_results(body: Term) -> Term:
    """A program whose iterations make what is read of them, and no more."""
    read: dict[Term, set[int]] = {}
    for node in subterms(body):
        if isinstance(node, Scan):
            read.setdefault(iteration_of(node), set()).add(node.component)
    return _Reduced(read).run(body) if read else body


class _Reduced(Rewriter):
    """Leaves out of each iteration what is not among its results that are read, nor depended on by them."""

    def __init__(self, read: Mapping[Term, set[int]]) -> None:
        super().__init__()
        self.read = read

    def node(self, term: Term) -> Term:
        """The term with such iterations."""
        new = self.inside(term)
        if not isinstance(term, Scan):
            return new
        assert isinstance(new, Scan)
        kept = _depended_on(term, self.read[iteration_of(term)])
        if len(kept) == len(new.outputs):
            return new
        states = [n for n in kept if n < len(new.states)]
        row = Tuple(tuple(new.outputs[n] for n in kept))
        step = Lambda((new.index, *(new.states[n] for n in states)), let(used(new.bindings, row), row))
        starts = tuple(new.starts[n] for n in states)
        return replace(new, step=step, starts=starts, component=kept.index(new.component))


def _depended_on(scan: Scan, read: set[int]) -> list[int]:
    """The numbers of the outputs of a step that are read, and of the states that these are made of, in order."""
    kept, todo, bindings = set(read), [*read], scan.bindings
    while todo:
        output = scan.outputs[todo.pop()]
        needed = let(used(bindings, output), output).free
        more = [n for n, state in enumerate(scan.states) if state in needed and n not in kept]
        kept.update(more)
        todo += more
    return sorted(kept)
