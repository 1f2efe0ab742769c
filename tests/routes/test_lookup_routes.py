"""Programs that read at integers which arrays hold: every derivative has its meaning, on every route.

Each program is Σ_{i,j} of a product of factors drawn from a table (vectors and scalars of integers, nested and repeated
reads, beside conditions, δ's, powers and quotients), plus 3 Σ_i x[i]².
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from itertools import product
from operator import mul
from typing import Any

import numpy as np
import pytest
from backends import TORCH, convert, on
from hypothesis import example, given, settings
from hypothesis import strategies as st

import combdiff as cd
from combdiff.hessians.newton import Operator
from combdiff.ir.interpreter import evaluate
from combdiff.testing import check_routes

N = 3
Vector, Matrix, Ints = cd.Space("n"), cd.Space("n", "n"), cd.Space("n", dtype=int)
FACTORS: dict[str, Callable[..., Any]] = {
    "a vector": lambda x, A, a, b, c, i, j: x[a[i]],
    "beside its own index": lambda x, A, a, b, c, i, j: x[a[i]] * x[i],
    "two vectors": lambda x, A, a, b, c, i, j: x[a[i]] * x[b[i]],
    "nested": lambda x, A, a, b, c, i, j: cd.sin(x[a[b[j]]]),
    "a number": lambda x, A, a, b, c, i, j: x[c] ** 2,
    "a row": lambda x, A, a, b, c, i, j: A[a[i], j] * x[j],
    "both axes": lambda x, A, a, b, c, i, j: A[a[i], b[i]] + x[a[j]],
    "a diagonal": lambda x, A, a, b, c, i, j: A[a[i], a[i]] * x[b[j]],
    "its own row": lambda x, A, a, b, c, i, j: x[j] * A[j, a[j]],
    "a δ": lambda x, A, a, b, c, i, j: cd.delta(a[i], j) * x[j] ** 2,
    "where it points to itself": lambda x, A, a, b, c, i, j: cd.exp(cd.delta(i, a[i]) * x[i] * x[j]),
    "equal integers": lambda x, A, a, b, c, i, j: cd.where(a[i] == b[j], A[i, j] * x[j] ** 2, x[i]),
    "a δ of a number": lambda x, A, a, b, c, i, j: cd.delta(i, c) * cd.cos(x[i] * x[a[c]]),
    "back and forth": lambda x, A, a, b, c, i, j: cd.delta(i, a[j]) * cd.delta(j, b[i]) * x[i] * x[j],
    "thrice nested": lambda x, A, a, b, c, i, j: x[a[b[a[i]]]] * A[b[a[j]], i],
    "read beside": lambda x, A, a, b, c, i, j: cd.where(j > 0, x[2 * a[i] - a[i]], x[i // 2]) ** 2,
    "a mask of integers": lambda x, A, a, b, c, i, j: cd.where(cd.sin(x[a[i]]) < 2, x[i] * x[a[j]], x[c] ** 3),
    "an order of integers": lambda x, A, a, b, c, i, j: (a[i] - 2 * b[j]) * x[a[i]] * x[b[j]],
    "a condition": lambda x, A, a, b, c, i, j: cd.where(i <= j, x[a[i]], x[b[j]]),
    "a power": lambda x, A, a, b, c, i, j: (x[a[i]] - x[j]) ** 2,
    "a quotient": lambda x, A, a, b, c, i, j: x[i] / (2 + x[b[i]] ** 2),
    "an exponential": lambda x, A, a, b, c, i, j: cd.exp(x[a[i]] * A[i, j]),
}
Factors = list[str]


def program(names: Factors) -> cd.Program:
    chosen = [FACTORS[name] for name in names]

    @cd.program
    def f(x: Vector, A: Matrix, a: Ints, b: Ints, c: cd.Space(dtype=int)):
        def term(i: Any, j: Any) -> Any:
            return reduce(mul, (factor(x, A, a, b, c, i, j) for factor in chosen))

        return cd.sum(term, i="n", j="n") + 3 * (x**2).sum()

    return f


def arrays(seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, N, (2, N))
    return {"x": rng.normal(size=N), "A": rng.normal(size=(N, N)), "a": a, "b": b, "c": int(rng.integers(0, N))}


def meaning(f: cd.Program, given: dict[str, Any], *more: Any) -> Any:
    pairs = zip(f.term.parameters, [*given.values(), *more], strict=True)
    return np.asarray(evaluate(f.term.body, dict(pairs), {"n": N}))


def check(names: Factors, given: dict[str, Any]) -> None:
    f = program(names)
    raw = cd.grad(f, simplify=False)
    expected = meaning(raw, given)
    close(f(**given), meaning(f, given))
    close(expected, slopes(lambda x: meaning(f, {**given, "x": x}), given["x"]), 1e-5)
    gradient, H, v = cd.grad(f), cd.hessian(f), np.arange(1.0, N + 1)
    close(gradient(**given), expected)
    close(raw(**given), expected)
    dense = slopes(lambda x: gradient(**{**given, "x": x}), given["x"])
    close(H(**given), dense, 1e-5)
    dense = H(**given)
    close(H.diag()(**given), np.diag(dense))
    close(cd.hvp(f)(*given.values(), v), dense @ v)
    assert not np.any(dense[~H.sparsity().pattern(n=N)])
    structure, cores = H.compressed().structure, H.compressed().core(**given)
    if not any(part.conditions for part in structure.parts):
        operator = Operator(structure, cores if isinstance(cores, tuple) else (cores,), (N,))
        close(operator.product(np.eye(N)), dense)
    if np.linalg.cond(dense) < 1e6:
        close(dense @ H.solve(v, **given), v, 1e-7)


def slopes(f: Callable[[Any], Any], x: Any, h: float = 1e-5) -> Any:
    return np.stack([(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(N)], -1)


def close(found: Any, expected: Any, tolerance: float = 1e-9) -> None:
    expected = np.asarray(expected)
    assert np.shape(found) == expected.shape
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * max(1.0, np.abs(expected).max()))


@settings(max_examples=1)
@given(st.lists(st.sampled_from(sorted(FACTORS)), min_size=1, max_size=2), st.integers(0, 99))
def test_every_derivative_of_reads_at_integers(names: Factors, seed: int) -> None:
    check(names, arrays(seed))


@pytest.mark.thorough
@pytest.mark.parametrize("name", sorted(FACTORS))
def test_every_derivative_of_each_factor(name: str) -> None:
    check([name], arrays(7))


@pytest.mark.thorough
@settings(max_examples=2)
@example(["a mask of integers", "both axes", "a quotient"], 0)
@given(st.lists(st.sampled_from(sorted(FACTORS)), min_size=2, max_size=3), st.integers(0, 99))
def test_every_derivative_of_several_factors(names: Factors, seed: int) -> None:
    check(names, arrays(seed))


@pytest.mark.thorough
@pytest.mark.parametrize("backend", ["jax", TORCH])
@pytest.mark.parametrize("names", [sorted(FACTORS)[n : n + 2] for n in range(0, len(FACTORS), 2)], ids=" and ".join)
def test_other_libraries(names: Factors, backend: str) -> None:
    """Value, gradient, Hessian-vector product and diagonal of the Hessian: those of NumPy, in single precision."""
    given = {n: np.float32(v) if n in "xA" else v for n, v in arrays(1).items()}
    moved = {n: v if n == "c" else convert(backend, v) for n, v in given.items()}
    f, v = program(names), np.arange(1, N + 1, dtype=np.float32)
    product = cd.hvp(f)
    for derived in (f, cd.grad(f), cd.hessian(f).diag()):
        single(on(backend, derived)(**moved), derived(**given))
    tangent = product.parameters[-1].name
    single(on(backend, product)(**moved, **{tangent: convert(backend, v)}), product(**given, **{tangent: v}))


def single(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-4, atol=1e-3 * max(1.0, np.abs(expected).max()))


def test_a_delta_beside_another_factor_of_its_index() -> None:
    @cd.program
    def segments(y: Vector, M: cd.Space("n", "e"), w: cd.Space("e"), idx: cd.Space("e", dtype=int)):
        return cd.tensor(lambda a: cd.sum(lambda e: cd.delta(idx[e], a) * y[a] * M[a, e] * w[e]))

    rng, idx = np.random.default_rng(0), np.array([0, 2, 2, 1, 0])
    y, M, w = rng.normal(size=4), rng.normal(size=(4, 5)), rng.normal(size=5)
    expected = np.zeros(4)
    np.add.at(expected, idx, y[idx] * M[idx, np.arange(5)] * w)
    for f in (segments, cd.simplify(segments)):
        close(f(y, M, w, idx), expected)


def test_a_value_looked_up_twice_is_one_index() -> None:
    @cd.program
    def f(x: Vector, idx: cd.Space("m", dtype=int)):
        return cd.sum(lambda a: cd.exp(x[idx[a]]))

    H = cd.hessian(f)
    assert str(H.compressed().structure) == "H[i,j] = core[i] δ[i,j]"
    assert str(H.sparsity()) == "H[i,j] = 0 unless i = j"
    assert str(H.diag()).endswith(" ↦ Σ_i δ(idx[i], d) exp(x[idx[i]])")


def test_what_is_looked_up_and_read_nowhere_is_one_index() -> None:
    """Σ_k δ(k, y[d]) is 1, as programs and their derivatives are refused what is no index of its axis."""

    @cd.program
    def loss(z: cd.Space("n", "k"), y: cd.Space("n", dtype=int)):
        logs = z - np.log(np.exp(z).sum(axis=1, keepdims=True))
        return -np.mean(logs[cd.arange(z.shape[0]), y])

    slope = cd.grad(loss, "z")
    assert str(slope) == "(z, y) ↦ (d, e) ↦ (exp(z[d,e]) / Σ_k exp(z[d,k]) - δ(y[d], e)) / n"
    z = np.random.default_rng(0).normal(size=(4, 3))
    check_routes(loss, z=z, y=np.array([0, 2, 2, 1]))
    for f, wrong in product((loss, slope, cd.hessian(loss, "z")), (-1, 3)):
        with pytest.raises(cd.IndexingError, match=f"is read at y.1. = {wrong}"):
            f(z, np.array([0, wrong, 2, 1]))


def test_the_diagonal_of_distances_to_centres() -> None:
    @cd.program
    def f(points: cd.Space("m", "d"), centres: cd.Space("k", "d"), nearest: cd.Space("m", dtype=int)):
        return cd.sum(lambda i, j: (points[i, j] - centres[nearest[i], j]) ** 2)

    nearest = np.array([0, 2, 2, 1, 0])
    found = cd.hessian(f, "centres").diag()(np.ones((5, 3)), np.ones((4, 3)), nearest)
    np.testing.assert_allclose(found, 2 * np.bincount(nearest, minlength=4)[:, None] * np.ones(3))
