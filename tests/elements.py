"""Terms as tests write them by hand."""

from __future__ import annotations

from combdiff.ir.terms import Apply, Term


def at(tensor: Term, *indices: Term) -> Term:
    """An element of a tensor: `at(x, i)` is x[i]."""
    return Apply(tensor, indices)
