"""Random programs in NumPy's style against NumPy itself, and their gradients against central differences.

All axes have one small size, so that an axis taken for another shows in the numbers and not in the shapes.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import combdiff as cd

N = 3
VECTORS = (
    *("({v} + {v})", "({v} * {v})", "np.tanh({v})", "{v}[::-1]", "np.roll({v}, 1)", "np.cumsum({v})", "np.sort({v})"),
    *("({m} @ {v})", "{m}.sum(axis=0)", "{m}.mean(axis=1)", "{m}.max(axis=0)", "np.diag({m})", "{m}[:, -1]", "{m}[1]"),
    *(
        "np.convolve({v}, {v})[:3]",
        "np.convolve({v}, {v}[:2])[1:]",
        "np.where({v} > 0, {v}, {v})",
        "np.clip({v}, -1, 1)",
    ),
    *("np.concatenate([{v}[1:], {v}[:1]])", "np.pad(np.diff({v}), (1, 0))", "np.repeat({v}, 2)[::2]"),
    *("{v}[np.array([2, 0, 2])]", "np.einsum('ij,j->i', {m}, {v})", "np.delete(np.insert({v}, 1, 2.0), 2)"),
)
MATRICES = (
    *("({m} * {v})", "({m} - {v}[:, None])", "({m} @ {m})", "{m}.T", "np.outer({v}, {v})", "np.tril({m})", "{m}[::-1]"),
    *("np.cumsum({m}, axis=1)", "np.roll({m}, 1, axis=0)", "np.rot90({m})", "np.diag({v})", "np.sin({m})"),
    *(
        "{m}.reshape(-1)[::-1].reshape(3, 3)",
        "np.stack([{v}, {v}, {v}], axis=1)",
        "np.take({m}, np.array([1, 1, 0]), axis=1)",
    ),
    *("np.lib.stride_tricks.sliding_window_view(np.pad({v}, 1), 3)", "np.broadcast_to({v}, (3, 3))"),
)
SPACES = {"x": cd.Space(N), "y": cd.Space(N), "A": cd.Space(N, N), "B": cd.Space(N, N)}


def written(rng: random.Random, kind: str, depth: int) -> str:
    """An expression for a vector or a matrix."""
    if depth == 0:
        return rng.choice("xy" if kind == "v" else "AB")
    pieces = rng.choice(VECTORS if kind == "v" else MATRICES).replace("{v}", "\0v").replace("{m}", "\0m").split("\0")
    inner = (written(rng, piece[0], rng.randrange(depth)) + piece[1:] for piece in pieces[1:])
    return pieces[0] + "".join(inner)


@pytest.mark.sample(2)
@pytest.mark.parametrize("seed", range(40))
def test_a_random_program_is_numpys(seed: int) -> None:
    rng, numbers = random.Random(seed), np.random.default_rng(seed)
    text = f"np.sum({written(rng, 'v', 3)} * {written(rng, 'v', 2)})"
    f: Any = eval(f"lambda {', '.join(SPACES)}: {text}", {"np": np})
    f.__annotations__ = dict(SPACES)
    arrays = {name: numbers.normal(size=(N,) * len(space.axes)) for name, space in SPACES.items()}
    program = cd.program(f)
    np.testing.assert_allclose(program(**arrays), f(**arrays), rtol=1e-9, atol=1e-12, err_msg=text)
    for name in SPACES:
        cd.testing.check_grad(program, name, **arrays)
