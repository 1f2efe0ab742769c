"""Σ_i f(n − 1 − i) is Σ_i f(i): a summed index counts down where that is plainer, and sums equal so are one."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import combdiff as cd

RNG = np.random.default_rng(4)
Vector = cd.Space("n")
Square = cd.Space("n", "n")


def last(tensor: Any, index: Any) -> Any:
    return tensor.shape[0] - 1 - index


@cd.program
def both_flipped(x: Vector, y: Vector):
    return np.sum(np.flip(x) * np.flip(y))


@cd.program
def from_each_place_on(x: Vector):
    return np.sum(np.log(np.cumsum(x[::-1])[::-1]))


@cd.program
def one_flipped(x: Vector, y: Vector):
    return cd.sum(lambda i: x[last(x, i)] * y[i]) - cd.sum(lambda i: x[i] * y[last(y, i)])


@cd.program
def numbered(x: Vector):
    return cd.sum(lambda i: i * x[last(x, i)] ** 2, i=x.shape[0])


@pytest.mark.parametrize(
    ("program", "printed"),
    [
        (cd.simplify(both_flipped), "(x, y) ↦ Σ_i x[i] y[i]"),
        (cd.grad(from_each_place_on), "x ↦ d<n ↦ Σ_{j=0}^{d} 1 / Σ_{i=j}^{n - 1} x[i]"),
        (cd.simplify(one_flipped), "(x, y) ↦ 0"),
        (cd.grad(numbered), "x ↦ d ↦ 2 x[d] (n - d - 1)"),
    ],
    ids=lambda case: case.name if isinstance(case, cd.Program) else "",
)
def test_how_they_read(program: cd.Program, printed: str) -> None:
    assert str(program) == printed


def index_of(rng: np.random.Generator, tensor: Any, indices: tuple[Any, ...]) -> Any:
    """One of the indices, from the first on or from the last."""
    index = indices[rng.integers(len(indices))]
    return last(tensor, index) if rng.random() < 0.5 else index


def random_sum(rng: np.random.Generator) -> Callable[..., Any]:
    """A sum of vectors, matrices and conditions at indices that count up and down."""
    seed = rng.integers(1 << 30)

    def program(x: Vector, A: Square):  # type: ignore[no-untyped-def, valid-type]
        rng = np.random.default_rng(seed)

        def term(*indices: Any) -> Any:
            value: Any = x[index_of(rng, x, indices)] * A[index_of(rng, x, indices), index_of(rng, x, indices)]
            if rng.random() < 0.5:
                left, right = index_of(rng, x, indices), index_of(rng, x, indices)
                value = cd.where(left < right if rng.random() < 0.5 else left <= right + 1, value, 0)
            if rng.random() < 0.4:
                value = value * x[index_of(rng, x, indices)] + (indices[0] if rng.random() < 0.5 else 1)
            return value

        inner = cd.sum(lambda i, j: term(i, j), i=x.shape[0], j=x.shape[0])
        rows = cd.tensor(lambda k: cd.sum(lambda i: term(i, k), i=x.shape[0]), k=x.shape[0])
        return inner**2 + np.sum(np.tanh(rows))

    return program


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", range(24))
def test_random_sums(seed: int) -> None:
    rng = np.random.default_rng(seed)
    program = cd.program(random_sum(rng))
    n = int(rng.integers(1, 4))
    arrays = {"x": RNG.normal(size=n), "A": RNG.normal(size=(n, n))}
    cd.testing.check_grad(program, "x", **arrays)
    np.testing.assert_allclose(cd.simplify(program)(**arrays), program(**arrays), rtol=1e-10, atol=1e-12)
    found, raw = (cd.grad(program, "A", simplify=simplify)(**arrays) for simplify in (True, False))
    np.testing.assert_allclose(found, raw, rtol=1e-10, atol=1e-12)
