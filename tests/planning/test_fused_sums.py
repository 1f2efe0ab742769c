"""On JAX, sums of products of what is soon made are done over an array of their own, with the summed axes last."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from backends import back, converted, double_precision

import combdiff as cd

R = np.random.default_rng(3)
Points, Centres = cd.Space("n", "d"), cd.Space("k", "d")


@cd.program
def moments(c: Centres, p: Points, w: cd.Space("k", "n")):
    """Two sums over other axes of one array of differences."""
    far = p[:, None] - c
    squares = cd.tensor(lambda k, i: cd.sum(lambda a: far[i, k, a] ** 2), k="k", i="n")
    means = cd.tensor(lambda k, a: cd.sum(lambda i: w[k, i] * far[i, k, a]), k="k", a="d")
    return squares, means


@cd.program
def kept(c: Centres, p: Points, w: cd.Space("k", "n")):
    """The differences are a result, too."""
    far = p[:, None] - c
    return far, cd.tensor(lambda k, a: cd.sum(lambda i: w[k, i] * far[i, k, a]), k="k", a="d")


@cd.program
def near(c: Centres, p: Points, w: cd.Space("k", "n")):
    """Of each centre, the weights of how far those lie that are nearer to it than to the origin."""
    far = p[:, None] - c
    squares = (far**2).sum(-1)
    own = (p**2).sum(-1)
    return cd.tensor(
        lambda k, a: cd.sum(lambda i: cd.where(squares[i, k] < own[i], w[k, i] * far[i, k, a], 0)), k="k", a="d"
    )


def arrays(n: int = 50, k: int = 3, d: int = 9) -> tuple[Any, ...]:
    return R.normal(size=(k, d)), R.normal(size=(n, d)), R.normal(size=(k, n))


def on_jax(f: cd.Program, given: tuple[Any, ...]) -> Any:
    with double_precision():
        return back(f.compile("jax")(*converted("jax", given)))


@pytest.mark.parametrize("f", [moments, kept, near], ids=["moments", "kept", "near"])
def test_they_are_what_numpy_gives(f: cd.Program) -> None:
    given = arrays()
    found, expected = on_jax(f, given), f(*given)
    for one, two in zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]:
        np.testing.assert_allclose(one, two, rtol=1e-12, atol=1e-12)


def test_each_sum_has_an_array_of_its_own_unless_that_is_a_result() -> None:
    sources = {f.name: f.source("jax") for f in (moments, kept)}
    assert [sources["moments"].count(f") {title}\n") for title in ("combine", "fused")] == [2, 2]
    assert [sources["kept"].count(f") {title}\n") for title in ("combine", "fused")] == [1, 0]


@pytest.mark.parametrize("other", [np.inf, np.nan])
def test_what_is_not_chosen_has_no_part(other: float) -> None:
    """A centre at infinity is nearest to no point."""
    c, p, w = arrays()
    found = on_jax(near, (np.vstack([c, np.full(9, other)]), p, np.vstack([w, w[:1]])))
    np.testing.assert_allclose(found[:-1], near(c, p, w), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(found[-1], 0)


def test_the_sum_of_what_is_chosen_is_looked_at() -> None:
    assert "_sum_of_chosen(" in near.source("jax")
    assert "_sum_of_chosen(" not in near.source()
