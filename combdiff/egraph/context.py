"""What simplification is told beside the term: values of variables, what is positive, and which terms may overflow.

    Context(known={t: (i, j) ↦ Σ_k A[i, k]·B[k, j]})       lets laws see that det(t) is det(A)·det(B)

Invariant: a context changes which of the equal terms is taken, never the value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from combdiff.terms import Term, Var

Known = Mapping[Var, Term]


@dataclass(frozen=True)
class Context:
    """`known` has the values of variables that matrix functions are functions of.

    `positive` says of a value that it is positive by its form, `risk` how many parts of a term may overflow: of equal
    terms the one with the least risk is taken, then the cheapest.
    """

    known: Known = field(default_factory=dict)
    positive: Callable[[Term], bool] | None = None
    risk: Callable[[Term], int] | None = None


NOTHING = Context()
