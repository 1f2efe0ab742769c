"""Random sums of contractions, indices in random orders: plans choose orders of axes for all of a sum at once."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import combdiff as cd

LETTERS = "abcdefgh"  # of which the first four are those of results

Arrays = dict[str, Any]


def random_sum(seed: int) -> tuple[Arrays, Callable[..., Any]]:
    """Arrays, and a function of them, of einsum and of exp: Σ ± g(einsum), all of one shape."""
    draw, rng = random.Random(seed), np.random.default_rng(seed)
    sizes = {letter: draw.choice([2, 3, 3]) for letter in LETTERS}
    if draw.random() < 0.4:
        sizes = dict.fromkeys(LETTERS, 3)  # axes that are mixed up do not show by their lengths
    result = LETTERS[: draw.choice([2, 3, 3, 4])]
    arrays: Arrays = {}
    terms = []
    for _ in range(draw.choice([2, 2, 3])):
        order = draw.sample(result, len(result))
        cut, summed = draw.randrange(1, len(order)), draw.sample(LETTERS[4:], draw.choice([0, 1, 1, 2]))
        names, subscripts = [], []
        for own in (order[:cut], order[cut:]):
            letters = draw.sample([*own, *summed], len(own) + len(summed))
            shape = tuple(sizes[letter] for letter in letters)
            names.append(draw.choice("ABC") + "".join(map(str, shape)))
            arrays.setdefault(names[-1], rng.normal(size=shape))
            subscripts.append("".join(letters))
        terms.append((draw.choice([1, -1, 0.5, 2]), f"{','.join(subscripts)}->{result}", names, draw.randrange(3)))

    def value(given: Arrays, einsum: Any, exp: Any) -> Any:
        total = 0
        for factor, equation, names, kind in terms:
            product = einsum(equation, *(given[name] for name in names))
            total = total + factor * (product, product * product, exp(product / 4))[kind]
        return total

    return arrays, value


@pytest.mark.parametrize("first", [0, pytest.param(1000, marks=pytest.mark.thorough)])
def test_sums_of_products_are_numpys(first: int) -> None:
    """Values, and of the thorough ones derivatives too, by central differences."""
    for seed in range(first, first + (200 if first else 40)):
        arrays, value = random_sum(seed)

        def total(*tensors: Any, names: Any = tuple(arrays), value: Any = value) -> Any:
            return value(dict(zip(names, tensors, strict=True)), cd.einsum, cd.exp)

        spaces = ", ".join(f"{name}: cd.Space{array.shape}" for name, array in arrays.items())
        scope: dict[str, Any] = {"cd": cd, "total": total}
        exec(f"def f({spaces}):\n    return total({', '.join(arrays)})", scope)
        program = cd.program(scope["f"])
        found = program(**arrays)
        np.testing.assert_allclose(found, value(arrays, np.einsum, np.exp), err_msg=f"seed {seed}")
        if not first:
            continue
        rng, name = np.random.default_rng(seed + 1), next(iter(arrays))
        cotangent, direction = rng.normal(size=found.shape), rng.normal(size=arrays[name].shape)
        pulled = cd.pullback(program, name, simplify=bool(seed % 2))(*arrays.values(), cotangent)
        ends = [
            (value({**arrays, name: arrays[name] + step * direction}, np.einsum, np.exp) * cotangent).sum()
            for step in (1e-6, -1e-6)
        ]
        slope = (ends[0] - ends[1]) / 2e-6
        np.testing.assert_allclose((pulled * direction).sum(), slope, rtol=1e-5, atol=1e-5, err_msg=f"seed {seed}")
