"""Numbers beside indices in exponents, and averages that keep their names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import combdiff as cd
from combdiff.testing import check_grad, check_routes, random_arrays


def flock(x: cd.Space("n", 2), v: cd.Space("n", 2)):
    """Velocities beside their weighted means: the adjoint of a weight is added to its transpose."""
    w = np.exp(-((x[:, None] - x[None]) ** 2).sum(-1))
    return ((w @ v / w.sum(1, keepdims=True) - v) ** 2).sum()


def duration(r: cd.Space(), c: cd.Space(4)):
    """The mean time of payments, by an exponent that is an index and one more."""
    years = np.arange(1, 5)
    present = c / (1 + r) ** years
    return (years * present).sum() / present.sum()


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("definition", "seen"),
    [
        (flock, "w_bar[d,i] + w_bar[i,d]"),
        (duration, "(1 + r)^(-i - 2)"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_gradients_read_as_by_hand(definition: Any, seen: str) -> None:
    f = cd.program(definition)
    name = f.parameters[0].name
    gradient = cd.grad(f, wrt=name)
    assert seen in str(gradient)
    for seed, n in enumerate((1, 4)):
        arrays = random_arrays(f.parameters, np.random.default_rng(seed), {"n": n, "k": 2})
        arrays |= {"r": np.array(0.1)} if definition is duration else {}
        check_routes(gradient, **arrays)
        assert check_grad(f, name, **arrays) < 1e-6
