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


def permuted(tensor: np.ndarray, *axes: int) -> np.ndarray:
    """1 − P: the tensor minus itself with two axes exchanged."""
    return tensor - np.swapaxes(tensor, *axes)


def textbook(t, Fo, Fv, Vvvoo, Voooo, Vvvvv, Vovvo, Voovv):
    """The residual of the doubles equations, every permutation written by hand."""
    residual = np.einsum("abij->ijab", Vvvoo)
    residual = residual + permuted(np.einsum("bc,ijac->ijab", Fv, t), 2, 3)
    residual -= permuted(np.einsum("kj,ikab->ijab", Fo, t), 0, 1)
    residual += np.einsum("klij,klab->ijab", Voooo, t) / 2 + np.einsum("abcd,ijcd->ijab", Vvvvv, t) / 2
    residual += permuted(permuted(np.einsum("kbcj,ikac->ijab", Vovvo, t), 0, 1), 2, 3)
    residual += np.einsum("klcd,ijcd,klab->ijab", Voovv, t, t) / 4
    residual += permuted(np.einsum("klcd,ikac,jlbd->ijab", Voovv, t, t), 0, 1)
    residual -= permuted(np.einsum("klcd,ikdc,ljab->ijab", Voovv, t, t), 0, 1) / 2
    return residual - permuted(np.einsum("klcd,lkac,ijdb->ijab", Voovv, t, t), 2, 3) / 2


residual = cd.grad(lagrangian, wrt="λ")

if __name__ == "__main__":
    print("the doubles equations, a quarter of the textbook's residual:")
    print(residual)

    rng = np.random.default_rng(0)
    sizes = {"o": 4, "v": 6}
    arrays = {p.name: cd.testing.random_array(p.type, rng, sizes) for p in lagrangian.parameters}
    found = 4 * residual(**arrays)
    amplitudes = arrays.pop("t")
    multipliers = arrays.pop("λ")
    assert np.allclose(found, textbook(amplitudes, **arrays), rtol=0, atol=1e-12)
    assert np.allclose(found, -found.swapaxes(0, 1), rtol=0, atol=1e-14)
    cd.testing.check_grad(lagrangian, "λ", λ=multipliers, t=amplitudes, **arrays)
    print(
        "\nfour times it is the residual with every permutation written by hand, and it is antisymmetric in both pairs"
    )
