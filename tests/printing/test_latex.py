"""LaTeX that renders everywhere: names, words side by side, lines; all of a corpus by KaTeX and by matplotlib."""

from __future__ import annotations

import json
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest
from test_printing import EXPRESSIONS, WORKED, assert_mathtext_reads, latex, wannier
from thesis_cases import CASES

import combdiff as cd
from combdiff.api.language import parse
from combdiff.ir import MATRIX_TABLE, SIGNS, TABLE, Primitive, Var

KATEX = Path(cd.__file__).parent / "page" / "static" / "katex" / "katex.min.js"
RENDER = """
const katex = require(process.argv[1]);
const wrong = [];
for (const tex of JSON.parse(require("fs").readFileSync(0))) {
  try { katex.renderToString(tex, {displayMode: true, throwOnError: true, strict: "error"}); }
  catch (problem) { wrong.push([tex, String(problem)]); }
}
console.log(JSON.stringify(wrong));
"""

WRITTEN = [
    ("w ↦ lam Σ_i w[i]²", r"\mathrm{lam} \, \sum_{i} w_{i}^{2}"),
    ("(lam, w) ↦ i ↦ lam w[i]", r"(\mathrm{lam}, w) \mapsto i \mapsto \mathrm{lam} \, w_{i}"),
    ("(lam, mu, w) ↦ i ↦ lam mu w[i]", r"\mathrm{lam} \, \mu w_{i}"),
    ("(lam_x, rate) ↦ lam_x rate", r"\mathrm{lam}_{x} \, \mathrm{rate}"),
    ("K_y ↦ Σ_{i,j} K_y[i,j]²", r"K_{y} \mapsto \sum_{i,j} {K_{y}}_{i,j}^{2}"),
    ("(sigma_noise, x_1_a) ↦ sigma_noise² x_1_a", r"\sigma_{\mathrm{noise}}^{2} x_{1,a}"),
    ("(x0, x0_dot) ↦ x0 x0_dot", r"(x_{0}, x_{0,\mathrm{dot}}) \mapsto x_{0} x_{0,\mathrm{dot}}"),
    ("norm2(K_y*x - lam*x)^2", r"K_{y} x - \mathrm{lam} \, x"),
]


@cache
def corpus() -> tuple[str, ...]:
    """LaTeX in index and matrix notation: the worked results, single expressions, the appendix of the thesis."""
    programs = [parse(f"{case.text.partition('derivative')[0]}") for case in CASES]
    shown = [*(tex for _, tex in WORKED.values()), *(latex(term) for term, _, _ in EXPRESSIONS)]
    return (*shown, *functions(), *(f.latex() for f in programs), *(f.matrix(latex=True) for f in programs))


def functions() -> list[str]:
    """Every function that a program may call, of numbers and of matrices."""
    numbers, matrix = [Var(f"x{n}", cd.Space()) for n in range(3)], Var("A", cd.Space("n", "n"))
    names = TABLE.keys() - SIGNS.keys() - {"power"}
    found = [Primitive(name, tuple(numbers[: TABLE[name].arity])) for name in sorted(names)]
    return [latex(term) for term in (*found, *(Primitive(name, (matrix,)) for name in MATRIX_TABLE))]


def test_functions_that_latex_does_not_know_are_named_whole() -> None:
    shown = " ".join(functions())
    for name in (r"\operatorname{arcsinh}", r"\operatorname{arctanh}", r"\operatorname{log\_ndtr}", r"\arcsin("):
        assert name in shown


def read(text: str) -> cd.Program:
    spaces = {name: cd.Space() for name in ("lam", "mu", "rate", "lam_x", "sigma_noise", "x_1_a") if name in text}
    return cd.read(text.replace("w ↦ lam", "(w, lam) ↦ lam"), spaces)


@pytest.mark.parametrize(("text", "tex"), WRITTEN)
def test_names_of_several_letters(text: str, tex: str) -> None:
    shown = read(text).matrix(latex=True) if "norm2" in text else read(text).latex()
    assert tex in shown


def test_lines_instead_of_an_environment() -> None:
    assert latex(wannier(), aligned=False).splitlines() == [
        r"(U, S, w) \mapsto",
        r"\rho_{n,b} = \sum_{p,q,k} U_{p,n,k}^{*} S_{p,q,k,k + b} U_{q,n,k + b}",
        r"(d, e, k) \mapsto 4 \sum_{b,p} w_{b} \rho_{e,b}^{*} U_{p,e,k + b} S_{d,p,k,k + b}",
    ]
    assert latex(wannier()).startswith(r"\begin{aligned}")


def everything() -> list[str]:
    return [*corpus(), *(read(text).latex() for text, _ in WRITTEN)]


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="no LaTeX is installed")
def test_latex_typesets_all_of_it(tmp_path: Path) -> None:
    """A document of all formulas, with amsmath alone; an error, or a character that is left out, ends it."""
    formulas = "\n".join(f"\\[{tex}\\]" for tex in everything())
    preamble = r"\documentclass{article}\usepackage{amsmath,amssymb}\tracinglostchars=3"
    (tmp_path / "all.tex").write_text(f"{preamble}\\begin{{document}}\n{formulas}\n\\end{{document}}", encoding="utf-8")
    command = ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "-draftmode", "all.tex"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, encoding="latin-1", check=False)
    assert ran.returncode == 0, ran.stdout[-1500:]
    assert "Missing character" not in ran.stdout


def test_katex_reads_all_of_it() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    shown = json.dumps(everything())
    ran = subprocess.run([node, "-e", RENDER, str(KATEX)], input=shown, capture_output=True, text=True, check=True)
    assert json.loads(ran.stdout) == []


@pytest.mark.needs("matplotlib")
def test_matplotlib_reads_every_line() -> None:
    for text, _ in WRITTEN:
        for line in read(text).latex(aligned=False).splitlines():
            assert_mathtext_reads(line)
    for case in CASES[:20]:
        for line in parse(case.text.partition("derivative")[0]).latex(aligned=False).splitlines():
            assert_mathtext_reads(line)
