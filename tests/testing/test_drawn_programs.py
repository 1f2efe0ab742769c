"""What `cd.testing.programs()` draws: each kind, and none that is left out (`make fuzz` compares their routes)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

import combdiff as cd
from combdiff.ir import Implicit, Scan, Space, is_matrix_function, subterms
from combdiff.testing import Case, generation, programs

KINDS = {
    "lookups": lambda case: any(p.type.dtype is int for p in case.term.parameters if isinstance(p.type, Space)),
    "empty axes": lambda case: 0 in (case.sizes["n"], case.sizes["m"]),
    "matrix functions": lambda case: any(map(is_matrix_function, subterms(case.term))),
    "solutions": lambda case: any(isinstance(part, Implicit) for part in subterms(case.term)),
    "recurrences": lambda case: any(isinstance(part, Scan) for part in subterms(case.term)),
}
EVERY = (*KINDS, "maps")


def draw(**options: Any) -> list[Case]:
    found: list[Case] = []

    @seed(3)
    @settings(max_examples=40, derandomize=False, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(programs(depth=2, **options))
    def collect(case: Case) -> None:
        found.append(case)

    collect()
    return found


@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_is_drawn_unless_it_is_left_out(kind: str) -> None:
    assert any(map(KINDS[kind], draw(without=[name for name in EVERY if name != kind])))
    assert not any(map(KINDS[kind], draw(without=[kind, "maps"])))


@pytest.mark.thorough
def test_programs_are_drawn_in_place_of_maps(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def program(term: Any, name: str) -> cd.Program:
        made.append(name)
        return cd.Program(term, name)

    monkeypatch.setattr(generation, "Program", program)
    assert not any("R" in map_names(case) for case in draw(without=list(KINDS)))
    assert made.count("inner") > 3
    made.clear()
    draw(without=list(EVERY))
    assert not made


def map_names(case: Case) -> set[str]:
    return {var.name for var in case.term.parameters if not isinstance(var.type, Space)}


def test_a_kind_that_there_is_not_is_refused() -> None:
    with pytest.raises(cd.ArgumentError, match=r"programs\(\) draws no 'roots'") as error:
        programs(without=["roots"])
    assert "solutions" in str(error.value)
