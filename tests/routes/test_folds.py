"""Reshapes by indices, x[3i + j], and their pullbacks: work in proportion to the elements, on every backend."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import combdiff as cd
from combdiff.ir import extent


@cd.program
def rows(x: cd.Space("n"), y: cd.Space("m", 3)):
    return cd.sum(lambda i, j: cd.sin(x[3 * i + j]) * y[i, j])


@cd.program
def patches(x: cd.Space("n", "k"), y: cd.Space("m", "l", 2, 3, "c"), w: cd.Space("c")):
    return cd.sum(lambda i, j, a, b, c: cd.sin(x[2 * i + a, 3 * j + b]) * y[i, j, a, b, c] * w[c])


@cd.program
def gaps(x: cd.Space("n"), y: cd.Space("m", 3), u: cd.Space("m")):
    return cd.sum(lambda i, j: x[5 * i - j + 4] ** 2 * y[i, j] * x[5 * i + 1] * u[i])


@cd.program
def backwards(x: cd.Space("n"), y: cd.Space(cd.Symmetric("m"), 2)):
    return cd.sum(lambda i, j: cd.where(i <= 0, cd.exp(x[-2 * i + j]) * y[i, j], 0))


@cd.program
def flat(x: cd.Space("m", 4), y: cd.Space("n")):
    return cd.sum(lambda i, j: cd.sin(x[i, j]) * y[4 * i + j] ** 2)


@cd.program
def strided(x: cd.Space("n", "k"), y: cd.Space("m", "l", "c"), w: cd.Space(3, 3, "c")):
    return cd.sum(lambda i, j, a, b, c: x[2 * i + a, 3 * j + b] ** 2 * y[i, j, c] * w[a, b, c])


@cd.program
def turned(x: cd.Space("n"), y: cd.Space("l"), u: cd.Space(2), v: cd.Space("m")):
    return cd.sum(lambda i, j, k: cd.tanh(x[3 * k - i + 1]) * cd.tanh(y[2 * j + i]) * u[i] * v[k], j=4)


SIZES = {
    turned: lambda m: {"n": 3 * m + 2, "l": 8, "m": m},
    rows: lambda m: {"n": 3 * m + 2, "m": m},
    patches: lambda m: {"n": 2 * m + 1, "k": 6, "m": m, "l": 2, "c": 2},
    gaps: lambda m: {"n": 5 * m + 2, "m": m},
    strided: lambda m: {"n": 2 * m + 2, "k": 8, "m": m, "l": 2, "c": 2},
    backwards: lambda m: {"n": 2 * m + 2, "m": m},
    flat: lambda m: {"n": 4 * m, "m": m},
}


def arrays_of(f: Any, m: int) -> tuple[list[Any], dict[str, int]]:
    sizes, rng = SIZES[f](m), np.random.default_rng(m)
    shapes = [[extent(axis, sizes) for axis in p.type.axes] for p in f.parameters]
    return [rng.random(shape) for shape in shapes], sizes


@pytest.mark.parametrize(("f", "name"), [(rows, "x"), (patches, "x"), (gaps, "x"), (flat, "y")])
def test_windows_side_by_side_are_laid_out_in_a_row(f: Any, name: str) -> None:
    gradient = cd.grad(f, wrt=name)
    assert "_fold(" in gradient.source()
    small, large = (int(gradient.cost(**SIZES[f](m)).flops) for m in (100, 400))
    assert large < 5 * small


def test_a_long_row_takes_no_quadratic_memory() -> None:
    m = 100_000
    x, y = np.linspace(0, 1, 3 * m), np.ones((m, 3))
    np.testing.assert_allclose(cd.grad(rows)(x, y), np.cos(x))


def test_windows_that_overlap_are_added_at_once() -> None:
    gradient = cd.grad(strided)
    assert "δ" not in str(gradient)
    assert gradient.source().count("= _fold(") == 2
    sizes = {"l": 6, "c": 2}
    small, large = (int(gradient.cost(n=2 * m + 2, k=20, m=m, **sizes).flops) for m in (100, 400))
    assert large < 5 * small


@cd.program
def named(v: cd.Space("m"), x: cd.Space("n"), w: cd.Space("k")):
    return cd.sum(lambda i, j: v[i] * x[3 * i + j] * w[j])


@pytest.mark.parametrize("k", [1, 5, 60])
def test_windows_of_a_named_width_take_the_work_of_their_elements(k: int) -> None:
    gradient, m = cd.grad(named, wrt="x"), 4000
    sizes = {"m": m, "n": 3 * m + k, "k": k}
    assert gradient.cost(**sizes).flops <= 6 * m * (k + 3)
    rng = np.random.default_rng(0)
    v, w = rng.normal(size=m), rng.normal(size=k)
    expected = np.zeros(3 * m + k)
    for j in range(k):
        expected[j : j + 3 * m : 3] += v * w[j]
    np.testing.assert_allclose(gradient(v, expected, w), expected, atol=1e-12)


def test_no_delta_stays_in_a_sum_over_channels() -> None:
    for f in (patches, strided):
        assert "δ" not in str(cd.grad(f))
