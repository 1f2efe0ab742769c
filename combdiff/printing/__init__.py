"""Programs as people read them: Unicode text and LaTeX.

    text(x ↦ Σ_i x[i]·x[i])  = "x ↦ Σ_i x[i]²"
    latex(x ↦ Σ_i x[i]·x[i]) = r"x \\mapsto \\sum_{i} x_{i}^{2}"

One layout decides order, grouping and names (`outline`, `naming`, `monomials`, `conditions`, `notation`, in this
order), and two renderers write its documents with their signs (`plain`, `tex`).

Invariant: every term can be printed, in time linear in its graph; equal terms print alike in every process.
"""

from combdiff.printing.plain import matrix_text, text
from combdiff.printing.tex import latex, matrix_latex

__all__ = ["latex", "matrix_latex", "matrix_text", "text"]
