"""Programs and transforms as a user meets them: worked results, calls, messages, equality, sources."""

from __future__ import annotations

import copy
import gc
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from messages import message, messages_of
from strategies import examples

import combdiff as cd
from combdiff.ir import terms
from combdiff.ir.terms import Let
from combdiff.simplification import memory

ERI = cd.Space(*"NNNN", dtype=complex, symmetry=["J[p,q,r,s] = J[r,s,p,q]", "J[p,q,r,s] = conj(J[q,p,s,r])"])
Orbitals = cd.Space("N", "Ne", dtype=complex)
Hermitian = cd.Space("n", "n", dtype=complex, symmetry=["A[i,j] = conj(A[j,i])"])
General = cd.Space("n", "n", dtype=complex)
Matrix, Vector = cd.Space("n", "n"), cd.Space("n")
Complex = cd.Space("n", dtype=complex)
Cubic = cd.Space("n", "n", "n", symmetry=["T[i,j,k] = T[j,i,k]", "T[i,j,k] = T[k,j,i]"])
RNG = np.random.default_rng(8)


def real(*shape: int) -> Any:
    return RNG.normal(size=shape)


def cplx(*shape: int) -> Any:
    return RNG.normal(size=shape) + 1j * RNG.normal(size=shape)


def hermitian(size: int) -> Any:
    array = cplx(size, size)
    return array + array.conj().T


def same(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


@cd.program
def quadratic(A: Matrix, x: Vector):  # type: ignore[valid-type, no-untyped-def]
    return cd.sum(lambda i, j: x[i] * A[i, j] * x[j])


@cd.program
def rayleigh(A: Hermitian, x: Complex):  # type: ignore[valid-type, no-untyped-def]
    return cd.sum(lambda i, j: cd.conj(x[i]) * A[i, j] * x[j])


@cd.program
def general(A: General, x: Complex):  # type: ignore[valid-type, no-untyped-def]
    return cd.real(cd.sum(lambda i, j: cd.conj(x[i]) * A[i, j] * x[j]))


@cd.program
def cubic(T: Cubic, x: Vector):  # type: ignore[valid-type, no-untyped-def]
    return cd.sum(lambda i, j, k: T[i, j, k] * x[i] * x[j] * x[k])


@cd.program
def residual(T: cd.Space("I", "J", "K"), X: cd.Space("I", "R"), Y: cd.Space("J", "R"), Z: cd.Space("K", "R")):  # type: ignore
    return cd.sum(lambda i, j, k: (T[i, j, k] - cd.sum(lambda n: X[i, n] * Y[j, n] * Z[k, n])) ** 2)


@cd.program
def coulomb(J: ERI, C: Orbitals):  # type: ignore[valid-type, no-untyped-def]
    return cd.sum(lambda i, j, p, q, r, s: cd.conj(C[p, i]) * C[q, i] * cd.conj(C[r, j]) * C[s, j] * J[p, q, r, s])


@cd.program
def several(x: Vector, A: Matrix):  # type: ignore[valid-type, no-untyped-def]
    y = A @ x
    return y, cd.sum(lambda i: y[i] * x[i])


# --- the worked results (theory.md §3, 1 to 4) ---------------------------------------------------------------------


def test_a_hermitian_form_has_the_gradient_two_a_x() -> None:
    gradient = cd.grad(rayleigh, wrt="x")
    assert str(gradient) == "(A, x) ↦ d ↦ 2 Σ_i A[d,i] x[i]"
    A, x = hermitian(4), cplx(4)
    same(gradient(A, x), 2 * A @ x)


def test_the_real_part_of_a_general_form() -> None:
    gradient = cd.grad(general, wrt="x")
    A, x = cplx(4, 4), cplx(4)
    same(gradient(A, x), (A + A.conj().T) @ x)
    same(cd.grad(general, wrt="A")(A, x), np.outer(x, x.conj()))


def test_a_supersymmetric_form_has_one_term_with_factor_three() -> None:
    gradient = cd.grad(cubic, wrt="x")
    assert str(gradient) == "(T, x) ↦ d ↦ 3 Σ_{i,j} T[d,i,j] x[i] x[j]"
    T = cd.testing.symmetrize(real(3, 3, 3), Cubic)
    x = real(3)
    same(gradient(T, x), 3 * np.einsum("dij,i,j->d", T, x, x))


@pytest.mark.thorough
def test_the_gradients_of_a_decomposition_share_the_residual() -> None:
    gradients = cd.grad(residual, wrt=("X", "Y", "Z"))
    assert str(gradients).splitlines() == [
        "(T, X, Y, Z) ↦",
        "  t[i,j,k] = T[i,j,k] - Σ_n X[i,n] Y[j,n] Z[k,n]",
        "  (",
        "    (d, e) ↦ -2 Σ_{j,k} Y[j,e] Z[k,e] t[d,j,k],",
        "    (d, e) ↦ -2 Σ_{i,k} X[i,e] Z[k,e] t[i,d,k],",
        "    (d, e) ↦ -2 Σ_{i,j} X[i,e] Y[j,e] t[i,j,d]",
        "  )",
    ]
    T, X, Y, Z = real(3, 4, 5), real(3, 2), real(4, 2), real(5, 2)
    rest = T - np.einsum("in,jn,kn->ijk", X, Y, Z)
    same(residual(T, X, Y, Z), np.sum(rest**2))
    for found, expected in zip(
        gradients(T, X, Y, Z),
        (
            -2 * np.einsum("ijk,jn,kn->in", rest, Y, Z),
            -2 * np.einsum("ijk,in,kn->jn", rest, X, Z),
            -2 * np.einsum("ijk,in,jn->kn", rest, X, Y),
        ),
        strict=True,
    ):
        same(found, expected)


def test_hartree_fock_has_one_term_with_factor_four() -> None:
    gradient = cd.grad(coulomb, wrt="C")
    head, _, body = str(gradient).partition(" ↦ 4 Σ_{")
    assert head == "(J, C) ↦ (d, e)"
    assert body.count("J[") == 1
    assert body.count("C[") == 3
    assert "+" not in body
    assert "δ" not in body


def fock(J: Any, C: Any) -> Any:
    density = np.einsum("rj,sj->rs", C, C.conj())
    return np.einsum("rspd,rs->dp", J.conj(), density)


def test_hartree_fock_values() -> None:
    J, C = cd.testing.random_array(ERI, RNG, {"N": 4}), cplx(4, 2)
    same(cd.grad(coulomb, wrt="C")(J, C), 4 * fock(J, C) @ C)
    energy, gradient = cd.value_and_grad(coulomb, wrt="C")(J, C)
    same(energy, np.einsum("pi,qi,rj,sj,pqrs->", C.conj(), C, C.conj(), C, J).real)
    same(gradient, 4 * fock(J, C) @ C)


@pytest.mark.thorough
def test_the_hartree_fock_hessian_product_has_three_terms_two_of_them_joined() -> None:
    product = cd.hvp(coulomb, wrt="C")
    assert str(product).count("J[") == 2
    J, C, k = cd.testing.random_array(ERI, RNG, {"N": 4}), cplx(4, 2), cplx(4, 2)
    step = 1e-5
    ahead, behind = (cd.grad(coulomb, wrt="C")(J, C + sign * step * k) for sign in (1, -1))
    np.testing.assert_allclose(product(J, C, k), (ahead - behind) / (2 * step), rtol=1e-7, atol=1e-7)
    # 4(Σ C[p,e]* … ) of theory.md, with its indices (the result at a, e; the integrals summed over the rest).
    first = np.einsum("rspa,rj,sj,pe->ae", J.conj(), C, C.conj(), k)
    second = np.einsum("rspa,rj,sj,pe->ae", J.conj(), k, C.conj(), C)
    third = np.einsum("rspa,rj,sj,pe->ae", J.conj(), C, k.conj(), C)
    same(product(J, C, k), 4 * (first + second + third))


# --- calling -------------------------------------------------------------------------------------------------------


def test_arguments_by_position_and_by_name() -> None:
    A, x = real(3, 3), real(3)
    expected = x @ A @ x
    same(quadratic(A, x), expected)
    same(quadratic(A, x=x), expected)
    same(quadratic(x=x, A=A), expected)
    same(quadratic(A.tolist(), x.tolist()), expected)
    assert [p.name for p in quadratic.parameters] == ["A", "x"]


A0, X0 = np.eye(3), np.ones(3)

CALLS: dict[str, tuple[Callable[[], Any], str]] = {
    "nothing": (lambda: quadratic(), "quadratic misses A, x — call quadratic(A, x)"),
    "one missing": (lambda: quadratic(A0), "quadratic misses x — call quadratic(A, x)"),
    "too many": (lambda: quadratic(A0, X0, X0), "quadratic takes 2 arguments (A, x), not 3"),
    "unknown": (lambda: quadratic(A0, y=X0), "quadratic has no argument 'y' — its arguments are A, x"),
    "twice": (lambda: quadratic(A0, A=A0, x=X0), "quadratic got the argument 'A' twice, by position and by name"),
    "sizes": (
        lambda: quadratic(A0, np.ones(4)),
        "n is 3 by axis 0 of A (shape (3, 3), expected (n, n)), but 4 by axis 0 of x (shape (4,), expected (n))",
    ),
    "order": (lambda: quadratic(A0, np.ones((3, 1))), "x has 2 axes, shape (3, 1), but"),
    "complex": (
        lambda: quadratic(A0, X0 * 1j),
        "x takes real numbers, but the array given for it has dtype complex128 — "
        "take its real part, or declare x with dtype=complex",
    ),
    "text": (lambda: quadratic(A0, "x"), "the array given for x has dtype <U1, which is not a number type"),
    "none": (lambda: quadratic(A0, None), "no array was given for x — pass x by position or by name"),
    "map": (lambda: quadratic(A0, np.sin), "x is a tensor, Space('n'), but a callable was given for it"),
    "partial": (lambda: quadratic.partial(B=A0), "quadratic has no argument 'B' — its arguments are A, x"),
    "fixed twice": (
        lambda: quadratic.partial(A=A0).partial(A=A0),
        "quadratic has no argument 'A' — its arguments are x",
    ),
    "fixed and given": (
        lambda: quadratic.partial(A=A0)(A=A0, x=X0),
        "quadratic has no argument 'A' — its arguments are x",
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_messages_about_calls(name: str) -> None:
    action, expected = CALLS[name]
    assert message(cd.ArgumentError, action).startswith(expected)


def test_partial_programs() -> None:
    A, x = real(3, 3), real(3)
    fixed = quadratic.partial(A=A)
    assert [p.name for p in fixed.parameters] == ["x"]
    same(fixed(x), quadratic(A, x))
    same(fixed(x=x), quadratic(A, x))
    same(cd.grad(fixed)(x), (A + A.T) @ x)
    same(cd.grad(fixed, wrt="x")(x), (A + A.T) @ x)
    same(cd.hvp(fixed)(x, x), (A + A.T) @ x)
    value, gradient = cd.value_and_grad(fixed)(x)
    same(value, quadratic(A, x))
    same(gradient, (A + A.T) @ x)
    assert quadratic.parameters[0].name == "A"


# --- derivatives asked for wrongly ---------------------------------------------------------------------------------


@cd.program
def holomorphic(z: Complex):  # type: ignore[valid-type, no-untyped-def]
    return cd.sum(lambda i: z[i] * z[i])


@cd.program
def counted(n: cd.Space("n", dtype=int), x: Vector):  # type: ignore
    return cd.sum(lambda i: n[i] * x[i])


@cd.program
def unknown(R: cd.Function(Vector), x: Vector):  # type: ignore[valid-type, no-untyped-def]
    return R(x)


@cd.program
def constant():  # type: ignore[no-untyped-def]
    return cd.sum(lambda i: 1.0, i=3)


WRONG: dict[str, tuple[type[cd.CombdiffError], Callable[[], Any], str]] = {
    "unknown wrt": (
        cd.DifferentiationError,
        lambda: cd.grad(quadratic, wrt="y"),
        "quadratic has no parameter 'y' to differentiate by — its parameters are A, x",
    ),
    "duplicate wrt": (cd.DifferentiationError, lambda: cd.grad(quadratic, wrt=("x", "x")), "wrt names 'x' twice"),
    "no wrt": (cd.DifferentiationError, lambda: cd.grad(quadratic, wrt=()), "nothing to differentiate quadratic by"),
    "a number for wrt": (cd.DifferentiationError, lambda: cd.grad(quadratic, wrt=3), ""),  # type: ignore
    "no parameters": (cd.DifferentiationError, lambda: cd.grad(constant), "nothing to differentiate constant by"),
    "a tensor": (
        cd.DifferentiationError,
        lambda: cd.grad(cd.grad(quadratic, wrt="x"), wrt="x"),
        "grad needs a program with one scalar result, but grad_quadratic gives a tensor of order 1 — "
        "use pullback or jacobian, or sum the result",
    ),
    "several results": (
        cd.DifferentiationError,
        lambda: cd.value_and_grad(several),
        "grad needs a program with one scalar result, but several gives 2 results — "
        "use pullback or jacobian, or sum the result",
    ),
    "not real": (
        cd.DifferentiationError,
        lambda: cd.grad(holomorphic),
        "grad needs a real objective, but holomorphic is complex and is not found equal to its conjugate — "
        "declare the symmetries that make it real, or return cd.real(…) of it",
    ),
    "not real either": (cd.DifferentiationError, lambda: cd.hvp(holomorphic), "grad needs a real objective"),
    "integers": (
        cd.DifferentiationError,
        lambda: cd.grad(counted, wrt="n"),
        "n holds integers, which have no derivative — declare it with dtype=float",
    ),
    "fixed": (
        cd.DifferentiationError,
        lambda: cd.grad(quadratic.partial(A=A0), wrt="A"),
        "quadratic has no parameter 'A' to differentiate by — its parameters are x",
    ),
    "a function": (
        cd.DifferentiationError,
        lambda: cd.grad(np.sin),  # type: ignore[arg-type]
        "a Program was expected, not <ufunc 'sin'> — decorate the function with @combdiff.program first",
    ),
    "convention": (
        cd.DifferentiationError,
        lambda: cd.grad(quadratic, convention="torch"),
        'unknown convention \'torch\' — use "conjugate" (the default) or "jax"',
    ),
    "mode": (
        cd.DifferentiationError,
        lambda: cd.jacobian(quadratic, mode="sideways"),
        "unknown mode 'sideways' — use ",
    ),
    "named map": (
        cd.UnsupportedError,
        lambda: cd.grad(unknown, wrt="R"),
        "R is a named map; only derivatives by tensors can be taken",
    ),
    "second derivative of a named map": (
        cd.UnsupportedError,
        lambda: cd.hvp(unknown, wrt="x"),
        "the second derivative of R, which is only named, is not known — "
        "pass a program for it before differentiating twice",
    ),
    "backend": (
        cd.UnsupportedError,
        lambda: quadratic.source("fortran"),
        "no source can be written for the backend 'fortran'",
    ),
}


test_messages_about_derivatives = messages_of(WRONG)


# --- what transforms give ------------------------------------------------------------------------------------------


def test_the_first_parameter_is_the_default() -> None:
    A, x = real(3, 3), real(3)
    same(cd.grad(quadratic)(A, x), np.outer(x, x))
    assert cd.grad(quadratic) == cd.grad(quadratic, wrt="A")


def test_a_tuple_of_names_gives_a_tuple() -> None:
    A, x = real(3, 3), real(3)
    by_x, by_a = cd.grad(quadratic, wrt=("x", "A"))(A, x)
    same(by_x, (A + A.T) @ x)
    same(by_a, np.outer(x, x))
    (only,) = cd.grad(quadratic, wrt=("x",))(A, x)
    same(only, by_x)
    (listed,) = cd.grad(quadratic, wrt=["x"])(A, x)
    same(listed, by_x)
    value, gradients = cd.value_and_grad(quadratic, wrt=("x", "A"))(A, x)
    same(value, x @ A @ x)
    assert isinstance(gradients, tuple)
    same(gradients[0], by_x)
    same(gradients[1], by_a)


def test_the_jax_convention_is_the_conjugate() -> None:
    A, x = cplx(4, 4), cplx(4)
    ours, theirs = (cd.grad(general, wrt="x", convention=c)(A, x) for c in ("conjugate", "jax"))
    same(theirs, ours.conj())
    value, both = cd.value_and_grad(general, wrt=("x", "A"), convention="jax")(A, x)
    same(value, general(A, x))
    same(both[0], ours.conj())
    same(both[1], np.outer(x.conj(), x))
    same(cd.grad(quadratic, wrt="x", convention="jax")(A.real, x.real), (A.real + A.real.T) @ x.real)


def test_the_value_of_a_real_objective_of_complex_type_is_a_float() -> None:
    """The form of a Hermitian matrix is real: its value has no imaginary part, not even a rounding error."""
    A, x = hermitian(4), cplx(4)
    value, gradient = cd.value_and_grad(rayleigh, wrt="x")(A, x)
    assert isinstance(value, float)
    assert np.asarray(value).dtype == np.float64
    same(value, (x.conj() @ A @ x).real)
    assert gradient.dtype == complex
    assert isinstance(cd.value_and_grad(quadratic, wrt="x")(A.real, x.real)[0], float)


@cd.program
def deep(x: Vector, A: Matrix):  # type: ignore[valid-type, no-untyped-def]
    y = cd.tanh(A @ x)
    return cd.sum(lambda i: y[i] * y[i] * x[i])


def test_value_and_gradient_share_their_intermediates() -> None:
    """The binding y stands once, and is used by the value and by the gradient."""
    both = cd.value_and_grad(deep, wrt="x")
    assert isinstance(both.term.body, Let)
    assert both.source().count("np.tanh(") == 1
    assert both.source().count("A @ x") == 1
    x, A = real(4), real(4, 4)
    value, gradient = both(x, A)
    same(value, deep(x, A))
    same(gradient, cd.grad(deep, wrt="x")(x, A))


def test_unsimplified_transforms_agree() -> None:
    A, x, k = hermitian(3), cplx(3), cplx(3)
    for transform in (cd.grad, cd.hvp, cd.pullback, cd.pushforward):
        simple, raw = (transform(rayleigh, "x", simplify=flag) for flag in (True, False))
        arrays = {p.name: {"A": A, "x": x}.get(p.name, k) for p in simple.parameters}
        if "k" in arrays:
            arrays["k"] = 0.7 - 0.2j
        found, expected = simple(**arrays), raw(**arrays)
        same(found, expected)


def test_pullback_takes_the_cotangent_last() -> None:
    product = cd.pullback(several, wrt="x")
    assert [p.name for p in product.parameters] == ["x", "A", "k1", "k2"]
    x, A, k = real(3), real(3, 3), real(3)
    same(product(x, A, k, 2.0), A.T @ k + 2 * (A + A.T) @ x)
    single = cd.pullback(quadratic, wrt=("x", "A"))
    assert [p.name for p in single.parameters] == ["A", "x", "k"]
    by_x, by_a = single(A, x, 0.5)
    same(by_x, 0.5 * (A + A.T) @ x)
    same(by_a, 0.5 * np.outer(x, x))


def test_pushforward_takes_a_tangent_for_each_wrt() -> None:
    product = cd.pushforward(several, wrt=("x", "A"))
    assert [p.name for p in product.parameters] == ["x", "A", "x_dot", "A_dot"]
    x, A, dx, dA = real(3), real(3, 3), real(3), real(3, 3)
    first, second = product(x, A, dx, dA)
    same(first, A @ dx + dA @ x)
    same(second, dx @ A @ x + x @ A @ dx + x @ dA @ x)


@cd.program
def cosine(k: Vector, k_dot: Vector):  # type: ignore[valid-type, no-untyped-def]
    return cd.sum(lambda i: cd.cos(k[i]) * k_dot[i])


def test_new_parameters_do_not_clash_with_old_ones() -> None:
    k, k_dot = real(3), real(3)
    back, forward = cd.pullback(cosine), cd.pushforward(cosine)
    for transformed in (back, forward):
        names = [p.name for p in transformed.parameters]
        assert len(set(names)) == 3
        assert names[:2] == ["k", "k_dot"]
    same(back(k, k_dot, 2.0), -2 * np.sin(k) * k_dot)
    same(forward(k, k_dot, k), np.sum(-np.sin(k) * k_dot * k))


def test_hessian_products_of_real_and_complex_programs() -> None:
    A, x, k = real(4, 4), real(4), real(4)
    same(cd.hvp(quadratic, wrt="x")(A, x, k), (A + A.T) @ k)
    H, z, m = hermitian(4), cplx(4), cplx(4)
    same(cd.hvp(rayleigh, wrt="x")(H, z, m), 2 * H @ m)
    product, gradient = cd.hvp(deep, wrt="x"), cd.grad(deep, wrt="x")
    step = 1e-6
    expected = (gradient(x + step * k, A) - gradient(x - step * k, A)) / (2 * step)
    np.testing.assert_allclose(product(x, A, k), expected, rtol=1e-6, atol=1e-7)
    assert [p.name for p in product.parameters] == ["x", "A", "x_dot"]


def test_simplify_keeps_a_program_and_its_value() -> None:
    simple = cd.simplify(several)
    x, A = real(3), real(3, 3)
    for found, expected in zip(simple(x, A), several(x, A), strict=True):
        same(found, expected)
    assert [p.name for p in simple.parameters] == ["x", "A"]


@pytest.mark.thorough
def test_gradients_of_gradients_by_a_scalar() -> None:
    """∇ of the squared norm of a gradient: a program called inside another is inlined, and differentiated again."""
    inner = cd.grad(deep, wrt="x")

    @cd.program
    def norm(x: Vector, A: Matrix):  # type: ignore[valid-type, no-untyped-def]
        g = inner(x, A)
        return cd.sum(lambda i: g[i] ** 2)

    x, A = real(3), real(3, 3)
    same(norm(x, A), np.sum(inner(x, A) ** 2))
    same(cd.grad(norm, wrt="x")(x, A), 2 * cd.hvp(deep, wrt="x")(x, A, inner(x, A)))
    cd.testing.check_grad(norm, ("x", "A"), x=x, A=A)


def test_programs_call_programs() -> None:
    @cd.program
    def twice(A: Matrix, x: Vector):  # type: ignore[valid-type, no-untyped-def]
        y = cd.tensor(lambda i: cd.sum(lambda j: A[i, j] * x[j]))
        return quadratic(A, y) + quadratic(x=x, A=A)

    A, x = real(3, 3), real(3)
    same(twice(A, x), (A @ x) @ A @ (A @ x) + x @ A @ x)
    cd.testing.check_grad(twice, ("A", "x"), A=A, x=x)


def test_a_program_stands_for_a_named_map() -> None:
    @cd.program
    def potential(u: Vector):  # type: ignore[valid-type, no-untyped-def]
        return cd.sum(lambda i: cd.cos(u[i]) * u[i])

    x = real(3)
    same(unknown(potential, x), potential(x))
    same(cd.grad(unknown, wrt="x")(potential, x), cd.grad(potential)(x))
    value, gradient = cd.value_and_grad(unknown, wrt="x")(potential, x)
    same(value, potential(x))
    same(gradient, cd.grad(potential)(x))


@cd.program
def image(D: cd.Function(Vector, result=Vector, linear=True), x: Vector):  # type: ignore
    y = D(x)
    return cd.sum(lambda i: y[i] ** 2)


def test_the_gradient_through_a_linear_map() -> None:
    """∇ |D x|² = 2 Dᵀ D x: the adjoint is called once, on a whole vector."""
    matrix = real(3, 3)
    calls: list[str] = []

    class Linear:
        def __call__(self, u: Any) -> Any:
            calls.append("D")
            return matrix @ u

        def pullback(self, position: int, arguments: tuple[Any, ...], cotangent: Any) -> Any:
            calls.append("Dᵀ")
            return matrix.T @ cotangent

    x = real(3)
    same(image(Linear(), x), np.sum((matrix @ x) ** 2))
    calls.clear()
    gradient = cd.grad(image, wrt="x")
    assert str(gradient) == "(D, x) ↦ 2 Dᵀ(D(x))"
    same(gradient(Linear(), x), 2 * matrix.T @ matrix @ x)
    assert calls == ["D", "Dᵀ"]


def test_powers_that_are_fractions_print_as_fractions() -> None:
    @cd.program
    def root(x: Vector, y: Vector):  # type: ignore[valid-type, no-untyped-def]
        return cd.sum(lambda i: x[i] ** (4 / 3) * y[i] ** 0.3)

    assert str(cd.grad(root, "x")) == "(x, y) ↦ d ↦ 4/3 x[d]^(1/3) y[d]^0.3"


# --- equality, pickles, looks --------------------------------------------------------------------------------------


def test_programs_are_equal_up_to_bound_names() -> None:
    @cd.program
    def other(A: Matrix, x: Vector):  # type: ignore[valid-type, no-untyped-def]
        return cd.sum(lambda p, q: x[p] * A[p, q] * x[q])

    @cd.program
    def summed_by_columns(A: Matrix, x: Vector):  # type: ignore[valid-type, no-untyped-def]
        return cd.sum(lambda p, q: x[p] * A[q, p] * x[q])

    @cd.program
    def transposed(A: Matrix, x: Vector):  # type: ignore[valid-type, no-untyped-def]
        return cd.sum(lambda p, q: x[p] * A[q, p] * x[q] ** 2)

    @cd.program
    def squared(A: Matrix, x: Vector):  # type: ignore[valid-type, no-untyped-def]
        return cd.sum(lambda p, q: x[p] * A[p, q] * x[q] ** 2)

    assert other == summed_by_columns == quadratic
    assert hash(other) == hash(summed_by_columns) == hash(quadratic)
    assert transposed != squared
    assert transposed != quadratic
    assert cd.grad(other, wrt="x") == cd.grad(quadratic, wrt="x")
    assert quadratic != "quadratic"
    assert quadratic.partial(x=1) != quadratic
    assert len({other, quadratic, transposed}) == 2


def test_partial_programs_with_arrays_are_compared() -> None:
    A, x = real(3, 3), real(3)
    assert quadratic.partial(A=A) == quadratic.partial(A=A.copy())
    assert quadratic.partial(A=A) != quadratic.partial(A=A + 1)
    assert quadratic.partial(A=A) != quadratic.partial(x=x)


@pytest.mark.parametrize("program", [quadratic, rayleigh, coulomb, residual, several], ids=lambda p: p.name)
def test_programs_can_be_pickled(program: cd.Program) -> None:
    again = pickle.loads(pickle.dumps(program))
    assert again == program
    assert str(again) == str(program)
    assert again.name == program.name
    gradient = cd.pullback(program)
    assert pickle.loads(pickle.dumps(gradient)) == gradient


def test_what_comes_of_programs_can_be_copied_and_pickled() -> None:
    several = cd.hessian(quadratic, ("A", "x"))
    made: list[Any] = [cd.hessian(quadratic, "x"), several, several["A", "x"], cd.hessian(coulomb, "C", mode="reverse")]
    made += [cd.grad(quadratic, "x").explain(), made[0].explain(), cd.grad(quadratic, "x").cost(n=3)]
    for one in made:
        for other in (copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
            assert type(other) is type(one)
            assert other == one
            assert str(other) == str(one)
    A, x = real(3, 3), real(3)
    blocks = pickle.loads(pickle.dumps(several))(A, x)
    same(blocks["A", "x"], several(A, x)["A", "x"])
    same(copy.deepcopy(made[0]).diag(A, x), made[0].diag(A, x))


def test_programs_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        quadratic.name = "other"  # type: ignore[misc]


def test_how_programs_look() -> None:
    assert str(quadratic) == "(A, x) ↦ Σ_{i,j} x[i] A[i,j] x[j]"
    assert repr(quadratic) == "<Program quadratic: (A, x) ↦ Σ_{i,j} x[i] A[i,j] x[j]>"
    assert quadratic.latex() == r"(A, x) \mapsto \sum_{i,j} x_{i} A_{i,j} x_{j}"
    assert quadratic._repr_latex_() == f"$${quadratic.latex()}$$"
    assert quadratic.combinators() == "(A, x) ↦ 𝐁 Σ (𝐂 ((i, j) ↦ 𝐁 (x[i] ·) (𝐁 (A[i,j] ·) (𝐁 x 𝐈 [j]))))"
    assert quadratic.location is not None
    assert quadratic.location.file == __file__
    assert cd.grad(quadratic).name == "grad_quadratic"


@pytest.mark.parametrize(
    ("make", "arrays"),
    [
        (lambda: quadratic, {"A": real(3, 3), "x": real(3)}),
        (lambda: cd.grad(quadratic, wrt=("x", "A")), {"A": real(3, 3), "x": real(3)}),
        (lambda: cd.value_and_grad(rayleigh, wrt="x"), {"A": hermitian(3), "x": cplx(3)}),
        (lambda: cd.value_and_grad(deep), {"x": real(3), "A": real(3, 3)}),
        (lambda: cd.hvp(deep), {"x": real(3), "A": real(3, 3), "x_dot": real(3)}),
    ],
    ids=["value", "gradients", "complex", "deep", "hessian product"],
)
def test_the_source_runs_alone(make: Callable[[], cd.Program], arrays: dict[str, Any]) -> None:
    program = make()
    namespace: dict[str, Any] = {}
    exec(program.source(), namespace)
    found = namespace[program.name](*(arrays[p.name] for p in program.parameters))
    _same_nested(found, program(**arrays))


def _same_nested(found: Any, expected: Any) -> None:
    if isinstance(expected, tuple):
        for one, other in zip(found, expected, strict=True):
            _same_nested(one, other)
    else:
        same(found, expected)


# --- gradients are right -------------------------------------------------------------------------------------------


@settings(max_examples=examples(5), deadline=None, suppress_health_check=list(HealthCheck))
@given(cd.testing.tensors(ERI, N=2), cd.testing.tensors(Orbitals, N=2, Ne=2))
def test_hartree_fock_against_central_differences(J: Any, C: Any) -> None:
    cd.testing.check_grad(coulomb, "C", J=J, C=C)


def test_gradients_against_central_differences() -> None:
    cd.testing.check_grad(residual, ("X", "Y", "Z"), T=real(2, 3, 2), X=real(2, 2), Y=real(3, 2), Z=real(2, 2))
    cd.testing.check_grad(deep, ("x", "A"), x=real(3), A=real(3, 3))
    cd.testing.check_grad(general, ("x", "A"), A=cplx(3, 3), x=cplx(3))
    cd.testing.check_grad(rayleigh, "x", A=hermitian(3), x=cplx(3))


@pytest.mark.thorough
def test_derivations_leave_nothing_behind() -> None:
    def kept(number: int) -> int:
        @cd.program
        def f(A: cd.Space("n", "n"), x: cd.Space("n")):
            return np.log(1 + number * (x @ A @ x)) + np.tanh(A @ x).sum()

        str(cd.grad(f))
        del f
        memory.forget()
        gc.collect()
        return len(terms._interned)

    first = kept(2)
    assert kept(3) <= first + 100  # of some 300 terms of a derivation; the caches of single terms are bounded
