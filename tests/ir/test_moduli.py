"""Even powers of absolute values: smooth at 0, and read without sign(z)."""

import re
from typing import Any

import numpy as np
import pytest

import combdiff as cd
from combdiff.ir.interpreter import evaluate

RNG = np.random.default_rng(11)
Z = np.array([0, 1 + 1j, -0.5j, 0.3])
B = np.array([1.0, 2.0, -0.5, 0.25])


@cd.program
def quartic(z: cd.Space("n", dtype=complex), b: cd.Space("n")):
    return cd.sum(lambda i: (cd.abs(z[i]) ** 2 - b[i]) ** 2)


@cd.program
def phases(A: cd.Space("m", "n", dtype=complex), z: cd.Space("n", dtype=complex), b: cd.Space("m")):
    return ((np.abs(A @ z) ** 2 - b) ** 2).sum()


@cd.program
def sextic(x: cd.Space("n")):
    return cd.sum(lambda i: abs(x[i]) ** 6)


@cd.program
def odd(x: cd.Space("n")):
    return cd.sum(lambda i: cd.abs(x[i]) ** 3)


def blocks(z: Any, b: Any) -> tuple[Any, Any]:
    """∂²/∂z∂z* and ∂²/∂z* of Σ (z z* − b)², by hand, as the Hessian of this library scales them."""
    return np.diag(4 * np.abs(z) ** 2 - 2 * b), np.diag(2 * z.conj() ** 2)


@pytest.mark.thorough
def test_they_read_as_they_are_written_and_have_no_sign_in_derivatives() -> None:
    assert str(quartic) == "(z, b) ↦ Σ_i (|z[i]|² - b[i])²"
    assert str(sextic) == "x ↦ Σ_i x[i]⁶"
    assert str(odd) == "x ↦ Σ_i |x[i]|³"
    assert r"\left|{z_{i}}\right|^{2}" in quartic.latex()
    assert str(cd.grad(quartic)) == "(z, b) ↦ d ↦ 4 z[d] (|z[d]|² - b[d])"
    for derivative in (cd.grad(phases, "z"), cd.hessian(phases, "z")):
        assert "sign" not in str(derivative)
        assert "|" not in re.sub(r"\|[^|]*\|²", "", str(derivative))  # squared moduli alone


@pytest.mark.parametrize("simplify", [True, False])
def test_second_derivatives_are_right_at_zero(simplify: bool) -> None:
    H = cd.hessian(quartic, simplify=simplify)
    for found, expected in zip(H(Z, B), blocks(Z, B), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-14)
    np.testing.assert_array_equal(cd.hessian(sextic, simplify=simplify)(np.zeros(2)), np.zeros((2, 2)))


@pytest.mark.parametrize("simplify", [True, False])
def test_gradients_agree_with_differences_and_the_reference(simplify: bool) -> None:
    A, z = (RNG.normal(size=s) + 1j * RNG.normal(size=s) for s in ((3, 4), 4))
    cd.testing.check_grad(phases, ("A", "z"), A=A, z=z, b=B[:3])
    gradient = cd.grad(phases, "z", simplify=simplify)
    values = dict(zip(gradient.term.parameters, (A, z, B[:3]), strict=True))
    expected = evaluate(gradient.term.body, values, {"m": 3, "n": 4})
    np.testing.assert_allclose(gradient(A, z, B[:3]), expected, rtol=1e-12)
    np.testing.assert_allclose(gradient(A, z, B[:3]), 4 * A.conj().T @ ((np.abs(A @ z) ** 2 - B[:3]) * (A @ z)))


def test_the_value_is_real_and_that_of_the_absolute_value() -> None:
    value = np.asarray(quartic(Z, B))
    assert value.dtype == float
    np.testing.assert_allclose(value, ((np.abs(Z) ** 2 - B) ** 2).sum())
    np.testing.assert_allclose(odd(B), (np.abs(B) ** 3).sum())


def test_the_text_language_takes_them_alike() -> None:
    assert str(cd.derive("declare x 1 expression abs(x)^2 derivative wrt x")) == "x ↦ (a, d) ↦ 2 δ(a, d) x[a]"
