"""What the examples print, as text and as LaTeX: each program of theirs can be set, and results read as on paper."""

from __future__ import annotations

import contextlib
import io
import re
import runpy
from functools import lru_cache
from pathlib import Path

import pytest

import combdiff as cd

EXAMPLES = Path(__file__).parents[2] / "examples"

# example → program → (text, LaTeX)
GOLDEN = {
    "quadratic_form": {
        "energy": (
            "(A, x) ↦ Σ_{i,j} x[i]* A[i,j] x[j]",
            r"(A, x) \mapsto \sum_{i,j} x_{i}^{*} A_{i,j} x_{j}",
        ),
    },
    "supersymmetric": {},
    "antisymmetric": {},
    "cp_decomposition": {},
    "logistic": {},
    "conjugate_gradient": {
        "search": (
            "(R, x, r, p, α, β) ↦ R(i ↦ x[i] + α (r[i] + β p[i]))",
            r"(R, x, r, p, \alpha, \beta) \mapsto R(i \mapsto x_{i} + \alpha (r_{i} + \beta p_{i}))",
        ),
    },
    "functionals": {
        "expectation": (
            "(H, ψ) ↦ ∫∫ ψ(x)* H(x, y) ψ(y) dx dy",
            r"(H, \psi) \mapsto \int \int \psi(x)^{*} H(x, y) \psi(y) \, \mathrm{d}x \, \mathrm{d}y",
        ),
        "smoothed": (
            "(f, g, w) ↦ ∫∫ w(t) f(τ) g(t - τ) dt dτ",
            r"(f, g, w) \mapsto \int \int w(t) f(\tau) g(t - \tau) \, \mathrm{d}t \, \mathrm{d}\tau",
        ),
    },
    "least_action": {
        "action": (
            "(L, D, r) ↦ ∫ L(r(t), D(r)(t)) dt",
            r"(L, D, r) \mapsto \int L(r(t), D(r)(t)) \, \mathrm{d}t",
        ),
    },
}

GRADIENTS = {
    ("quadratic_form", "energy", "x"): ("d ↦ 2 Σ_i A[d,i] x[i]", r"d \mapsto 2 \sum_{i} A_{d,i} x_{i}"),
    ("functionals", "expectation", "ψ"): (
        "d ↦ 2 ∫ H(d, x) ψ(x) dx",
        r"d \mapsto 2 \int H(d, x) \psi(x) \, \mathrm{d}x",
    ),
    ("functionals", "smoothed", "f"): (
        "d ↦ ∫ g(t - d) w(t) dt",
        r"d \mapsto \int g(t - d) w(t) \, \mathrm{d}t",
    ),
    ("least_action", "action", "r"): (
        "∂₁L(r, D(r)) + Dᵀ(∂₂L(r, D(r)))",
        r"\partial_{1} L(r, D(r)) + D^{\top}(\partial_{2} L(r, D(r)))",
    ),
}


@lru_cache(maxsize=16)
def programs(example: str) -> dict[str, cd.Program]:
    """The programs that an example leaves in its namespace."""
    with contextlib.redirect_stdout(io.StringIO()):
        names = runpy.run_path(str(EXAMPLES / f"{example}.py"))
    return {name: value for name, value in names.items() if isinstance(value, cd.Program)}


@pytest.mark.needs("matplotlib")
@pytest.mark.parametrize("example", GOLDEN)
def test_the_latex_of_an_example_can_be_set(example: str) -> None:
    """matplotlib's mathtext takes every line of it."""
    from matplotlib import mathtext

    parser = mathtext.MathTextParser("path")
    found = programs(example)
    assert found
    for program in found.values():
        latex = program.latex()
        assert program._repr_latex_() == f"$${latex}$$"
        for line in re.sub(r"\\(begin|end)\{aligned\}", "", latex).split("\\\\\n"):
            # what \left and \right enclose may go over lines, and mathtext wants them in pairs
            plain = line.replace("&", "").replace(r"\left", "").replace(r"\right", "").strip()
            parser.parse(f"${plain}$")


@pytest.mark.parametrize(("example", "name"), [(e, name) for e, known in GOLDEN.items() for name in known])
def test_programs_read_as_on_paper(example: str, name: str) -> None:
    program = programs(example)[name]
    assert (str(program), program.latex()) == GOLDEN[example][name]


@pytest.mark.parametrize("key", GRADIENTS, ids=lambda key: "-".join(key))
def test_derivatives_read_as_on_paper(key: tuple[str, str, str]) -> None:
    example, name, wrt = key
    gradient = cd.grad(programs(example)[name], wrt)
    text, latex = GRADIENTS[key]
    assert str(gradient).endswith(f"↦ {text}")
    assert gradient.latex().endswith(rf"\mapsto {latex}")
