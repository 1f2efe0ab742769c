"""Vectors reshaped into many axes, as states of spins are: derivatives are reshaped back, without conditions."""

from __future__ import annotations

import math

import numpy as np
import pytest

import combdiff as cd

RNG = np.random.default_rng(5)
CASES = [((2, 3, 4), 1, 0), ((2, 2, 2, 2), 2, 1), ((3, 2, 2), 0, 2), ((2, 2, 3), 2, 1)]


@pytest.mark.sample(2)
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
