"""What simplification is told beside the term: values of variables.

    Context(known={t: (i, j) ↦ Σ_k A[i, k]·B[k, j]})       lets laws see that det(t) is det(A)·det(B)

Invariant: a context changes which of the equal terms is taken, never the value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from combdiff.ir import Term, Var
from combdiff.records import dataclass

Known = Mapping[Var, Term]


@dataclass(frozen=True)
class Context:
    """`known` has the values of variables that matrix functions are functions of."""

    known: Known = field(default_factory=dict)


NOTHING = Context()
