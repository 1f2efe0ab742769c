r"""Programs as LaTeX.

    (J, C) \mapsto (d, e) \mapsto 4 \sum_{i,p,r,s} J_{r,s,p,d}^{*} C_{s,i}^{*} C_{p,e} C_{r,i}

One formula stays within what matplotlib's mathtext reads; a program with definitions is an `aligned` environment, or,
for what does not read that, a line for each.

Invariant: braces and parentheses balance, and no base gets two superscripts or two subscripts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fractions import Fraction

from combdiff.ir import MATRIX_TABLE, TABLE, Scalar, Term, half_turns, named_operator
from combdiff.printing.documents import (
    BigFold,
    BigSum,
    Bound,
    Derivative,
    Division,
    Doc,
    ElementPower,
    ElementProduct,
    FunctionCall,
    Kronecker,
    Literal,
    Norm,
    Projected,
    Ranging,
    ResultRow,
    Rounded,
    Scaled,
    Sheet,
    Subscripted,
    Superscript,
)
from combdiff.printing.matrix import matrix_sheet
from combdiff.printing.notation import sheet
from combdiff.printing.rendering import Level, Product, Renderer
from combdiff.records import dataclass

_FOLDED = {
    "Π": r"\prod",
    "max": r"\max",
    "min": r"\min",
    "maxima": r"\operatorname{maxima}",
    "minima": r"\operatorname{minima}",
}
_LETTERS = "αβγδεζηθικλμνξπρστυφχψωΓΔΘΛΞΠΣΥΦΨΩ"
_NAMES = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau upsilon phi chi psi "
    "omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega"
)
GREEK = dict(zip(_LETTERS, re.findall(r"\w+", _NAMES), strict=True))
GREEK_NAMES = frozenset(GREEK.values())
SIGNS = {
    "≤": r"\leq",
    "≥": r"\geq",
    "≠": r"\neq",
    "∇": r"\nabla ",
    "∂": r"\partial",
    "∈": r"\in",
    "mod": r"\,\mathrm{mod}\,",
}
MARKS = {"ᵀ": r"\top", "†": r"\dagger", "*": "*", "⁻¹": "-1", "⁻ᵀ": r"-\top", "⁻†": r"-\dagger"}
BOLD = {"ℝ": r"\mathbb{R}", "𝟏": r"\mathbf{1}", "𝐈": r"\mathbf{I}"}
WORD_BEFORE = re.compile(r"\\mathrm\{\w[^{}]+\}(_\{[^{}]*\})?$")  # \mathrm{lam} or \mathrm{lam}_{i}, at the end
WORD_AFTER = re.compile(r"\\mathrm\{\w[^{}]+\}")
TALL = re.compile(r"\\(frac|sum|int|sqrt|left)")


def latex(term: Term, aligned: bool = True) -> str:
    """Any term in index notation as LaTeX, for mathematics mode, without the dollar signs around it.

    Definitions stand in one `aligned` environment, or without it on lines that are formulas of their own.
    """
    return _Latex(aligned).sheet(sheet(term))


def matrix_latex(term: Term, aligned: bool = True) -> str:
    """A program in matrix notation as LaTeX, without its parameters; index notation where there is none."""
    return _Latex(aligned).sheet(matrix_sheet(term))


@dataclass(frozen=True)
class _Latex(Renderer):
    aligned: bool = True
    dot = r"\cdot"
    maps_to = r"\mapsto"
    quotient_level = Level.POWER
    unequal = r" \neq "
    modulo = r"\, \mathrm{mod} \,"
    element_signs = (r"\odot", r"\oslash")

    def sheet(self, sheet: Sheet) -> str:
        heads = self.heads(sheet)
        if not sheet.definitions:
            return " ".join([*heads, self.render(sheet.result)])
        if not self.aligned:
            equations = [f"{self.render(left)} = {self.render(right)}" for left, right in sheet.definitions]
            return "\n".join([*([" ".join(heads)] if heads else []), *equations, self.render(sheet.result)])
        margin = r"\quad " if heads else ""
        lines = [" ".join(heads)] if heads else []
        lines += [f"{margin}{self.render(left)} = {self.render(right)}" for left, right in sheet.definitions]
        lines += [margin + line for line in self._result(sheet.result)]
        body = " \\\\\n".join(f"& {line}" for line in lines)
        return f"\\begin{{aligned}}\n{body}\n\\end{{aligned}}"

    def _result(self, doc: Doc) -> list[str]:
        """Several results stand on a line each."""
        if not isinstance(doc, ResultRow) or not doc.items:
            return [self.render(doc)]
        shown = [self.render(item) for item in doc.items]
        return ["(" + ", \\\\\n& \\quad ".join(shown) + "," * (len(shown) == 1) + ")"]

    def enclosed(self, inner: str) -> str:
        return rf"\left({inner}\right)" if TALL.search(inner) else f"({inner})"

    def name(self, name: str) -> str:
        if name in BOLD:
            return BOLD[name]
        if name.endswith("_bar") and len(name) > len("_bar"):
            return rf"\bar{{{self.name(name.removesuffix('_bar'))}}}"
        if letter := _with_number(name):
            return _subscripted(*letter)
        head, _, below = name.partition("_")
        if head and below and not below.startswith("_"):
            base, *number = _with_number(head) or (BOLD.get(head) or _word(head),)
            return _subscripted(base, *number, *map(_word, below.split("_")))
        return _word(name)

    def beside(self, shown: Sequence[str]) -> str:
        """Factors side by side, with a dot before a digit and a space beside a word."""
        result = shown[0]
        for factor in shown[1:]:
            sign = rf" {self.dot} " if factor[0].isdigit() else r" \, " if _is_word(result, factor) else " "
            result += sign + factor
        return result

    def joined(self, doc: Product, shown: Sequence[str]) -> str:
        """Matrices stand side by side too."""
        return super().joined(doc, shown) if isinstance(doc, ElementProduct) else self.beside(shown)

    def real(self, value: Scalar) -> str:
        if isinstance(value, Fraction):
            return rf"\frac{{{value.numerator}}}{{{value.denominator}}}"
        if turns := half_turns(value):
            above = r"\pi" if turns.numerator == 1 else rf"{turns.numerator} \pi"
            return above if turns.denominator == 1 else rf"\frac{{{above}}}{{{turns.denominator}}}"
        mantissa, _, exponent = repr(value).replace("inf", r"\infty").replace("nan", r"\mathrm{nan}").partition("e")
        if not exponent:
            return mantissa
        times = "" if mantissa == "1" else rf"{mantissa} \cdot "
        return f"{times}10^{{{int(exponent)}}}"

    def literal_level(self, doc: Literal) -> Level:
        return min(super().literal_level(doc), Level.PRODUCT if "^" in self.literal(doc) else Level.ATOM)

    def imaginary(self, value: Scalar) -> str:
        if isinstance(value, Fraction):
            return rf"\frac{{{self.imaginary(value.numerator)}}}{{{value.denominator}}}"
        return r"\mathrm{i}" if value == 1 else rf"{self.real(value)} \mathrm{{i}}"

    def scaled(self, doc: Scaled) -> str:
        name = self.render(doc.name)
        if isinstance(doc.coefficient, Fraction):
            top = doc.coefficient.numerator
            return f"{name if top == 1 else f'{top} {name}'}/{doc.coefficient.denominator}"
        return f"{doc.coefficient} {name}"

    def access(self, doc: Subscripted) -> str:
        map_ = self.bracket(doc.map, Level.POWER if doc.round else Level.ATOM)
        if doc.round:
            return map_ + self.enclosed(", ".join(map(self.render, doc.arguments)))
        map_ = self.enclosed(map_) if "^" in map_ else map_
        base = map_ if "_" not in map_ or map_.endswith(")") else f"{{{map_}}}"
        return f"{base}_{{{','.join(map(self.render, doc.arguments))}}}"

    def function(self, doc: FunctionCall) -> str:
        row = TABLE.get(doc.name) or MATRIX_TABLE.get(doc.name)
        sign = row.latex if row and row.latex else named_operator(doc.name)
        inner = ", ".join(map(self.render, doc.arguments))
        if sign == r"\sqrt":
            return rf"\sqrt{{{inner}}}"
        return sign.replace("{}", f"{{{inner}}}") if "{}" in sign else sign + self.enclosed(inner)

    def quotient(self, doc: Division) -> str:
        return rf"\frac{{{self.render(doc.numerator)}}}{{{self.render(doc.denominator)}}}"

    def power(self, doc: Superscript) -> str:
        exponent = self.render(doc.exponent)
        if isinstance(doc.exponent, Literal) and isinstance(doc.exponent.real, Fraction) and not doc.exponent.imag:
            exponent = str(doc.exponent.real)  # 1/2 on one line
        return f"{self.bracket(doc.base, Level.ATOM)}^{{{exponent}}}"

    def element_power(self, doc: ElementPower) -> str:
        return rf"{self.bracket(doc.base, Level.ATOM)}^{{\circ {self.render(doc.exponent)}}}"

    def norm(self, doc: Norm) -> str:
        kind = f"_{{{doc.kind}}}" if doc.kind else ""
        return rf"\left\Vert {self.render(doc.body)} \right\Vert{kind}"

    def mark(self, sign: str) -> str:
        return f"^{{{MARKS[sign]}}}"

    def derivative(self, doc: Derivative, map_: str) -> str:
        if doc.sign == "'":
            return f"{map_}'"
        index = f"_{{{doc.position}}} " if doc.position else " "
        return f"{SIGNS[doc.sign].strip()}{index}{map_}"

    def big_sum(self, doc: BigSum) -> str:
        signs = [*self._signs(r"\sum", doc.indices), *[r"\int"] * len(doc.variables)]
        ends = [rf"\, \mathrm{{d}}{self.render(variable)}" for variable in doc.variables]
        return " ".join([*signs, self.bracket(doc.body, Level.BIG), *ends])

    def big_fold(self, doc: BigFold) -> str:
        return " ".join([*self._signs(_FOLDED[doc.sign], doc.indices), self.bracket(doc.body, Level.BIG)])

    def _signs(self, sign: str, indices: tuple[Bound, ...]) -> Iterable[str]:
        return self.bounds(indices, sign, lambda names: f"_{{{names}}}")

    def projected(self, doc: Projected) -> str:
        return rf"\operatorname{{{doc.name}}}_{{{self.exchanged(doc)}}} {self.bracket(doc.body, Level.BIG)}"

    def rounded(self, doc: Rounded) -> str:
        left, right = (r"\lceil", r"\rceil") if doc.up else (r"\lfloor", r"\rfloor")
        return rf"\left{left} \frac{{{self.render(doc.body)}}}{{{doc.divisor}}} \right{right}"

    def kronecker(self, doc: Kronecker) -> str:
        return rf"\delta_{{{self.render(doc.left)},{self.render(doc.right)}}}"

    def ranging(self, doc: Ranging) -> str:
        name, size = self.render(doc.name), self.render(doc.size)
        if doc.sign == "≤":
            return rf"|{name}| \leq {size}"
        return f"{name} {SIGNS.get(doc.sign, doc.sign)} {size}"

    def relation(self, sign: str) -> str:
        return SIGNS.get(sign, sign)


def _is_word(left: str, right: str) -> bool:
    """Whether names of several letters meet here, which would read as one."""
    return bool(WORD_BEFORE.search(left) or WORD_AFTER.match(right))


def _word(name: str) -> str:
    """A name of several letters, upright; a letter as it is."""
    return _letter(name) or rf"\mathrm{{{name}}}".replace("_", r"\_")


def _with_number(name: str) -> tuple[str, ...]:
    """A letter, and the number behind it if there is one: x0, x_0; empty for other names."""
    stem = name.rstrip("0123456789")
    number = name[len(stem) :]
    letter = _letter(stem.removesuffix("_") if number else stem)
    return tuple(filter(None, (letter, number))) if letter else ()


def _subscripted(base: str, *below: str) -> str:
    return f"{base}_{{{','.join(below)}}}" if below else base


def _letter(name: str) -> str:
    """A Latin or Greek letter, or the name of one, as LaTeX; empty for other names."""
    greek = GREEK.get(name, name)
    if greek in GREEK_NAMES:
        return rf"\{greek}"
    return name if len(name) == 1 and name.isascii() else ""
