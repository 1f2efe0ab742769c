"""Reads around a cycle: index arrays are computed once, named, and right in loops and at size 0."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import combdiff as cd
from combdiff.ir.terms import Lambda
from combdiff.polyhedra.index_array_checks import _visited
from combdiff.tracing.recording import trace_function

RNG = np.random.default_rng(3)
K, B = cd.Cyclic("K"), cd.Symmetric("B")


@cd.program
def shifted(U: cd.Space("n", K), V: cd.Space(K, "n"), w: cd.Space(cd.Symmetric(1))):
    return cd.tensor(lambda i, k: cd.sum(lambda b: w[b] * U[i, k + b] * V[k + b, i] * U[i, k - b + 1]), k=K)


def rolled(U: Any, V: Any, w: Any) -> Any:
    ahead = [np.roll(U, -b, 1) * np.roll(V.T, -b, 1) * np.roll(U, b - 1, 1) for b in range(-1, 2)]
    return sum(factor * array for factor, array in zip(w, ahead, strict=True))


@pytest.mark.parametrize("n", [0, 1, 4])
@pytest.mark.parametrize("mesh", [1, 3, 8])
def test_reads_that_share_positions(n: int, mesh: int) -> None:
    U, V, w = RNG.normal(size=(n, mesh)), RNG.normal(size=(mesh, n)), RNG.normal(size=3)
    np.testing.assert_allclose(shifted(U, V, w), rolled(U, V, w))


@pytest.mark.parametrize("backend", ["numpy", "jax", "torch"])
def test_positions_are_computed_once(backend: str) -> None:
    source = shifted.source(backend)
    assert source.count("% K") == 2, source  # k + b for two tensors, k − b + 1
    assert source.count("arange(K") <= 2, source
    assert "arange(-1, 2" in source, source


@pytest.mark.sample(1)
@pytest.mark.parametrize("n", [5, 0])
def test_positions_in_blocks(n: int) -> None:
    S, U, z = RNG.normal(size=(n, 12, 12)), RNG.normal(size=(n, 12)), RNG.normal(size=n)
    whole = bounded(S, U, z, np.ones(5))
    for limit in (3000, 4000, 8000):
        try:
            found = bounded.compile(memory_limit=limit)(S, U, z, np.ones(5))
        except cd.MemoryLimitError:
            continue
        for one, other in zip(found, whole, strict=True):
            np.testing.assert_allclose(one, other)


@cd.program
def bounded(S: cd.Space("n", K, K), U: cd.Space("n", K), z: cd.Space("n"), w: cd.Space(B)):
    """Σ w[b] exp(S[i,k,k+b] U[i,k+b]) z[i], and its gradient by U."""
    t = cd.tensor(lambda i, k, b: cd.exp(S[i, k, k + b] * U[i, k + b]), b=B)
    slope = cd.tensor(lambda d, e: z[d] * cd.sum(lambda b: S[d, e - b, e] * t[d, e - b, b] * w[b]))
    return cd.sum(lambda i, k, b: t[i, k, b] * w[b] * z[i]), slope


def test_names_do_not_clash_with_parameters() -> None:
    @cd.program
    def clash(i1: cd.Space("n", K), i2: cd.Space(K, "n")):
        return cd.tensor(lambda i, k: cd.sum(lambda b: i1[i, k + b] * i2[k + b, i], b=cd.Symmetric(1)), k=K)

    U, V = RNG.normal(size=(3, 4)), RNG.normal(size=(4, 3))
    expected = sum(np.roll(U, -b, 1) * np.roll(V.T, -b, 1) for b in (-1, 0, 1))
    np.testing.assert_allclose(clash(U, V), expected)


@pytest.mark.parametrize("axis", ["n", cd.Cyclic("n")])
def test_conditions_shifted_in_a_loop_are_visited_once(axis: Any) -> None:
    def slope(x: Any, y: Any) -> Any:
        return cd.tensor(lambda i: cd.where(i > 0, x[i] * y[i - 1], x[i]))

    def traced(steps: int) -> Lambda:
        def f(x, h):
            y = x
            for _ in range(steps):
                k = slope(x, y)
                y = y + h * (k + slope(x, y + h * k))
            return y.sum()

        f.__annotations__ = {"x": cd.Space(axis), "h": cd.Space()}
        return trace_function(f).term

    visited = [sum(1 for _ in _visited(traced(steps))) for steps in (2, 4, 8)]
    assert visited[2] - visited[1] <= 2.2 * (visited[1] - visited[0])
