"""Exponentials that are shifted by hand: plans keep that shift and have no other, and what is bounded is left alone."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from backends import BACKENDS, double_precision

import combdiff as cd

RANDOM = np.random.default_rng(4)
Matrix, Values = cd.Space("n", "m"), cd.Space("m", "k")


def softmax(x: Any) -> Any:
    p = np.exp(x - x.max(axis=-1, keepdims=True))
    return p / p.sum(axis=-1, keepdims=True)


def normalised(x: Matrix, y: Values):
    o = softmax(x) @ y
    c = o - o.mean(axis=1, keepdims=True)
    return (c / np.sqrt((c**2).mean(axis=1, keepdims=True) + 1e-5))[:, 0].sum()


def heads(x: cd.Space(5, 4), y: cd.Space(4, 4)):
    q = (x @ y).reshape(5, 2, 2).transpose(1, 0, 2)
    o = (softmax(q @ q.transpose(0, 2, 1)) @ q).transpose(1, 0, 2).reshape(5, 4) @ y
    c = o - o.mean(axis=1, keepdims=True)
    return (c / np.sqrt((c**2).mean(axis=1, keepdims=True) + 1e-5) * x).sum()


def smoothed(x: Matrix, y: Values):
    return (np.log(softmax(x) + 1e-12) @ y).sum()


def likely(x: Matrix, y: Values):
    return (np.log(softmax(x)) @ y).sum()


def pairs(x: Matrix, y: Values):
    m = np.maximum(x[:, 0], x[:, 1])
    a, b = np.exp(x[:, 0] - m), np.exp(x[:, 1] - m)
    return (a / (a + b) * y[0, 0]).sum()


def directed(x: Matrix, y: Values):
    """What is divided by a sum over shares, which its weights may make next to 0."""
    o = softmax(x) @ y
    return (o / np.sqrt((o**2).sum(axis=1, keepdims=True))).sum()


PLAIN = [normalised, heads, smoothed, pairs]
EVERY = [*PLAIN, likely, directed]


def arrays(f: Callable[..., Any], scale: float = 1.0) -> dict[str, Any]:
    shapes = [(5, 4), (4, 4)] if f is heads else [(3, 4), (4, 2)]
    return {name: scale * RANDOM.normal(size=shape) for name, shape in zip("xy", shapes, strict=True)}


@pytest.mark.sample(1)
@pytest.mark.parametrize("f", PLAIN, ids=lambda f: f.__name__)
@pytest.mark.parametrize("derive", [False, True], ids=["value", "gradient"])
def test_no_other_shift_is_planned(f: Callable[..., Any], derive: bool) -> None:
    program = cd.grad(cd.program(f), "x") if derive else cd.program(f)
    assert not re.findall(r"# .*\) (?:masked|largest)$", program.source(), re.MULTILINE)


@pytest.mark.thorough
@pytest.mark.parametrize("f", EVERY, ids=lambda f: f.__name__)
def test_every_route_agrees(f: Callable[..., Any]) -> None:
    assert cd.testing.check_routes(cd.program(f), **arrays(f)) < 1e-5


@pytest.mark.sample(1)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("f", EVERY, ids=lambda f: f.__name__)
def test_large_arguments_give_what_numpy_gives(f: Callable[..., Any], backend: str) -> None:
    given = {**arrays(f), "x": 300 * arrays(f)["x"]}
    if f is likely:  # where NumPy has the logarithm of 0
        shifted = given["x"] - given["x"].max(1, keepdims=True)
        expected = ((shifted - np.log(np.exp(shifted).sum(1, keepdims=True))) @ given["y"]).sum()
    else:
        expected = f(**given)
    with double_precision():
        found = cd.program(f).compile(backend=backend)(**given)
        gradient = np.asarray(cd.grad(cd.program(f), "x").compile(backend=backend)(**given))
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-9)
    assert np.isfinite(gradient).all()


def test_weights_of_a_chain_are_not_asked_for_each_of_its_indices() -> None:
    """Σ_{j,k} A[i,j] B[j,k] exp(x[k]) is shifted by the largest x[k]: no array has an axis for each index."""

    @cd.program
    def chain(A: cd.Space("n", "m"), B: cd.Space("m", "k"), x: cd.Space("k")):
        return np.log(A @ (B @ np.exp(x))).sum()

    source = chain.source()
    assert "[:, :, None]" not in source
    A, B = np.abs(RANDOM.normal(size=(3, 4))), np.abs(RANDOM.normal(size=(4, 2)))
    np.testing.assert_allclose(chain(A, B, np.array([800.0, 799.0])), chain(A, B, np.array([0.0, -1.0])) + 2400)
