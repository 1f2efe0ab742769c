"""Formulas that are no formulas: each ends in a program or in an error of ours that names the place."""

import pytest

import combdiff as cd

SPACES = {"x": cd.Space("n"), "A": cd.Space("n", "n")}

# fmt: off
FORMULAS = (
    "", "x", "x[", "x[i]", "Σ_i", "Σ_i x[i", "Σ_{i<0} x[i]", "Σ_{i<-1} 1", "Σ_{i<10**9} 1", "x[i,j]", "x[1.5]",
    "x[x[0]]", "A[i]", "Σ_i A[i,i,i]", "x x", "x·x·x", "A·x·A", "x ↦", "↦ x", "i ↦ j ↦ x[i] x[j]", "i ↦ i",
    "(x) ↦ x", "(y) ↦ x", "t = x", "t = t\nt", "t[i] = t[i]\nt", "x = 3\nx", "[", "[x", "[x]", "[x[0]]", "[x[0] <]",
    "[0 < x[i] < 1]", "1/0", "0^0", "0^-1", "x^x", "A^A", "A^0", "A^1000000", "2^10000", "1e999", "1e-999", "x^1e9",
    "exp", "exp()", "exp(x,x)", "exp(exp)", "tr(x)", "det(x)", "inv(x)", "diag(A,A)", "δ(i)", "δ(i,j)", "δ(x,x)",
    "Σ_i δ(i,x[i])", "∇x", "∂x", "∂₉x(x)", "∫", "∫ x", "∫ dt", "Sym_{i}", "Sym_{i,j} A[i,j]", "|x", "‖x", "‖x‖_F",
    "‖x‖_p", "⌊", "⌊x⌋", "x mod", "x mod 2", "k mod n", "x'", "x''", "x'''", "A⁻¹⁻¹", "A⁻²", "x²²²²", "x∘2", "x.^",
    "x .* ", "x ./ x", "norm1()", "norm2(A,A)", "sum()", "sum(sum(x))", "vector()", "vector(x)", "matrix(1)",
    "solve(x,x)", "solve(k ↦ k, x)", "root(x)", "argmin(x ↦ x, x)", "√x", "x\0", "\ufeffx", "x\u200b", "𝟏", "𝟏·𝟏",
    "𝐈", "𝐈·x", "💥", "x;;x", ";", "x ; y", "A symmetric", "A symmetric (n)", "A symmetric (n, m)\nA",
    "x (n), x (m)\nx", "x (0)\nsum(x)", "x (-1)\nsum(x)", "x (n\nx", "f(x", "x(1)", "A(1,2)", "n", "n·x",
    "Σ_{n} x[n]", "Σ_i Σ_i x[i]", "Σ_{i,i} A[i,i]", "x[n]", "x[-1]", "x[i-n]", "\n\n\n", "# x", "x # y", "lambda",
    "x if x else x", "import os", "__import__('os')", "{}", "x{i}", "Σ^{i}", "Σ_{i=1}^{n} x[i]", "Σ_{i=0}^{n} x[i]",
    "Σ_{i=n}^{0} x[i]", "Σ_{i=0}^{10^9} x[0]", "nan", "inf", "∞", "-∞", "i", "j·x", "1i", "π", "e", "x = ", "= x",
    "t[i,i] = A[i,i]\nt", "t[0] = 1\nt", "[i < j] x[i]", "Σ_i [i < x[i]] x[i]", "Σ_i [i = i] x[i]",
    "Σ_i [i ≠ ] x[i]", "Σ_{i≤n} x[i]", "Σ_{|i|≤2} 1", "Σ_{i mod 3} x[i]",
)
# fmt: on
LONG = (
    *("a" * 300, "(" * 200 + "x" + ")" * 200, "-" * 500 + "x", "x" + "'" * 300),
    *("Σ_i " * 60 + "x[i]", "[0<" * 40, "x\n" * 100),
)


@pytest.mark.parametrize("given", [SPACES, None], ids=["spaces", "no spaces"])
def test_hostile_formulas_end_in_programs_or_errors_of_ours(given: dict[str, cd.Space] | None) -> None:
    for text in (*FORMULAS, *LONG):
        try:
            program = cd.read(text, given)
            str(program), program.matrix(), program.latex()
        except cd.CombdiffError as error:
            assert str(error), text  # noqa: PT017
