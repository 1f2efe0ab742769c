"""Coupled cluster: the doubles equations are the gradient of a Lagrangian.

The amplitudes t and the multipliers λ are antisymmetric in both pairs of their indices, and that is all that has to be
said. The Lagrangian is written with one term for each diagram, nothing antisymmetrised by hand; its gradient by λ lies
in the Space of λ, so it has the textbook's permutations P(ij) P(ab), which are 2 Alt_{i,j} and 2 Alt_{a,b}. The
integrals are blocks of ⟨pq‖rs⟩, o for occupied and v for virtual spin orbitals.
"""

import numpy as np

import combdiff as cd

PAIRS = ["t[i,j,a,b] = -t[j,i,a,b]", "t[i,j,a,b] = -t[i,j,b,a]"]
Doubles = cd.Space("o", "o", "v", "v", symmetry=PAIRS)
Driving = cd.Space("v", "v", "o", "o", symmetry=PAIRS)
Holes = cd.Space("o", "o", "o", "o", symmetry=PAIRS)
Particles = cd.Space("v", "v", "v", "v", symmetry=PAIRS)


@cd.program
def lagrangian(
    λ: Doubles,
    t: Doubles,
    Fo: cd.Space("o", "o"),
    Fv: cd.Space("v", "v"),
    Vvvoo: Driving,
    Voooo: Holes,
    Vvvvv: Particles,
    Vovvo: cd.Space("o", "v", "v", "o"),
    Voovv: Doubles,
):
    energy = cd.sum(lambda i, j, a, b: Voovv[i, j, a, b] * t[i, j, a, b]) / 4
    linear = (
        cd.sum(lambda i, j, a, b: λ[i, j, a, b] * Vvvoo[a, b, i, j]) / 4
        + cd.sum(lambda i, j, a, b, c: λ[i, j, a, b] * Fv[b, c] * t[i, j, a, c]) / 2
        - cd.sum(lambda i, j, k, a, b: λ[i, j, a, b] * Fo[k, j] * t[i, k, a, b]) / 2
        + cd.sum(lambda i, j, k, m, a, b: λ[i, j, a, b] * Voooo[k, m, i, j] * t[k, m, a, b]) / 8
        + cd.sum(lambda i, j, a, b, c, d: λ[i, j, a, b] * Vvvvv[a, b, c, d] * t[i, j, c, d]) / 8
        + cd.sum(lambda i, j, k, a, b, c: λ[i, j, a, b] * Vovvo[k, b, c, j] * t[i, k, a, c])
    )
    ladder = cd.sum(lambda i, j, k, m, a, b, c, d: λ[i, j, a, b] * Voovv[k, m, c, d] * t[i, j, c, d] * t[k, m, a, b])
    ring = cd.sum(lambda i, j, k, m, a, b, c, d: λ[i, j, a, b] * Voovv[k, m, c, d] * t[i, k, a, c] * t[m, j, d, b])
    hole = cd.sum(lambda i, j, k, m, a, b, c, d: λ[i, j, a, b] * Voovv[k, m, c, d] * t[i, k, c, d] * t[m, j, a, b])
    particle = cd.sum(lambda i, j, k, m, a, b, c, d: λ[i, j, a, b] * Voovv[k, m, c, d] * t[k, m, c, a] * t[i, j, d, b])
    return energy + linear + ladder / 16 + ring / 2 + hole / 4 - particle / 4


if __name__ == "__main__":
    residual = cd.grad(lagrangian, wrt="λ")
    print(residual)

    rng = np.random.default_rng(0)
