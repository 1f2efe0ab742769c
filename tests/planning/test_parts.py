"""Products of parts of an array are read from the product of the whole array, where that is made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import combdiff as cd

A, B, y = (np.random.default_rng(0).normal(size=size) for size in ((5, 4), (4, 6), 5))


def columns_before(A, B, y):
    return (A @ B[:, 0]) * y + A @ B[:, 2], A @ B


def columns_behind(A, B, y):
    return np.exp(A @ B), np.exp(A @ B[:, 4]) * y


def of_a_slice(A, B, y):
    return (A @ B[:, 1]) * y, A @ B[:, 1:4], y


def rows_turned(A, B, y):
    return (A[3] @ B).sum(), (A @ B).T, y


def outside_the_slice(A, B, y):
    return (A @ B[:, 4]) * y, A @ B[:, 1:4]


def of_other_rows(A, B, y):
    return (A[1:] @ B[:, 1]) * y[1:], A @ B


def on_the_diagonal(A, B, y):
    return cd.tensor(lambda i: cd.sum(lambda j: A[i, j] * B[j, i]), i=cd.Range(5)), A @ B, y


ONE = [columns_before, columns_behind, of_a_slice, rows_turned]
TWO = [outside_the_slice, of_other_rows, on_the_diagonal]


def checked(case: Callable[..., Any]) -> str:
    """The source of a case, whose results are NumPy's."""
    case.__annotations__ = {"A": cd.Space(5, 4), "B": cd.Space(4, 6), "y": cd.Space(5)}
    program = cd.program(case)
    expected = case(A, B, y) if case is not on_the_diagonal else ((A * B[:, :5].T).sum(1), A @ B, y)
    for found, wanted in zip(program(A, B, y), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
    return program.source()


@pytest.mark.parametrize("case", ONE)
def test_a_part_is_read_from_the_whole(case: Callable[..., Any]) -> None:
    assert checked(case).count("matrix-matrix") == 1
    assert "matrix-vector" not in checked(case)


@pytest.mark.parametrize("case", TWO)
def test_what_is_no_part_is_multiplied(case: Callable[..., Any]) -> None:
    source = checked(case)
    assert source.count(" @ ") + source.count("np.einsum") == 2
