"""No two definitions of a derivative are equal up to names and the order of terms and factors."""

from __future__ import annotations

import pytest
from latency import derivatives

from combdiff.ir import Term, canonical_names, split
from combdiff.simplification import ordered


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["shooting, 6 steps", "pendulum, 10 steps", "RNN, 6 steps", "LSTM, 3 steps"])
def test_no_definition_is_another(name: str) -> None:
    bindings, _ = split(derivatives()[name]().term.body)
    forms: list[Term] = [ordered(canonical_names(value)) for _, value in bindings]
    assert len(set(forms)) == len(forms)
