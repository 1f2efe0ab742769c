"""What the renderers share: the order of binding, and where parentheses must stand.

    ↦  looser than  + −  looser than  Σ ∫  looser than  products  looser than  powers and conjugates

A document is put in parentheses where the place it stands in asks for one that binds more tightly. Σ reaches to the
end of its product, so it needs none where it is the last factor.

Invariant: a string, read with this order of binding, gives back the structure of its document.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from fractions import Fraction

from combdiff.ir import Scalar, half_turns
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
    Scaled,
    Sheet,
    Signed,
    Subscripted,
    Superscript,
)


class Level(IntEnum):
    """How tightly a document holds together."""

    ARROW = 0
    SUM = 1
    BIG = 2
    PRODUCT = 3
    POWER = 4
    ATOM = 5


TERM = Level.BIG
"""What a place between + and − asks for."""


Product = Juxtaposition | MatrixProduct | ElementProduct


def last_place(factor: Doc) -> Level:
    """What the place of a factor asks for behind which nothing stands: a Σ reaches as far as to the end."""
    return Level.BIG if isinstance(factor, BigSum | BigFold | Projected) else Level.POWER


class Renderer(ABC):
    """Documents to strings; a subclass gives the signs."""

    dot: str
    """The sign between a factor and a digit."""

    def render(self, doc: Doc) -> str:
        """Any document but a whole sheet."""
        match doc:
            case Name():
                return self.name(doc.name)
            case Literal():
                return self.literal(doc)
            case Scaled():
                return self.scaled(doc)
            case Subscripted():
                return self.access(doc)
            case FunctionCall():
                return self.function(doc)
            case Signed():
                return self.signed(doc)
            case Juxtaposition() | MatrixProduct() | ElementProduct():
                return self.product(doc)
            case Division():
                return self.quotient(doc)
            case Superscript():
                return self.power(doc)
            case ElementPower():
                return self.element_power(doc)
            case Norm():
                return self.norm(doc)
            case Marked() | Derivative():
                return self.marked(doc)
            case BigSum():
                return self.big_sum(doc)
            case BigFold():
                return self.big_fold(doc)
            case Projected():
                return self.projected(doc)
            case Rounded():
                return self.rounded(doc)
            case Kronecker():
                return self.kronecker(doc)
            case Iverson() | Comparison() | Modulo():
                return self.condition(doc)
            case Ranging():
                return self.ranging(doc)
            case Arrow():
                return self.arrow(doc)
            case ResultRow():
                return self.enclosed(", ".join(map(self.render, doc.items)) + "," * (len(doc.items) == 1))
        raise TypeError(f"not a document: {doc!r}")

    def level(self, doc: Doc) -> Level:
        """How tightly a document holds together."""
        match doc:
            case Literal():
                return self.literal_level(doc)
            case Signed() | Modulo():
                return Level.SUM
            case Juxtaposition():
                return Level.BIG if self.level(doc.factors[-1]) == Level.BIG else Level.PRODUCT
            case Division():
                return self.quotient_level
            case Scaled() | MatrixProduct() | ElementProduct():
                return Level.PRODUCT
            case Superscript() | ElementPower() | Marked():
                return Level.POWER
            case BigSum() | BigFold() | Projected():
                return Level.BIG
            case Arrow():
                return Level.ARROW
        return Level.ATOM

    quotient_level: Level

    def is_bracketed(self, doc: Doc, least: Level) -> bool:
        """Whether a document holds less tightly than its place asks: the one question that decides parentheses."""
        return self.level(doc) < least

    def bracket(self, doc: Doc, least: Level) -> str:
        """A document, in parentheses if it holds less tightly than its place asks."""
        inner = self.render(doc)
        return self.enclosed(inner) if self.is_bracketed(doc, least) else inner

    def literal_level(self, doc: Literal) -> Level:
        """How tightly a number holds together."""
        if doc.real and doc.imag:
            return Level.SUM
        turns = half_turns(doc.real)
        if doc.imag not in (0, 1) or isinstance(doc.real, Fraction) or turns not in (0, 1):
            is_quotient = isinstance(doc.real, Fraction) or turns.denominator > 1
            return self.quotient_level if is_quotient else Level.PRODUCT
        return Level.ATOM

    def literal(self, doc: Literal) -> str:
        """A number."""
        if not doc.imag:
            return self.real(doc.real)
        imaginary = self.imaginary(-doc.imag if doc.imag < 0 else doc.imag)
        if not doc.real:
            return imaginary
        return f"{self.real(doc.real)} {'-' if doc.imag < 0 else '+'} {imaginary}"

    def signed(self, doc: Signed) -> str:
        """`a - b + c`."""
        parts = []
        for n, (negative, term) in enumerate(doc.terms):
            sign = ("-" if negative else "") if n == 0 else (" - " if negative else " + ")
            parts.append(sign + self.bracket(term, TERM))
        return "".join(parts)

    def product(self, doc: Product) -> str:
        """Factors in a row."""
        return self.joined(doc, self.factors(doc))

    def factors(self, doc: Product) -> list[str]:
        """The factors of a product as they stand in it."""
        return [self.bracket(factor, place) for factor, place in zip(doc.factors, self.places(doc), strict=True)]

    def places(self, doc: Product) -> list[Level]:
        """What the place of each factor asks for; only the last of some side by side may reach as far as Σ does."""
        if isinstance(doc, ElementProduct):
            return [Level.POWER] * len(doc.factors)
        asked = [self._place(n, factor) for n, factor in enumerate(doc.factors)]
        if isinstance(doc, Juxtaposition):
            asked[-1] = last_place(doc.factors[-1])
        return asked

    def joined(self, doc: Product, shown: Sequence[str]) -> str:
        """The first factors of a product, or all, with the signs between them: `a b`, `2·A·x`, `u ⊙ v ⊘ w`."""
        if isinstance(doc, Juxtaposition):
            return self.beside(shown)
        if isinstance(doc, MatrixProduct):
            return "·".join(shown)
        times, over = self.element_signs
        signs = [times] * (len(doc.above) - 1) + [over] * len(doc.below)
        return shown[0] + "".join(
            f" {sign} {factor}" for sign, factor in zip(signs[: len(shown) - 1], shown[1:], strict=True)
        )

    def beside(self, shown: Sequence[str]) -> str:
        """Factors side by side, with a dot before a digit."""
        result = shown[0]
        for factor in shown[1:]:
            result += (f" {self.dot} " if factor[0].isdigit() else " ") + factor
        return result

    def _place(self, position: int, factor: Doc) -> Level:
        """A fraction or a multiple of i needs no parentheses as the number in front."""
        return Level.PRODUCT if position == 0 and isinstance(factor, Literal) else Level.POWER

    element_signs: tuple[str, str]
    """The signs of products and quotients element by element."""

    def arrow(self, doc: Arrow) -> str:
        """`(a, b) ↦ body`."""
        return f"{self.parameters(doc.parameters)} {self.maps_to} {self.bracket(doc.body, Level.ARROW)}"

    maps_to: str

    def parameters(self, names: tuple[Doc, ...]) -> str:
        """One name, or several in parentheses."""
        shown = ", ".join(map(self.render, names))
        return shown if len(names) == 1 else self.enclosed(shown)

    def heads(self, sheet: Sheet) -> list[str]:
        """`(J, C) ↦` for each group of parameters."""
        return [f"{self.parameters(group)} {self.maps_to}" for group in sheet.groups]

    @abstractmethod
    def sheet(self, sheet: Sheet) -> str:
        """A whole program."""

    @abstractmethod
    def enclosed(self, inner: str) -> str:
        """In parentheses."""

    @abstractmethod
    def name(self, name: str) -> str:
        """A variable."""

    @abstractmethod
    def real(self, value: Scalar) -> str:
        """A real number that is not negative."""

    @abstractmethod
    def imaginary(self, value: Scalar) -> str:
        """A positive multiple of the imaginary unit."""

    @abstractmethod
    def scaled(self, doc: Scaled) -> str:
        """`2i` in an index."""

    @abstractmethod
    def access(self, doc: Subscripted) -> str:
        """`A[i,j]` or `f(x)`."""

    @abstractmethod
    def function(self, doc: FunctionCall) -> str:
        """`exp(z)`."""

    @abstractmethod
    def quotient(self, doc: Division) -> str:
        """A fraction."""

    @abstractmethod
    def power(self, doc: Superscript) -> str:
        """A power."""

    @abstractmethod
    def element_power(self, doc: ElementPower) -> str:
        """A power of every element."""

    @abstractmethod
    def norm(self, doc: Norm) -> str:
        """A norm."""

    def marked(self, doc: Marked | Derivative) -> str:
        """A conjugate, a transpose, an adjoint, an inverse or a derivative."""
        if isinstance(doc, Derivative):
            return self.derivative(doc, self.bracket(doc.map, Level.ATOM))
        return self.bracket(doc.body, Level.ATOM) + self.mark(doc.sign)

    @abstractmethod
    def mark(self, sign: str) -> str:
        """A sign above and behind: `ᵀ`."""

    @abstractmethod
    def derivative(self, doc: Derivative, map_: str) -> str:
        """`∂₁f` or `f'` of a map."""

    @abstractmethod
    def big_sum(self, doc: BigSum) -> str:
        """Σ and ∫."""

    @abstractmethod
    def big_fold(self, doc: BigFold) -> str:
        """max, min and Π."""

    @abstractmethod
    def projected(self, doc: Projected) -> str:
        """An average."""

    def exchanged(self, doc: Projected) -> str:
        """What an average exchanges: `i,j`, or `(p,q),(r,s)`."""
        groups = (",".join(map(self.render, group)) for group in doc.groups)
        return ",".join(f"({g})" if len(doc.groups[0]) > 1 else g for g in groups)

    @abstractmethod
    def rounded(self, doc: Rounded) -> str:
        """A rounded quotient."""

    unequal: str
    """The sign between an index of a Σ and what it is not equal to."""

    def bounds(self, indices: Iterable[Bound], sign: str, subscript: Callable[[str], str]) -> Iterator[str]:
        """The signs of a Σ: indices over whole domains share one, bounded ones have one each."""
        names: list[str] = []
        for index in indices:
            if index.lower is None or index.upper is None:
                name = self.render(index.name)
                plain = self.render(index.name.name) if isinstance(index.name, Ranging) else name
                apart = [f"{plain}{self.unequal}{self.render(other)}" for other in index.apart]
                names += [name, *apart] if isinstance(index.name, Ranging) else apart or [name]
                continue
            if names:
                yield sign + subscript(",".join(names))
            names = []
            lower = f"{self.render(index.name)}={self.render(index.lower)}"
            yield f"{sign}_{{{lower}}}^{{{self.render(index.upper)}}}"
        if names:
            yield sign + subscript(",".join(names))

    @abstractmethod
    def kronecker(self, doc: Kronecker) -> str:
        """δ."""

    @abstractmethod
    def ranging(self, doc: Ranging) -> str:
        """An index with its domain."""

    def condition(self, doc: Iverson | Comparison | Modulo) -> str:
        """Conditions in brackets, or one of their parts."""
        if isinstance(doc, Iverson):
            return f"[{', '.join(map(self.render, doc.conditions))}]"
        if isinstance(doc, Modulo):
            return f"{self.bracket(doc.form, Level.POWER)} {self.modulo} {self.bracket(doc.modulus, Level.PRODUCT)}"
        shown = self.render(doc.sides[0])
        for sign, side in zip(doc.signs, doc.sides[1:], strict=True):
            shown += f" {self.relation(sign)} {self.render(side)}"
        return shown

    modulo: str
    """What stands between a number and its modulus."""

    @abstractmethod
    def relation(self, sign: str) -> str:
        """The sign of a comparison."""
