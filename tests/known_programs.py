"""Programs that several test files look at."""

from __future__ import annotations

from typing import Any

import numpy as np
from planner import Integrals, coulomb, exchange

import combdiff as cd

Core = cd.Space("N", "N", dtype=complex, symmetry=["h[p,q] = conj(h[q,p])"])
Orbitals = cd.Space("N", "Ne", dtype=complex)
Number, Steps = cd.Space(), cd.Space("T")


@cd.program
def hartree_fock(h: Core, J: Integrals, C: Orbitals):
    """The energy of closed shells: core, Coulomb and exchange."""
    core = cd.sum(lambda i, p, q: cd.conj(C[p, i]) * h[p, q] * C[q, i])
    return 2 * core + 2 * coulomb(J, C) - exchange(J, C)


@cd.program
def driven_pendulum(g: Number, v0: Number, u: Steps):
    """Semi-implicit Euler steps as a scan of two states, which collects two values."""

    def step(state, force):
        x, v = state
        v = v + 0.1 * (force - g * np.sin(x))
        return (x + 0.1 * v, v), (x, v * v)

    (x, v), (xs, squares) = cd.scan(step, (0.3, v0), u)
    return x * x + v + (squares * u).sum() + xs.sum()


def energy_and_slope(F: Any, D: Any, C: Any) -> Any:
    """Σ F[q,p] D[p,q], which is real, and 4 F C: with what both read, the contraction of the integrals, once."""
    slope = cd.tensor(lambda s, i: 4 * cd.sum(lambda p: C[p, i] * F[s, p]))
    return cd.real(cd.sum(lambda p, q: F[q, p] * D[p, q])), slope


@cd.program
def coulomb_slope(J: Integrals, C: Orbitals):
    """The Coulomb energy beside its gradient."""
    D = cd.tensor(lambda p, q: cd.sum(lambda i: C[p, i] * cd.conj(C[q, i])))
    return energy_and_slope(cd.tensor(lambda s, p: cd.sum(lambda q, r: J[s, p, r, q] * D[q, r])), D, C)


@cd.program
def exchange_slope(J: Integrals, C: Orbitals):
    """The exchange energy beside its gradient."""
    D = cd.tensor(lambda p, q: cd.sum(lambda i: C[p, i] * cd.conj(C[q, i])))
    return energy_and_slope(cd.tensor(lambda s, p: cd.sum(lambda q, r: J[s, q, r, p] * D[q, r])), D, C)


def logistic(steps: int) -> cd.Program:
    """x ← r x (1 − x), a loop over a number."""

    @cd.program
    def f(r: Number, x: Number):
        for _ in range(steps):
            x = r * x * (1 - x)
        return x

    return f
