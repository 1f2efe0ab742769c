"""δ's on cycles of so many elements, whatever factors their coefficients and that number have in common."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from combdiff.ir import Apply, Cyclic, Lambda, Names, Range, Space, Symmetric, Term, Var, affine, delta, mul, total
from combdiff.ir.interpreter import evaluate
from combdiff.simplification.normal_form.contraction import normalise

COEFFICIENTS = st.integers(-6, 6)
RNG = np.random.default_rng(7)


@example(3, [3, 2, 3, -1], "bound")
@given(st.integers(1, 6), st.lists(COEFFICIENTS, min_size=4, max_size=4), st.sampled_from(["range", "bound", "cycle"]))
def test_two_deltas_of_one_index(size: int, numbers: list[int], kind: str) -> None:
    """Σ_p δ(d, a p + b) δ(p, c j + e) w[p]: of a p + b with a whole turn in a it was 0 where c j + e has one, too."""
    cycle, (a, b, c, e) = Cyclic(size), numbers
    d, p = Var("d", cycle), Var("p", cycle)
    j = Var("j", {"range": Range(4), "bound": Symmetric(2), "cycle": cycle}[kind])
    weights = Var("w", Space(cycle))
    first, second = affine([(p, a)], b), affine([(j, c)], e)
    body = total((p,), mul(delta(d, first, cycle), delta(p, second, cycle), Apply(weights, (p,))))
    scope = {weights: RNG.normal(size=size)}
    for indices, whole in (((d, j), body), ((d,), total((j,), body))):
        found: Term = normalise(whole, Names(whole))
        np.testing.assert_allclose(
            evaluate(Lambda(indices, found), scope, {}), evaluate(Lambda(indices, whole), scope, {})
        )
