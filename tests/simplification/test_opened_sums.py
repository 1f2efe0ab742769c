"""Definitions that are sums, written out in sums where terms cancel."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import combdiff as cd

Vector, Complex = cd.Space("n"), cd.Space("n", dtype=complex)


@cd.program
def pairs(x: Vector):
    y = x[:, None] + x[None, :]
    for _ in range(3):
        y = np.sin(y / (2 + y**2)) + y * np.exp(y)
    return np.tanh(y).sum(0)


@cd.program
def waves(z: Complex):
    x = np.sin(z / (2 + abs(z) ** 2))
    return np.sin(x / (2 + abs(x) ** 2))


@pytest.mark.sample(1)
@pytest.mark.parametrize("f", [pairs, waves], ids=["real", "complex"])
def test_denominators_that_have_names_leave_numerators(f: cd.Program) -> None:
    """The derivative of x / (2 + x²) is (2 − x²) / (2 + x²)², that of z / (2 + |z|²) is (2 k − k* z²) / (2 + |z|²)²."""
    lines = str(cd.pullback(f)).splitlines()
    sums = [line.split("[")[0].strip() for line in lines if "] = 2 + " in line]
    assert sums
    assert not any(f"- {name}[" in line or f"({name}[d] - " in line for name in sums for line in lines)


@pytest.mark.thorough
@pytest.mark.parametrize("f", [pairs, waves], ids=["real", "complex"])
def test_derivatives_are_the_same_by_every_route(f: cd.Program) -> None:
    x = np.array([0.2, -0.3]) + (np.array([0.3j, 0.4j]) if f is waves else 0)
    cd.testing.check_routes(f, **{f.parameters[0].name: x})


TERMS = st.sampled_from(["t", "2 t", "-t", "3 x²", "x²", "-4", "y", "s", "-2 s", "x y"])


@pytest.mark.thorough
@given(st.lists(TERMS, min_size=1, max_size=5))
def test_sums_keep_their_values(terms: list[str]) -> None:
    text = f"t = 2 + x² + y; s = x y - t; exp({' + '.join(terms)}) + sin(t) + s³ + cos(t s)".replace("+ -", "- ")
    written, at = cd.read(f"(x, y) ↦ {text}"), (0.7, -1.3)
    assert np.isclose(cd.simplify(written)(*at), written(*at), rtol=1e-12)
