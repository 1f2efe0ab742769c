"""Methods of arrays on traced tensors, and absolute values of indices in conditions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import combdiff as cd

RNG = np.random.default_rng(11)
Vector, Matrix = cd.Space("n"), cd.Space("n", "n")


@cd.program
def methods(x: Vector, A: Matrix):
    return A.trace() * x.mean() + A.dot(x).sum() + A.mean(axis=0) @ x + A.transpose().mean() + x.conjugate() @ x


def test_methods_are_numpys() -> None:
    x, A = RNG.normal(size=4), RNG.normal(size=(4, 4))
    expected = A.trace() * x.mean() + A.dot(x).sum() + A.mean(axis=0) @ x + A.mean() + x @ x
    assert abs(methods(x, A) - expected) < 1e-12
    cd.testing.check_routes(methods, x=x, A=A)


def test_a_method_without_a_meaning_here_is_refused_by_name() -> None:
    with pytest.raises(cd.UnsupportedError, match=r"A\.partition is not supported in a program"):

        @cd.program
        def f(A: Matrix):
            return A.partition()

    with pytest.raises(AttributeError, match="a traced tensor has no attribute 'nonsense'"):

        @cd.program
        def g(A: Matrix):
            return A.nonsense


CONDITIONS: dict[str, Any] = {
    "at most": lambda i, j: abs(i - j) <= 2,
    "below": lambda i, j: np.abs(2 * i - j) < 3,
    "above": lambda i, j: cd.abs(i - j) > 1,
    "at least": lambda i, j: abs(i - j) >= 2,
    "equal": lambda i, j: abs(i - j) == 1,
    "zero": lambda i, j: abs(i - j) == 0,
    "other": lambda i, j: abs(i - 2 * j + 1) != 2,
    "negative": lambda i, j: abs(i - j) == -1,
    "index": lambda i, j: abs(i - 2 * j) == i,
    "joined": lambda i, j: (abs(i - j) <= 2) & ~(abs(i + j - 4) < 2),
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("given", [{}, {"i": 5, "j": 5}], ids=["named", "given"])
@pytest.mark.parametrize("name", CONDITIONS)
def test_magnitudes_of_indices_are_compared(name: str, given: dict[str, int]) -> None:
    condition = CONDITIONS[name]

    @cd.program
    def f(x: cd.Space(5), A: cd.Space(5, 5)):
        return cd.sum(lambda i, j: cd.where(condition(i, j), A[i, j] * x[i] * cd.exp(x[j]), x[j] ** 2), **given)

    x, A = RNG.normal(size=5), RNG.normal(size=(5, 5))
    expected = sum(A[i, j] * x[i] * np.exp(x[j]) if condition(i, j) else x[j] ** 2 for i in range(5) for j in range(5))
    assert abs(f(x, A) - expected) < 1e-12
    cd.testing.check_grad(f, "x", x=x, A=A)


def test_magnitudes_are_numbers() -> None:
    @cd.program
    def f(x: Vector):
        return cd.sum(lambda i, j: cd.where(abs(i - j) + 1 <= 2, x[i] * x[j], 0))

    x = np.array([1.0, 2.0, 4.0])
    assert f(x) == sum(x[i] * x[j] for i in range(3) for j in range(3) if abs(i - j) <= 1)


def test_a_band_is_a_band() -> None:
    @cd.program
    def banded(A: Matrix, x: Vector):
        return cd.sum(lambda i, j: cd.where(abs(i - j) <= 1, A[i, j] * x[i] * x[j], 0))

    assert str(cd.grad(banded)) == "(A, x) ↦ (d, e) ↦ [-1 ≤ d - e ≤ 1] x[d] x[e]"
