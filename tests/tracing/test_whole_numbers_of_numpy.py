"""Sizes, places, steps and axes may be whole numbers of NumPy's, as what is computed of shapes and indices is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import combdiff as cd

ZERO, ONE, TWO, SIX = map(np.int64, (0, 1, 2, 6))
CASES: dict[str, Callable[[Any, Any], Any]] = {
    "slice": lambda x, A: x[ONE:SIX:TWO],
    "array without axes": lambda x, A: x[np.array(1) :],
    "slice from the end": lambda x, A: A[:, -TWO:],
    "element": lambda x, A: A[ONE, -TWO],
    "sum": lambda x, A: A.sum(axis=ONE),
    "sum along two": lambda x, A: A.sum(axis=(ZERO, ONE)),
    "new axis": lambda x, A: np.expand_dims(x, ONE),
    "two new axes": lambda x, A: np.expand_dims(x, (ZERO, -ONE)),
    "axis left out": lambda x, A: np.squeeze(A[:1], ZERO),
    "shape": lambda x, A: A.reshape(TWO, -1),
    "parts": lambda x, A: np.split(x, [TWO, np.int32(4)])[1],
    "padding": lambda x, A: np.pad(x, (ONE, TWO)),
    "power": lambda x, A: x**TWO,
    "turned": lambda x, A: np.roll(x, TWO),
}


@pytest.mark.parametrize("case", CASES)
def test_values_are_those_of_numpy(case: str) -> None:
    @cd.program
    def f(x: cd.Space(SIX), A: cd.Space(np.int16(4), SIX)):
        return CASES[case](x, A)

    rng = np.random.default_rng(0)
    x, A = rng.normal(size=6), rng.normal(size=(4, 6))
    np.testing.assert_allclose(f(x, A), CASES[case](x, A))


def test_indices_and_steps() -> None:
    @cd.program
    def f(x: cd.Space(6), z: cd.Space(cd.Cyclic(SIX)), w: cd.Space(cd.Symmetric(TWO))):
        near = cd.tensor(lambda i: x[i + TWO], i=TWO)
        grown = cd.scan(lambda c, _: (c * near[ONE], c), z[ZERO], length=TWO)[0]
        return grown + cd.sum(lambda i: w[i] * x[TWO * i], i=TWO)

    x = np.arange(6.0)
    assert f(x, x + 1, np.arange(5.0)) == 3.0**2 * 1 + (2 * 0 + 3 * 2)


@pytest.mark.parametrize("size", [np.int64(-1), np.float64(2), np.bool_(True), np.array([2])])
def test_other_numbers_are_no_sizes(size: Any) -> None:
    with pytest.raises(cd.SpaceError, match="the size of an axis is"):
        cd.Space(size)
