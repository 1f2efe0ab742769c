"""Contractions of Dask arrays: chunk by chunk, with no more memory than in one piece (the case of dask issue 10053)."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import combdiff as cd

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

RNG = np.random.default_rng(5)
LARGE = cd.Space("N", "D", "D", "D", "D")


@cd.program
def outer(A: LARGE, B: LARGE):
    return cd.tensor(lambda i, j, k, m, p, q, r, s: cd.sum(lambda a: A[a, i, j, k, m] * B[a, p, q, r, s]))


def peak(function: Callable[[], Any]) -> int:
    tracemalloc.start()
    function()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


@pytest.mark.thorough
def test_a_contraction_over_chunks_takes_no_more_memory() -> None:
    N, D, parts = 64, 6, (4, 2)
    A, B = RNG.normal(size=(2, N, D, D, D, D))
    chunks = (N // parts[0], *[D // parts[1]] * 4)
    whole = [da.from_array(array, chunks=array.shape) for array in (A, B)]
    cut = [da.from_array(array, chunks=chunks) for array in (A, B)]
    with dask.config.set(scheduler="threads", num_workers=2):
        outer(*cut).compute()  # imports and caches
        one = peak(lambda: outer(*whole).compute())
        many = peak(lambda: outer(*cut).compute())
        np.testing.assert_allclose(outer(*cut).compute(), np.einsum("aijkl,amnop->ijklmnop", A, B, optimize=True))
    assert many <= 1.5 * one


@pytest.mark.thorough
def test_chunks_of_a_gradient() -> None:
    @cd.program
    def form(J: cd.Space("n", "n", "n"), x: cd.Space("n")):
        return cd.sum(lambda i, j, k: J[i, j, k] * x[i] * cd.sin(x[j]) * x[k])

    J, x = RNG.normal(size=(12, 12, 12)), RNG.normal(size=12)
    both = cd.value_and_grad(form, wrt="x")
    expected = both(J, x)
    for chunks in (12, 5, (4, 12, 3)):
        value, gradient = both(da.from_array(J, chunks=chunks), da.from_array(x, chunks=5))
        assert isinstance(gradient, da.Array)
        np.testing.assert_allclose(value.compute(), expected[0])
        np.testing.assert_allclose(gradient.compute(), expected[1])


@pytest.mark.thorough
def test_sums_over_chunks_are_added_in_a_tree() -> None:
    """With 64 chunks along the summed axis the longest chain of additions is as deep as a tree of them."""

    @cd.program
    def gram(A: cd.Space("n", "m")):
        return A.T @ A

    A = da.from_array(RNG.normal(size=(64, 3)), chunks=(1, 3))
    graph = dict(gram(A).__dask_graph__())
    depth: dict[Any, int] = {}
    dependencies, _ = dask.core.get_deps(graph)

    def deep(key: Any) -> int:
        if key not in depth:
            depth[key] = 1 + max(map(deep, dependencies[key]), default=0)
        return depth[key]

    assert max(map(deep, graph)) <= 2 * 6 + 4  # an array cut in two and a sum at each of six levels


def test_numbers_that_are_made_of_indices() -> None:
    @cd.program
    def last(B: cd.Space(4, 3)):
        return cd.tensor(lambda i: B[1, i] ** 2 / (i + 1), i=3)[::-1][0]

    @cd.program
    def scaled(x: cd.Space("n"), a: cd.Space()):
        return np.sqrt(a) * x

    B = RNG.normal(size=(4, 3))
    for program in (last, cd.grad(last)):
        np.testing.assert_allclose(program(da.from_array(B, chunks=2)), program(B))
    single = scaled(da.from_array(np.ones(5, np.float32), chunks=2), 2.0)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, np.sqrt(2), rtol=1e-6)
