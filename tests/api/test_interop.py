"""Programs as functions of JAX, PyTorch and SciPy: their derivatives are combdiff's, in the library's convention."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import combdiff as cd
from combdiff import interop

RNG = np.random.default_rng(11)
ERI = cd.Space("N", "N", "N", "N", dtype=complex, symmetry=["J[p,q,r,s] = J[r,s,p,q]", "J[p,q,r,s] = conj(J[q,p,s,r])"])


@cd.program
def coulomb(J: ERI, C: cd.Space("N", "Ne", dtype=complex)):
    return cd.sum(lambda i, j, p, q, r, s: cd.conj(C[p, i]) * C[q, i] * cd.conj(C[r, j]) * C[s, j] * J[p, q, r, s])


@cd.program
def image(A: cd.Space("m", "n", dtype=complex), x: cd.Space("n"), k: cd.Space("m", dtype=int)):
    return cd.exp(A @ x) * cd.tensor(lambda i: k[i])


@cd.program
def pair(x: cd.Space("n"), a: cd.Space()):
    return cd.sum(lambda i: a * x[i] ** 2), cd.tensor(lambda i: a * x[i])


@cd.program
def quartic(z: cd.Space("n", dtype=complex), a: cd.Space(), w: cd.Space("n")):
    return cd.sum(lambda i: w[i] * cd.abs(z[i] - a) ** 2 + cd.abs(z[i]) ** 4) + (a - 1) ** 2


@pytest.fixture
def jax() -> Iterator[Any]:
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        yield jax


def integrals(size: int) -> Any:
    J = RNG.normal(size=(size,) * 4) + 1j * RNG.normal(size=(size,) * 4)
    J = J + J.transpose(2, 3, 0, 1)
    return J + J.transpose(1, 0, 3, 2).conj()


def cplx(*shape: int) -> Any:
    return RNG.normal(size=shape) + 1j * RNG.normal(size=shape)


J, C = integrals(3), cplx(3, 2)
A, X, K = cplx(2, 3), RNG.normal(size=3), np.array([1, 2])


# --- JAX -----------------------------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_gradient_of_a_complex_energy_is_that_of_jax(jax: Any) -> None:
    ours = cd.grad(coulomb, wrt="C")(J, C)
    energy = lambda J, C: jax.numpy.real(interop.jax_function(coulomb)(J, C))  # noqa: E731
    theirs = jax.grad(energy, argnums=1)(J, jax.numpy.asarray(C))
    np.testing.assert_allclose(theirs, ours.conj(), atol=1e-9)
    direct = jax.grad(lambda C: coulomb(jax.numpy.asarray(J), C).real)(jax.numpy.asarray(C))
    np.testing.assert_allclose(theirs, direct, atol=1e-9)


def test_gradients_in_both_conventions_of_jax(jax: Any) -> None:
    @cd.program
    def norm(z: cd.Space("n", dtype=complex)):
        return cd.sum(lambda i: cd.real(cd.conj(z[i]) * z[i]))

    z = jax.numpy.asarray(cplx(3))
    np.testing.assert_allclose(jax.grad(interop.jax_function(norm))(z), 2 * z.conj(), atol=1e-12)
    conjugate = interop.jax_function(norm, convention="conjugate")
    np.testing.assert_allclose(jax.grad(conjugate)(z), 2 * z, atol=1e-12)
    np.testing.assert_allclose(jax.jit(jax.vmap(jax.grad(conjugate)))(z[None]), 2 * z[None], atol=1e-12)


@pytest.mark.thorough
def test_vjp_of_a_complex_function_is_that_of_jax(jax: Any) -> None:
    mine = interop.jax_function(image)
    k = jax.numpy.asarray(K)
    arguments = (jax.numpy.asarray(A), jax.numpy.asarray(X))
    cotangent = jax.numpy.asarray(cplx(2))
    value, pull = jax.vjp(lambda A, x: mine(A, x, k), *arguments)
    expected, theirs = jax.vjp(lambda A, x: jax.numpy.exp(A @ x) * k, *arguments)
    np.testing.assert_allclose(value, expected, atol=1e-12)
    for one, other in zip(pull(cotangent), theirs(cotangent), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, atol=1e-9)


@pytest.mark.thorough
def test_several_results_and_second_derivatives_in_jax(jax: Any) -> None:
    mine = interop.jax_function(pair)
    x = jax.numpy.asarray(X)
    total = lambda x: mine(x, 3.0)[0] + mine(x, 3.0)[1].sum()  # noqa: E731
    np.testing.assert_allclose(jax.grad(total)(x), 6 * X + 3)
    np.testing.assert_allclose(jax.hessian(total)(x), 6 * np.eye(3), atol=1e-12)


# --- PyTorch -------------------------------------------------------------------------------------------------------


@pytest.mark.needs("torch")
def test_backward_of_torch_is_the_pullback() -> None:
    import torch

    z = torch.tensor(C, requires_grad=True)
    interop.torch_function(coulomb)(torch.tensor(J), z).real.backward()
    np.testing.assert_allclose(z.grad.numpy(), cd.grad(coulomb, wrt="C")(J, C), atol=1e-9)
    mine = interop.torch_function(image)
    a, x, k = torch.tensor(A, requires_grad=True), torch.tensor(X, requires_grad=True), torch.tensor(K)
    cotangent = torch.tensor(cplx(2))
    found = torch.autograd.grad(mine(a, x, k), (a, x), cotangent)
    expected = torch.autograd.grad(torch.exp(a @ x.to(a.dtype)) * k, (a, x), cotangent)
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, atol=1e-9)


@pytest.mark.needs("torch")
def test_gradcheck_and_second_derivatives_in_torch() -> None:
    import torch

    x = torch.tensor(X, requires_grad=True)
    a = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    mine = interop.torch_function(pair)
    assert torch.autograd.gradcheck(mine, (x, a))
    assert torch.autograd.gradgradcheck(mine, (x, a))
    value, _ = mine(x, 3.0)
    value.backward()
    np.testing.assert_allclose(x.grad, 6 * X)


# --- SciPy ---------------------------------------------------------------------------------------------------------


def check_packed(objective: interop.Objective, *others: Any) -> None:
    """jac and hessp against central differences of fun and jac."""
    x = objective.x0
    jac, h = objective.jac(x, *others), 1e-6
    units = np.eye(len(x))
    slopes = [(objective.fun(x + h * e, *others) - objective.fun(x - h * e, *others)) / (2 * h) for e in units]
    np.testing.assert_allclose(jac, slopes, atol=1e-5 * max(1, np.abs(jac).max()))
    for e in units:
        slope = (objective.jac(x + h * e, *others) - objective.jac(x - h * e, *others)) / (2 * h)
        np.testing.assert_allclose(objective.hessp(x, e, *others), slope, atol=1e-5 * max(1, np.abs(slope).max()))


@pytest.mark.thorough
def test_packed_derivatives() -> None:
    check_packed(interop.scipy_objective(coulomb, "C", J=J, C=C))
    w, z = RNG.uniform(1, 2, 4), cplx(4)
    check_packed(interop.scipy_objective(quartic, ("z", "a"), w=w, z=z, a=0.3))
    check_packed(interop.scipy_objective(quartic, ("a", "z"), z=z, a=0.3), w)


@pytest.mark.thorough
def test_minimize_takes_it() -> None:
    optimize = pytest.importorskip("scipy.optimize")
    w, z = np.ones(3), cplx(3)
    objective = interop.scipy_objective(quartic, ("z", "a"), w=w, z=z, a=0.3)
    for method in ("BFGS", "trust-ncg", "Newton-CG"):
        fun, jac, hessp = objective
        extra = {} if method == "BFGS" else {"hessp": hessp}
        found = optimize.minimize(fun, objective.x0, jac=jac, method=method, **extra)
        assert np.abs(jac(found.x)).max() < 1e-4
    z_found, a_found = objective.unpack(found.x)
    assert z_found.dtype == complex
    np.testing.assert_allclose(quartic(z_found, a_found[()], w), found.fun)


@pytest.mark.thorough
def test_shapes_may_follow_from_other_arguments() -> None:
    rosen = interop.scipy_objective(quartic, "w", z=np.ones(3), a=1.0)
    np.testing.assert_allclose(rosen.jac(np.ones(3)), 0.0, atol=1e-12)
    objective = interop.scipy_objective(coulomb.partial(J=J), "C")
    with pytest.raises(cd.ArgumentError, match="the size Ne is not known") as caught:
        objective.fun(np.ones(12))
    assert "scipy_objective(f, wrt, C=…)" in caught.value.hint


# --- messages ------------------------------------------------------------------------------------------------------


@pytest.mark.needs("torch")
def test_messages() -> None:
    @cd.program
    def along(R: cd.Function(cd.Space("n")), x: cd.Space("n")):
        return R(x)

    with pytest.raises(cd.UnsupportedError, match="R is a named map"):
        interop.torch_function(along)
    with pytest.raises(cd.ArgumentError, match="coulomb has no argument 'D'"):
        interop.scipy_objective(coulomb, "C", D=C)
    with pytest.raises(cd.ArgumentError, match="a vector of 12 numbers was expected, but one of 13 was given"):
        interop.scipy_objective(coulomb, "C", J=J, C=C).fun(np.ones(13))
    pytest.importorskip("jax")
    with pytest.raises(cd.UnsupportedError, match="unknown convention 'torch'"):
        interop.jax_function(coulomb, convention="torch")
