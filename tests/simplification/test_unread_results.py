"""Derivatives of iterations neither print nor compute what nothing reads."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import combdiff as cd

Vector, Matrix = cd.Space("n"), cd.Space("n", "n")
RNG = np.random.default_rng(3)


def losses(A: Matrix, x: Vector):
    """The gradient reads no loss of a step."""
    last, each = cd.scan(lambda s, _: (np.tanh(A @ s), s @ s), x, length=4)
    return each.sum() + last.sum()


def counted(A: Matrix, x: Vector):
    """A state that only a result depends on that nothing reads."""

    def step(carry, _):
        state, total = carry
        return (np.tanh(A @ state), total + state @ state), total

    (last, _), _ = cd.scan(step, (x, 0.0), length=4)
    return last @ last


def before_others(A: Matrix, x: Vector):
    """What goes comes first, what a step makes beside it stays."""

    def step(carry, _):
        total, state = carry
        return (total + state.sum(), np.sin(A @ state)), (total, state @ state)

    (_, last), (_, each) = cd.scan(step, (1.0, x), length=4)
    return last.sum() + each @ each


def nested(A: Matrix, x: Vector):
    """The inner iteration gives what the outer one does not read."""

    def outer(state, _):
        inner, each = cd.scan(lambda s, _: (np.cos(A @ s), s @ s), state, length=3)
        return inner, each.sum() + inner @ inner

    last, each = cd.scan(outer, x, length=4)
    return last @ last + each.sum()


PROGRAMS: dict[str, tuple[Callable[..., Any], list[str]]] = {
    "losses": (losses, ["y"]),
    "counted": (counted, ["y", "total"]),
    "before_others": (before_others, ["total"]),
    "nested": (nested, ["y"]),
}


def defined(text: str) -> set[str]:
    """The stems of the names that lines of a print define."""
    lines = (line.strip() for line in text.splitlines() if " = " in line)
    return {line.partition("[")[0].rstrip("0123456789") for line in lines}


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", PROGRAMS)
def test_nothing_is_defined_that_nothing_reads(name: str) -> None:
    body, unread = PROGRAMS[name]
    program = cd.program(body)
    arrays = {"A": RNG.normal(size=(3, 3)), "x": RNG.normal(size=3)}
    for wrt in ("A", "x"):
        gradient = cd.grad(program, wrt)
        assert defined(str(gradient)).isdisjoint(unread)
        raw = cd.grad(program, wrt, simplify=False)
        np.testing.assert_allclose(gradient(**arrays), raw(**arrays), rtol=1e-10)
