"""Repeated steps as a node: x[0] = a, x[t+1] = g(t, x[t]), with y[t] = h(t, x[t]) on the way.

    Scan((t, x) ↦ (g, h), (a,), "last", 0)      the state after the last step
    Scan((t, x) ↦ (g, h), (a,), "before", 0)    t ↦ the state that step t begins with
    Scan((t, x) ↦ (g, h), (a,), "after", 1)     t ↦ y[t], what step t gives

One node is one result of an iteration; those of equal steps and starts are computed together. A `reverse` one runs
from the last t to the first. A derivative of a scan is one again (see `pullback`): the family is closed, and
derivatives of any order take as long to derive for a thousand steps as for two.

Invariant: the step takes the index and one variable for each state, which have the types of the starts; it gives a
tuple: the next states in order, then what else the steps give. All else it needs are its free variables.
"""

from __future__ import annotations

from dataclasses import replace

from combdiff.ir.domains import Range
from combdiff.ir.terms import Lambda, Let, Term, Tuple, Var
from combdiff.records import dataclass

BEFORE, AFTER, LAST = "before", "after", "last"


@dataclass(frozen=True, eq=False, repr=False)
class Scan(Term):
    """One result of an iteration. `kind` is "before", "after" or "last", `component` the place in the step's tuple."""

    step: Term
    starts: tuple[Term, ...]
    kind: str
    component: int
    reverse: bool = False

    @property
    def children(self) -> tuple[Term, ...]:
        return (self.step, *self.starts)

    def with_children(self, children: tuple[Term, ...]) -> Term:
        return replace(self, step=children[0], starts=children[1:])

    def result(self, kind: str, component: int) -> Scan:
        """Another result of the same iteration."""
        return replace(self, kind=kind, component=component)

    @property
    def variables(self) -> tuple[Var, ...]:
        """The index and the states, as the step names them."""
        assert isinstance(self.step, Lambda)
        return self.step.parameters

    @property
    def index(self) -> Var:
        """The number of the step."""
        return self.variables[0]

    @property
    def states(self) -> tuple[Var, ...]:
        """The states that a step begins with."""
        return self.variables[1:]

    @property
    def steps(self) -> Range:
        """The numbers of the steps."""
        domain = self.index.type
        assert isinstance(domain, Range)
        return domain

    @property
    def body(self) -> Term:
        """What a step gives, under its bindings."""
        assert isinstance(self.step, Lambda)
        return self.step.body

    @property
    def bindings(self) -> tuple[tuple[Var, Term], ...]:
        """All bindings of a step."""
        body, found = self.body, tuple[tuple[Var, Term], ...]()
        while isinstance(body, Let):
            found, body = (*found, *body.bindings), body.body
        return found

    @property
    def outputs(self) -> tuple[Term, ...]:
        """What a step gives, without its bindings."""
        result = self.body
        while isinstance(result, Let):
            result = result.body
        assert isinstance(result, Tuple)
        return result.items
