"""Tensors whose elements have formulas of their own, printed and read line by line."""

from __future__ import annotations

import numpy as np
import pytest
from strategies import assert_reads_back

import combdiff as cd

Number, Pair, Steps = cd.Space(), cd.Space(2), cd.Space("T")


@cd.program
def epidemic(beta: Number, gamma: Number, s0: cd.Space(3)):
    def step(s, _):
        new = beta * s[0] * s[1]
        return np.stack([s[0] - new, s[1] + new - gamma * s[1], s[2] + gamma * s[1]]), None

    s, _ = cd.scan(step, s0, length=4)
    return s[1]


@cd.program
def turned(a: Number, x: Pair):
    turn = np.stack([np.stack([np.cos(a), -np.sin(a)]), np.stack([np.sin(a), np.cos(a)])])
    return turn @ (turn @ x)


@cd.program
def two_hosts(b: Number, s0: cd.Space(2, "k"), u: Steps):
    """A step whose lines differ in what tells them their ranges, and a value beside the state."""

    def step(s, v):
        new = b * s[0] * s[1] * v
        return np.stack([s[0] - new, 0.5 * s[1] + new]), (s[0] * s[1]).sum()

    s, y = cd.scan(step, s0, u)
    return (s**2).sum() + y.sum()


RNG = np.random.default_rng(3)
ARRAYS = {"beta": 0.7, "gamma": 0.2, "s0": RNG.normal(size=3), "a": 0.3, "x": RNG.normal(size=2), "b": 0.4}
HOSTS = {"s0": RNG.normal(size=(2, 3)), "u": RNG.normal(size=4)}


def test_a_step_is_printed_by_its_elements() -> None:
    assert str(cd.grad(epidemic, "beta")).splitlines()[3:7] == [
        "  t3[t] = gamma s[t,1]",
        "  s[t + 1,0] = s[t,0] - t2[t]",
        "  s[t + 1,1] = t2[t] + s[t,1] - t3[t]",
        "  s[t + 1,2] = s[t,2] + t3[t]",
    ]
    assert "M[0,1] = -t2" in str(turned).replace("turn[", "M[")


@pytest.mark.sample(1)
@pytest.mark.parametrize("program", [epidemic, turned, two_hosts], ids=lambda f: f.name)
def test_elements_are_read(program: cd.Program) -> None:
    arrays = {**ARRAYS, **(HOSTS if program is two_hosts else {})}
    name = program.parameters[0].name
    derived = [] if program is turned else [cd.grad(program, name)]
    for found in (program, *derived):
        for width in (20, 100):
            again = assert_reads_back(
                found.term, {p: arrays[p.name] for p in found.parameters}, {"T": 4, "k": 3}, width
            )
            assert again == found


def test_few_numbers_on_a_long_axis_stay_together() -> None:
    few = cd.read("a ↦\n  t[i<7] = δ(i, 1) a + δ(i, 5) a²\n  Σ_i exp(t[i])")
    assert "δ" in str(few)
    beside = cd.read("x ↦\n  t[i<2] = exp(x[i] + δ(i, 0) x[1] - δ(i, 1) x[0])\n  Σ_{i,j} t[i] t[j]", {"x": Pair})
    assert "δ" in str(beside)


def test_typed_elements() -> None:
    grid = cd.read("a ->\n  m[0,0] = a\n  m[0,1] = 2\n  m[1,0] = a^2\n  m[1,1] = 0\n  m", {"a": Number})
    np.testing.assert_array_equal(grid(3.0), [[3, 2], [9, 0]])
    fibonacci = cd.read("a ->\n  x[0,0] = 0\n  x[0,1] = a\n  x[t+1,0] = x[t,1]\n  x[t+1,1] = x[t,0] + x[t,1]\n  x[9,0]")
    assert fibonacci(1.0) == 34
