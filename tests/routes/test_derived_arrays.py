"""Derivatives of array programs: zeros laid around results, one decomposition of a matrix, reshapes, one loop."""

from __future__ import annotations

import numpy as np
import pytest

import combdiff as cd
from combdiff.planning import make_plan
from combdiff.runtime.execution import find_paths, stable

X = cd.Space(40, 6)
R = np.random.default_rng(0)


@cd.program
def line(theta: cd.Space(7), X: X, y: cd.Space(40)):
    rest = theta[0] + X @ theta[1:] - y
    return rest @ rest + np.sum(theta[1:-1] ** 2)


@pytest.mark.thorough
def test_zeros_are_laid_around_a_product_and_not_around_a_factor() -> None:
    both = cd.value_and_grad(line, "theta")
    given = {"theta": R.normal(size=7), "X": R.normal(size=(40, 6)), "y": R.normal(size=40)}
    cd.testing.check_grad(line, "theta", **given)
    assert max(row.bytes for row in both.cost().rows) < 40 * 6 * 8
    rest = given["theta"][0] + given["X"] @ given["theta"][1:] - given["y"]
    expected = np.concatenate([[2 * rest.sum()], 2 * given["X"].T @ rest])
    expected[1:-1] += 2 * given["theta"][1:-1]
    np.testing.assert_allclose(both(**given)[1], expected, rtol=1e-12)


def test_one_decomposition_gives_a_norm_and_its_gradient() -> None:
    @cd.program
    def stretch(A: cd.Space("m", "n")):
        return np.linalg.norm(A, 2)

    both = cd.value_and_grad(stretch, "A")
    assert both.source().count("_svd(np, A)") == 1
    for shape in ((4, 3), (3, 4), (3, 3)):
        A = R.normal(size=shape)
        left, values, right = np.linalg.svd(A)
        value, gradient = both(A)
        np.testing.assert_allclose(value, values[0])
        np.testing.assert_allclose(gradient, np.outer(left[:, 0], right[0]), rtol=1e-10)


@pytest.mark.thorough
def test_a_tensor_that_is_only_summed_over_is_not_made() -> None:
    @cd.program
    def components(X: X):
        w, V = np.linalg.eigh(X.T @ X)
        rest = X - X @ V[:, -2:] @ V[:, -2:].T
        return (rest**2).sum() + w[-1]

    gradient = cd.grad(components, "X")
    assert max(len(row.shape) for row in gradient.cost().rows) < 4
    cd.testing.check_grad(components, "X", X=R.normal(size=(40, 6)))


def twice(x: cd.Space(6)):
    return np.repeat(np.sin(x), 2) + np.tile(x, 2)


@pytest.mark.sample(1)
@pytest.mark.parametrize("backend", ["numpy", pytest.param("jax", marks=pytest.mark.thorough), "dask"])
def test_what_repeats_and_pools_is_reshaped(backend: str) -> None:
    @cd.program
    def repeated(x: cd.Space(6), y: cd.Space(3, 4)):
        pooled = x.reshape(3, 2).max(axis=-1)
        joined = np.concatenate([np.repeat(pooled, 2), np.tile(x, 2)])
        return cd.sum(lambda i: joined[i] ** 2) + (np.repeat(y, 3, axis=1) * np.ravel(y)[None, :]).sum()

    both = cd.value_and_grad(repeated, ["x", "y"])
    x, y = R.normal(size=6), R.normal(size=(3, 4))
    joined = np.concatenate([np.repeat(x.reshape(3, 2).max(axis=-1), 2), np.tile(x, 2)])
    value = (joined**2).sum() + (np.repeat(y, 3, axis=1) * np.ravel(y)).sum()
    if backend == "jax":
        import jax.numpy as library
    elif backend == "dask":
        import dask.array as library
    else:
        library = np
        cd.testing.check_grad(repeated, "x", x=x, y=y)
        cd.testing.check_grad(repeated, "y", x=x, y=y)
        assert "masked contract" not in {row.operation for row in cd.program(twice).cost().rows}
    np.testing.assert_allclose(both(library.asarray(x), library.asarray(y))[0], value, rtol=1e-5)


def test_what_is_chosen_by_the_smallest_stays_in_one_loop() -> None:
    @cd.program
    def nearest(c: cd.Space("k", "d"), p: cd.Space("n", "d")):
        return ((p[:, None, :] - c[None, :, :]) ** 2).sum(-1).min(axis=1).sum()

    source = cd.value_and_grad(nearest, "c").source(k=10, d=8, n=5000)
    assert source.count("for start in") == 1
    assert "np.empty" not in source  # nothing of the size of all differences is kept


H = cd.Space("d", "h")


@cd.program
def attention(x: cd.Space("t", "d"), wq: H, wk: H, wv: H, y: cd.Space("t", "h")):
    scores = (x @ wq) @ (x @ wk).T / np.sqrt(wq.shape[1])
    scores = np.where(np.tril(np.ones_like(scores)) > 0, scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return ((weights / weights.sum(axis=-1, keepdims=True) @ (x @ wv) - y) ** 2).mean()


@pytest.mark.thorough
def test_what_is_computed_in_one_order_for_two_uses_is_computed_once() -> None:
    """Each use chooses the order of its products, and steps of which the same was chosen are one."""
    gradient = cd.grad(attention, ("wq", "wk", "wv"))
    plan = make_plan(stable(gradient.term), {"t": 64, "d": 16, "h": 8}, find_paths)
    assert len(plan.steps) == len(set(plan.steps))
    shapes = {"x": (5, 3), "wq": (3, 2), "wk": (3, 2), "wv": (3, 2), "y": (5, 2)}
    cd.testing.check_grad(attention, "wk", **{name: R.normal(size=shape) for name, shape in shapes.items()})
