"""What plans cost: contractions shared between results, factored sums, orders for hyper-edges, kernels."""

from __future__ import annotations

import random
import time
import tracemalloc
from itertools import product
from typing import Any

import numpy as np
import pytest
from known_programs import coulomb_slope
from orders import corpus, mixed_network, network, proposals
from planner import coulomb

import combdiff as cd
from combdiff.codegen.writer import source as plan_source
from combdiff.planning import specialise
from combdiff.planning.networks import Network, Tree, cost_of, members
from combdiff.planning.search import trees
from combdiff.runtime.execution import find_paths, plan

RNG = np.random.default_rng(1)
M, V = cd.Space("n", "n"), cd.Space("n")


def kernels(f: cd.Program, **sizes: int) -> list[str]:
    return [row.operation for row in f.cost(**sizes).rows]


def test_value_and_gradient_share_the_contraction_of_integrals() -> None:
    value = coulomb.cost(N=24, Ne=6)
    both = coulomb_slope.cost(N=24, Ne=6)
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


@pytest.mark.parametrize(("name", "net"), list(corpus((4, 7), 2)))
def test_orders_are_never_worse_than_any_proposal(name: str, net: Network) -> None:
    best = cost_of(net, trees(net, find_paths)[0])[0]
    assert all(best <= proposed for _, proposed in proposals(net)), name


@pytest.mark.parametrize("count", [3, 6, 9, 11])
def test_orders_of_mixed_networks_are_never_worse_and_soon_found(count: int) -> None:
    for seed in range(6):
        net = mixed_network(random.Random(seed), count)
        start = time.process_time()
        best = cost_of(net, trees(net, find_paths)[0])[0]
        assert time.process_time() - start < 2
        assert all(best <= proposed for _, proposed in proposals(net)), seed


EINSUMS = [
    "ij,jk,kl,jl->il",
    "ii,ij,j->",
    "ij,kl->ijkl",
    "i,i,i,j->j",
    "ijj,jk,ll->ik",
    ",ij,ij,jk->ki",
    "ab,ab,ab,bc,cd,d->a",
    "aij,bij,aik,bkj,j->ab",
    "ai,aj,ak,bi,bj,bk->ab",
]


@pytest.mark.parametrize("equation", EINSUMS)
@pytest.mark.parametrize("size", [0, 1, 4])
def test_einsums_of_every_shape_agree_with_numpy(equation: str, size: int) -> None:
    parts = equation.split("->")[0].split(",")
    spaces = [cd.Space(*part) for part in parts]
    names = [f"x{n}" for n in range(len(parts))]
    scope: dict[str, Any] = {"cd": cd, "equation": equation, "spaces": spaces}
    parameters = ", ".join(f"{name}: spaces[{n}]" for n, name in enumerate(names))
    exec(f"def f({parameters}):\n    return cd.einsum(equation, {', '.join(names)})", scope)
    rng = np.random.default_rng(size)
    arrays = [rng.normal(size=(size,) * len(part)) for part in parts]
    expected = np.einsum(equation, *arrays)
    np.testing.assert_allclose(cd.program(scope["f"])(*arrays), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.thorough
def test_orders_of_large_networks_are_never_worse_than_any_proposal() -> None:
    for name, net in corpus((12, 20), 1):
        best = cost_of(net, trees(net, find_paths)[0])[0]
        assert all(best <= 1.05 * proposed for _, proposed in proposals(net)), name


def test_the_order_of_issue_248_avoids_the_large_intermediate() -> None:
    net = network("ij,jk,kl,jl->il", {"i": 10, "j": 10**4, "k": 10, "l": 10})
    best = trees(net, find_paths)[0]
    assert cost_of(net, best)[0] == 10**6 + 10**5 + 10**6  # jk,kl->jl, times jl, then with ij
    sizes = [net.size(net.kept(members(tree))) for tree in inner(best)]
    assert max(sizes) <= 10**5


def inner(tree: Tree) -> list[Tree]:
    return [] if isinstance(tree, int) else [tree, *inner(tree[0]), *inner(tree[1])]


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


# --- layouts, numbers and cycles -----------------------------------------------------------------------------------

FULL = cd.Space("n", "n", "n", "n", symmetry=["J[i,j,k,l] = J[j,i,k,l]", "J[i,j,k,l] = J[j,k,l,i]"])
PAIRS = cd.Space("n", "n", "n", "n", symmetry=["J[i,j,k,l] = J[k,l,i,j]"])


@cd.program
def exchange(J: FULL, D: M):
    return cd.tensor(lambda p, r: cd.sum(lambda q, s: J[p, q, r, s] * D[q, s]))


@cd.program
def in_front(J: PAIRS, D: M):
    return cd.tensor(lambda r, s: cd.sum(lambda p, q: J[p, q, r, s] * D[p, q]))


@cd.program
def no_symmetry_helps(J: PAIRS, D: M):
    return cd.tensor(lambda p, r: cd.sum(lambda q, s: J[p, q, r, s] * D[q, s]))


@cd.program
def sign(J: cd.Space("n", "n", "n", symmetry=["J[i,j,k] = -J[k,j,i]"]), x: V):
    return cd.tensor(lambda j, k: cd.sum(lambda i: J[i, j, k] * x[i]))


def symmetric(n: int) -> Any:
    J = RNG.normal(size=(n,) * 4)
    turns = (J.transpose(order) for order in product(range(4), repeat=4) if len(set(order)) == 4)
    return sum(turns)


def test_symmetric_arguments_are_read_without_a_copy() -> None:
    J, D, x = symmetric(4), RNG.normal(size=(4, 4)), RNG.normal(size=4)
    np.testing.assert_allclose(exchange(J, D), np.einsum("pqrs,qs->pr", J, D))
    np.testing.assert_allclose(in_front(J, D), np.einsum("pqrs,pq->rs", J, D))
    np.testing.assert_allclose(no_symmetry_helps(J, D), np.einsum("pqrs,qs->pr", J, D))
    for f in (exchange, in_front):
        assert "J.reshape(n*n, n*n) @ D.reshape(n*n)" in f.source()
    assert "(J @ D[:, :, None])[..., 0].sum(1)" in no_symmetry_helps.source()
    T = RNG.normal(size=(4, 4, 4))
    T = T - T.transpose(2, 1, 0)
    np.testing.assert_allclose(sign(T, x), np.einsum("ijk,i->jk", T, x))


def test_numbers_multiply_the_smaller_operand() -> None:
    @cd.program
    def tall(A: cd.Space("m", "n"), x: V):
        return 3 * (A @ x)

    @cd.program
    def both(A: cd.Space("m", "n"), x: V):
        y = A @ x
        return y, 3 * y

    rows = {row.operation: row.shape for row in tall.cost(m=100, n=5).rows}
    assert rows["scale"] == (5,)
    assert {row.operation: row.shape for row in tall.cost(m=5, n=100).rows}["scale"] == (5,)
    assert [row.operation for row in both.cost(m=100, n=5).rows] == ["matrix-vector", "scale"]
    A, x = RNG.normal(size=(9, 3)), RNG.normal(size=3)
    np.testing.assert_allclose(tall(A, x), 3 * A @ x)
    np.testing.assert_allclose(both(A, x)[1], 3 * A @ x)
    assert tall(A.astype("f4"), x.astype("f4")).dtype == np.float32


RING = cd.Cyclic("K")


@cd.program
def hopping(S: cd.Space("n", RING, "m", RING), w: cd.Space(cd.Symmetric("B"))):
    return cd.tensor(lambda i, k, j: cd.sum(lambda b: S[i, k, j, k + b] * w[b]))


@cd.program
def apart(S: cd.Space(RING, "n", RING)):
    return cd.tensor(lambda i, a, k: S[k + a, i, k], a=RING)


@pytest.mark.parametrize(("mesh", "bound"), [(1, 0), (1, 3), (4, 1), (5, 7), (7, 2)])
def test_reads_around_a_cycle(mesh: int, bound: int) -> None:
    S, w = RNG.normal(size=(2, mesh, 3, mesh)), RNG.normal(size=2 * bound + 1)
    k, b = np.arange(mesh), np.arange(-bound, bound + 1)
    expected = sum(w[n] * S[:, k, :, (k + step) % mesh] for n, step in enumerate(b)).transpose(1, 0, 2)
    np.testing.assert_allclose(hopping(S, w), expected, atol=1e-12)
    T = RNG.normal(size=(mesh, 3, mesh))
    np.testing.assert_array_equal(apart(T), T[(k + k[:, None]) % mesh, :, k].transpose(2, 0, 1))
    assert "_view" not in apart.source()


def test_helpers_are_carried_only_where_they_are_called() -> None:
    @cd.program
    def my_spread(x: V):
        return (x * x).sum()

    assert "def _spread" not in my_spread.source()


# --- results written over operands ---------------------------------------------------------------------------------


@cd.program
def chained(A: M, B: M):
    C = cd.exp(A) * cd.sin(B)
    D = cd.exp(-3 * (A @ B))
    return C + C.T, 2 * cd.tanh(C) - A * B, 1 / (1 + D) - D.T


@cd.program
def overlapping(A: M):
    C = A @ A
    return C + C.T


def test_large_results_are_written_over_what_nothing_reads_any_more() -> None:
    A, B = RNG.normal(size=(2, 150, 150)) / 10
    before = A.copy(), B.copy()
    assert not any("out=" in overlapping.source(name, n=150) for name in ("torch", "jax", "dask"))
    C, D = np.exp(A) * np.sin(B), np.exp(-3 * (A @ B))
    expected = C + C.T, 2 * np.tanh(C) - A * B, 1 / (1 + D) - D.T
    for _ in range(2):
        for found, wanted in zip(chained(A, B), expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(overlapping(A), A @ A + (A @ A).T)
    np.testing.assert_array_equal(A, before[0])
    np.testing.assert_array_equal(B, before[1])
    namespace: dict[str, Any] = {}
    exec(large_source(chained, 150), namespace)
    assert "np.exp(t" in large_source(chained, 150)
    assert "out=" in large_source(chained, 150)
    assert "out=A" not in large_source(chained, 150)


def large_source(f: cd.Program, n: int) -> str:
    return plan_source(specialise(plan(f.term, {"n": n}), "numpy"), "f")


@pytest.mark.parametrize(("first", "second"), [("f4", "f8"), ("f8", "f4"), ("f4", "f4"), ("i4", "f4"), ("f2", "f4")])
def test_what_is_written_over_is_as_wide_as_the_result(first: str, second: str) -> None:
    @cd.program
    def mixed(A: M, x: V):
        B = cd.exp(A)
        return cd.sin(B * x) + cd.cos(x) * cd.exp(B)

    A, x = (RNG.normal(size=(200, 200)) / 9).astype(first), RNG.normal(size=200).astype(second)
    found, B = mixed(A, x), np.exp(A.astype("f8") if first == "i4" else A)
    expected = np.sin(B * x) + np.cos(x) * np.exp(B)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(
        found, expected, rtol=50 * np.finfo(found.dtype).eps, atol=50 * np.finfo(found.dtype).eps
    )


# --- what is no size and no array ----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [True, 2.5, float("nan"), float("inf"), -1, "3", None])
def test_what_is_no_size(size: Any) -> None:
    with pytest.raises(cd.CombdiffError, match="is no size for n"):
        common_left.cost(n=size)


def test_sizes_of_numpy_and_masked_arrays() -> None:
    assert common_left.cost(n=np.int64(7)).flops == common_left.cost(n=7).flops
    A = RNG.normal(size=(3, 3))
    with pytest.raises(cd.CombdiffError, match="whose mask would be lost"):
        exchange(symmetric(3), np.ma.masked_array(A, A > 0))


@cd.program
def thin(J: cd.Space("p", "q", "r", "s"), D: cd.Space("q", "s")):
    return cd.tensor(lambda p, r: cd.sum(lambda q, s: J[p, q, r, s] * D[q, s]))


def test_a_matrix_too_large_for_the_caches_is_not_copied_for_a_vector() -> None:
    assert kernels(no_symmetry_helps, n=10) == ["matrix-vector"]
    assert kernels(no_symmetry_helps, n=20) == ["stacked matrix-vector"]
    assert kernels(thin, p=20, q=20, r=20, s=2) == ["matrix-vector"]
    assert kernels(thin, p=700, q=20, r=60, s=2) == ["einsum"]
    assert kernels(exchange, n=40) == ["matrix-vector"]
    assert kernels(common_left, n=2000).count("matrix-matrix") == 1
    J, D = RNG.normal(size=(36, 36, 36, 36)), RNG.normal(size=(36, 36))
    np.testing.assert_allclose(no_symmetry_helps(J, D), np.einsum("pqrs,qs->pr", J, D))
    J, D = RNG.normal(size=(700, 20, 60, 2)), RNG.normal(size=(20, 2))
    np.testing.assert_allclose(thin(J, D), np.einsum("pqrs,qs->pr", J, D))


def test_copies_around_a_cycle_count_towards_a_limit() -> None:
    @cd.program
    def hop(S: cd.Space("n", RING, RING), w: cd.Space("m", RING), z: cd.Space("n", "m")):
        return cd.tensor(lambda k: cd.sum(lambda i, j, a: cd.exp(S[i, k, k + j]) * w[a, k + j] * z[i, a], j=RING))

    sizes = {"n": 10, "K": 100, "m": 5}
    S, w, z = RNG.random((10, 100, 100)), RNG.random((5, 100)), RNG.random((10, 5))
    assert hop.cost(**sizes).rows[0].bytes == 8 * S.size
    expected = hop(S, w, z)
    for share in (1.0, 0.5, 0.4):
        limit = int(hop.cost(**sizes).peak_bytes * share)
        run = hop.compile(memory_limit=limit)
        np.testing.assert_allclose(run(S, w, z), expected)
        tracemalloc.start()
        run(S, w, z)
        assert tracemalloc.get_traced_memory()[1] <= limit + 20_000
        tracemalloc.stop()
