"""The programs of benchmarks/arrays.py at small sizes: as NumPy runs them, with the slopes of its differences."""

from __future__ import annotations

from typing import Any

import arrays as benchmark
import numpy as np
import pytest
import scipy.special

import combdiff as cd


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", benchmark.CASES)
def test_what_a_user_of_numpy_wrote_is_taken_as_it_stands(name: str) -> None:
    case = benchmark.CASES[name]
    arrays = {key: np.asarray(value) for key, value in case.inputs(**case.small).items()}
    program = benchmark.program(name, case.small)
    assert program(**arrays) == pytest.approx(_by_numpy(case, arrays), rel=1e-10)
    generator = np.random.default_rng(1)
    ways = {key: generator.normal(size=arrays[key].shape) for key in case.wrt}
    slope = _by_numpy(case, _moved(arrays, ways, 1e-5)) - _by_numpy(case, _moved(arrays, ways, -1e-5))
    gradient = cd.grad(program, case.wrt, simplify=False)(**arrays)
    found = sum(np.sum(ways[key] * part) for key, part in zip(case.wrt, gradient, strict=True))
    assert found == pytest.approx(slope / 2e-5, rel=1e-6, abs=1e-7)


def _by_numpy(case: benchmark.Case, arrays: dict[str, Any]) -> Any:
    return case.f(np, scipy.special, **arrays)


def _moved(arrays: dict[str, Any], ways: dict[str, Any], step: float) -> dict[str, Any]:
    return arrays | {key: arrays[key] + step * way for key, way in ways.items()}
