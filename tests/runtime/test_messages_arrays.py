"""Functions of a program's body that are applied to plain arrays refuse what they cannot take in combdiff's words."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import combdiff as cd

ONES = np.ones((2, 2))
CASES: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: cd.solve(np.ones((2, 3)), np.ones(2)), cd.TypeMismatchError, "solve takes a square matrix, but the array"),
    (
        lambda: cd.solve(np.eye(2), np.ones(3)),
        cd.TypeMismatchError,
        "solve takes a right side with 2 rows for a matrix of shape (2, 2), but the array has shape (3,)",
    ),
    (lambda: cd.solve(ONES, np.ones(2)), cd.ArgumentError, "solve is given a matrix that is singular"),
    (lambda: cd.inv(ONES), cd.ArgumentError, "inv is given a matrix that is singular"),
    (lambda: cd.inv([[0.0]]), cd.ArgumentError, "inv is given a matrix that is singular"),
    (lambda: cd.matrix_power(ONES, -1), cd.ArgumentError, "matrix_power is given a matrix that is singular"),
    (lambda: cd.matrix_power(np.ones((2, 3)), 2), cd.TypeMismatchError, "matrix_power takes a square matrix"),
    (lambda: cd.logdet(-ONES, positive=True), cd.ArgumentError, "logdet is given a matrix that is not positive"),
    (lambda: cd.trace(np.ones(3)), cd.TypeMismatchError, "the trace of an array of shape (3,) is asked for"),
    (lambda: cd.tensor(), cd.TraceError, "cd.tensor is given no lambda"),
    (lambda: cd.tensor(i=3), cd.TraceError, "cd.tensor is given no lambda"),
    (lambda: cd.sum(), cd.TraceError, "cd.sum is given no lambda"),
    (lambda: cd.real("a"), cd.TypeMismatchError, "cd.real of 'a': it is no number"),
    (lambda: cd.imag(None), cd.TypeMismatchError, "cd.imag of None: it is no number"),
]


@pytest.mark.parametrize(("call", "error", "message"), CASES)
def test_refusals_say_what_is_wrong_and_where(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)) as caught:
        call()
    assert __file__ in str(caught.value)


def test_plain_arrays_are_still_solved_like_numpy_does() -> None:
    rng = np.random.default_rng(0)
    stack, vector = rng.standard_normal((4, 3, 3)), rng.standard_normal(3)
    np.testing.assert_allclose(cd.solve(stack[0], vector), np.linalg.solve(stack[0], vector))
    np.testing.assert_allclose(cd.solve(stack, stack), np.linalg.solve(stack, stack))
    np.testing.assert_allclose(cd.matrix_power(stack, -2), np.linalg.matrix_power(stack, -2))
