"""Element-wise chains in blocks: the same values, element types and results as without, and what the source shows."""

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from strategies import Case, programs

from combdiff.execution import plan
from combdiff.lowering import fusion, suited
from combdiff.lowering import source as plan_source
from combdiff.lowering.plan import Plan
from combdiff.terms import Lambda

RNG = np.random.default_rng(7)
MANY = settings(
    max_examples=300, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)


def function(planned: Plan) -> Any:
    """The function that a plan's source defines."""
    namespace: dict[str, Any] = {}
    exec(plan_source(planned, "f"), namespace)
    return namespace["f"]


def in_small_blocks(whole: Plan, block: int = 4) -> Plan:
    """The plan with every chain in a loop, in blocks of few elements."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"LEAST": 1, "BLOCK": block, "SAVED": -100, "peak": lambda plan: 0}.items():
            patch.setattr(fusion, name, value)
        return fusion.fused(whole)


def unfused(term: Lambda, sizes: dict[str, int]) -> Plan:
    """The plan for NumPy without loops."""
    return suited(plan(term, sizes), "numpy", fuses=False)


@MANY
@given(programs(result="tensor"))
def test_random_programs_in_blocks_mean_the_same(case: Case) -> None:
    whole = unfused(case.term, case.sizes)
    arrays = [np.asarray(array) for array in case.environment.values()]
    expected, found = function(whole)(*arrays), function(in_small_blocks(whole))(*arrays)
    assert found.dtype == expected.dtype
    scale = max(1.0, float(np.max(np.abs(expected), initial=0.0)))
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-9 * scale)
