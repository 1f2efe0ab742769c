"""Derivatives of projectors onto eigenvectors divide by no gap within the chosen set: they are finite where chosen
eigenvalues are equal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import combdiff as cd

REAL, COMPLEX = cd.Space("n", "n"), cd.Space("n", "n", dtype=complex)
SYMMETRIC = cd.Space("n", "n", symmetry=["A[i,j] = A[j,i]"])
EQUAL = np.array([1.0, 1, 2, 2, 2, 5])


def projector(A: Any, chosen: slice) -> Any:
    U = np.linalg.eigh(A)[1][:, chosen]
    return U @ U.conj().T


CASES: dict[str, Callable[[Any, Any], Any]] = {
    "first": lambda A, c: np.real(projector(A, np.s_[:2]) * c).sum(),
    "in between": lambda A, c: np.real(projector(A, np.s_[2:5]) * c).sum(),
    "left over": lambda A, c: np.sin((np.abs(c - c @ projector(A, np.s_[-4:])) ** 2).sum()),
    "two": lambda A, c: np.real(np.trace(projector(A, np.s_[:2]) @ c @ projector(A, np.s_[2:5]) @ c.T)),
}


def program(name: str, space: cd.Space) -> cd.Program:
    def f(A, c):  # type: ignore[no-untyped-def]
        return CASES[name](A, c)

    f.__annotations__ = {"A": space, "c": REAL}
    return cd.program(f)


@pytest.mark.thorough
@pytest.mark.parametrize("space", [REAL, SYMMETRIC, COMPLEX], ids=["real", "symmetric", "complex"])
@pytest.mark.parametrize("name", CASES)
def test_gradients_of_projectors_where_eigenvalues_are_equal(name: str, space: cd.Space) -> None:
    r = np.random.default_rng(0)
    parts = r.normal(size=(6, 6)), 1j * r.normal(size=(6, 6)) if space is COMPLEX else 0
    Q = np.linalg.qr(sum(parts))[0]
    A, c = (Q * EQUAL) @ Q.conj().T, r.normal(size=(6, 6))
    f = program(name, space)
    assert cd.testing.check_grad(f, "A", A=A, c=c) < 1e-6
    assert "≠" not in str(cd.grad(f, "A"))


@pytest.mark.thorough
def test_pairs_that_do_not_cancel_stay() -> None:
    """Vectors themselves have no derivative where chosen eigenvalues are equal."""

    @cd.program
    def f(A: REAL):
        return (np.linalg.eigh(A)[1][:, :2] ** 4).sum()

    assert "≠" in str(cd.grad(f))
    assert cd.testing.check_grad(f, "A", A=np.diag([1.0, 2, 4]) + 0.1) < 1e-6


@pytest.mark.parametrize("power", [1, 2])
def test_what_cancels_once_does_not_cancel_squared(power: int) -> None:
    @cd.program
    def f(U: REAL, w: cd.Space("n")):
        def pair(i, k):  # type: ignore[no-untyped-def]
            return cd.where(i <= 1, cd.where(k == i, 0, U[0, i] * U[0, k] / (w[i] - w[k])), 0)

        inner = cd.tensor(lambda i: cd.sum(lambda k: pair(i, k), k=U.shape[0]), i=U.shape[0])
        return cd.sum(lambda i: inner[i] ** power)

    U, w = np.random.default_rng(0).normal(size=(4, 4)), np.array([1.0, 2.5, 3.0, 7.0])
    np.testing.assert_allclose(cd.simplify(f)(U, w), f(U, w))
    assert ("≠" in str(cd.simplify(f))) == (power == 2)
