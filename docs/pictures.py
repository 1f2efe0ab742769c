"""Draws the pictures of README and the documents: python docs/pictures.py writes docs/pictures/*.svg."""

import sys
from pathlib import Path

import combdiff as cd

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))
from planner import coulomb

FOLDER = Path(__file__).parent / "pictures"


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
