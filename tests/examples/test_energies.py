"""Energies of electrons: exchange, the whole energy in orbitals and in the density, their first and second derivatives.

Checked against closed forms with PySCF's Fock matrix and against central differences in the real and imaginary parts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import combdiff as cd

Orbitals = cd.Space("N", "Ne", dtype=complex)
Hermitian = cd.Space("N", "N", dtype=complex, symmetry=["h[p,q] = conj(h[q,p])"])
ERI = cd.Space(*"NNNN", dtype=complex, symmetry=["J[p,q,r,s] = J[r,s,p,q]", "J[p,q,r,s] = conj(J[q,p,s,r])"])
Density = cd.Space("N", "N", dtype=complex, symmetry=["D[p,q] = conj(D[q,p])"])
RNG = np.random.default_rng(4)


@cd.program
def exchange(J: ERI, C: Orbitals):  # type: ignore[valid-type, no-untyped-def]
    return cd.sum(lambda i, j, p, q, r, s: cd.conj(C[p, i]) * C[q, j] * cd.conj(C[r, j]) * C[s, i] * J[p, q, r, s])


@cd.program
def coulomb(J: ERI, C: Orbitals):  # type: ignore[valid-type, no-untyped-def]
    return cd.sum(lambda i, j, p, q, r, s: cd.conj(C[p, i]) * C[q, i] * cd.conj(C[r, j]) * C[s, j] * J[p, q, r, s])


@cd.program
def density_energy(h: Hermitian, J: ERI, D: Density):  # type: ignore[valid-type, no-untyped-def]
    """E = Σ D h + ½ Σ D D (J − K/2), chemists' notation, D the density of doubly occupied orbitals."""
    core = cd.sum(lambda p, q: D[q, p] * h[p, q])
    direct = cd.sum(lambda p, q, r, s: D[q, p] * D[s, r] * J[p, q, r, s])
    exchanged = cd.sum(lambda p, q, r, s: D[q, p] * D[s, r] * J[p, s, r, q])
    return core + direct / 2 - exchanged / 4


def cplx(*shape: int) -> Any:
    return RNG.normal(size=shape) + 1j * RNG.normal(size=shape)


def close(found: Any, expected: Any, tolerance: float = 1e-9) -> None:
    scale = max(1.0, float(np.max(np.abs(expected), initial=0.0)))
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * scale)


def test_the_exchange_energy_has_one_term_with_factor_four() -> None:
    gradient = cd.grad(exchange, "C")
    assert str(gradient).count("J[") == 1
    assert " ↦ 4 Σ_" in str(gradient)
    J, C = cd.testing.random_array(ERI, RNG, {"N": 3}), cplx(3, 2)
    close(exchange(J, C), np.einsum("pi,qj,rj,si,pqrs->", C.conj(), C, C.conj(), C, J).real)
    close(gradient(J, C), 4 * np.einsum("qj,rj,si,pqrs->pi", C, C.conj(), C, J))
    cd.testing.check_grad(exchange, "C", J=J, C=C)


@pytest.mark.thorough
@pytest.mark.parametrize("energy", [exchange, coulomb], ids=lambda p: p.name)
def test_second_derivatives_by_orbitals(energy: cd.Program) -> None:
    """Products with the Hessian, and its blocks (zz̄, zz), against central differences of the gradient."""
    J, C, k, step = cd.testing.random_array(ERI, RNG, {"N": 3}), cplx(3, 2), cplx(3, 2), 1e-5
    gradient = cd.grad(energy, "C")
    expected = (gradient(J, C + step * k) - gradient(J, C - step * k)) / (2 * step)
    product = cd.hvp(energy, "C")(J, C, k)
    close(product, expected, 1e-7)
    mixed, plain = cd.hessian(energy, "C")(J, C)
    # g = 2 ∂E/∂z̄, so ġ_j = 2 Σ_i (∂²E/∂z_i∂z̄_j k_i + conj(∂²E/∂z_i∂z_j) conj(k_i))
    close(2 * np.einsum("aibj,ai->bj", mixed, k) + 2 * np.einsum("aibj,ai->bj", plain.conj(), k.conj()), product)


def test_the_gradient_by_the_density_is_the_fock_matrix() -> None:
    h, D = (cd.testing.random_array(space, RNG, {"N": 3}) for space in (Hermitian, Density))
    J = cd.testing.random_array(ERI, RNG, {"N": 3})
    fock = h + np.einsum("rs,pqsr->pq", D, J) - np.einsum("rs,prsq->pq", D, J) / 2
    gradient = cd.grad(density_energy, "D")(h, J, D)
    close((gradient + gradient.conj().T) / 2, fock)  # moves that keep D Hermitian see the Hermitian part
    move = cd.testing.random_array(Density, RNG, {"N": 3})
    step = 1e-5
    ahead, behind = (density_energy(h, J, D + sign * step * move) for sign in (1, -1))
    close((ahead - behind) / (2 * step), np.vdot(gradient, move).real, 1e-7)


@pytest.mark.needs("pyscf")
def test_the_energy_in_the_density_agrees_with_pyscf() -> None:
    from pyscf import gto, scf

    molecule = gto.M(atom="O 0 0 0.1173; H 0 0.7572 -0.4692; H 0 -0.7572 -0.4692", basis="sto-3g", verbose=0)
    field = scf.RHF(molecule).run()
    h, J, D = field.get_hcore(), molecule.intor("int2e"), field.make_rdm1()
    close(density_energy(h, J, D), field.energy_elec()[0], 1e-10)
    gradient = cd.grad(density_energy, "D")(h, J, D)
    close((gradient + gradient.conj().T) / 2, field.get_fock(), 1e-10)
