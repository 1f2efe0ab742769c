"""Products with reciprocals are quotients, where these are read once and as large as the product."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import combdiff as cd

R = np.random.default_rng(0)
X, Y = R.normal(size=5), R.normal(size=5)


def over(x, y):
    return x / y


def over_square(x, y):
    return x / y**2


def over_root(x, y):
    return x / np.sqrt(2 + np.cos(y))


def a_number(x, y):
    return 3 / (x + y)


def of_rows(x, y):
    return np.sin(x[:, None] * y) / y


def read_twice(x, y):
    r = 1 / y
    return x * r + np.sin(r)


QUOTIENTS = [over, over_square, over_root, a_number]
OTHERS = [of_rows, read_twice]


def program(case: Callable[..., object], dtype: type = float) -> cd.Program:
    case.__annotations__ = dict.fromkeys("xy", cd.Space("n", dtype=dtype))
    return cd.program(case)


@pytest.mark.parametrize("case", QUOTIENTS)
def test_a_quotient_is_one_operation(case: Callable[..., object]) -> None:
    source = program(case).source()
    assert source.count(" / ") == 1
    assert "multiply" not in source
    assert "scale" not in source


@pytest.mark.parametrize("case", OTHERS)
def test_a_reciprocal_of_fewer_elements_or_of_two_readers_is_kept(case: Callable[..., object]) -> None:
    assert "divide" not in program(case).source()


@pytest.mark.parametrize("case", QUOTIENTS + OTHERS)
@pytest.mark.parametrize("kind", [float, np.float32, complex, int])
def test_a_quotient_is_numpys(case: Callable[..., object], kind: type) -> None:
    x, y = (3 * X).astype(kind), (3 * Y + 10).astype(kind)
    found = program(case, complex if kind is complex else float)(x, y)
    assert found.dtype == (float if kind is int else kind)
    np.testing.assert_allclose(found, case(x, y), rtol=1e-5 if kind is np.float32 else 1e-13)


def test_a_quotient_of_the_smallest_numbers_is_finite() -> None:
    tiny = np.array([5e-324, 1e-310, 3e-309])
    np.testing.assert_array_equal(program(over)(2 * tiny, tiny), 2 * tiny / tiny)


def test_a_quotient_is_rounded_once() -> None:
    x, y = R.normal(size=(2, 1000))
    np.testing.assert_array_equal(program(over)(x, y), x / y)
