"""Powers with the exponents of a range are products of two that there are, with the values of single powers."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import combdiff as cd


@cd.program
def polynomials(t: cd.Space("n"), x: cd.Space("m")):
    return cd.tensor(lambda i: cd.sum(lambda j: x[j] * t[i] ** j))


@cd.program
def slopes(t: cd.Space("n"), x: cd.Space("m")):
    return cd.tensor(lambda i: cd.sum(lambda j: cd.where(j >= 1, x[j] * j * t[i] ** (j - 1), 0)))


@cd.program
def spectra(z: cd.Space("n", dtype=complex)):
    return cd.tensor(lambda i, j: z[i] ** (j + 2), j=30)


@cd.program
def stacks(t: cd.Space("n", "k"), x: cd.Space("m")):
    return cd.tensor(lambda i, a, j: x[j] * t[i, a] ** j)


TAKEN = [(polynomials, {"m": 30}), (slopes, {"m": 30}), (spectra, {}), (stacks, {"m": 30, "k": 5})]


@pytest.mark.parametrize(("program", "sizes"), TAKEN, ids=[program.name for program, _ in TAKEN])
def test_exponents_of_a_range_take_no_powers(program: cd.Program, sizes: dict[str, int]) -> None:
    source = program.source(n=1000, **sizes)
    assert "_powers(" in source
    assert "# (m, n) power\n" not in source
    assert "_powers(" not in program.source(n=2, **{**sizes, **({"m": 5} if "m" in sizes else {})})


def test_few_exponents_are_those_of_powers() -> None:
    assert "_powers(" not in polynomials.source(n=10**4, m=3)


@given(seed=st.integers(0, 99), count=st.integers(0, 40), exponents=st.integers(0, 70))
def test_their_values_are_those_of_powers(seed: int, count: int, exponents: int) -> None:
    rng = np.random.default_rng(seed)
    t, x = rng.uniform(-1.2, 1.2, count), rng.normal(size=exponents)
    t[: count // 3] = rng.choice([0.0, 1.0, -1.0], count // 3)
    powers = t[:, None] ** np.arange(exponents)
    below = np.arange(1, exponents) * t[:, None] ** np.arange(exponents - 1) if exponents else np.zeros((count, 0))
    scale = np.abs(x).sum() * 1.2**exponents * max(1, exponents)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of 1/0 in t⁻¹, which is not read
        np.testing.assert_allclose(polynomials(t, x), powers @ x, rtol=0, atol=1e-14 * scale)
        np.testing.assert_allclose(slopes(t, x), below @ x[1:], rtol=0, atol=1e-14 * scale)


def test_of_several_axes_and_of_complex_numbers() -> None:
    rng = np.random.default_rng(0)
    t, x = rng.normal(size=(30, 20)), rng.normal(size=15)
    np.testing.assert_allclose(stacks(t, x), x * t[..., None] ** np.arange(15), rtol=1e-13)
    z = rng.normal(size=600) + 1j * rng.normal(size=600)
    np.testing.assert_allclose(spectra(z), z[:, None] ** np.arange(2, 32), rtol=1e-13)
    single = t.astype(np.float32)
    assert stacks(single, x.astype(np.float32)).dtype == np.float32


def test_of_zeros_and_infinities() -> None:
    t = np.tile([0.0, -0.0, np.inf, -np.inf, np.nan, 1e200, 1e-200, -2.0], 40)
    with np.errstate(over="ignore"):
        found, expected = stacks(t[:, None], np.ones(25))[:, 0], t[:, None] ** np.arange(25)
    np.testing.assert_allclose(found, expected, rtol=1e-13)
