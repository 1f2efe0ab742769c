"""Draws the pictures of README and the documents: python docs/pictures.py writes docs/pictures/*.svg."""

import re
import sys
from pathlib import Path

import combdiff as cd

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))
from planner import coulomb

FOLDER = Path(__file__).parent / "pictures"


@cd.program
def factorisation(M: cd.Space("m", "n"), U: cd.Space("m", "k"), V: cd.Space("n", "k")):
    return ((M - U @ V.T) ** 2).sum()


def derivation(*stages: tuple[str, cd.Picture]) -> cd.Picture:
    """Pictures one below the other, each under a line of text."""
    width = height = 0
    parts = []
    for title, picture in stages:
        wide, tall = map(int, re.findall(r'(?:width|height)="(\d+)"', picture.svg)[:2])
        parts.append(f'<text x="6" y="{height + 18}" font-size="13" fill="currentColor">{title}</text>')
        parts.append(picture.svg.replace("<svg ", f'<svg y="{height + 26}" ', 1))
        width, height = max(width, wide), height + tall + 34
    size = f'width="{width}" height="{height}" role="img" font-family="sans-serif"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size}>'
    return cd.Picture("\n".join([head, *parts, "</svg>"]))


def drawn() -> dict[str, cd.Picture]:
    """Every picture by the name of its file."""
    both, gradient = cd.value_and_grad(coulomb, wrt="C"), cd.grad(coulomb, wrt="C")
    return {
        "coulomb": derivation(
            ("The Coulomb energy: J, and four orbitals", coulomb.diagram()),
            ("Its gradient by C: one orbital less, four times by the symmetries of J", gradient.diagram()),
        ),
        "coulomb_shared": both.diagram(),
        "coulomb_cost": both.cost(N=100, Ne=10).chart(),
        "factorisation_zeros": cd.hessian(factorisation, wrt="U").sparsity().picture(m=4, k=3),
    }


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, picture in drawn().items():
        picture.save(str(FOLDER / f"{name}.svg"))
