"""Bindings of complex type that are their own conjugates are real: derivatives hold no conjugates of them."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import combdiff as cd
from combdiff.ir.let_form import split

RNG = np.random.default_rng(8)
Hermitian = cd.Space("n", "n", dtype=complex, symmetry=["H[i,j] = conj(H[j,i])"])
Vector = cd.Space("n", dtype=complex)


@cd.program
def rayleigh(H: Hermitian, z: Vector):
    return cd.sum(lambda i, j: cd.conj(z[i]) * H[i, j] * z[j]) / cd.sum(lambda i: cd.conj(z[i]) * z[i])


@cd.program
def boltzmann(H: Hermitian, z: Vector):
    return cd.exp(-cd.sum(lambda i, j: cd.conj(z[i]) * H[i, j] * z[j]))


@pytest.mark.thorough
def test_how_they_read() -> None:
    assert str(cd.grad(rayleigh, "z")).splitlines()[1:] == [
        "  t = Σ_i |z[i]|²",
        "  d ↦ 2 (Σ_i H[d,i] z[i] - z[d] Re(Σ_{i,j} H[j,i] z[i] z[j]*) / t) / t",
    ]
    assert str(cd.grad(boltzmann, "z")) == ("(H, z) ↦ d ↦ -2 Re(exp(-Σ_{i,j} H[j,i] z[i] z[j]*)) Σ_i H[d,i] z[i]")
    bindings, _ = split(cd.hessian(rayleigh, "z").term.body)  # H z, and two numbers
    assert [var.type.dtype for var, _ in bindings] == [complex, float, float]


@pytest.mark.sample(1)
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("grouped", [False, True])
def test_a_definition_is_the_conjugate_that_reads_plainly(grouped: bool, whole: bool) -> None:
    """(z† H) z and z† (H z) have one gradient: H z is what is named, not (z† H)*; what is made of it is real."""

    @cd.program
    def quotient(z: Vector, H: Hermitian):
        upper = z.conj() @ (H @ z) if grouped else z.conj() @ H @ z
        lower = z.conj() @ z
        return cd.real(upper / lower) if whole else cd.real(upper) / cd.real(lower)

    assert str(cd.grad(quotient)).splitlines()[1:] == [
        "  t = Σ_i |z[i]|²",
        "  d ↦ 2 (Σ_i H[d,i] z[i] - z[d] Re(Σ_i z[i]* Σ_j H[i,j] z[j]) / t) / t",
    ]
    assert cd.grad(quotient).matrix().splitlines()[-1] == "2·(H·z - Re(z†·H·z)·z / t) / t"


@cache
def derived(transform: Callable[..., Any], program: cd.Program, simplify: bool) -> Any:
    """A derivative by z, derived once for arrays of every size."""
    return transform(program, "z", simplify=simplify)


@pytest.mark.thorough
@pytest.mark.parametrize("program", [rayleigh, boltzmann], ids=["rayleigh", "boltzmann"])
@pytest.mark.parametrize("n", [1, 2, 4])
def test_derivatives_agree_with_raw_ones_and_with_differences(program: cd.Program, n: int) -> None:
    Z, z = (RNG.normal(size=shape) + 1j * RNG.normal(size=shape) for shape in ((n, n), n))
    H = 0.2 * (Z + Z.conj().T)
    cd.testing.check_grad(program, "z", H=H, z=z)
    for transform in (cd.grad, cd.hessian):
        found, raw = (derived(transform, program, simplify)(H, z) for simplify in (True, False))
        np.testing.assert_allclose(np.asarray(found), np.asarray(raw), atol=1e-12)


@pytest.mark.thorough
def test_the_coefficient_of_a_delta_in_a_real_binding_is_real() -> None:
    """t = Re(δ c) is δ Re(c): what is compared with a number stays of real type."""

    @cd.program
    def f(y: cd.Space("n", dtype=complex)):
        s = cd.sqrt(1 + y[0])

        def part(q, r):
            return cd.real(cd.delta(q, r) * 1j * s / (2 + cd.real(cd.delta(q, r) * s * cd.conj(s))))

        t = cd.tensor(part, q="n", r="n")
        return cd.tensor(lambda q, r: cd.where(t[q, r] < 0.1, s, 2 * s) + cd.delta(q, r) * s, q="n", r="n")

    assert "Im(s)" in str(cd.simplify(f))
    assert cd.testing.check_routes(f, y=np.array([0.3 + 0.2j, 1 - 0.5j])) < 2e-5
