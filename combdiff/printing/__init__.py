"""Programs as people read them: Unicode text, LaTeX and tensor networks; index, matrix or combinator notation.

    text(x ↦ Σ_i x[i]·x[i])  = "x ↦ Σ_i x[i]²"
    latex(x ↦ Σ_i x[i]·x[i]) = r"x \\mapsto \\sum_{i} x_{i}^{2}"

In: a term. Out: text. One layout decides order, grouping and names, and two renderers write its documents.

In the order in which data meets them: `documents` (what is written where), `recurrences` (scans as such), `outline`
(definitions short enough to read), `components` (tensors by their elements), `naming`, `monomials`, `conditions`,
`bounds`, `digits`, `indirect`, `folds` (max and Π over indices), `pointfree`, `projectors` (Sym, Alt, Herm), `signs`,
`inferred_domains`, `notation` (index notation); `chains`, `contraction`, `matrix` (matrix notation); `rendering`,
`plain`, `tex` (the renderers); `tensor_networks` (a formula as nodes and wires), `wiring` (where they lie in a
picture); `combinators`.

Invariant: every term can be printed, in time linear in its graph; equal terms print alike in every process.
"""

from combdiff.printing.combinators import combinator_text
from combdiff.printing.documents import (
    Arrow,
    BigFold,
    BigSum,
    Bound,
    Comparison,
    Derivative,
    Division,
    Doc,
    ElementPower,
    ElementProduct,
    FunctionCall,
    Iverson,
    Juxtaposition,
    Kronecker,
    Literal,
    Marked,
    MatrixProduct,
    Modulo,
    Name,
    Norm,
    Projected,
    Ranging,
    ResultRow,
    Rounded,
    Sheet,
    Signed,
    Subscripted,
    Superscript,
)
from combdiff.printing.folds import FOLDS
from combdiff.printing.indirect import read_directly
from combdiff.printing.naming import size_names
from combdiff.printing.notation import sheet
from combdiff.printing.plain import SHOWN_AS, matrix_text, shown, text
from combdiff.printing.tex import GREEK_NAMES, latex, matrix_latex
from combdiff.printing.wiring import diagram

__all__ = [
    "FOLDS",
    "GREEK_NAMES",
    "SHOWN_AS",
    "Arrow",
    "BigFold",
    "BigSum",
    "Bound",
    "Comparison",
    "Derivative",
    "Division",
    "Doc",
    "ElementPower",
    "ElementProduct",
    "FunctionCall",
    "Iverson",
    "Juxtaposition",
    "Kronecker",
    "Literal",
    "Marked",
    "MatrixProduct",
    "Modulo",
    "Name",
    "Norm",
    "Projected",
    "Ranging",
    "ResultRow",
    "Rounded",
    "Sheet",
    "Signed",
    "Subscripted",
    "Superscript",
    "combinator_text",
    "diagram",
    "latex",
    "matrix_latex",
    "matrix_text",
    "read_directly",
    "sheet",
    "shown",
    "size_names",
    "text",
]
