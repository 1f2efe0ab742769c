"""Vectors reshaped into many axes, as states of spins are: derivatives are reshaped back, without conditions."""

from __future__ import annotations

import math

import numpy as np
import pytest

import combdiff as cd

RNG = np.random.default_rng(5)
CASES = [((2, 3, 4), 1, 0), ((2, 2, 2, 2), 2, 1), ((3, 2, 2), 0, 2), ((2, 2, 3), 2, 1)]


@pytest.mark.sample(1)
@pytest.mark.parametrize(("shape", "weighed", "turned"), CASES)
def test_slopes_by_digits_of_an_index(shape: tuple[int, ...], weighed: int, turned: int) -> None:
    """One axis is weighed and another turned around; every route gives the slopes."""

    def energy(psi, H):  # type: ignore[no-untyped-def]
        v = psi.reshape(*shape)
        return np.sum((np.moveaxis(v, weighed, -1) * H) ** 2) + np.sum(v * np.flip(np.sin(v), axis=turned))

    size = math.prod(shape)
    energy.__annotations__ = {"psi": cd.Space(size), "H": cd.Space(shape[weighed])}
    f = cd.program(energy)
    psi, H = RNG.normal(size=size), RNG.normal(size=shape[weighed])
    assert f(psi, H) == pytest.approx(energy(psi, H), rel=1e-12)
    assert cd.testing.check_grad(f, "psi", psi=psi, H=H) < 1e-6
    assert cd.testing.check_routes(cd.grad(f, "psi"), psi=psi, H=H) < 1e-9


def test_three_digits_are_joined_without_conditions() -> None:
    @cd.program
    def energy(psi: cd.Space(24), H: cd.Space(2, 3)):
        return np.sum(H[:, :, None] * psi.reshape(2, 3, 4) ** 2)

    gradient = cd.grad(energy, "psi")
    assert "where" not in gradient.source()
    assert "reshape(24)" in gradient.source()
    psi, H = RNG.normal(size=24), RNG.normal(size=(2, 3))
    expected = (2 * psi.reshape(2, 3, 4) * H[:, :, None]).ravel()
    np.testing.assert_allclose(gradient(psi, H), expected, rtol=1e-12)


@pytest.mark.thorough
def test_gates_on_neighbours_are_products_of_small_matrices() -> None:
    """Axes are brought to the front, merged, multiplied and put back: what is left reads the state at digits alone."""
    spins = 4

    def gate(psi, U, k):  # type: ignore[no-untyped-def]
        v = np.moveaxis(psi.reshape((2,) * spins), (k, k + 1), (0, 1)).reshape(4, -1)
        return np.moveaxis((U @ v).reshape((2,) * spins), (0, 1), (k, k + 1)).reshape(-1)

    def energy(psi, H):  # type: ignore[no-untyped-def]
        return sum(psi @ gate(psi, H, k) for k in range(spins - 1))

    energy.__annotations__ = {"psi": cd.Space(2**spins), "H": cd.Space(4, 4)}
    f = cd.program(energy)
    gradient = cd.grad(f, "psi")
    assert str(gradient) == (
        "(psi, H) ↦\n"
        "  d<16 ↦\n"
        "    Σ_k psi[2 k + (d mod 2) + 8 ⌊d/8⌋] (H[k,⌊d/2⌋ mod 4] + H[⌊d/2⌋ mod 4,k])\n"
        "    + Σ_i H[i,⌊d/4⌋] psi[4 i + (d mod 4)]\n"
        "    + Σ_k H[⌊d/4⌋,k] psi[4 k + (d mod 4)]\n"
        "    + Σ_i H[i,d mod 4] psi[i + 4 ⌊d/4⌋]\n"
        "    + Σ_k H[d mod 4,k] psi[k + 4 ⌊d/4⌋]"
    )
    assert "where" not in gradient.source()
    psi, H = RNG.normal(size=2**spins), RNG.normal(size=(4, 4))
    assert f(psi, H) == pytest.approx(energy(psi, H), rel=1e-12)
    assert cd.testing.check_grad(f, "psi", psi=psi, H=H) < 1e-6
    assert cd.testing.check_routes(gradient, psi=psi, H=H) < 1e-9
