"""Simplification of whole programs: what goes in and out of the e-graph binding by binding."""

from __future__ import annotations

from combdiff.ir.domains import Range, Space
from combdiff.ir.terms import Apply, Lambda, Var, mul, total
from combdiff.simplification.pipeline import simplify_body


def test_indices_named_like_canonical_ones_stay_free() -> None:
    """A binding that sharing takes out of a canonical network keeps its names: @1.0.0 here is a parameter."""
    rows = Var("@1.0.0", Range("n")), Var("@1.1.0", Range("n"))
    A, x = Var("A", Space("n", "n")), Var("x", Space("n"))
    product = total((rows[1],), mul(Apply(A, rows), Apply(x, (rows[1],))))
    simple = simplify_body(Lambda((rows[0],), product))
    assert simple.free == {A, x}
