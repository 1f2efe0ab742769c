"""What plans cost: contractions shared between results, factored sums, orders for hyper-edges, kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import combdiff as cd
from combdiff.execution import find_paths
from combdiff.lowering.networks import Network, cost_of, from_path, trees

RNG = np.random.default_rng(1)
M, V = cd.Space("n", "n"), cd.Space("n")
ERI = cd.Space("N", "N", "N", "N", dtype=complex, symmetry=["J[p,q,r,s] = J[r,s,p,q]", "J[p,q,r,s] = conj(J[q,p,s,r])"])


@cd.program
def coulomb(J: ERI, C: cd.Space("N", "Ne", dtype=complex)):
    return cd.sum(lambda i, j, p, q, r, s: cd.conj(C[p, i]) * C[q, i] * cd.conj(C[r, j]) * C[s, j] * J[p, q, r, s])


def kernels(f: cd.Program, **sizes: int) -> list[str]:
    return [row.operation for row in f.cost(**sizes).rows]


def test_value_and_gradient_share_the_contraction_of_integrals() -> None:
    value = coulomb.cost(N=24, Ne=6)
    both = cd.value_and_grad(coulomb, wrt="C").cost(N=24, Ne=6)
    assert both.flops <= 1.15 * value.flops
    assert sum(row.flops >= 24**4 for row in both.rows) == 1
    assert sum(row.operation == "matrix-vector" for row in both.rows) == 1


def matrices(n: int, count: int) -> Any:
    return RNG.normal(size=(count, n, n))


@cd.program
def common_left(A: M, B: M, C: M):
    return A @ B + 2 * A @ C - A @ C.T


@cd.program
def common_right(A: M, B: M, C: M):
    return (B @ A).T + (A.T @ C.T)


@cd.program
def with_rest(A: M, B: M, C: M):
    return C + A @ B + cd.exp(B) + A @ C


@cd.program
def batches(A: cd.Space("b", "n", "n"), x: cd.Space("b", "n"), y: cd.Space("n", "b")):
    return cd.tensor(lambda i, b: cd.sum(lambda j: A[b, i, j] * x[b, j]) + cd.sum(lambda k: A[b, i, k] * y[k, b]))


def test_common_factors_of_sums_are_taken_out() -> None:
    A, B, C = matrices(5, 3)
    np.testing.assert_allclose(common_left(A, B, C), A @ B + 2 * A @ C - A @ C.T)
    np.testing.assert_allclose(common_right(A, B, C), (B @ A).T + A.T @ C.T)
    np.testing.assert_allclose(with_rest(A, B, C), C + A @ B + np.exp(B) + A @ C)
    for f in (common_left, common_right, with_rest):
        assert kernels(f, n=30).count("matrix-matrix") == 1, f.source()
    T, x, y = RNG.normal(size=(4, 5, 5)), RNG.normal(size=(4, 5)), RNG.normal(size=(5, 4))
    np.testing.assert_allclose(batches(T, x, y), np.einsum("bij,bj->ib", T, x) + np.einsum("bij,jb->ib", T, y))
    assert sum("batched" in kernel for kernel in kernels(batches, b=4, n=30)) == 1


def test_a_product_that_is_needed_elsewhere_is_not_factored_away() -> None:
    @cd.program
    def shared(A: M, B: M, C: M):
        P = A @ B
        return P, P + A @ C

    A, B, C = matrices(4, 3)
    first, second = shared(A, B, C)
    np.testing.assert_allclose(first, A @ B)
    np.testing.assert_allclose(second, A @ B + A @ C)
    assert kernels(shared, n=30).count("matrix-matrix") == 2


def test_factoring_stops_where_it_would_cost_more() -> None:
    @cd.program
    def narrow(a: cd.Space("n"), B: cd.Space("n", "m"), C: cd.Space("n", "m")):
        return a @ B + a @ C

    assert kernels(narrow, n=50, m=50).count("matrix-vector") in (1, 2)
    a, (B, C) = RNG.normal(size=4), RNG.normal(size=(2, 4, 3))
    np.testing.assert_allclose(narrow(a, B, C), a @ B + a @ C)


# --- orders --------------------------------------------------------------------------------------------------------


def network(equation: str, **sizes: int) -> Network:
    inputs, output = equation.split("->")
    letters = sorted(set(equation) - set(",->"))
    number = {letter: n for n, letter in enumerate(letters)}
    operands = tuple(frozenset(number[x] for x in part) for part in inputs.split(","))
    return Network(operands, frozenset(number[x] for x in output), {number[x]: sizes.get(x, 10) for x in letters})


ISSUE_248 = [
    ("ij,jk,kl,jl->il", {"i": 10, "j": 10**4, "k": 10, "l": 10}),
    ("ij,jk,kl,jl->il", {"i": 100, "j": 5, "k": 1000, "l": 10}),
    ("aj,bj,cj,dj->abcd", {"j": 100, "a": 3, "b": 3, "c": 3, "d": 3}),
    ("ab,ac,ad->bcd", {"a": 1000, "b": 4, "c": 5, "d": 6}),
    ("ijk,jl,jm,klm->i", {"i": 20, "j": 50, "k": 5, "l": 7, "m": 9}),
    ("ai,aj,ak,bi,bj,bk->ab", {"i": 5, "j": 6, "k": 7, "a": 40, "b": 50}),
]


@pytest.mark.parametrize(("equation", "sizes"), ISSUE_248)
def test_orders_are_never_worse_than_any_path_of_opt_einsum(equation: str, sizes: dict[str, int]) -> None:
    from opt_einsum import paths

    net = network(equation, **sizes)
    best = cost_of(net, trees(net, find_paths)[0])
    for finder in (paths.auto, paths.optimal, paths.greedy, paths.DynamicProgramming(), paths.branch):
        path = finder(list(net.operands), net.output, dict(net.extents))
        assert best <= cost_of(net, from_path(path, len(net.operands)))


def test_sizes_change_the_order() -> None:
    @cd.program
    def chain(A: cd.Space("a", "b"), B: cd.Space("b", "c"), x: cd.Space("c", "d")):
        return A @ B @ x

    assert chain.cost(a=2, b=50, c=50, d=50).flops == 2 * 50 * 50 + 2 * 50 * 50
    assert chain.cost(a=50, b=50, c=50, d=2).flops == 2 * 50 * 50 + 2 * 50 * 50


@pytest.mark.parametrize(
    ("equation", "kernel"),
    [
        ("ij,j->i", "matrix-vector"),
        ("ji,j->i", "matrix-vector"),
        ("ij,jk->ik", "matrix-matrix"),
        ("bij,bjk->bik", "batched matrix-matrix"),
        ("ijkl,kl->ij", "matrix-vector"),
        ("i,i->", "dot"),
    ],
)
def test_products_are_done_by_blas_and_not_by_einsum(equation: str, kernel: str) -> None:
    left, right = equation.split("->")[0].split(",")

    @cd.program
    def product(a: cd.Space(*left), b: cd.Space(*right)):
        return cd.einsum(equation, a, b)

    assert kernels(product)[0] == kernel
    assert "einsum" not in product.source()
