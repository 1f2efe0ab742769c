"""Formulas as documents: what is written where, before it is decided with which signs.

    4·Σ_{i} conj(C[p, i])·x[i]
    = Product((Literal(4), BigSum((Name("i"),), (), Product((Marked(Access(C, (p, i)), "*"), Access(x, (i,)))))))

A document says "a fraction of these two", not where the bar goes or whether parentheses are needed: the renderers
decide that, because a built-up fraction in LaTeX needs none where the slash of plain text does.

Invariant: documents are frozen and hold no terms; every name in them is the one that is shown.
"""

from __future__ import annotations

from combdiff.ir import Scalar
from combdiff.records import dataclass


class Doc:
    """Base of all documents."""


@dataclass(frozen=True)
class Name(Doc):
    """A variable by the name it is shown with."""

    name: str


@dataclass(frozen=True)
class Literal(Doc):
    """A number whose leading part is not negative: 4, 1/2, 0.3, 2i, 1 − 2i."""

    real: Scalar
    imag: Scalar = 0


@dataclass(frozen=True)
class Scaled(Doc):
    """`2i` inside an index: a positive coefficient set tight against a name."""

    coefficient: Scalar
    name: Name


@dataclass(frozen=True)
class Subscripted(Doc):
    """`A[i,j]`, or `f(x, y)` when round: elements of tensors, values of fields and named maps."""

    map: Doc
    arguments: tuple[Doc, ...]
    round: bool


@dataclass(frozen=True)
class FunctionCall(Doc):
    """A primitive of the table, applied: `exp(z)`, `|z|`."""

    name: str
    arguments: tuple[Doc, ...]


@dataclass(frozen=True)
class Signed(Doc):
    """`a - b + c`: documents, each with whether a minus stands before it. One alone is `-a`."""

    terms: tuple[tuple[bool, Doc], ...]


@dataclass(frozen=True)
class Juxtaposition(Doc):
    """Two or more factors side by side."""

    factors: tuple[Doc, ...]


@dataclass(frozen=True)
class Division(Doc):
    """A fraction."""

    numerator: Doc
    denominator: Doc


@dataclass(frozen=True)
class Superscript(Doc):
    """A base with an exponent."""

    base: Doc
    exponent: Doc


@dataclass(frozen=True)
class Rounded(Doc):
    """`⌈body / divisor⌉`, or `⌊body / divisor⌋` where it is not rounded up."""

    body: Doc
    divisor: int
    up: bool


@dataclass(frozen=True)
class Ranging(Doc):
    """An index with its domain where nothing else tells it: `i<n`, `|b|≤B`, `k mod n`, `t∈ℝ` by its sign."""

    name: Name
    sign: str
    size: Doc


@dataclass(frozen=True)
class Bound:
    """An index of a Σ with its least and greatest value; without them over its domain but for those `apart`."""

    name: Name | Ranging
    lower: Doc | None = None
    upper: Doc | None = None
    apart: tuple[Doc, ...] = ()


@dataclass(frozen=True)
class BigSum(Doc):
    """`Σ_{indices} ∫ body d(variables)`; either may be empty, not both."""

    indices: tuple[Bound, ...]
    variables: tuple[Name, ...]
    body: Doc


@dataclass(frozen=True)
class BigFold(Doc):
    """`max_{indices} body`, by its sign: max, min, Π, … No class of a BigSum, as it is not linear in its body."""

    sign: str
    indices: tuple[Bound, ...]
    body: Doc


@dataclass(frozen=True)
class Projected(Doc):
    """`Sym_{groups} body`: an average over the orders of the groups of indices."""

    name: str
    groups: tuple[tuple[Doc, ...], ...]
    body: Doc


@dataclass(frozen=True)
class Kronecker(Doc):
    """`δ(left, right)`."""

    left: Doc
    right: Doc


@dataclass(frozen=True)
class Comparison(Doc):
    """`0 ≤ i < N`: sides with the signs ≤ < ≥ > = ≠ between them."""

    sides: tuple[Doc, ...]
    signs: tuple[str, ...]


_MIRRORED = {"<": ">", "≤": "≥", "≥": "≤", ">": "<", "=": "=", "≠": "≠"}


def compared(left: Doc, sign: str, right: Doc) -> Iverson:
    """`[x > 0]`: two sides compared, a number by itself on the right."""
    if _is_number(left) and not _is_number(right):
        left, sign, right = right, _MIRRORED[sign], left
    return Iverson((Comparison((left, right), (sign,)),))


def _is_number(doc: Doc) -> bool:
    return isinstance(doc, Literal) or (isinstance(doc, Signed) and len(doc.terms) == 1 and _is_number(doc.terms[0][1]))


@dataclass(frozen=True)
class Modulo(Doc):
    """`form mod modulus`."""

    form: Doc
    modulus: Doc


@dataclass(frozen=True)
class Iverson(Doc):
    """`[conditions]`: 1 where all of them hold, else 0."""

    conditions: tuple[Comparison, ...]


@dataclass(frozen=True)
class Derivative(Doc):
    """`∇R` (sign "∇"), `∂₁L` or `∂F` (sign "∂"), `s'` (sign "'"); position counts from 1, 0 shows none."""

    map: Doc
    sign: str
    position: int = 0


@dataclass(frozen=True)
class Marked(Doc):
    """What has a sign behind it: *, or of a matrix or a map ᵀ, †, ⁻¹, ⁻ᵀ or ⁻†."""

    body: Doc
    sign: str


@dataclass(frozen=True)
class MatrixProduct(Doc):
    """`2·A·x`: two or more factors of a matrix product, scalars first."""

    factors: tuple[Doc, ...]


@dataclass(frozen=True)
class ElementProduct(Doc):
    """`u ⊙ v ⊘ w`: products and quotients element by element; there is a first factor."""

    above: tuple[Doc, ...]
    below: tuple[Doc, ...]

    @property
    def factors(self) -> tuple[Doc, ...]:
        """All of them, as they stand in a row."""
        return self.above + self.below


@dataclass(frozen=True)
class ElementPower(Doc):
    """`u^∘2`: a power of every element."""

    base: Doc
    exponent: Doc


@dataclass(frozen=True)
class Norm(Doc):
    """`‖u‖`, or with a kind `‖A‖_F`."""

    body: Doc
    kind: str


@dataclass(frozen=True)
class Arrow(Doc):
    """`(parameters) ↦ body`."""

    parameters: tuple[Doc, ...]
    body: Doc


@dataclass(frozen=True)
class ResultRow(Doc):
    """`(a, b)`: several results."""

    items: tuple[Doc, ...]


@dataclass(frozen=True)
class Sheet(Doc):
    """A whole program: the parameters it takes one group after another, definitions (left, right), the result.

    `unit` is the imaginary unit in plain text: i, or ⅈ where a parameter is called i.
    """

    groups: tuple[tuple[Doc, ...], ...]
    definitions: tuple[tuple[Doc, Doc], ...]
    result: Doc
    unit: str = "i"
