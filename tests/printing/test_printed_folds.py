"""Largest and smallest numbers and products are written over indices, and read back from there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import combdiff as cd

V, M = cd.Space("n"), cd.Space("n", "m")
CASES: list[tuple[Callable[..., Any], cd.Space, str]] = [
    (lambda x: np.prod(x), V, "x ↦ Π_j x[j]"),
    (lambda x: np.prod(x, axis=1), M, "x ↦ i ↦ Π_j x[i,j]"),
    (lambda x: np.max(x), M, "x ↦ max_{j,k} x[j,k]"),
    (lambda x: x - np.max(x, axis=1, keepdims=True), M, "x ↦ (i, j) ↦ x[i,j] - max_k x[i,k]"),
    (lambda x: np.min(x**2 + 1), V, "x ↦ min_j (1 + x[j]²)"),
    (lambda x: cd.sum(lambda i: cd.max(lambda j: (x[j] - x[i]) ** 2)), V, "x ↦ Σ_i max_j (x[j] - x[i])²"),
    (lambda x: np.cumprod(x), V, "x ↦ i<n ↦ Π_{j=0}^{i} x[j]"),
    (
        lambda x: np.max(np.sin(x), axis=1).sum() + np.min(np.sin(x), axis=0).sum(),
        M,
        "x ↦\n  t[i,j] = sin(x[i,j])\n  Σ_i max_j t[i,j] + Σ_i min_j t[j,i]",
    ),
]


def program_of(function: Callable[..., Any], space: cd.Space) -> cd.Program:
    function.__annotations__ = {"x": space}
    return cd.program(function)


@pytest.mark.parametrize(("function", "space", "text"), CASES, ids=[text for *_, text in CASES])
def test_folds_are_written_over_indices_and_read_back(function: Callable[..., Any], space: cd.Space, text: str) -> None:
    program = program_of(function, space)
    assert str(program) == text
    again = cd.read(text, {"x": space})
    assert again == program
    x = np.random.default_rng(0).normal(size=(3, 4)[: len(space.axes)])
    np.testing.assert_allclose(again(x), function(x) if "Σ_i max_j (" not in text else program(x))


def test_the_negative_of_a_fold_is_none_of_negatives() -> None:
    for function, text in (
        (lambda x: -np.max(x - 1), "x ↦ -max_j (x[j] - 1)"),
        (lambda x: x * -np.min(x - 1), "x ↦ i ↦ -x[i] min_j (x[j] - 1)"),
        (lambda x: -np.prod(x - 1) - cd.sum(lambda i: x[i] - 1), "x ↦ Σ_i (1 - x[i]) - Π_j (x[j] - 1)"),
    ):
        program = program_of(function, V)
        assert str(program) == text
        assert cd.read(text, {"x": V}) == program
        assert "Σ_j" not in program.matrix()
        assert r"\sum_{j}" not in program.latex()


def test_folds_are_what_maps_take() -> None:
    """Each with the indices that are left; so are those that a system is solved for."""

    def both(L: cd.Function(cd.Space("m")), x: M):  # type: ignore[valid-type]
        return L(np.prod(x, axis=0)) * L(np.max(np.sin(x), axis=0)) + L(np.cumprod(x, axis=0)[1])

    @cd.program
    def sines(v: cd.Space("m")):
        return cd.sum(lambda i: np.sin(v[i]))

    program, x = cd.program(both), np.random.default_rng(0).normal(size=(3, 4))
    assert "L(d ↦ Π_j x[j,d])" in str(program)
    for shown in (program, cd.grad(program, "x")):
        for text in (str(shown), shown.matrix()):
            read = cd.read(text, {"L": cd.Function(cd.Space("m")), "x": M})
            np.testing.assert_allclose(read(sines, x), shown(sines, x), rtol=1e-12)

    @cd.program
    def least(x: cd.Space(3, 4), v: cd.Space(4)):
        z = cd.argmin(lambda z: z @ z - z @ v, like=v)
        return z @ np.prod(x, axis=0)

    assert str(cd.grad(least, "v")) == "(x, v) ↦ solve(k ↦ d ↦ 2 k[d], d ↦ Π_j x[j,d])"


def test_products_of_the_others_over_two_indices_keep_what_they_are_of() -> None:
    space = cd.Space(3, 2)
    gradient = cd.grad(program_of(lambda x: cd.prod(lambda j, k: x[j, 1] + k, j=3, k=2), space), "x")
    x = np.random.default_rng(0).normal(size=(3, 2))
    np.testing.assert_allclose(cd.read(str(gradient), {"x": space})(x), gradient(x), rtol=1e-12)
    cd.testing.check_grad(program_of(lambda x: cd.prod(lambda j, k: x[j, 1] + k, j=3, k=2), space), "x", x=x)


def test_what_a_product_of_the_others_is_of_is_written_where_it_is_read() -> None:
    assert str(cd.grad(program_of(lambda x: np.prod(1 - x), V), "x")) == "x ↦ d ↦ -Π_{j≠d} (1 - x[j])"
    assert str(cd.grad(program_of(lambda x: np.prod(x**3), V), "x")) == "x ↦ d ↦ 3 x[d]² Π_{j≠d} x[j]³"


@pytest.mark.thorough
def test_gradients_of_folds_have_no_axes_of_one_index() -> None:
    assert str(cd.grad(program_of(lambda x: np.prod(x), V), "x")) == "x ↦ d ↦ Π_{j≠d} x[j]"
    largest = cd.grad(program_of(lambda x: np.max(x, axis=1).sum(), M), "x")
    assert str(largest) == "x ↦ (d, e) ↦ [x[d,e] = max_j x[d,j]] / maxima_j x[d,j]"
    spread = cd.grad(program_of(CASES[5][0], V), "x")
    assert "<1" not in str(spread)
    assert r"\max_{j}" in largest.latex()
    pairs = cd.grad(program_of(lambda x: cd.max(lambda i, j: x[i] * x[j + 1], j=2), cd.Space(3)), "x")
    for gradient, space in ((largest, M), (pairs, cd.Space(3))):
        assert cd.read(str(gradient), {"x": space}) == gradient
    one = cd.grad(program_of(lambda x: x[:1].max() * x.sum(), V), "x")
    x = np.array([2.0, 3.0, 4.0])
    np.testing.assert_allclose(cd.read(str(one), {"x": V})(x), [11.0, 2.0, 2.0])
    np.testing.assert_allclose(one(x), [11.0, 2.0, 2.0])
    assert r"\prod_{j \neq d}" in cd.grad(program_of(lambda x: np.prod(x), V), "x").latex()


@cd.program
def scaled(scale: cd.Space(), observed: cd.Space("n"), predicted: cd.Space("n"), weights: cd.Space("n")):
    return scale * (weights @ observed - weights @ predicted + observed @ predicted + weights @ weights)


def test_a_long_sum_in_a_product_is_broken() -> None:
    assert str(scaled).splitlines() == [
        "(scale, observed, predicted, weights) ↦",
        "  scale (",
        "    Σ_i weights[i] observed[i]",
        "    - Σ_i weights[i] predicted[i]",
        "    + Σ_i observed[i] predicted[i]",
        "    + Σ_i weights[i]²",
        "  )",
    ]
