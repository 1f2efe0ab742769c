"""Draws the pictures of README and the documents: python docs/pictures.py writes docs/pictures/*.svg."""

from pathlib import Path

import combdiff as cd

FOLDER = Path(__file__).parent / "pictures"
Orbitals = cd.Space("N", "Ne", dtype=complex)
Integrals = cd.Space(
    "N", "N", "N", "N", dtype=complex, symmetry=["J[p,q,r,s] = J[r,s,p,q]", "J[p,q,r,s] = conj(J[q,p,s,r])"]
)


@cd.program
def coulomb(J: Integrals, C: Orbitals):
    return cd.sum(lambda i, j, p, q, r, s: cd.conj(C[p, i]) * C[q, i] * cd.conj(C[r, j]) * C[s, j] * J[p, q, r, s])


@cd.program
def factorisation(M: cd.Space("m", "n"), U: cd.Space("m", "k"), V: cd.Space("n", "k")):
    return ((M - U @ V.T) ** 2).sum()


def drawn() -> dict[str, cd.Picture]:
    """Every picture by the name of its file."""
    both = cd.value_and_grad(coulomb, wrt="C")
    return {
        "coulomb": cd.grad(coulomb, wrt="C").diagram(),
        "coulomb_shared": both.diagram(),
        "coulomb_cost": both.cost(N=100, Ne=10).chart(),
        "factorisation_zeros": cd.hessian(factorisation, wrt="U").sparsity().picture(m=4, k=3),
    }


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, picture in drawn().items():
        picture.save(str(FOLDER / f"{name}.svg"))
