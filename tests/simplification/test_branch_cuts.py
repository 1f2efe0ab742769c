"""Functions with a branch cut, of numbers that are real and of complex type: √(z + z*) is a complex number.

    (√t)* with t = z + z*      is not √t: for t = −1 it is −i
    (log t)* with t = z* z     is log t, as t is not negative

NumPy goes by the type, and so must what is simplified: a real number keeps its complex type where such a function is
applied to it, and what is complex on the cut is not taken for real.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import examples

import combdiff as cd

Vector = cd.Space("n", dtype=complex)
Hermitian = cd.Space("n", "n", dtype=complex, symmetry=["H[i,j] = conj(H[j,i])"])

BRANCHED: tuple[Callable[[Any], Any], ...] = (
    *(cd.sqrt, cd.log, cd.arccos, cd.arcsin, cd.arctanh, cd.arctan),
    lambda x: x**0.3,
    lambda x: 1 / cd.sqrt(x),
)
REAL: tuple[Callable[[Any, Any, Any], Any], ...] = (
    lambda z, H, i: z[i] + cd.conj(z[i]),
    lambda z, H, i: H[i, i],
    lambda z, H, i: cd.sum(lambda k: z[k] + cd.conj(z[k])),
    lambda z, H, i: cd.sum(lambda k: H[k, k]),
    lambda z, H, i: (z[i] + cd.conj(z[i])) * H[i, i],
    lambda z, H, i: z[i] * cd.conj(z[i]),
    lambda z, H, i: cd.sum(lambda k: z[k] * cd.conj(z[k])),
)
AROUND: tuple[Callable[[Any, Any], Any], ...] = (
    lambda value, real: cd.conj(value),
    lambda value, real: cd.real(value),
    lambda value, real: cd.imag(value) * real,
    lambda value, real: cd.conj(value) * real + cd.real(real),
    lambda value, real: cd.abs(value) + value,
    lambda value, real: cd.real(value * real) + cd.exp(real),
)


def hermitian(rng: np.random.Generator, n: int) -> np.ndarray[Any, Any]:
    A = rng.normal(size=(n, n)) + 1j * rng.normal(size=(n, n))
    return A + A.conj().T


@settings(max_examples=examples(40), deadline=None)
@given(
    *(st.sampled_from(REAL), st.sampled_from(REAL), st.sampled_from(BRANCHED), st.sampled_from(AROUND)),
    st.integers(0, 2**32 - 1),
)
def test_simplifying_stays_on_the_side_of_the_cut(real: Any, other: Any, function: Any, around: Any, seed: int) -> None:
    @cd.program
    def program(z: Vector, H: Hermitian):
        return cd.sum(lambda i: around(function(real(z, H, i)), other(z, H, i)) * function(real(z, H, i)), i=z.shape[0])

    simplified = cd.simplify(program)
    rng = np.random.default_rng(seed)
    for n in (1, 3):
        z, H = rng.normal(size=n) + 1j * rng.normal(size=n), hermitian(rng, n)
        np.testing.assert_allclose(simplified(z, H), program(z, H), rtol=1e-8, atol=1e-10, err_msg=str(simplified))


@pytest.mark.parametrize("function", [cd.sqrt, cd.log, lambda x: x**1.5])
def test_what_is_not_negative_is_off_the_cut(function: Any) -> None:
    """The norm of a complex vector is real, its root and its logarithm too."""

    @cd.program
    def of_norm(z: Vector):
        return cd.conj(function(cd.sum(lambda i: z[i] * cd.conj(z[i]))))

    assert ")*" not in str(cd.simplify(of_norm))


def test_a_function_of_real_numbers_is_real() -> None:
    @cd.program
    def roots(x: cd.Space("n"), z: Vector):
        return cd.sum(lambda i: cd.conj(cd.sqrt(x[i]) * z[i]))

    assert str(cd.simplify(roots)) == "(x, z) ↦ Σ_i z[i]* sqrt(x[i])"
