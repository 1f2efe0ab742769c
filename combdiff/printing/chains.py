"""Products of matrices and vectors, as they are written: in an order, with transposes, conjugates and a scalar.

    Chain(2, (α,), (pᵀ, A, u))   =   2·α·pᵀ·A·u

A vector is a column; its transpose is a row. Marks that a symmetry makes needless are dropped: a symmetric A is its
own transpose, a Hermitian H its own adjoint, and for an antisymmetric matrix the transpose is a sign.

Invariant: every operation has the value it says, whatever the sizes; a chain is frozen and holds finished documents.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction

from combdiff.ir import MINUS_ONE, ONE, SIGNS, Number, Space, conj, mul
from combdiff.printing.documents import (
    Division,
    Doc,
    ElementPower,
    ElementProduct,
    FunctionCall,
    Literal,
    Marked,
    MatrixProduct,
    Name,
    Norm,
    Signed,
    Superscript,
    compared,
)
from combdiff.printing.signs import added, with_sign
from combdiff.records import dataclass

MARKS = {(False, False): "", (True, True): "†", (True, False): "ᵀ", (False, True): "*"}
PREFERRED = list(MARKS)


@dataclass(frozen=True)
class Atom:
    """A number, vector or matrix (order 0, 1, 2) that is written as one document.

    `symmetry` lists the ways (transposed, conjugated, sign) in which a matrix is itself again. `marks` are those in the
    document; `turned` is the transpose written by the transposes of its parts, with its marks, where it has such parts.
    """

    doc: Doc
    order: int
    complex: bool = False
    symmetry: tuple[tuple[bool, bool, int], ...] = ()
    marks: int = 0
    turned: tuple[Doc, int] | None = None


@dataclass(frozen=True)
class Factor:
    """An atom with its marks."""

    atom: Atom
    transposed: bool = False
    conjugated: bool = False

    @property
    def mark(self) -> str:
        """The sign that stands behind it."""
        return MARKS[self.transposed, self.conjugated]

    @property
    def doc(self) -> Doc:
        """As it is written; the transpose of an inverse is A⁻ᵀ, its adjoint A⁻†."""
        if self.mark in ("ᵀ", "†") and isinstance(self.atom.doc, Marked) and self.atom.doc.sign == "⁻¹":
            return Marked(self.atom.doc.body, f"⁻{self.mark}")
        return Marked(self.atom.doc, self.mark) if self.mark else self.atom.doc

    @property
    def marks(self) -> int:
        """How many marks it is written with; a conjugate that is not transposed counts twice."""
        return len(self.mark) + (self.mark == "*") + self.atom.marks

    @property
    def turned(self) -> Factor:
        """The same matrix, its transpose written by the transposes of its parts where it has such parts."""
        if self.atom.turned is None:
            return self
        doc, marks = self.atom.turned
        atom = replace(self.atom, doc=doc, marks=marks, turned=(self.atom.doc, self.atom.marks))
        return replace(self, atom=atom, transposed=not self.transposed)


ONES = Atom(Name("𝟏"), 1)
IDENTITY = Atom(Name("𝐈"), 2, symmetry=((True, False, 1),))


@dataclass(frozen=True)
class Chain:
    """`number · scalars · factors`; a scalar comes with its exponent. The order is that of the product."""

    number: Number
    scalars: tuple[tuple[Atom, int], ...]
    factors: tuple[Factor, ...]
    order: int

    @property
    def bare(self) -> Chain:
        """Without number and scalars."""
        return replace(self, number=ONE, scalars=())

    @property
    def complex(self) -> bool:
        """Whether it may be complex."""
        atoms = (*(atom for atom, _ in self.scalars), *(factor.atom for factor in self.factors))
        return bool(self.number.imag) or any(atom.complex for atom in atoms)

    @property
    def transposed(self) -> Chain:
        """The transpose; of a vector, the row."""
        flipped = (replace(f, transposed=not f.transposed) for f in reversed(self.factors))
        return chain(self.number, self.scalars, flipped, self.order)

    @property
    def conjugated(self) -> Chain:
        """The conjugate."""
        number = conj(self.number)
        assert isinstance(number, Number)
        scalars = tuple((_conjugated_scalar(atom), exponent) for atom, exponent in self.scalars)
        return chain(number, scalars, (replace(f, conjugated=not f.conjugated) for f in self.factors), self.order)

    @property
    def plain(self) -> bool:
        """Whether all factors are tensors with a name."""
        return all(isinstance(f.atom.doc, Name) for f in self.factors)

    @property
    def marks(self) -> int:
        """How many marks it is written with."""
        return sum(factor.marks for factor in self.factors)


def _conjugated_scalar(atom: Atom) -> Atom:
    return replace(atom, doc=Marked(atom.doc, "*")) if atom.complex else atom


def chain(number: Number, scalars: Sequence[tuple[Atom, int]], factors: Iterable[Factor], order: int) -> Chain:
    """A product with its marks simplified and 𝐈 left out where something else is multiplied."""
    kept: list[Factor] = []
    for factor in factors:
        factor, sign = _simplest(factor)
        number = _times(number, Number(sign))
        kept.append(factor)
    others = [f for f in kept if f.atom is not IDENTITY]
    return Chain(number, tuple(scalars), tuple(others or kept[:1]), order)


def _simplest(factor: Factor) -> tuple[Factor, int]:
    """The same matrix with the simplest mark, and the sign that it takes."""
    atom, own = factor.atom, (factor.transposed and factor.atom.order > 0, factor.conjugated and factor.atom.complex)
    ways = [(own[0] ^ t, (own[1] ^ c) and atom.complex, sign) for t, c, sign in ((False, False, 1), *atom.symmetry)]
    transposed, conjugated, sign = min(ways, key=lambda way: PREFERRED.index(way[:2]))
    found = Factor(atom, transposed, conjugated)
    return min(found, found.turned if transposed else found, key=lambda way: way.marks), sign


def _times(*numbers: Number) -> Number:
    found = mul(*numbers)
    assert isinstance(found, Number)
    return found


def of_number(number: Number) -> Chain:
    """A number as a chain."""
    return Chain(number, (), (), 0)


def of_atom(atom: Atom) -> Chain:
    """One atom as a chain."""
    if not atom.order:
        return Chain(ONE, ((atom, 1),), (), 0)
    return Chain(ONE, (), (Factor(atom),), atom.order)


def as_atom(value: Chain) -> Atom:
    """A chain as one document; signs and products in it are put in parentheses where that is needed."""
    if value.number is ONE and not value.scalars and len(value.factors) == 1 and not value.factors[0].mark:
        return value.factors[0].atom
    if value.number is ONE and not value.factors and len(value.scalars) == 1 and value.scalars[0][1] == 1:
        return value.scalars[0][0]
    return Atom(document(value), value.order, value.complex, marks=value.marks)


def either_way(
    values: Sequence[Chain],
    write: Callable[[Sequence[Chain]], Doc],
    is_complex: bool,
    symmetry: tuple[tuple[bool, bool, int], ...] = (),
) -> Chain:
    """One document made of chains of one shape: of matrices or of their transposes, whichever takes fewer marks."""
    order = values[0].order
    if order < 2:
        return of_atom(Atom(write(values), order, is_complex))
    turned = [value.transposed for value in values]
    (doc, marks), other = ((write(way), sum(value.marks for value in way)) for way in (values, turned))
    has_signs = any(one.number != two.number for one, two in zip(values, turned, strict=True))  # −A = Aᵀ in a product
    atom = Atom(doc, order, is_complex, symmetry, marks, None if has_signs else other)
    return of_atom(atom).transposed.transposed


def symmetries(space: Space) -> tuple[tuple[bool, bool, int], ...]:
    """The ways in which a matrix of this space is itself again, beside the one without any mark."""
    if space.order != 2:
        return ()
    actions = (a for a in space.group if not any(a.negated))
    return tuple((a.axes == (1, 0), a.conjugate, a.sign) for a in actions if a.axes == (1, 0) or a.conjugate)


# --- operations ----------------------------------------------------------------------------------------------------


def scaled(value: Chain, number: Number, scalars: Sequence[tuple[Atom, int]]) -> Chain:
    """A multiple of a chain; equal scalars become a power."""
    exponents: dict[Atom, int] = {}
    for atom, exponent in (*scalars, *value.scalars):
        exponents[atom] = exponents.get(atom, 0) + exponent
    kept = tuple((atom, exponent) for atom, exponent in exponents.items() if exponent)
    return replace(value, number=_times(number, value.number), scalars=kept)


def times(*values: Chain) -> Chain:
    """The matrix product of chains without scalars; the last decides the order."""
    number = _times(*(value.number for value in values))
    return chain(number, (), (f for value in values for f in value.factors), values[-1].order)


def outer(left: Chain, right: Chain) -> Chain:
    """`u·vᵀ`."""
    return replace(times(left, right.transposed), order=2)


def dot(left: Chain, right: Chain) -> Chain:
    """`uᵀ·v`, whichever way takes fewer marks; `‖u‖²` of a vector with itself."""
    if left.conjugated == right:
        return _squared_norm(left if left.marks <= right.marks else right, "")
    ways = [replace(times(one.transposed, other), order=0) for one, other in ((left, right), (right, left))]
    return min(ways, key=lambda way: (way.marks, len(way.factors) > 2 and way.factors[0].atom is ONES))


def trace(first: Chain, *more: Chain) -> Chain:
    """`tr(A·B)`, transposed if that takes fewer marks; `‖A‖_F²` of `A†·A`."""
    if len(more) == 1 and first.transposed.conjugated == more[0]:
        return _squared_norm(min(first, more[0], key=lambda way: way.marks), "F")
    whole = times(first, *more) if more else first
    ways = [way for value in (whole, whole.transposed) for way in _rotations(value)]
    best = min(ways, key=lambda way: (way.marks, way.factors[0].mark, repr(way.factors[0].doc)))
    return scaled(of_atom(Atom(FunctionCall("tr", (document(best.bare),)), 0, best.complex)), best.number, best.scalars)


def _rotations(value: Chain) -> list[Chain]:
    """tr(A·B·C) = tr(B·C·A) = tr(C·A·B)"""
    starts = range(len(value.factors))
    return [replace(value, factors=(*value.factors[n:], *value.factors[:n])) for n in starts]


def _squared_norm(value: Chain, kind: str) -> Chain:
    inside = document(value)
    if isinstance(inside, FunctionCall) and inside.name == "abs":
        (inside,) = inside.arguments
    return Chain(ONE, ((Atom(Norm(inside, kind), 0), 2),), (), 0)


def diagonal(vector: Chain) -> Chain:
    """`diag(u)`, the matrix."""
    return of_atom(Atom(FunctionCall("diag", (document(vector),)), 2, vector.complex, ((True, False, 1),)))


def diagonal_of(matrix: Chain) -> Chain:
    """`diag(A)`, the vector."""
    ways = min((matrix, matrix.transposed), key=lambda way: way.marks)
    inside = of_atom(Atom(FunctionCall("diag", (document(ways.bare),)), 1, matrix.complex))
    return scaled(inside, ways.number, ways.scalars)


def elementwise(values: Sequence[Chain]) -> Chain:
    """`u ⊙ v`: the product element by element of chains of one shape; equal ones become powers."""
    if len(values) == 1:
        return values[0]
    number = _times(*(value.number for value in values))
    bare = [value.bare for value in values]
    return scaled(either_way(bare, _element_product, any(value.complex for value in values)), number, ())


def _element_product(values: Sequence[Chain]) -> Doc:
    exponents: dict[Doc, int | Fraction] = {}
    for value in values:
        base, exponent = _element_power(document(value))
        exponents[base] = exponents.get(base, 0) + exponent
    above = tuple(_raised(base, exponent) for base, exponent in exponents.items() if exponent > 0)
    below = tuple(_raised(base, -exponent) for base, exponent in exponents.items() if exponent < 0)
    if not above:
        below, above = (), tuple(_raised(base, exponent) for base, exponent in exponents.items())
    return above[0] if len(above) == 1 and not below else ElementProduct(above, below)


def _element_power(doc: Doc) -> tuple[Doc, int | Fraction]:
    """A base and its exponent."""
    if isinstance(doc, ElementPower) and isinstance(doc.exponent, Literal | Signed):
        negative, literal = doc.exponent.terms[0] if isinstance(doc.exponent, Signed) else (False, doc.exponent)
        if isinstance(literal, Literal) and not literal.imag and not isinstance(literal.real, float):
            return doc.base, -literal.real if negative else literal.real
    return doc, 1


def _raised(base: Doc, exponent: int | Fraction) -> Doc:
    return base if exponent == 1 else ElementPower(base, exponent_document(Number(exponent)))


def exponent_document(exponent: Number) -> Doc:
    """A number as an exponent, with its sign."""
    negative, literal = _unsigned(exponent)
    return Signed(((True, literal),)) if negative else literal


def power(base: Chain, exponent: Doc, is_complex: bool) -> Chain:
    """A power of every element."""
    kind = ElementPower if base.order else Superscript
    return either_way([base], lambda values: kind(document(values[0]), exponent), is_complex)


def image(name: str, arguments: Sequence[Chain], is_complex: bool) -> Chain:
    """A function of every element; the root of `‖x‖²` is `‖x‖`, a comparison `[x > 0]`."""
    if name == "sqrt" and (norm := _norm(arguments[0])) is not None:
        return of_atom(norm)

    def written(values: Sequence[Chain]) -> Doc:
        docs = tuple(map(document, values))
        return compared(docs[0], SIGNS[name], docs[1]) if name in SIGNS else FunctionCall(name, docs)

    return either_way(arguments, written, is_complex)


def _norm(value: Chain) -> Atom | None:
    """The norm whose square a number is; None where it is something else."""
    match value:
        case Chain(number, ((Atom(Norm()) as norm, 2),), ()) if number is ONE:
            return norm
    return None


def total(values: Sequence[Chain]) -> Chain:
    """A sum of chains of one order, a positive one first: a number if there is one."""
    is_complex = any(value.complex for value in values)
    return either_way(values, _sum, is_complex, _symmetries_of_sum(values) if values[0].order == 2 else ())


def _sum(values: Sequence[Chain]) -> Doc:
    numbers = [signed_document(value) for value in values if _is_number(value)]
    others = [signed_document(value) for value in values if not _is_number(value)]
    return added((*(n for n in numbers if not n[0]), *others, *(n for n in numbers if n[0])))


def _symmetries_of_sum(values: Sequence[Chain]) -> tuple[tuple[bool, bool, int], ...]:
    """The ways in which a sum of matrices is itself again: A + Aᵀ transposed, A + A† transposed and conjugated."""
    counts = Counter(values)
    images = {
        (True, False): Counter(value.transposed for value in values),
        (True, True): Counter(value.transposed.conjugated for value in values),
    }
    return tuple((*marks, 1) for marks, image in images.items() if image == counts)


def _is_number(value: Chain) -> bool:
    return not value.scalars and all(f.atom is ONES for f in value.factors)


def broadcast(value: Chain, have: tuple[object, ...], want: tuple[object, ...]) -> Chain:
    """A chain over some of the indices as one over all of them, in their order, by 1-vectors."""
    if have == want:
        return value
    if len(have) == 2:
        return value.transposed
    if not have:
        ones = of_atom(ONES) if len(want) == 1 else outer(of_atom(ONES), of_atom(ONES))
        single = ((as_atom(value.bare), 1),) if value.factors else ()
        return scaled(ones, value.number, (*value.scalars, *single))
    pair = (value.bare, of_atom(ONES)) if have[0] == want[0] else (of_atom(ONES), value.bare)
    return scaled(outer(*pair), value.number, value.scalars)


# --- documents -----------------------------------------------------------------------------------------------------


def document(value: Chain) -> Doc:
    """A chain as it is written, with its sign."""
    return with_sign(*signed_document(value))


def signed_document(value: Chain) -> tuple[bool, Doc]:
    """Whether a minus stands before a chain, and the rest."""
    negative, number = _unsigned(value.number)
    above: list[Doc] = [_scalar(atom, exponent) for atom, exponent in value.scalars if exponent > 0]
    below = [_scalar(atom, -exponent) for atom, exponent in value.scalars if exponent < 0]
    is_alone = len(value.factors) == 1 and not value.scalars and number == Literal(1)
    above += [_alone(factor).doc if is_alone else factor.doc for factor in value.factors]
    if number == Literal(0):
        above = []
    if number != Literal(1) or not above:
        above = [number, *above]
    top = above[0] if len(above) == 1 else MatrixProduct(tuple(above))
    if not below:
        return negative, top
    return negative, Division(top, below[0] if len(below) == 1 else MatrixProduct(tuple(below)))


def _alone(factor: Factor) -> Factor:
    """A factor that stands alone: there the transpose of a sum takes parentheses, which a sum of transposes spares."""
    is_sum = factor.transposed and isinstance(factor.atom.doc, Signed)
    return factor.turned if is_sum and factor.turned.marks <= factor.marks + 2 else factor


def _scalar(atom: Atom, exponent: int) -> Doc:
    return atom.doc if exponent == 1 else Superscript(atom.doc, Literal(exponent))


def _unsigned(number: Number) -> tuple[bool, Literal]:
    leading = number.real or number.imag
    opposite = _times(MINUS_ONE, number) if leading < 0 else number
    return leading < 0, Literal(opposite.real, opposite.imag)
