"""Programs as Unicode text.

    (J, C) ↦ (d, e) ↦ 4 Σ_{i,p,r,s} J[r,s,p,d]* C[s,i]* C[p,e] C[r,i]

A program with definitions, or one longer than a line, is written on several lines: each definition and each result on
its own, a long sum with each Σ on its own.

Invariant: brackets balance, and a line break inside a product, quotient or function stands between brackets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

from combdiff.ir import Scalar, Term, half_turns
from combdiff.printing.documents import (
    Arrow,
    BigFold,
    BigSum,
    Derivative,
    Division,
    Doc,
    ElementPower,
    ElementProduct,
    FunctionCall,
    Juxtaposition,
    Kronecker,
    Literal,
    MatrixProduct,
    Norm,
    Projected,
    Ranging,
    ResultRow,
    Rounded,
    Scaled,
    Sheet,
    Signed,
    Subscripted,
    Superscript,
)
from combdiff.printing.matrix import matrix_sheet
from combdiff.printing.notation import sheet
from combdiff.printing.rendering import TERM, Level, Product, Renderer, last_place

LINE = 100  # characters
SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
SHOWN_AS = {"real": "Re", "imag": "Im", "maximum": "max", "minimum": "min"}


def text(term: Term, width: int = LINE) -> str:
    """Any term in index notation as Unicode text; a program usually, on one line where that is at most `width` long."""
    return _PlainText(width).sheet(sheet(term))


def matrix_text(term: Term) -> str:
    """A program in matrix notation as Unicode text, without its parameters; index notation where there is none."""
    return _PlainText(LINE).sheet(matrix_sheet(term))


def shown(doc: Doc) -> str:
    """A document on one line."""
    return _PlainText(LINE).render(doc)


class _PlainText(Renderer):
    dot = "·"
    maps_to = "↦"
    quotient_level = Level.PRODUCT
    unequal = "≠"
    modulo = "mod"
    element_signs = ("⊙", "⊘")

    unit = "i"

    def __init__(self, width: int) -> None:
        self.width = width

    def sheet(self, sheet: Sheet) -> str:
        self.unit = sheet.unit
        heads = self.heads(sheet)
        line = " ".join([*heads, self.render(sheet.result)])
        if not sheet.definitions and len(line) <= self.width:
            return line
        margin = "  " if heads else ""
        lines = [" ".join(heads)] if heads else []
        for left, right in sheet.definitions:
            lines += self._lines(right, margin, f"{self.render(left)} = ")
        return "\n".join([*lines, *self._lines(sheet.result, margin)])

    def _lines(
        self, doc: Doc, margin: str, before: str = "", after: str = "", least: Level = Level.ARROW
    ) -> Iterator[str]:
        """A document after `before` in a place that asks for `least`, on one line if it fits or cannot be broken.

        Its parentheses are those it has on one line.
        """
        line = margin + before + self.bracket(doc, least) + after
        if len(line) <= self.width:
            yield line
        elif self.is_bracketed(doc, least):
            yield from self._between(f"{margin}{before}(", self._below(doc, margin), f"{margin}){after}")
        else:
            yield from self._broken(doc, margin, before, after)

    def _broken(self, doc: Doc, margin: str, before: str, after: str) -> Iterator[str]:
        """A document that is too long for its line, on several where there is a way to break it."""
        match doc:
            case Arrow():
                yield from self._lines(doc.body, margin, f"{before}{self.parameters(doc.parameters)} ↦ ", after)
            case ResultRow((one,)):
                yield from self._between(
                    f"{margin}{before}(", self._lines(one, margin + "  ", after=","), f"{margin}){after}"
                )
            case ResultRow():
                yield from self._row(doc.items, margin, before, after)
            case FunctionCall() if not (shown := self.function(doc)).startswith("|"):
                yield from self._row(doc.arguments, margin, before + shown.partition("(")[0], after)
            case Juxtaposition() | MatrixProduct() | ElementProduct():
                yield from self._product_lines(doc, margin, before, after)
            case Division():
                yield from self._quotient_lines(doc, margin, before, after)
            case BigSum() | BigFold():
                signs, ends = self._around(doc)
                yield from self._lines(doc.body, margin, before + signs, ends + after, Level.BIG)
            case Projected():
                yield from self._lines(doc.body, margin, f"{before}{self.projector(doc)} ", after, TERM)
            case Signed() if len(doc.terms) == 1:
                yield from self._lines(doc.terms[0][1], margin, f"{before}-", after, TERM)
            case Signed():
                yield from self._terms(doc, margin, before, after)
            case _:
                yield margin + before + self.render(doc) + after

    def _between(self, first: str, inside: Iterable[str], last: str) -> Iterator[str]:
        """Lines between two others."""
        yield first
        yield from inside
        yield last

    def _below(self, doc: Doc, margin: str) -> Iterator[str]:
        """What stands on lines of its own between parentheses."""
        return self._terms(doc, margin, "", "") if isinstance(doc, Signed) else self._lines(doc, margin + "  ")

    def _row(self, items: Sequence[Doc], margin: str, before: str, after: str) -> Iterator[str]:
        """One or several between parentheses, each on lines of its own; terms of one of several stand further in."""
        yield f"{margin}{before}("
        *others, last = items
        for item in others:
            yield from self._lines(item, margin + "  ", after=",")
        yield from self._lines(last, margin + "  ") if others else self._below(last, margin)
        yield f"{margin}){after}"

    def _product_lines(self, doc: Product, margin: str, before: str, after: str) -> Iterator[str]:
        """A product with its longest factor on lines of its own."""
        shown = self.factors(doc)
        longest = max(range(len(shown)), key=lambda n: len(shown[n]))
        whole, to = self.joined(doc, shown), self.joined(doc, shown[: longest + 1])
        head, tail = to.removesuffix(shown[longest]), whole.removeprefix(to)
        yield from self._lines(doc.factors[longest], margin, before + head, tail + after, self.places(doc)[longest])

    def _quotient_lines(self, doc: Division, margin: str, before: str, after: str) -> Iterator[str]:
        """A quotient: a long denominator stands on lines of its own, otherwise the numerator does."""
        below = self.bracket(doc.denominator, last_place(doc.denominator))
        if self.is_bracketed(doc.denominator, Level.POWER) and 2 * len(margin + below) > self.width:
            yield from self._lines(doc.numerator, margin, before, " / (", Level.PRODUCT)
            yield from self._below(doc.denominator, margin)
            yield f"{margin}){after}"
        else:
            yield from self._lines(doc.numerator, margin, before, f" / {below}{after}", Level.PRODUCT)

    def _terms(self, doc: Signed, margin: str, before: str, after: str) -> Iterator[str]:
        """The terms of a sum below `before`: a Σ on a line of its own, of others as many on a line as fit."""
        if before:
            yield margin + before.rstrip()
        margin += "  "
        line, alone = margin, False
        for n, (negative, term) in enumerate(doc.terms):
            sign = ("- " if negative else "+ ") if n else "-" if negative else ""
            end = after if n == len(doc.terms) - 1 else ""
            shown = sign + self.bracket(term, TERM) + end
            was_alone, alone = alone, self.level(term) == Level.BIG or len(margin + shown) > self.width
            if n and (alone or was_alone or len(line + shown) > self.width):
                yield line.rstrip()
                line = margin
            if len(margin + shown) > self.width:
                *lines, line = self._lines(term, margin, sign, end, TERM)
                yield from lines
            else:
                line += shown
            line += " "
        yield line.rstrip()

    def enclosed(self, inner: str) -> str:
        return f"({inner})"

    def name(self, name: str) -> str:
        return name

    def real(self, value: Scalar) -> str:
        if turns := half_turns(value):
            above = "π" if turns.numerator == 1 else f"{turns.numerator}π"
            return above if turns.denominator == 1 else f"{above}/{turns.denominator}"
        return repr(value) if isinstance(value, float) else str(value)

    def imaginary(self, value: Scalar) -> str:
        if isinstance(value, Fraction):
            return f"{self.imaginary(value.numerator)}/{value.denominator}"
        shown = self.real(value)
        space = "" if shown[-1].isdigit() else " "  # inf i, π i
        return self.unit if value == 1 else f"{shown}{space}{self.unit}"

    def scaled(self, doc: Scaled) -> str:
        name = self.render(doc.name)
        tight = name if len(name) == 1 else f" {name}"
        if isinstance(doc.coefficient, Fraction):
            top = doc.coefficient.numerator
            return f"{name if top == 1 else f'{top}{tight}'}/{doc.coefficient.denominator}"
        return f"{doc.coefficient}{tight}"

    def access(self, doc: Subscripted) -> str:
        inner = (", " if doc.round else ",").join(map(self.render, doc.arguments))
        map_ = self.bracket(doc.map, Level.POWER if doc.round else Level.ATOM)
        return f"{map_}({inner})" if doc.round else f"{map_}[{inner}]"

    def function(self, doc: FunctionCall) -> str:
        inner = ", ".join(map(self.render, doc.arguments))
        if doc.name == "abs" and "|" not in inner:
            return f"|{inner}|"
        return f"{SHOWN_AS.get(doc.name, doc.name)}({inner})"

    def quotient(self, doc: Division) -> str:
        below = self.bracket(doc.denominator, last_place(doc.denominator))
        return f"{self.bracket(doc.numerator, Level.PRODUCT)} / {below}"

    def level(self, doc: Doc) -> Level:
        """How tightly a document holds together; a quotient as its denominator, where that reaches to the end."""
        if isinstance(doc, Division) and last_place(doc.denominator) == Level.BIG:
            return Level.BIG
        return super().level(doc)

    def power(self, doc: Superscript) -> str:
        base, exponent = self.bracket(doc.base, Level.ATOM), self.render(doc.exponent)
        if isinstance(doc.exponent, Literal) and exponent.isdigit():
            return base + exponent.translate(SUPERSCRIPTS)
        return f"{base}^{self.bracket(doc.exponent, Level.ATOM)}"

    def element_power(self, doc: ElementPower) -> str:
        return f"{self.bracket(doc.base, Level.ATOM)}^∘{self.bracket(doc.exponent, Level.ATOM)}"

    def norm(self, doc: Norm) -> str:
        body = self.render(doc.body)
        return f"norm2({body})" if "‖" in body else f"‖{body}‖{f'_{doc.kind}' if doc.kind else ''}"  # bars do not nest

    def mark(self, sign: str) -> str:
        return sign

    def derivative(self, doc: Derivative, map_: str) -> str:
        index = str(doc.position).translate(SUBSCRIPTS) if doc.position else ""
        return f"{map_}'" if doc.sign == "'" else f"{doc.sign}{index}{map_}"

    def big_sum(self, doc: BigSum | BigFold) -> str:
        signs, ends = self._around(doc)
        return signs + self.bracket(doc.body, Level.BIG) + ends

    big_fold = big_sum

    def _around(self, doc: BigSum | BigFold) -> tuple[str, str]:
        """What stands before and behind the body of a Σ, ∫, max, …"""
        sign, variables = (doc.sign, ()) if isinstance(doc, BigFold) else ("Σ", doc.variables)
        sums = self.bounds(doc.indices, sign, lambda names: f"_{names}" if len(names) == 1 else f"_{{{names}}}")
        signs = [*sums, "∫" * len(variables)] if variables else sums
        return "".join(f"{sign} " for sign in signs), "".join(f" d{self.render(variable)}" for variable in variables)

    def projected(self, doc: Projected) -> str:
        return f"{self.projector(doc)} {self.bracket(doc.body, TERM)}"

    def projector(self, doc: Projected) -> str:
        """The name of an average."""
        return f"{doc.name}_{{{self.exchanged(doc)}}}"

    def rounded(self, doc: Rounded) -> str:
        left, right = "⌈⌉" if doc.up else "⌊⌋"
        return f"{left}{self.bracket(doc.body, Level.PRODUCT)}/{doc.divisor}{right}"

    def kronecker(self, doc: Kronecker) -> str:
        return f"δ({self.render(doc.left)}, {self.render(doc.right)})"

    def ranging(self, doc: Ranging) -> str:
        name, size = self.render(doc.name), self.render(doc.size)
        return {"≤": f"|{name}|≤{size}", "mod": f"{name} mod {size}"}.get(doc.sign, f"{name}{doc.sign}{size}")

    def relation(self, sign: str) -> str:
        return sign
