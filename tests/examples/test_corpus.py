"""Derivatives that other systems got wrong, or returned as silent zeros; each against central differences.

The cases are rebuilt from public bug reports (SymPy 30527, 27406, 26585, 26561, 25118,
24725, 24867, 23492, 20777, 15136 and kin).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from strategies import assert_reads_back

import combdiff as cd
from combdiff.ir.interpreter import evaluate
from combdiff.testing.arrays import random_arrays
from combdiff.testing.routes import check_routes

Square = cd.Space("k", "k")
Vector = cd.Space("k")
Complex = cd.Space("k", dtype=complex)
SIZES = {"k": 3}


@cd.program
def two_traces(A: Square, B: Square):
    """SymPy 27406: ∂/∂A of tr(AᵀA) + tr(BᵀB) came out 0."""
    return cd.trace(A.T @ A) + cd.trace(B.T @ B)


@cd.program
def square_of_trace(A: Square):
    """SymPy 30527: (tr(I − A))² came out constant."""
    return (3 - cd.trace(A)) ** 2


@cd.program
def deviation(x: Vector, m: cd.Space()):
    """SymPy 24725: ∂/∂m of tr((x − m)ᵀ(x − m)) could not be taken."""
    return cd.sum(lambda i: (x[i] - m) ** 2)


@cd.program
def affine_model(x: Vector, w: Vector, b: cd.Space()):
    """SymPy 24725, in a comment: ∂/∂w of tr(xᵀw) + b came out 0."""
    return x @ w + b


@cd.program
def two_norms(A: Square, U: Square, V: Square):
    """SymPy 26585: ‖A − UV‖² + ‖U‖² came out constant in U."""
    residual = A - U @ V
    return 0.5 * (residual * residual).sum() + 0.5 * (U * U).sum()


@cd.program
def traces_of_powers(A: Square):
    """SymPy 23492: tr A + tr A² came out constant."""
    return cd.trace(A) + cd.trace(A @ A)


@cd.program
def sum_of_exponentials(x: cd.Space(), y: Vector):
    """SymPy 20777: ∂/∂x Σ_n exp(x sin y_n) came out 0."""
    return cd.sum(lambda n: cd.exp(x * cd.sin(y[n])))


@cd.program
def trace_plus_one(E: Square):
    """SymPy 26561: tr(E)² + 1 came out constant."""
    return cd.trace(E) ** 2 + 1


@cd.program
def invariant(F: Square):
    """SymPy 25118: tr(FᵀF) − 3 came out constant."""
    return cd.trace(F.T @ F) - 3


@cd.program
def square_times(X: Square, B: Square):
    """SymPy 15136: ∂ tr(X²B) came out as a product of sums."""
    return cd.trace(X @ X @ B)


@cd.program
def element(A: Square, B: Square, x: cd.Space()):
    """SymPy 24867: the derivative of an element of A + xB by x came out 0."""
    return (A + x * B)[0, 0]


@cd.program
def sum_in_function(x: Vector, y: Vector):
    """A subscripted sum inside a function: the inner index is not the outer one."""
    return cd.sum(lambda i: cd.sin(x[i] * cd.sum(lambda j: x[j] * y[j])))


@cd.program
def same_letter(x: Vector):
    """The same letter bound twice: Σ_i x_i (Σ_i x_i²)."""
    return cd.sum(lambda i: x[i] * cd.sum(lambda i: x[i] ** 2))


@cd.program
def log_of_sum(x: Vector):
    """log Σ exp, whose gradient is one over a whole sum and not over a term."""
    return cd.log(cd.sum(lambda i: cd.exp(x[i])))


@cd.program
def product_of_sums(x: Vector, A: Square):
    """(Σ_i x_i)(Σ_i A_ii): equal letters in two factors are two indices."""
    return cd.sum(lambda i: x[i]) * cd.sum(lambda i: A[i, i])


@cd.program
def power_of_sum(x: Vector):
    """(Σ x)³ is not Σ x³."""
    return cd.sum(lambda i: x[i]) ** 3


@cd.program
def diagonal(A: Square, x: Vector):
    """An access that reads one index twice."""
    return cd.sum(lambda i: A[i, i] * x[i] ** 2 * A[0, i])


@cd.program
def delta_inside(x: Vector, A: Square):
    """A δ beside the variable of differentiation."""
    return cd.sum(lambda i, j: cd.delta(i, j) * x[i] * cd.exp(x[j]) * A[j, i])


@cd.program
def quotient(A: Square, x: Vector):
    """The Rayleigh quotient: x in numerator and denominator."""
    return (x @ A @ x) / (x @ x)


@cd.program
def inverse(X: Square, a: Vector):
    """aᵀX⁻¹a."""
    return a @ cd.inv(X) @ a


@cd.program
def determinant(X: Square):
    """log det(XᵀX): twice the inverse transposed."""
    return cd.log(cd.det(X.T @ X))


@cd.program
def modulus(z: Complex):
    """Not holomorphic: |z|² z̄ + Re."""
    return cd.real(cd.sum(lambda i: cd.abs(z[i]) ** 2 * cd.conj(z[i]) + 1j * z[i]))


@cd.program
def phase(z: Complex, x: Vector):
    """A real variable in a complex exponent: its gradient is real."""
    return cd.real(cd.sum(lambda i: z[i] * cd.exp(1j * x[i]) * cd.conj(z[0])))


CORPUS = [
    *(square_of_trace, deviation, affine_model, two_norms, traces_of_powers, sum_of_exponentials),
    *(two_traces, trace_plus_one, invariant, square_times, element, sum_in_function, same_letter, log_of_sum),
    *(product_of_sums, power_of_sum, diagonal, delta_inside, quotient, inverse, determinant, modulus, phase),
]


def arrays_of(program: cd.Program, seed: int = 0) -> dict[str, Any]:
    arrays = random_arrays(program.parameters, np.random.default_rng(seed), SIZES)
    for name in {"X", "F"} & arrays.keys():
        arrays[name] = arrays[name] + 3 * np.eye(3)  # away from singular matrices
    return arrays


@pytest.mark.sample(7)
@pytest.mark.parametrize("program", CORPUS, ids=lambda program: program.name)
def test_every_route_agrees_with_central_differences(program: cd.Program) -> None:
    assert check_routes(program, **arrays_of(program)) < 2e-5


@pytest.mark.sample(14)
@pytest.mark.parametrize("program", CORPUS, ids=lambda program: program.name)
def test_no_gradient_is_silently_zero(program: cd.Program) -> None:
    """By every parameter, except where it really is constant."""
    arrays = arrays_of(program, 1)
    for parameter in program.parameters:
        gradient = cd.grad(program, parameter.name)(**arrays)
        assert np.max(np.abs(gradient)) > 1e-6


def test_closed_forms() -> None:
    arrays = arrays_of(square_times)
    X, B = arrays["X"], arrays["B"]
    np.testing.assert_allclose(cd.grad(square_times, "X")(X, B), (X @ B + B @ X).T)
    np.testing.assert_allclose(cd.grad(two_traces, "A")(X, B), 2 * X)
    np.testing.assert_allclose(cd.grad(trace_plus_one)(X), 2 * np.trace(X) * np.eye(3))
    np.testing.assert_allclose(cd.grad(invariant)(X), 2 * X)
    np.testing.assert_allclose(cd.grad(determinant)(X), 2 * np.linalg.inv(X).T)


def test_real_and_complex_parameters_together() -> None:
    """The derivative by a real parameter of the gradient by a complex one: mixed second derivatives."""
    arrays = arrays_of(phase)
    by_x = cd.grad(phase, "x")
    assert by_x(**arrays).dtype.kind == "f"
    for first, second in (("x", "z"), ("z", "x"), ("z", "z"), ("x", "x")):
        pushed = cd.pushforward(cd.grad(phase, first), second)
        tangent = random_arrays(pushed.parameters[-1:], np.random.default_rng(3), SIZES)
        ((name, move),) = tangent.items()
        h = 1e-6
        ahead, behind = (cd.grad(phase, first)(**{**arrays, second: arrays[second] + s * h * move}) for s in (1, -1))
        np.testing.assert_allclose(pushed(**arrays, **{name: move}), (ahead - behind) / (2 * h), atol=1e-8)


@pytest.mark.thorough
def test_the_hessian_of_a_program_that_is_not_holomorphic() -> None:
    """zz̄ and zz blocks against differences of the gradient in both directions."""
    arrays = arrays_of(modulus)
    z, h = arrays["z"], 1e-6
    gradient, (mixed, pure) = cd.grad(modulus), cd.hessian(modulus)(z)
    for entry in range(3):
        for direction in (1, 1j):
            move = np.zeros(3, complex)
            move[entry] = direction
            slope = (gradient(z + h * move) - gradient(z - h * move)) / (2 * h)
            # g = 2 ∂f/∂z̄, so dg = 2 (∂²f/∂z̄∂z dz + ∂²f/∂z̄∂z̄ dz̄)
            np.testing.assert_allclose(slope, 2 * (mixed.T @ move + np.conj(pure) @ np.conj(move)), atol=1e-7)


def test_what_is_constant_is_zero_and_says_so() -> None:
    """A derivative that is 0 is 0 on every route, not only after simplification."""

    @cd.program
    def constant(x: Vector, y: Vector):
        return cd.sum(lambda i: x[i] * y[i] - y[i] * x[i]) + 3

    (x, y) = constant.parameters
    raw = cd.grad(constant, "x", simplify=False)
    assert not np.any(evaluate(raw.term.body, {x: np.ones(3), y: np.arange(3.0)}, SIZES))
    assert str(cd.grad(constant, "x")) == "(x, y) ↦ d<k ↦ 0"


@pytest.mark.sample(10)
@pytest.mark.parametrize("program", CORPUS, ids=lambda program: program.name)
def test_prints_read_back(program: cd.Program) -> None:
    """The program and its gradients, at narrow and at wide lines: equal in value, and the same program."""
    arrays = arrays_of(program)
    for f in (program, *(cd.grad(program, parameter.name) for parameter in program.parameters)):
        for width in (20, 80, 200):
            again = assert_reads_back(f.term, {p: arrays[p.name] for p in f.parameters}, SIZES, width)
        assert again == f
