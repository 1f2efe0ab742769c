"""Definitions that call their indices by the same names, put where each other are used."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import combdiff as cd
from combdiff.ir import Apply, Cyclic, Range, Space, Sum, Var, substitute, total

FIRST = ("x[i]", "exp(x[i] y / 9)", "gammaln(2 + x[i]²)")
SECOND = ("t", "t x[i]", "exp(t / 9)", "gammaln(2 + t² x[i]²)")
RESULTS = ("sin(s) + t y", "s exp(y / 9) + cos(t)", "Σ_i s x[i] y + t", "Σ_{i<3} tanh(s y) + Σ_i t x[i]")


@pytest.mark.thorough
@settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=30)
@given(st.sampled_from(FIRST), st.sampled_from(SECOND), st.sampled_from(RESULTS), st.integers(1, 3))
def test_values_and_derivatives_are_those_of_each_definition_by_itself(
    first: str, second: str, result: str, size: int
) -> None:
    text = f"(x, y) ↦\n  t = Σ_i {first}\n  s = Σ_{{i<{size}}} {second}\n  {result}"
    f = cd.read(text, {"x": cd.Space(size), "y": cd.Space()})
    cd.testing.check_routes(f, x=np.linspace(0.2, 0.9, size), y=0.4)


@pytest.mark.parametrize("simplify", [False, True])
def test_a_sum_in_a_sum_over_an_index_of_its_name_counts(simplify: bool) -> None:
    """The derivative by y reads t in s alone, so that it is put there."""
    text = "(x, y) ↦\n  t = Σ_i gammaln(x[i])\n  s = Σ_{i<2} t\n  sin(t) + s exp(s y)"
    slope = cd.grad(cd.read(text, {"x": cd.Space(2), "y": cd.Space()}), "y", simplify=simplify)
    x = np.array([0.1, 0.2])
    s = 2 * sum(np.log([9.513507698668732, 4.590843711998803]))  # Γ(0.1), Γ(0.2)
    assert abs(slope(x, 0.3) - s**2 * np.exp(s * 0.3)) < 1e-9


def test_an_index_of_another_axis_may_have_the_name() -> None:
    """A Σ over a cycle is put around one over a range whose index is called alike."""
    c, n = Var("i", Cyclic("c")), Var("i", Range("n"))
    around, x = Var("k", Cyclic("c")), Var("x", Space(Range("n"), Cyclic("c")))
    inner = substitute(Sum((n,), Apply(x, (n, around))), {around: c})
    assert not {index.name for index in inner.bound} & {"i"}
    assert total((c,), inner).free == {x}
