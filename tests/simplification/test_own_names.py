"""What a derivative binds anew is called what the user calls it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import combdiff as cd


@cd.program
def network(  # type: ignore[no-untyped-def]
    W: cd.Space("h", "n"),  # type: ignore[valid-type]
    V: cd.Space("m", "h"),  # type: ignore[valid-type]
    x: cd.Space("n"),  # type: ignore[valid-type]
    y: cd.Space("m"),  # type: ignore[valid-type]
):
    hidden = np.tanh(W @ x)
    out = np.tanh(V @ hidden)
    return -cd.sum(lambda i: (out[i] - y[i]) ** 2)


def bound(f: cd.Program) -> list[str]:
    return [line.split("[")[0].split(" = ")[0].strip() for line in str(f).splitlines() if " = " in line]


@pytest.mark.thorough
def test_the_last_layer_keeps_its_name() -> None:
    """`out` is read once in the program, and twice in its derivative."""
    assert "out" not in bound(network)
    assert bound(cd.grad(network, "W")) == ["hidden", "out"]
    assert bound(cd.value_and_grad(network, "V"))[:2] == ["hidden", "out"]
    assert bound(cd.pullback(network, "W")) == ["hidden", "out"]
    assert set(bound(cd.hessian(network, "V"))) >= {"hidden", "out"}


def test_names_are_those_of_equal_values_in_another_order() -> None:
    @cd.program
    def f(A: cd.Space("n", "n"), x: cd.Space("n")):  # type: ignore[no-untyped-def,valid-type]
        field = cd.tensor(lambda i: cd.exp(cd.sum(lambda j: x[j] * A[i, j])))
        return cd.sum(lambda i: cd.log(1 + field[i] ** 2) * x[i])

    assert "field" in bound(cd.grad(f, "x"))


def test_a_name_that_is_taken_is_not_given_again() -> None:
    @cd.program
    def f(x: cd.Space("n"), y: cd.Space("n")):  # type: ignore[no-untyped-def,valid-type]
        y = np.tanh(cd.exp(x) * y)
        return cd.sum(lambda i: y[i] ** 2 * cd.sin(y[i]))

    arrays: dict[str, Any] = {"x": np.arange(3.0) / 3, "y": np.arange(3.0)}
    found = cd.grad(f, "x")
    assert "y" not in bound(found)
    cd.testing.check_grad(f, "x", **arrays)
