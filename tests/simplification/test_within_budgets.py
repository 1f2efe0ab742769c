"""Whatever the budget: no δ stays that a Σ can take, no terms that are equal; one warning says what was left undone."""

import warnings
from collections.abc import Iterator

import numpy as np
import pytest
from latency import derivatives
from test_deltas import waiting

import combdiff as cd
from combdiff.ir import Add, Mul, Names, Number, Term, mul, subterms
from combdiff.simplification.normal_form.canonical import canonical
from combdiff.simplification.normal_form.contraction import normalise


def alike(term: Term) -> Iterator[Term]:
    """The parts of sums that are, but for numbers, others of the same sum."""
    forms: dict[object, int] = {}
    for node in subterms(term):
        seen = set()
        for part in node.terms if isinstance(node, Add) else ():
            factors = part.factors if isinstance(part, Mul) else (part,)
            rest = mul(*(factor for factor in factors if not isinstance(factor, Number)))
            key = canonical(normalise(rest, Names(rest)), forms)
            if key in seen:
                yield part
            seen.add(key)


@pytest.mark.thorough
@pytest.mark.parametrize("nodes", [1, 200])
@pytest.mark.parametrize(
    "name", ["MPS energy", "GP evidence", "convolutions", "attention", "Hartree-Fock", "logistic regression, Hessian"]
)
def test_what_no_budget_leaves(name: str, nodes: int) -> None:
    with warnings.catch_warnings(record=True) as caught, cd.budget(nodes=nodes):
        warnings.simplefilter("always")
        found = derivatives()[name]()
    said = [str(one.message) for one in caught if one.category is cd.BudgetWarning]
    assert len(said) <= 1
    assert all(f"its budget of {nodes} nodes" in text and ", in " in text for text in said)
    assert list(waiting(found.term)) == []
    assert list(alike(found.term)) == []


@pytest.mark.thorough
def test_what_is_a_multiple_of_itself_leads_to_no_long_numbers() -> None:
    """A part that is 0 is found equal to −2 times itself before it is found to be 0; multiples of that squared."""
    lines = "(y, z) ↦", "t = Re((y + z[0]) / (2 + |y + z[0]|²))", "Σ_{|i|≤1} Im(2 logaddexp(1 + t, t) (y + z[0]))"
    sums = cd.read("\n".join(lines), spaces={"y": cd.Space(dtype=complex), "z": cd.Space(cd.Symmetric(1))})
    with cd.budget(nodes=2000), warnings.catch_warnings():
        warnings.simplefilter("ignore", cd.BudgetWarning)
        pullback = cd.pullback(sums, "z")
    point = 0.3 - 0.8j, np.array([0.5, 0.2, -0.7])
    np.testing.assert_allclose(pullback(*point, 1.0), cd.grad(sums, "z", simplify=False)(*point), rtol=1e-10)
