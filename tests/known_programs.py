"""Programs that several test files look at."""

from __future__ import annotations

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


def logistic(steps: int) -> cd.Program:
    """x ← r x (1 − x), a loop over a number."""

    @cd.program
    def f(r: Number, x: Number):
        for _ in range(steps):
            x = r * x * (1 - x)
        return x

    return f
