"""The programs of benchmarks/arrays.py at small sizes: as NumPy runs them, with the slopes of its differences."""

from __future__ import annotations

from typing import Any

import arrays as benchmark
import numpy as np
import pytest
import scipy.special

import combdiff as cd


@pytest.mark.sample(3)
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


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", benchmark.CASES)
def test_a_gradient_is_cheap(name: str) -> None:
    """Value and gradient take at most five times the operations of the value (Griewank and Walther 2008, sec. 4.6).

    A tensor that was read at ⌊i/2⌋ was written out for each i: the U-Net's gradient took fifteen times the operations
    and two hundred times the memory.
    """
    case = benchmark.CASES[name]
    program, shapes = benchmark.program(name, case.usual), case.inputs(**case.usual)
    axes = {
        key: zip(space.axes, np.shape(shapes[key]), strict=True) for key, space in case.spaces(**case.usual).items()
    }
    sizes = {axis.size: n for pairs in axes.values() for axis, n in pairs if isinstance(axis.size, str)}
    value, both = program.cost(**sizes), cd.value_and_grad(program, case.wrt).cost(**sizes)
    assert int(both.flops) <= 5 * int(value.flops)
    assert int(both.peak_bytes) <= 5 * int(value.peak_bytes)


def _by_numpy(case: benchmark.Case, arrays: dict[str, Any]) -> Any:
    return case.f(np, scipy.special, **arrays)


def _moved(arrays: dict[str, Any], ways: dict[str, Any], step: float) -> dict[str, Any]:
    return arrays | {key: arrays[key] + step * way for key, way in ways.items()}
