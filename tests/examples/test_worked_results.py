"""How the worked results of theory.md look: Hartree-Fock, Wannier functions and perceptrons, as text and as LaTeX."""

from __future__ import annotations

from typing import Any

import pytest
from planner import coulomb, spread

import combdiff as cd

Activation = cd.Function(cd.Space("m"), result=cd.Space("m"))


@cd.program
def named(s: Activation, V: cd.Space("m", "m"), W: cd.Space("m", "m"), x: cd.Space("m"), y: cd.Space("m")):
    return ((s(W @ s(V @ x)) - y) ** 2).sum()


@cd.program
def known(V: cd.Space("m", "m"), W: cd.Space("m", "m"), x: cd.Space("m"), y: cd.Space("m")):
    return ((cd.tanh(W @ cd.tanh(V @ x)) - y) ** 2).sum()


CASES: dict[str, tuple[Any, cd.Program, Any]] = {
    "hartree_fock": (cd.grad, coulomb, "C"),
    "hartree_fock_pair": (cd.value_and_grad, coulomb, "C"),
    "wannier": (cd.grad, spread, "U"),
    "wannier_pair": (cd.value_and_grad, spread, "U"),
    "perceptron_named": (cd.grad, named, ("V", "W")),
    "perceptron_known": (cd.grad, known, ("V", "W")),
}

TEXT = {
    "hartree_fock": r"""
(J, C) ↦ (d, e) ↦ 4 Σ_{p,q,r,i} C[p,e] C[q,i] C[r,i]* J[d,p,r,q]
""",
    "hartree_fock_pair": r"""
(J, C) ↦
  t[p,q] = Σ_i C[p,i] C[q,i]*
  t2[d,p] = Σ_{q,r} J[d,p,r,q] t[q,r]
  (Re(Σ_{p,q} t2[q,p] t[p,q]), (d, e) ↦ 4 Σ_p C[p,e] t2[d,p])
""",
    "wannier": r"""
(w, S, U) ↦
  rho[n,b] = Σ_{k,p,q} U[p,n,k]* S[p,q,k,k + b] U[q,n,k + b]
  (d, e, f) ↦ 4 Σ_{p,b} S[d,p,f,f + b] U[p,e,f + b] w[b] rho[e,b]*
""",
    "wannier_pair": r"""
(w, S, U) ↦
  t[d,e,f,b] = Σ_p S[d,p,f,f + b] U[p,e,f + b]
  rho[n,b] = Σ_{k,p} U[p,n,k]* t[p,n,k,b]
  (Σ_{n,b} |rho[n,b]|² w[b], (d, e, f) ↦ 4 Σ_b rho[e,b]* w[b] t[d,e,f,b])
""",
    "perceptron_named": r"""
(s, V, W, x, y) ↦
  t[i] = Σ_j V[i,j] x[j]
  t2 = s(t)
  t3[i] = Σ_j W[i,j] t2[j]
  t5 = ∂s(t3)ᵀ(2 (s(t3) - y))
  t6 = ∂s(t)ᵀ(d ↦ Σ_j W[j,d] t5[j])
  ((d, e) ↦ t6[d] x[e], (d, e) ↦ t2[e] t5[d])
""",
    "perceptron_known": r"""
(V, W, x, y) ↦
  t[i] = tanh(Σ_j V[i,j] x[j])
  t2[i] = tanh(Σ_j W[i,j] t[j])
  t3[i] = 1 - t2[i]²
  t4[j] = t2[j] - y[j]
  ((d, e) ↦ 2 x[e] (1 - t[d]²) Σ_j t4[j] W[j,d] t3[j], (d, e) ↦ 2 t4[d] t[e] t3[d])
""",
}

LATEX = {
    "hartree_fock": r"""
(J, C) \mapsto (d, e) \mapsto 4 \sum_{p,q,r,i} C_{p,e} C_{q,i} C_{r,i}^{*} J_{d,p,r,q}
""",
    "hartree_fock_pair": r"""
\begin{aligned}
& (J, C) \mapsto \\
& \quad t_{p,q} = \sum_{i} C_{p,i} C_{q,i}^{*} \\
& \quad {t_{2}}_{d,p} = \sum_{q,r} J_{d,p,r,q} t_{q,r} \\
& \quad (\operatorname{Re}\left(\sum_{p,q} {t_{2}}_{q,p} t_{p,q}\right), \\
& \quad (d, e) \mapsto 4 \sum_{p} C_{p,e} {t_{2}}_{d,p})
\end{aligned}
""",
    "wannier": r"""
\begin{aligned}
& (w, S, U) \mapsto \\
& \quad \rho_{n,b} = \sum_{k,p,q} U_{p,n,k}^{*} S_{p,q,k,k + b} U_{q,n,k + b} \\
& \quad (d, e, f) \mapsto 4 \sum_{p,b} S_{d,p,f,f + b} U_{p,e,f + b} w_{b} \rho_{e,b}^{*}
\end{aligned}
""",
    "wannier_pair": r"""
\begin{aligned}
& (w, S, U) \mapsto \\
& \quad t_{d,e,f,b} = \sum_{p} S_{d,p,f,f + b} U_{p,e,f + b} \\
& \quad \rho_{n,b} = \sum_{k,p} U_{p,n,k}^{*} t_{p,n,k,b} \\
& \quad (\sum_{n,b} \left|{\rho_{n,b}}\right|^{2} w_{b}, \\
& \quad (d, e, f) \mapsto 4 \sum_{b} \rho_{e,b}^{*} w_{b} t_{d,e,f,b})
\end{aligned}
""",
    "perceptron_named": r"""
\begin{aligned}
& (s, V, W, x, y) \mapsto \\
& \quad t_{i} = \sum_{j} V_{i,j} x_{j} \\
& \quad t_{2} = s(t) \\
& \quad {t_{3}}_{i} = \sum_{j} W_{i,j} {t_{2}}_{j} \\
& \quad t_{5} = \partial s(t_{3})^{\top}(2 (s(t_{3}) - y)) \\
& \quad t_{6} = \partial s(t)^{\top}\left(d \mapsto \sum_{j} W_{j,d} {t_{5}}_{j}\right) \\
& \quad ((d, e) \mapsto {t_{6}}_{d} x_{e}, \\
& \quad (d, e) \mapsto {t_{2}}_{e} {t_{5}}_{d})
\end{aligned}
""",
    "perceptron_known": r"""
\begin{aligned}
& (V, W, x, y) \mapsto \\
& \quad t_{i} = \tanh\left(\sum_{j} V_{i,j} x_{j}\right) \\
& \quad {t_{2}}_{i} = \tanh\left(\sum_{j} W_{i,j} t_{j}\right) \\
& \quad {t_{3}}_{i} = 1 - {t_{2}}_{i}^{2} \\
& \quad {t_{4}}_{j} = {t_{2}}_{j} - y_{j} \\
& \quad ((d, e) \mapsto 2 x_{e} (1 - t_{d}^{2}) \sum_{j} {t_{4}}_{j} W_{j,d} {t_{3}}_{j}, \\
& \quad (d, e) \mapsto 2 {t_{4}}_{d} t_{e} {t_{3}}_{d})
\end{aligned}
""",
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", CASES)
def test_how_a_derivative_reads(name: str) -> None:
    transform, program, wrt = CASES[name]
    assert str(transform(program, wrt=wrt)) == TEXT[name].strip()


@pytest.mark.parametrize("name", CASES)
def test_how_a_derivative_reads_in_latex(name: str) -> None:
    transform, program, wrt = CASES[name]
    assert transform(program, wrt=wrt).latex() == LATEX[name].strip()


@pytest.mark.needs("matplotlib")
@pytest.mark.parametrize("name", LATEX)
def test_that_latex_is_read_by_mathtext(name: str) -> None:
    from matplotlib import mathtext

    for line in LATEX[name].strip().splitlines():
        shown = line.removesuffix(r"\\").replace("&", "").strip()
        if not shown.startswith((r"\begin", r"\end")):
            mathtext.MathTextParser("path").parse(f"${shown}$")


def test_how_layers_with_a_named_activation_read() -> None:
    assert str(named) == (
        "(s, V, W, x, y) ↦\n  t = s(i ↦ Σ_j V[i,j] x[j])\n  t2 = s(i ↦ Σ_j W[i,j] t[j])\n  Σ_i (t2[i] - y[i])²"
    )
