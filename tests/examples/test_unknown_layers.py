"""Networks whose activation is a named function of one number: right at every depth, deep ones no special case."""

from __future__ import annotations

import numpy as np
import pytest

import combdiff as cd

Vector, Matrix, Number = cd.Space("n"), cd.Space("n", "n"), cd.Space()
RNG = np.random.default_rng(8)
A, x = RNG.normal(size=(3, 3)) / 2, RNG.normal(size=3)


@cd.program
def activation(z: Number):  # type: ignore[valid-type, no-untyped-def]
    return cd.tanh(z) + z * z / 5


def applied(s, z):  # type: ignore[no-untyped-def]
    """A function of one number on every element."""
    return cd.tensor(lambda i: s(z[i]))


def network(layers: int) -> cd.Program:
    @cd.program
    def energy(s: cd.Function(Number), x: Vector, A: Matrix):  # type: ignore
        y = x
        for _ in range(layers):
            y = applied(s, A @ y)
        return y @ y

    return energy


@pytest.mark.thorough
@pytest.mark.parametrize("layers", [1, 4])
def test_every_index_of_a_derivative_is_bound(layers: int) -> None:
    """Indices that the e-graph has named do not lose their Σ where a call has one inside."""
    program = network(layers)
    known = program.partial(s=activation)
    for wrt in ("x", "A"):
        raw, simple = (cd.grad(program, wrt, simplify=flag).partial(s=activation) for flag in (False, True))
        expected = cd.grad(known, wrt)(x, A)
        np.testing.assert_allclose(raw(x, A), expected, rtol=1e-9)
        np.testing.assert_allclose(simple(x, A), expected, rtol=1e-9)
    cd.testing.check_grad(known, ("x", "A"), x=x, A=A)


@pytest.mark.thorough
def test_a_map_is_given_for_a_name_a_hundred_layers_deep() -> None:
    program = network(100)
    known = program.partial(s=activation)
    value = x
    for _ in range(100):
        z = A @ value
        value = np.tanh(z) + z * z / 5
    np.testing.assert_allclose(known(x, A), value @ value)
