"""Random formulas with Σ, Π, max and min over indices, minus signs and differences: value, prints and gradient.

A minus goes into a Σ of differences, but into no Π and no max: -max_j (x[j] - y[j]) is not max_j (y[j] - x[j]).
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest

import combdiff as cd
from combdiff.testing.text_derivatives import extrapolated_differences

SIZE = 3
SPACES = {"x": cd.Space("n"), "y": cd.Space("n"), "A": cd.Space("n", "n")}
FOLDS = {"Σ": np.sum, "Π": np.prod, "max": np.max, "min": np.min}
Value = Callable[[dict[str, Any]], Any]  # of the arrays: an array with an axis for each index in scope


def drawn(random: Random, indices: tuple[str, ...], depth: int) -> tuple[str, Value]:
    """A number under indices, and what NumPy makes of it."""
    kind = random.choice(["difference", "fold", "fold", "product", "minus", "leaf"]) if depth else "leaf"
    if kind == "leaf":
        return leaf(random, indices)
    if kind == "fold":
        index = "ijklm"[len(indices)]
        sign, (text, body) = random.choice([*FOLDS]), drawn(random, (*indices, index), depth - 1)
        fold = FOLDS[sign]
        return f"({sign}_{{{index}<n}} ({text}))", lambda given: fold(body(given) + np.zeros(SIZE), axis=-1)
    (one, first), (two, second) = (drawn(random, indices, depth - 1) for _ in range(2))
    if kind == "minus":
        return f"(-{one})", lambda given: -first(given)
    if kind == "difference":
        return f"({one} - {two})", lambda given: first(given) - second(given)
    return f"{one} {two}", lambda given: first(given) * second(given)


def leaf(random: Random, indices: tuple[str, ...]) -> tuple[str, Value]:
    """An element of a tensor, or a number."""
    if not indices:
        number = random.choice([2, 3])
        return str(number), lambda given: np.array(float(number))
    at = random.randrange(len(indices))
    shape = tuple(SIZE if n == at else 1 for n in range(len(indices)))
    if len(indices) == 1 or random.random() < 0.6:
        name = random.choice("xy")
        return f"{name}[{indices[at]}]", lambda given: given[name].reshape(shape)
    last = len(indices) - 1
    shape = tuple(SIZE if n in (last - 1, last) else 1 for n in range(len(indices)))
    return f"A[{indices[last - 1]},{indices[last]}]", lambda given: given["A"].reshape(shape)


def check(seed: int) -> None:
    text, value = drawn(Random(seed), (), 5)
    rng = np.random.default_rng(seed)
    given = {name: rng.uniform(-1, 1, (SIZE,) * len(space.axes)) for name, space in SPACES.items()}
    program = cd.read(f"(x, y, A) ↦ {text}", SPACES)
    expected = value(given)
    for printed in (str(program), str(cd.simplify(program)), program.matrix()):
        again = cd.read(printed, SPACES)
        np.testing.assert_allclose(again(**given), expected, rtol=1e-9, atol=1e-9, err_msg=f"{text}\n{printed}")
    gradient = cd.grad(program, "x")
    slopes = gradient(**given)
    (expected_slopes,) = extrapolated_differences(program, given, {"n": SIZE}, "x", 32.0)
    np.testing.assert_allclose(slopes, expected_slopes, rtol=1e-5, atol=1e-5, err_msg=f"{text}\n{gradient}")
    for printed in (str(gradient), gradient.matrix()):
        again = cd.read(printed, SPACES)
        np.testing.assert_allclose(again(**given), slopes, rtol=1e-9, atol=1e-9, err_msg=f"{text}\n{printed}")


@pytest.mark.sample(12)
@pytest.mark.parametrize("seed", range(60))
def test_prints_have_the_value_that_was_written(seed: int) -> None:
    check(seed)
