"""Factors that are read at the same places: one window of their product."""

from __future__ import annotations

from typing import Any

import numpy as np

import combdiff as cd
from combdiff.ir import extent
from combdiff.runtime.execution import source

Image = cd.Space("n", "m")
Signal = cd.Space("n", dtype=complex)
Ring = cd.Space(cd.Cyclic("n"))


@cd.program
def images(x: Image, y: Image, w: cd.Space("k", "l")):
    return cd.sum(lambda i, j, k, l: x[i + k, j + l] ** 2 * y[i + k, j + l] * w[k, l], i=4, j=3)  # noqa: E741


@cd.program
def signals(x: cd.Space("n", "m", dtype=complex), y: cd.Space("n", "m", dtype=complex), w: cd.Space("k")):
    return cd.real(cd.sum(lambda i, j, k: cd.conj(x[i + k, j]) * y[i + k, j] * w[k], i=4))


@cd.program
def padded(x: cd.Space("n"), y: cd.Space("n"), w: cd.Space("k")):
    return cd.sum(lambda i, k: cd.where((i >= k) & (i - k <= 3), cd.log(x[i - k]) * y[i - k], 0) * w[k] * cd.exp(x[i]))


@cd.program
def rings(x: Ring, y: Ring, w: cd.Space(cd.Symmetric("r"))):
    return cd.sum(
        lambda i, k: x[i + k] * y[i + k] * x[i - k] * y[i - k] * w[k] * x[2 * i + k] * y[2 * i + k], i=cd.Cyclic("n")
    )


@cd.program
def functions(x: cd.Space("n"), y: cd.Space("n"), w: cd.Space("k")):
    return cd.sum(lambda i, k: cd.exp(x[i + k]) * cd.log(y[i + k]) * w[k], i=4)


PROGRAMS = [images, signals, padded, rings, functions]
WIDTHS = {images: {"k": 3, "l": 3}, signals: {"k": 3}, padded: {"k": 4}, rings: {"r": 1}, functions: {"k": 3}}


def arrays_of(f: Any, n: int) -> tuple[list[Any], dict[str, int]]:
    """Arrays that end n elements after the last window; those of `rings` have n elements."""
    sizes, rng = {"n": n if f is rings else n + 6, "m": 5, **WIDTHS[f]}, np.random.default_rng(1)
    shapes = [[extent(axis, sizes) for axis in p.type.axes] for p in f.parameters]
    arrays = [rng.random(shape) + 0.1 for shape in shapes]
    if f is signals:
        arrays[:2] = [a + 1j * rng.standard_normal(a.shape) for a in arrays[:2]]
    return arrays, sizes


def test_windows_are_of_products() -> None:
    body = cd.grad(images, wrt="w").source().split("def grad_")[1].split("\n\n\n")[0]
    assert "x * y" in body or "y * x" in body
    assert "(k, 4, l, 3)" not in body


def test_functions_of_windows_are_computed_before_where_all_elements_are_read() -> None:
    x, y, w = arrays_of(functions, 0)[0]
    text = source(functions.term, "f", {"n": 6, "k": 3})
    assert "np.log(y)" in text
    assert "np.exp(x)" in text
    assert "np.log(y)" not in source(functions.term, "f", {"n": 9, "k": 3})
    x[:] = 1
    expected = sum(np.e * np.log(y[i : i + 3]) @ w for i in range(4))
    assert abs(functions(x, y, w) - expected) < 1e-12


def test_an_index_of_joined_factors_alone_is_summed_over_first() -> None:
    body = cd.grad(signals, wrt="w").source().split("def grad_")[1].split("\n\n\n")[0]
    assert 'np.einsum("ab,ab->a", y, t2)' in body
    assert body.count("_view(") == 1


def test_no_delta_stays_in_a_real_part() -> None:
    @cd.program
    def f(a: cd.Space("n", dtype=complex), w: cd.Space("n")):
        return cd.real(cd.sum(lambda i: a[i] * w[i]))

    assert str(cd.grad(f, wrt="w")) == "(a, w) ↦ d ↦ Re(a[d])"
