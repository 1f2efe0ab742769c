"""What a Python loop over scalars or one-element tensors gives grows as the number of its steps.

    x ← r x (1 - x)                    p ← p - h sin q,  q ← q + h p

Counted are the nodes of terms, the steps of plans and the letters of prints; the longest product of a graph that
cross-country mode eliminates has a length that does not depend on the number of steps.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import combdiff as cd
from combdiff.differentiation import cross_country
from combdiff.ir import subterms

Number, One = cd.Space(), cd.Space(1)


def logistic(steps: int, space: cd.Space) -> cd.Program:
    def logistic(r: space, x: space):  # type: ignore
        for _ in range(steps):
            x = r * x * (1 - x)
        return cd.sum(x) if space.order else x

    return cd.program(logistic)


def pendulum(steps: int, space: cd.Space) -> cd.Program:
    def pendulum(h: space, x: space):  # type: ignore
        q, p = 0 * x + 0.1, x
        for _ in range(steps):
            p = p - h * np.sin(q)
            q = q + h * p
        return cd.sum((q - 1) ** 2) if space.order else (q - 1) ** 2

    return cd.program(pendulum)


LOOPS = pytest.mark.parametrize("loop", [logistic, pendulum], ids=["logistic", "pendulum"])
SPACES = pytest.mark.parametrize("space", [Number, One], ids=["scalars", "one-element tensors"])


def counts(program: cd.Program) -> tuple[int, int, int]:
    return sum(1 for _ in subterms(program.term)), len(program.cost().rows), len(str(program).replace(" ", ""))


def arguments(space: cd.Space) -> tuple[Any, Any]:
    return np.full((1,) * space.order, 1.1), np.full((1,) * space.order, 0.3)


def assert_linear(small: cd.Program, middle: cd.Program, large: cd.Program) -> None:
    """From 4 to 8 and 12 steps each count grows by the same, within a tenth."""
    for few, some, many in zip(*map(counts, (small, middle, large)), strict=True):
        assert many - some <= 1.2 * (some - few) + 60, (few, some, many)


@pytest.mark.sample(1)
@LOOPS
@SPACES
def test_gradients_of_loops_grow_as_their_steps(loop: Any, space: cd.Space) -> None:
    assert_linear(*(cd.grad(loop(steps, space), "x") for steps in (4, 8, 12)))


@pytest.mark.thorough
@LOOPS
@SPACES
def test_hessians_of_loops_grow_as_their_steps(loop: Any, space: cd.Space) -> None:
    programs = [loop(steps, space) for steps in (4, 8, 12)]
    hessians = [cd.hessian(program, "x") for program in programs]
    assert_linear(*hessians)
    given = arguments(space)
    found, move = hessians[-1](*given), 1e-4
    slopes = [cd.grad(programs[-1], "x")(given[0], given[1] + side) for side in (move, -move)]
    np.testing.assert_allclose(np.ravel(found), np.ravel(slopes[0] - slopes[1]) / (2 * move), rtol=1e-5)


@pytest.mark.thorough
def test_the_products_of_a_chain_do_not_grow_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    longest: list[int] = []
    add = cross_country._JacobianGraph._add

    def adding(graph: Any, edge: Any, more: Any) -> None:
        longest[-1] = max(longest[-1], sum(1 for _ in subterms(more.map.holomorphic)))
        add(graph, edge, more)

    monkeypatch.setattr(cross_country._JacobianGraph, "_add", adding)
    for steps in (8, 14):
        longest.append(0)
        program = logistic(steps, One)
        raw = cd.hessian(program, "x", mode="cross-country", simplify=False)
    assert longest[0] == longest[1]
    expected = cd.hessian(program, "x", mode="forward", simplify=False)(*arguments(One))
    np.testing.assert_allclose(raw(*arguments(One)), expected, rtol=1e-12)
