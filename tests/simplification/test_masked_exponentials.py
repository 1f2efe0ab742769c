"""A softmax masked by −∞ and one masked by 0 are one program: values, derivatives and prints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import combdiff as cd

Matrix, Values = cd.Space("m", "n"), cd.Space("m", "n")

MASKS: dict[str, Callable[[Any, Any], Any]] = {
    "index": lambda x, y: np.tril(np.ones_like(x)) > 0,
    "band": lambda x, y: np.triu(np.tril(np.ones_like(x), 2), -1) > 0,
    "values": lambda x, y: y < 0.5,
}


def logits(mask: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def loss(x: Matrix, y: Values):
        return (y * cd.softmax(np.where(mask(x, y), 2 * x + 1, -np.inf), axis=1)).sum()

    return loss


def weights(mask: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def loss(x: Matrix, y: Values):
        e = np.where(mask(x, y), np.exp(2 * x + 1), 0)
        return (y * (e / e.sum(axis=1, keepdims=True))).sum()

    return loss


@pytest.mark.thorough
@pytest.mark.parametrize("name", MASKS)
def test_both_masks_are_one_program(name: str) -> None:
    both = [cd.program(written(MASKS[name])) for written in (logits, weights)]
    gradients = [cd.grad(program, wrt="x") for program in both]
    assert "inf" not in str(gradients[0])
    rng = np.random.default_rng(3)
    x, y = 300 * rng.normal(size=(5, 5)), rng.uniform(size=(5, 5)) / 2
    y[2, :2] = 0.7
    values = [np.asarray(gradient(x, y)) for gradient in gradients]
    assert np.allclose(*values, rtol=1e-12, atol=1e-300)
    cd.testing.check_grad(both[0], "x", x=x / 300, y=y)
    hidden = np.asarray(MASKS[name](x, y)) == 0
    assert not values[0][hidden].any()
