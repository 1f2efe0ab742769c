"""What solves an equation, as a node: roots, minima and linear systems.

    root(x ↦ g(x), a)       the x that Newton's method finds from a, with g(x) = 0
    argmin(x ↦ R(x), a)     the x found from a where R has a local minimum
    solve(k ↦ H(k), b)      the k with H(k) = b, where H is linear (over the real numbers)

A derivative of a root or minimum is a `solve`, and so is that of a `solve` (see `pullback`): the family is closed, and
derivatives of any order stay symbolic.

Invariant: the map takes one tensor or number, which has the type of the solution; all else it needs are its free
variables. It gives a value of that type too, a real number for argmin.
"""

from __future__ import annotations

from combdiff.ir.domains import Space
from combdiff.ir.terms import Lambda, Term, Var
from combdiff.records import dataclass


@dataclass(frozen=True, eq=False, repr=False)
class Implicit(Term):
    """The solution of an equation. `kind` is "root", "argmin" or "solve".

    `map` is an abstraction over the unknown, its body perhaps a let. `given` is where the search starts, for "solve"
    the right side.
    """

    kind: str
    map: Term
    given: Term

    @property
    def children(self) -> tuple[Term, ...]:
        return (self.map, self.given)

    def with_children(self, children: tuple[Term, ...]) -> Term:
        return Implicit(self.kind, *children)

    @property
    def unknown(self) -> Var:
        """The variable that the map abstracts over."""
        assert isinstance(self.map, Lambda)
        return self.map.parameters[0]

    @property
    def space(self) -> Space:
        """The type of the solution."""
        space = self.unknown.type
        assert isinstance(space, Space)
        return space

    @property
    def equation(self) -> Term:
        """The body of the map."""
        assert isinstance(self.map, Lambda)
        return self.map.body
