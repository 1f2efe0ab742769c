"""What the user's function calls a tensor is what programs, derivatives and generated source call it."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import combdiff as cd

Vector, Matrix = cd.Space("n"), cd.Space("n", "n")


def bound(program: cd.Program) -> list[str]:
    """The names of what a print defines."""
    return [line.strip().partition("[")[0] for line in str(program).splitlines() if "] = " in line]


@cd.program
def network(A: Matrix, B: Matrix, x: Vector, y: Vector):
    h = np.tanh(A @ x)
    e = np.tanh(B @ h)
    return -cd.sum(lambda i: y[i] * cd.log(e[i] ** 2 + e[i]))


@pytest.mark.thorough
def test_names_are_kept_in_derivatives_and_source() -> None:
    gradient = cd.grad(network, ("A", "B"))
    for program in (network, cd.grad(network), gradient):
        assert bound(program)[:2] == ["h", "e"]
    assert "h_bar" in bound(cd.grad(network, simplify=False))
    assert {" h", " e"} == set(re.findall(r" [he]\b", gradient.source()))
    rng = np.random.default_rng(0)
    arrays = {name: rng.uniform(0.1, 1, (3,) * (1 + name.isupper())) for name in "ABxy"}
    cd.testing.check_grad(network, ("A", "B"), **arrays)
    spaces: Any = {"A": Matrix, "B": Matrix, "x": Vector, "y": Vector}
    for shown in (str(gradient), gradient.matrix()):
        for found, expected in zip(cd.read(shown, spaces)(**arrays), gradient(**arrays), strict=True):
            np.testing.assert_allclose(found, expected)


@pytest.mark.thorough
def test_names_collide_with_no_parameter_size_or_index() -> None:
    @cd.program
    def f(x: Vector, A: Matrix):
        for _ in range(3):
            x = np.tanh(A @ x)
        n = np.sin(A @ x)
        i = np.cos(A @ n)
        return cd.sum(lambda j: i[j] * x[j] * n[j] * i[j]) / x.shape[0]

    assert bound(f) == ["x2", "x3", "x4", "n2", "i"]
    x, A = np.array([0.2, 0.3]), np.array([[1, 0.5], [0.2, 0.7]])
    np.testing.assert_allclose(cd.read(str(f), {"x": Vector, "A": Matrix})(x, A), f(x, A))
    cd.testing.check_grad(f, ("x", "A"), x=x, A=A)


def test_the_names_of_the_program_go_before_those_of_its_helpers() -> None:
    def layer(W: Any, z: Any) -> Any:
        inner = np.tanh(W @ z)
        return inner * inner.sum()

    @cd.program
    def f(x: Vector, A: Matrix):
        hidden = layer(A, x)
        other = layer(A, hidden)
        return other @ hidden

    assert bound(f) == ["inner", "hidden", "inner2"]

    @cd.program
    def g(x: Vector, A: Matrix):
        def activated(z: Any) -> Any:
            return np.tanh(A @ z)

        hidden = activated(x)
        return cd.sum(lambda i: hidden[i] * activated(hidden)[i])

    assert bound(g) == ["hidden"]


def test_names_within_lambdas_and_of_decompositions() -> None:
    @cd.program
    def f(x: Vector, A: Matrix):
        def row(i: Any) -> Any:
            total = cd.exp(cd.sum(lambda j: A[i, j] * x[j]))
            return total / (1 + total**2)

        L = cd.cholesky(A @ A.T)
        return cd.sum(row, i="n") + cd.sum(lambda i: cd.log(L[i, i]) * (cd.inv(L) @ x)[i])

    assert {"total", "L"} <= set(bound(f))
