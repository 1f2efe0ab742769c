"""Log-determinants of positive definite matrices: by Cholesky factors, refused where there is none."""

from typing import Any

import numpy as np
import pytest
from backends import BACKENDS, converted, on

import combdiff as cd
from combdiff.ir.interpreter import evaluate

RNG = np.random.default_rng(5)
Symmetric = cd.Space("n", "n", symmetry=["S[i,j] = S[j,i]"])
Hermitian = cd.Space("n", "n", dtype=complex, symmetry=["S[i,j] = conj(S[j,i])"])


@cd.program
def evidence(S: Symmetric, x: cd.Space("n")):
    return cd.logdet(S, positive=True) + x @ cd.solve(S, x)


@cd.program
def hermitian(S: Hermitian):
    return cd.logdet(S, positive=True)


@cd.program
def kernel(X: cd.Space("n", "m"), s: cd.Space()):
    K = cd.tensor(lambda i, j: cd.sum(lambda k: X[i, k] * X[j, k]) + s * cd.delta(i, j))
    return cd.logdet(K, positive=True)


def positive(n: int = 3) -> np.ndarray[Any, Any]:
    X = RNG.normal(size=(n, n))
    return X @ X.T + np.eye(n)


@pytest.mark.thorough
def test_values_and_derivatives() -> None:
    S, x = positive(), RNG.normal(size=3)
    expected = np.linalg.slogdet(S)[1] + x @ np.linalg.solve(S, x)
    np.testing.assert_allclose(evidence(S, x), expected, rtol=1e-12)
    assert "cholesky" in evidence.source()
    cd.testing.check_grad(evidence, ("S", "x"), S=S, x=x)
    X = RNG.normal(size=(3, 2))
    cd.testing.check_grad(kernel, ("X", "s"), X=X, s=0.7)


def test_the_hessian_is_that_along_symmetric_matrices() -> None:
    @cd.program
    def determinant(S: Symmetric):
        return cd.logdet(S, positive=True)

    H, S = cd.hessian(determinant), positive()
    inverse = np.linalg.inv(S)
    one, other = (np.einsum(f"{axes}->ijkm", inverse, inverse) for axes in ("ik,jm", "im,jk"))
    np.testing.assert_allclose(H(S), -(one + other) / 2, atol=1e-10)


def test_complex_matrices_have_real_log_determinants() -> None:
    Z = RNG.normal(size=(3, 3)) + 1j * RNG.normal(size=(3, 3))
    S = Z @ Z.conj().T + np.eye(3)
    np.testing.assert_allclose(hermitian(S), np.linalg.slogdet(S)[1], rtol=1e-12)
    assert np.asarray(hermitian(S)).dtype == float
    np.testing.assert_allclose(cd.grad(hermitian)(S), np.linalg.inv(S), atol=1e-12)


def test_a_matrix_beside_a_hermitian_one_has_its_own_log_determinant() -> None:
    S = positive()
    S[0, 1] += 0.01
    f = cd.simplify(hermitian)
    for program in (hermitian, f):
        np.testing.assert_allclose(program(S + 0j), np.linalg.slogdet(S)[1], rtol=1e-12)
    found = evaluate(hermitian.term.body, dict(zip(hermitian.term.parameters, [S + 0j], strict=True)), {"n": 3})
    np.testing.assert_allclose(found, np.linalg.slogdet(S)[1], rtol=1e-12)


@pytest.mark.parametrize("eigenvalue", [-1.0, 0.0])
def test_what_is_not_positive_definite_is_refused(eigenvalue: float) -> None:
    with pytest.raises(cd.ArgumentError, match=r"logdet\(S\): the matrix is not positive definite\n.*definite matrix"):
        evidence(np.diag([1.0, eigenvalue, -2.0]), np.ones(3))
    with pytest.raises(cd.ArgumentError, match="not positive definite"):
        cd.logdet(np.diag([1.0, -1.0]), positive=True)
    assert cd.logdet(np.diag([1.0, -np.e])) == 1.0


def test_stacks_and_no_rows() -> None:
    @cd.program
    def stacked(S: cd.Space("b", "n", "n")):
        return cd.logdet(S, positive=True).sum()

    stack = np.stack([positive(), positive()])
    np.testing.assert_allclose(stacked(stack), np.linalg.slogdet(stack)[1].sum(), rtol=1e-12)
    assert stacked(np.ones((2, 0, 0))) == 0
    assert cd.logdet(positive().astype(np.float32), positive=True).dtype == np.float32


@pytest.mark.parametrize("backend", BACKENDS)
def test_other_libraries(backend: str) -> None:
    S, x = positive(), RNG.normal(size=3)
    for program in (evidence, cd.grad(evidence, "S")):
        np.testing.assert_allclose(
            np.asarray(on(backend, program)(*converted(backend, (S, x)))), program(S, x), rtol=1e-4
        )
