"""log(1 + x) and exp(x) − 1 near 0, in values, derivatives and on the libraries: as good as NumPy's log1p and expm1."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from backends import BACKENDS, back, convert, double_precision, on
from hypothesis import given, settings
from hypothesis import strategies as st

import combdiff as cd

Vector = cd.Space("n")


@cd.program
def logarithms(x: Vector):
    return np.log1p(x)


@cd.program
def differences(x: Vector):
    return np.log(1 - x)


@cd.program
def exponentials(x: Vector):
    return np.expm1(x)


@cd.program
def survival(x: Vector):
    return 1 - np.exp(-x)


@cd.program
def together(x: Vector):
    return 3 * x + np.exp(2 * x) - 1


FORMS: list[tuple[cd.Program, Callable[[Any], Any], Callable[[Any], Any]]] = [
    (logarithms, np.log1p, lambda x: 1 / (1 + x)),
    (differences, lambda x: np.log1p(-x), lambda x: -1 / (1 - x)),
    (exponentials, np.expm1, np.exp),
    (survival, lambda x: -np.expm1(-x), lambda x: np.exp(-x)),
    (together, lambda x: 3 * x + np.expm1(2 * x), lambda x: 3 + 2 * np.exp(2 * x)),
]
pulled = cache(cd.pullback)
SMALL = st.builds(lambda sign, power: sign * 10.0**power, st.sampled_from([-1, 1]), st.floats(-300, -0.31))


@settings(max_examples=12, deadline=None)
@given(st.lists(SMALL, min_size=1, max_size=4).map(np.array))
def test_near_one_no_digit_is_lost(x: Any) -> None:
    for f, value, slope in FORMS:
        np.testing.assert_allclose(f(x), value(x), rtol=1e-15, err_msg=f.name)
        np.testing.assert_allclose(pulled(f)(x, np.ones_like(x)), slope(x), rtol=1e-14, err_msg=f.name)


@pytest.mark.parametrize("backend", BACKENDS)
def test_on_the_libraries(backend: str) -> None:
    x = np.array([1e-200, -2e-20, 0.5, -1e-9])
    for f, value, _ in FORMS:
        with double_precision():
            found = back(on(backend, f)(convert(backend, x)))
        np.testing.assert_allclose(found, value(x), rtol=1e-14, err_msg=f.name)


def test_other_sums_and_complex_numbers_keep_their_form() -> None:
    @cd.program
    def f(x: Vector, z: cd.Space("n", dtype=complex)):
        return np.log(2 + x) * np.log(1 + z)

    source = f.source()
    assert "log1p" not in source
    x, z = np.array([0.5]), np.array([0.3 + 2j])
    np.testing.assert_allclose(f(x, z), np.log(2 + x) * np.log(1 + z))


def test_logarithms_of_one_and_squares_that_are_scaled() -> None:
    @cd.program
    def of_sum(x: Vector):
        return np.log1p(np.sum(x * x))

    @cd.program
    def beside_norm(x: Vector):
        return np.log1p(x * x).sum() / np.linalg.norm(x) ** 2

    for size in (1e-9, 1e-3, 1.0):
        x = size * np.array([1.0, -2.0, 0.5])
        np.testing.assert_allclose(of_sum(x), np.log1p(x @ x), rtol=1e-14)
        np.testing.assert_allclose(beside_norm(x), np.log1p(x * x).sum() / (x @ x), rtol=1e-14)
    x = np.array([3e200, -4e200])
    np.testing.assert_allclose(of_sum(x), 2 * np.log(5e200), rtol=1e-15)
    np.testing.assert_allclose(cd.grad(of_sum)(x), 2 * x / 5e200 / 5e200, rtol=1e-14)


# --- differences from a mean -----------------------------------------------------------------------------------------


@cd.program
def variance(x: Vector):
    return np.var(np.expm1(x))


@cd.program
def deviation(x: Vector):
    return np.std(np.expm1(-3 * x))


@cd.program
def total(x: Vector):
    return np.sum(np.expm1(x))


@pytest.mark.thorough
@pytest.mark.parametrize("scale", [1, 1e-4, 1e-8, 1e-20, 1e-100])
def test_differences_of_exponentials_from_their_mean_lose_no_digit(scale: float) -> None:
    """In derivatives exp(x[d]) − Σ exp(x) / n stands for the difference of exp(x) − 1 from its mean."""
    x, v = np.random.default_rng(2).normal(size=(2, 6)) * np.array([[scale], [1]])
    power, slope = np.expm1(x), np.exp(x)
    apart = power - power.mean()
    np.testing.assert_allclose(total(x), power.sum(), rtol=1e-13)
    np.testing.assert_allclose(pulled(variance)(x, 1.0), 2 * apart * slope / 6, rtol=1e-13)
    curved = 2 / 6 * slope * ((slope * v - (slope * v).mean()) + apart * v)
    np.testing.assert_allclose(cd.hvp(variance)(x, v), curved, rtol=1e-12)
    power, slope = np.expm1(-3 * x), -3 * np.exp(-3 * x)
    apart = power - power.mean()
    np.testing.assert_allclose(pulled(deviation)(x, 1.0), apart * slope / 6 / np.std(power), rtol=1e-12)
