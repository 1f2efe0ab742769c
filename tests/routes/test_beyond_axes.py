"""What is read beyond an axis is 0, and functions of it are functions of 0: they are not computed before it is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import combdiff as cd

CASES: dict[str, Callable[[Any], Any]] = {
    "cosines": lambda x: np.cos(np.pad(x, 1)),
    "larger ones": lambda x: np.maximum(np.pad(x, (1, 2)), 0.3),
    "logistic": lambda x: 1 / (1 + np.exp(-np.pad(x, 1))),
    "windows": lambda x: np.convolve(np.cos(np.pad(x, 1)), np.ones(3)),
    "slices": lambda x: np.cos(np.pad(x, 1))[1:] + np.cos(np.pad(x, 1)[:-1]),
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", CASES)
def test_padded_arrays_have_numpys_values(name: str) -> None:
    x = np.random.default_rng(0).normal(size=5)

    @cd.program
    def array(x: cd.Space(5)):
        return CASES[name](x)

    @cd.program
    def number(x: cd.Space(5)):
        return np.sum(np.sin(CASES[name](x)))

    np.testing.assert_allclose(array(x), CASES[name](x), rtol=1e-12)
    assert cd.testing.check_routes(array, x=x) < 2e-5
    assert cd.testing.check_grad(number, x=x) < 1e-6


@pytest.mark.parametrize(
    "function", [cd.cos, lambda value: cd.sqrt(1 + value**2), lambda value: cd.tanh(value), lambda value: cd.exp(value)]
)
def test_windows_within_a_condition(function: Callable[[Any], Any]) -> None:
    @cd.program
    def f(x: cd.Space(5)):
        return cd.tensor(lambda i: cd.sum(lambda k: function(cd.where(i + k < 5, x[i + k], 0)), k=3), i=5)

    x = np.random.default_rng(0).normal(size=5)
    padded = np.array(function(np.append(x, np.zeros(2))), float)
    np.testing.assert_allclose(f(x), padded[:5] + padded[1:6] + padded[2:], rtol=1e-12)
