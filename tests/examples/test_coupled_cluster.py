"""The doubles equations of coupled cluster as a gradient, with the singles in the integrals, against PySCF."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "coupled_cluster.py"


def dressed(one: Any, two: Any, t1: Any) -> tuple[Any, Any]:
    """The integrals of exp(−T₁) H exp(T₁) over spin orbitals, one-electron and antisymmetrised two-electron ones."""
    o, n = len(t1), len(one)
    lowered = np.zeros((n, n))
    lowered[o:, :o] = t1.T
    left, right = np.eye(n) - lowered, np.eye(n) + lowered
    return left @ one @ right, np.einsum("pqrs,Pp,Qq,rR,sS->PQRS", two, left, left, right, right, optimize=True)


@pytest.mark.needs("pyscf")
def test_the_gradient_by_the_multipliers_is_the_residual_of_pyscf() -> None:
    from pyscf import cc, gto, scf

    water = gto.M(atom="O 0 0 0; H 0 .757 .587; H 0 -.757 .587", basis="6-31g", verbose=0)
    field = scf.GHF(water).run(conv_tol=1e-12)
    theory = cc.GCCSD(field)
    integrals = theory.ao2mo()
    rng = np.random.default_rng(1)
    _, t1, t2 = theory.init_amps(integrals)
    t1 = t1 + 0.01 * rng.normal(size=t1.shape)
    noise = 0.01 * rng.normal(size=t2.shape)
    noise = noise - noise.transpose(1, 0, 2, 3)
    t2 = t2 + noise - noise.transpose(0, 1, 3, 2)
    e, o = integrals.mo_energy, len(t1)
    gaps = e[:o, None, None, None] + e[:o, None, None] - e[o:, None] - e[o:]
    expected = (theory.update_amps(t1, t2, integrals)[1] - t2) * gaps

    orbitals = theory.mo_coeff
    up, down = np.split(orbitals, 2)
    halves = [np.einsum("pi,qj->pqij", spin, spin) for spin in (up, down)]
    pairs = halves[0] + halves[1]
    chemists = np.einsum("pqij,pqrs,rskl->ijkl", pairs, water.intor("int2e"), pairs, optimize=True)
    physicists = chemists.transpose(0, 2, 1, 3)
    core = orbitals.T @ field.get_hcore() @ orbitals
    one, two = dressed(core, physicists - physicists.transpose(0, 1, 3, 2), t1)
    fock = one + np.einsum("pmqm->pq", two[:, :o, :, :o])
    part = {"o": slice(0, o), "v": slice(o, None)}
    blocks = {
        f"V{kinds}": two[tuple(part[kind] for kind in kinds)] for kinds in ("vvoo", "oooo", "vvvv", "ovvo", "oovv")
    }
    residual = runpy.run_path(str(EXAMPLE))["residual"]
    found = 4 * residual(λ=0 * t2, t=t2, Fo=fock[:o, :o], Fv=fock[o:, o:], **blocks)
    assert np.abs(expected).max() > 0.1
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.thorough
def test_the_residual_has_the_permutations_of_the_textbook() -> None:
    printed = str(runpy.run_path(str(EXAMPLE))["residual"])
    assert printed.count("Σ") == 9  # and the driving term
    assert "Alt_{f,g} Alt_{d,e} Σ_{i,a}" in printed
