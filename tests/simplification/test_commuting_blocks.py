"""Derivatives of functions of a matrix in directions that commute with it are products, no blocks of twice the size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import combdiff as cd

Square = cd.Space("n", "n")
Complex = cd.Space("n", "n", dtype=complex)
RNG = np.random.default_rng(11)


def matrix(n: int = 3, *stack: int) -> np.ndarray:
    """A matrix whose eigenvalues are around 3, and no symmetric one."""
    return 3 * np.eye(n) + 0.4 * RNG.normal(size=(*stack, n, n))


def trace_of_exponential(A: Square):
    return np.trace(cd.expm(A))


def partition_function(A: Square, t: cd.Space()):
    return np.log(np.trace(cd.expm(-t * A)))


def trace_of_root(A: Square):
    return np.trace(cd.sqrtm(A))


def with_itself(A: Square):
    return np.trace(3 * cd.expm(A) @ A)


def with_other_functions(A: Square):
    return np.trace(cd.sqrtm(A) @ (cd.inv(A) + cd.expm(A)))


def nuclear_norm(A: Square):
    return np.trace(cd.sqrtm(A @ A.T))


def inside_of_another(A: Square, B: Square):
    root = cd.sqrtm(A)
    return np.trace(A + B - 2 * cd.sqrtm(root @ B @ root))


def of_a_stack(A: cd.Space("m", "n", "n"), w: cd.Space("m")):
    return w @ cd.tensor(lambda m: cd.sum(lambda i: cd.expm(A)[m, i, i]))


def of_complex_ones(Z: Complex):
    return np.real((2 + 1j) * np.trace(cd.expm(Z)) + np.trace(cd.sqrtm(Z)))


PRINTED: dict[Callable[..., Any], str] = {
    trace_of_exponential: "A ↦ (d, e) ↦ expm(A)[e,d]",
    partition_function: ("(A, t) ↦\n  t2[d,e] = -t A[d,e]\n  (d, e) ↦ -t expm(t2)[e,d] / Σ_i expm(t2)[i,i]"),
    trace_of_root: "A ↦\n  t[d,e] = sqrtm(A)[d,e]\n  (d, e) ↦ 1/2 inv(t)[e,d]",
    with_itself: "A ↦ (d, e) ↦ 3 expm(A)[e,d] + 3 Σ_i A[e,i] expm(A)[i,d]",
    nuclear_norm: "A ↦\n  t[i,j] = Σ_d A[i,d] A[j,d]\n  t2[d,e] = sqrtm(t)[d,e]\n  (d, e) ↦ Σ_i A[i,e] inv(t2)[d,i]",
}


@pytest.mark.parametrize("definition", PRINTED, ids=lambda one: one.__name__)
def test_gradients_of_traces_are_as_in_a_table(definition: Callable[..., Any]) -> None:
    assert str(cd.grad(cd.program(definition))) == PRINTED[definition]


CASES = {
    trace_of_exponential: (matrix(),),
    partition_function: (matrix(), 0.3),
    trace_of_root: (matrix(4),),
    with_itself: (matrix(),),
    with_other_functions: (matrix(),),
    nuclear_norm: (matrix(),),
    inside_of_another: (matrix(), matrix()),
    of_a_stack: (matrix(3, 2), RNG.normal(size=2)),
    of_complex_ones: (matrix() + 0.2j * RNG.normal(size=(3, 3)),),
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("definition", CASES, ids=lambda one: one.__name__)
def test_they_are_those_of_central_differences_on_every_route(definition: Callable[..., Any]) -> None:
    program, arrays = cd.program(definition), CASES[definition]
    named = dict(zip((each.name for each in program.term.parameters), arrays, strict=True))
    wrt = next(iter(named))
    cd.testing.check_grad(program, wrt, **named)
    cd.testing.check_routes(cd.grad(program, wrt), **named)
    assert "2*n" not in str(cd.grad(program, wrt)).replace(
        "t3[d<2*n,e<2*n]", ""
    )  # of √A, which B does not commute with


def test_directions_that_do_not_commute_keep_their_blocks() -> None:
    @cd.program
    def f(A: Square, x: cd.Space("n")):
        return x @ cd.expm(A) @ x + np.trace(cd.sqrtm(A) @ A.T)

    shown = str(cd.grad(f, "A"))
    assert "expm(t2)[d,e + n]" in shown
    assert "sqrtm(t3)[d,e + n]" in shown
    cd.testing.check_grad(f, "A", A=matrix(), x=RNG.normal(size=3))


def test_derivatives_of_higher_order() -> None:
    program = cd.program(trace_of_root)
    A, V = matrix(), RNG.normal(size=(3, 3))
    second = cd.hvp(program)(A, V)
    step = 1e-5
    difference = (cd.grad(program)(A + step * V) - cd.grad(program)(A - step * V)) / (2 * step)
    np.testing.assert_allclose(second, difference, rtol=1e-7, atol=1e-9)


def test_the_gradient_of_a_distance_of_gaussians_is_exact_where_one_is_nearly_singular() -> None:
    """tr (A B)^½, by eigenvalues of which the least is about 1e-4: blocks of twice the size lost half of the digits."""
    factor = np.diag([1.0, 0.7, 2e-2, 1.5]) + 0.1 * np.triu(np.ones((4, 4)), 1)
    A, B = factor @ factor.T, matrix(4) @ matrix(4).T
    B = (B + B.T) / 2
    values, left = np.linalg.eig(A @ B)
    expected = (B @ left @ np.diag(values**-0.5) @ np.linalg.inv(left)).real / 2

    @cd.program
    def overlap(A: Square, B: Square):
        return np.trace(cd.sqrtm(A @ B))

    np.testing.assert_allclose(cd.grad(overlap, "A")(A, B), expected.T, rtol=1e-9)
