"""Deep chains: the work and the size of a derivative are linear in the depth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import combdiff as cd
from combdiff import simplification
from combdiff.substitution import subterms
from combdiff.terms import Term

Chain = Callable[[int], cd.Program]


def scalars(depth: int) -> cd.Program:
    """t ↦ (sin t + 1)·x, again and again."""

    @cd.program
    def chain(x: cd.Space()):
        t = x
        for _ in range(depth):
            t = (cd.sin(t) + 1) * x
        return t

    return chain


def vectors(depth: int) -> cd.Program:
    """t[j] ↦ sin(Σ_i t[i]) + x[j], again and again."""

    def layer(t: Any, x: Any) -> Any:
        return cd.tensor(lambda j: cd.sin(t.sum()) + x[j])

    @cd.program
    def chain(x: cd.Space("n")):
        t = x
        for _ in range(depth):
            t = layer(t, x)
        return t.sum()

    return chain


def layers(depth: int) -> cd.Program:
    """A network whose weights are one tensor W, a layer at a time."""

    def layer(n: int, W: Any, t: Any) -> Any:
        return cd.tensor(lambda i: cd.tanh(cd.sum(lambda j: W[n, i, j] * t[j])))

    @cd.program
    def loss(W: cd.Space(depth, "m", "m"), x: cd.Space("m")):
        t = x
        for n in range(depth):
            t = layer(n, W, t)
        return (t * t).sum()

    return loss


def nodes(program: cd.Program) -> int:
    """The number of distinct terms in a program."""
    return sum(1 for _ in subterms(program.term))


@pytest.mark.parametrize("make", [scalars, vectors, layers])
def test_size_and_simplifications_grow_linearly_up_to_64_layers(make: Chain, monkeypatch: pytest.MonkeyPatch) -> None:
    met: list[int] = []
    simplify = simplification.simplify

    def counted(term: Term, *further: Any, **named: Any) -> Term:
        met.append(sum(1 for _ in subterms(term)))
        return simplify(term, *further, **named)

    monkeypatch.setattr(simplification, "simplify", counted)
    sizes, printed, work, largest = [], [], [], []
    for depth in (16, 32, 64):
        met.clear()
        gradient = cd.grad(make(depth))
        sizes.append(nodes(gradient))
        printed.append(len(str(gradient)))
        work.append(sum(met))
        largest.append(max(met))
    for figures in (sizes, printed, work):
        first, second = figures[1] - figures[0], figures[2] - figures[1]
        assert second <= 2.5 * first, figures  # the depth added is twice as much
    assert largest[2] <= 1.5 * largest[0], largest  # no single simplification grows with the depth


@pytest.mark.parametrize("make", [scalars, vectors, layers])
def test_a_gradient_of_8_layers_agrees_with_central_differences(make: Chain) -> None:
    program = make(8)
    rng = np.random.default_rng(1)
    arrays = {"x": np.asarray(0.4)}
    if make is vectors:
        arrays = {"x": rng.normal(size=3) / 10}
    if make is layers:
        arrays = {"W": 0.8 * rng.normal(size=(8, 2, 2)), "x": rng.normal(size=2)}
    cd.testing.check_grad(program, **arrays, tolerance=1e-5)
    plain = cd.grad(program, simplify=False)(**arrays)
    assert np.allclose(cd.grad(program)(**arrays), plain, rtol=1e-9, atol=1e-9 * np.max(abs(plain)))
