"""Lists of numbers, and the arrays of objects that NumPy makes of traced ones, are tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import combdiff as cd

T, X = 0.7, np.array([0.3, -0.4, 1.2])


def rotated(t, x):
    turn = np.array([[np.cos(t), -np.sin(t)], [np.sin(t), np.cos(t)]])
    return turn @ x[:2] + turn.T @ x[1:]


CASES: dict[str, Callable[..., Any]] = {
    "a rotation": rotated,
    "a vector": lambda t, x: np.array([t, t**2, 1.0]) @ x,
    "functions of one": lambda t, x: np.exp(np.array([t, 2 * x[0]])) + np.sqrt(np.array([t * t, x[2]])),
    "its norm": lambda t, x: np.linalg.norm(np.array([t, 2 * x[0]])),
    "a product of two": lambda t, x: np.array([[t, 1], [x[0], t]]) @ np.array([1, x[1]]),
    "reshaped": lambda t, x: np.array([[t, 1], [0, x[0]]]).reshape(4)[::-1],
    "joined": lambda t, x: np.concatenate([np.array([t, 2 * x[0]]), x]),
    "a cross product": lambda t, x: np.cross(np.array([t, 0, 1]), x),
    "of three axes": lambda t, x: np.array([[[t, x[0]]], [[1, 2]]]) * x[:2],
    "one number": lambda t, x: np.array(t) * x,
    "by a comprehension": lambda t, x: np.array([f(t) for f in (np.sin, np.cos, np.tan)]) * x,
    "a function of elements": lambda t, x: np.vectorize(lambda i: x[i] ** 2)(np.arange(3)),
    "a list of numbers": lambda t, x: x * [1, 2, 3] + np.dot(x, [t, 2, 3]),
    "beside an array": lambda t, x: np.ones(2) * [x[0], t],
    "a list that is joined": lambda t, x: np.concatenate([[0.0], np.cumsum(x), [t]]),
    "lists of lists": lambda t, x: [[1, 2, 3], [x[0], 0, 1]] * np.outer([t, 1], x),
    "where": lambda t, x: np.where(x > 0, [1, 2, 3], x),
    "a polynomial": lambda t, x: np.polyval([t, 1, 2], x),
}


@pytest.mark.parametrize("name", CASES)
def test_values_and_derivatives_are_those_of_numpys_arrays(name: str) -> None:
    case = CASES[name]
    case.__annotations__ = {"t": cd.Space(), "x": cd.Space(3)}
    program = cd.program(case)
    np.testing.assert_allclose(program(T, X), case(T, X), rtol=1e-13)
    tangent = cd.pushforward(program, ("t", "x"))(T, X, 1.0, np.array([1.0, 2.0, -1.0]))
    step, way = 1e-6, np.array([1.0, 2.0, -1.0])
    expected = (case(T + step, X + step * way) - case(T - step, X - step * way)) / (2 * step)
    np.testing.assert_allclose(tangent, expected, rtol=1e-7, atol=1e-8)


def test_steps_and_equations_give_them() -> None:
    @cd.program
    def pendulum(q: cd.Space()):
        def step(y, _):
            return y + 0.1 * np.array([y[1], -np.sin(y[0])]), None

        return cd.scan(step, np.array([q, 0.0]), length=5)[0]

    y = np.array([0.3, 0.0])
    for _ in range(5):
        y = y + 0.1 * np.array([y[1], -np.sin(y[0])])
    np.testing.assert_allclose(pendulum(0.3), y)

    @cd.program
    def root(a: cd.Space()):
        return cd.root(lambda z: np.array([z[0] ** 2 - a, z[1] - z[0] + 1]), like=cd.Space(2), start=np.array([1, 1]))

    np.testing.assert_allclose(root(4.0), [2, 1])
    np.testing.assert_allclose(cd.jacobian(root, "a")(4.0), [0.25, 0.25])


def test_what_a_program_returns_may_be_one() -> None:
    @cd.program
    def both(t: cd.Space(), z: cd.Space(dtype=complex)):
        return np.array([[t, 1], [0, t]]), np.array([z, 2])

    real, complex_ = both(2.0, 1j)
    np.testing.assert_array_equal(real, [[2, 1], [0, 2]])
    np.testing.assert_array_equal(complex_, [1j, 2])
