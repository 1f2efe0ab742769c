"""Functions of parts of matrices, as of A[:2, :2]: what is read at fewer indices than an axis has is no whole tensor.

They were functions of the whole matrix, det(A[:2, :2]) that of A; and inv(A)[:, :2] · A[:2] was the unit matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import combdiff as cd
from combdiff.testing.text_derivatives import extrapolated_differences

inv, eigh, qr, cholesky = np.linalg.inv, np.linalg.eigh, np.linalg.qr, np.linalg.cholesky
SPACES = {"A": cd.Space(4, 4), "x": cd.Space(4)}
CASES: dict[str, Callable[..., Any]] = {
    "det": lambda A, x: np.linalg.det(A[:2, :2]),
    "det of what is computed": lambda A, x: np.linalg.det(np.exp(A / 4)[:2, :2]),
    "inverse": lambda A, x: inv(A[:3, :3]),
    "largest": lambda A, x: np.max(A[:2]),
    "smallest of what is computed": lambda A, x: np.min(np.sin(A)[:, :2]),
    "largest by columns": lambda A, x: np.max(A[:2], axis=0),
    "products": lambda A, x: np.cumprod(x[:2]) * np.prod(np.exp(x)[:3]),
    "sorted": lambda A, x: np.sort(x[:3]),
    "solve": lambda A, x: np.linalg.solve(A[:2, :2], x[:2]),
    "Cholesky": lambda A, x: cholesky((A @ A.T)[:3, :3]),
    "eigenvalues": lambda A, x: np.linalg.eigvalsh((A + A.T)[:2, :2]),
    "spectral norm": lambda A, x: np.linalg.norm(A[:2, :2], 2),
    "logarithm of det": lambda A, x: np.linalg.slogdet(A[:2, :2])[1],
    "pseudoinverse": lambda A, x: np.linalg.pinv(A[:2]),
    "stack": lambda A, x: np.linalg.det(np.stack([A[:2, :2], A[2:, 2:]])),
    "corner": lambda A, x: np.linalg.det(A[:2, 2:]),
    "part of an inverse": lambda A, x: inv(A)[:, :2] @ A[:2],
    "part of a matrix": lambda A, x: A[:2] @ inv(A)[:, :3],
    "trace of parts": lambda A, x: np.trace(inv(A)[:2, :2] @ A[:2, :2]),
    "part of a product": lambda A, x: inv(A)[:, :2] @ (A @ x)[:2],
    "part of a solution": lambda A, x: np.linalg.solve(A, A @ x)[:2],
    "eigenvectors": lambda A, x: eigh(A + A.T)[1][:, :2] @ eigh(A + A.T)[1].T[:2],
    "part of a factor": lambda A, x: cholesky(A @ A.T)[:, :2] @ cholesky(A @ A.T)[:, :2].T,
    "orthogonal part": lambda A, x: qr(A)[0][:, :2] @ qr(A)[1][:2],
    "inverse of a product of parts": lambda A, x: inv(A[:2] @ A[:, :2]),
    "quadratic form": lambda A, x: x[:2] @ inv(A[:2, :2]) @ x[:2],
}


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", CASES)
def test_values_derivatives_and_prints(name: str) -> None:
    rng = np.random.default_rng(0)
    given = {"A": rng.normal(size=(4, 4)) + 3 * np.eye(4), "x": rng.normal(size=4)}
    written, weights = CASES[name], rng.normal(size=np.shape(CASES[name](**given)))

    def weighed(A: Any, x: Any, w: Any) -> Any:
        return np.sum(w * np.sin(written(A, x)))

    written.__annotations__ = SPACES
    expected = written(**given)
    for program in (cd.program(written), cd.simplify(cd.program(written))):
        np.testing.assert_allclose(program(**given), expected, atol=1e-12, err_msg=str(program))
        for text in (str(program), program.matrix()):
            np.testing.assert_allclose(
                cd.read(text, SPACES)(**given) + 0 * expected, expected, atol=1e-12, err_msg=text
            )
    weighed.__annotations__ = {**SPACES, "w": cd.Space(*weights.shape)}
    program, given = cd.program(weighed), {**given, "w": weights}
    wrt = "A" if "A" in {variable.name for variable in program.term.body.free} else "x"
    gradient, way = cd.grad(program, wrt), rng.normal(size=given[wrt].shape)
    (slopes,) = extrapolated_differences(program, given, {}, wrt, 32.0)
    np.testing.assert_allclose(gradient(**given), slopes, rtol=1e-5, atol=1e-6, err_msg=str(gradient))
    ahead, behind = (gradient(**{**given, wrt: given[wrt] + step * way}) for step in (1e-5, -1e-5))
    product = cd.hvp(program, wrt)(**given, **{f"{wrt}_dot": way})
    np.testing.assert_allclose(product, (ahead - behind) / 2e-5, rtol=1e-4, atol=1e-4)


def test_a_map_takes_a_part_of_a_vector() -> None:
    """It was printed L(x), which is a map of all of x."""
    space = cd.Space(2)
    spaces = {"L": cd.Function(space, result=space), "x": cd.Space(4), "c": space}

    @cd.program
    def of_a_part(L: cd.Function(space, result=space), x: cd.Space(4), c: space):
        return L(x[:2]) @ c

    gradient = cd.grad(of_a_part, "x")
    assert str(gradient) == "(L, x, c) ↦ d<4 ↦ [d ≤ 1] ∂L(i<2 ↦ x[i])ᵀ(c)[d]"
    for program in (of_a_part, gradient):
        assert cd.read(str(program), spaces) == program
