"""Index expressions of a print, while the domains of their indices may not be known yet.

    2 i + n - 1   →   ({i: 2, "n": 1}, -1)

Invariant: a form is made of indices, sizes and whole numbers or fractions; what it is at most is a size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

from combdiff.ir import (
    ONE,
    Coordinate,
    Cyclic,
    Domain,
    Range,
    Real,
    Size,
    Space,
    Symmetric,
    Term,
    Var,
    Whole,
    affine,
    affine_parts,
    delta,
    indicator,
    names_in,
    size_of_parts,
    size_parts,
    size_sum,
    unequal,
)
from combdiff.ir import Function as Map
from combdiff.printing import Doc, Juxtaposition, MatrixProduct, Name, Signed
from combdiff.text.denotations import BoundIndex

Linear = tuple[dict[BoundIndex | str, int | Fraction], int | Fraction]  # indices and sizes with coefficients, an offset
Sides = Sequence[tuple[Linear, int]]  # of a bound that is the greatest, or the least, of several, with divisors


def variable_of(index: BoundIndex) -> Var:
    """The variable that stands for an index in the terms made now."""
    assert index.var is not None
    return index.var


def coordinate_of(var: Var) -> Term:
    """The number that an index is, where it stands among numbers."""
    return Coordinate(var, float if isinstance(var.type, Real) else int)


def term_of(form: Linear) -> Term:
    """The index expression of a form."""
    coefficients, offset = form
    return affine(
        ((Var(s, Whole()) if isinstance(s, str) else variable_of(s), c) for s, c in coefficients.items()), offset
    )


def index_alone(form: Linear | None) -> BoundIndex | None:
    """The index that a form is, if it is one by itself."""
    if form is None or form[1] or list(form[0].values()) != [1]:
        return None
    (symbol,) = form[0]
    return symbol if isinstance(symbol, BoundIndex) else None


def at_bounds(sides: Sides, outer: Mapping[BoundIndex, tuple[Sides, Sides]], way: int) -> Iterator[Linear]:
    """Bounds of an index, and what they are at the bounds of outer ones: above these for `way` 1, below for −1."""
    for (coefficients, offset), _ in sides:
        yield coefficients, offset
        for index, factor in coefficients.items():
            rest = {symbol: c for symbol, c in coefficients.items() if symbol is not index}
            limits = outer.get(index, ((), ()))[factor * way > 0] if isinstance(index, BoundIndex) else ()
            yield from (combined([(1, (rest, offset)), (factor, form)]) for form, divisor in limits if divisor == 1)


def between(lower: Linear, upper: Linear) -> Domain | None:
    """A domain that holds all integers between two forms; None where the range of an index in them is not known."""
    highest, lowest = greatest(upper), greatest(combined([(-1, lower)]))
    if highest is None or lowest is None:
        return None
    if lowest == 0:
        return Range(size_sum((highest, 1), (1, 1)))
    bounds = {lowest, highest} - {0}
    if all(isinstance(bound, int) for bound in bounds):
        return Symmetric(max(bounds))
    (bound,) = bounds if len(bounds) == 1 else ("",)  # the bound of a Symmetric domain has a name
    return Symmetric(bound) if isinstance(bound, str) and bound.isidentifier() else None


def greatest(form: Linear) -> Size | None:
    """What a form is at most, 0 where that is less; sizes that are subtracted are left out."""
    coefficients, offset = form
    addends: list[tuple[Size, int]] = []
    for symbol, factor in coefficients.items():
        domain = symbol.cell.domain if isinstance(symbol, BoundIndex) else None
        match domain:
            case _ if not isinstance(factor, int):
                return None
            case None if isinstance(symbol, BoundIndex):
                return None
            case Symmetric():
                addends.append((domain.bound, abs(factor)))
            case Range() | Cyclic() if factor > 0:
                addends += [(domain.size, factor), (-1, factor)]
            case None if isinstance(symbol, str):
                addends.append((symbol, factor))
    if not isinstance(offset, int):
        return None
    names, constant = size_parts(size_sum((offset, 1), *addends))
    return size_of_parts({name: count for name, count in names.items() if count > 0}, max(constant, 0))


def combined(parts: Iterable[tuple[int | Fraction, Linear]]) -> Linear:
    """The sum of forms times numbers."""
    coefficients: dict[BoundIndex | str, int | Fraction] = {}
    offset: int | Fraction = 0
    for factor, (inner, constant) in parts:
        offset += factor * constant
        for symbol, coefficient in inner.items():
            coefficients[symbol] = coefficients.get(symbol, 0) + factor * coefficient
    return {s: c for s, c in coefficients.items() if c}, offset


def limit(form: Term) -> Term:
    """The condition that a form is not negative; 1 where that is told by the ranges: `i` of `Σ_{i=0}^{k}`."""
    parts, offset = affine_parts(form)
    told = offset >= 0 and all(factor > 0 and isinstance(var.type, Range) for var, factor in parts)
    return ONE if told else indicator(form)


def compared_indices(one: Linear, sign: str, two: Linear) -> Term:
    """What is 1 where two index expressions compare so, 0 elsewhere."""
    left, right = term_of(one), term_of(two)
    if sign == "=":
        return delta(left, right)
    if sign == "≠":
        return unequal(affine([(left, 1), (right, -1)]))
    if sign in ("≤", "<"):
        left, right = right, left
    return indicator(affine([(left, 1), (right, -1)], -1 if sign in ("<", ">") else 0))


def names_of(doc: Doc) -> Iterable[str]:
    """The names in a sum of names and numbers."""
    match doc:
        case Name():
            yield doc.name
        case Signed():
            yield from (name for _, part in doc.terms for name in names_of(part))
        case Juxtaposition(parts) | MatrixProduct(parts):
            yield from (name for part in parts for name in names_of(part))


def sizes_of(space: Space | Map) -> Iterable[str]:
    """The names of the sizes in the axes of a Space, or in those of a map."""
    spaces = (*space.arguments, space.result) if isinstance(space, Map) else (space,)
    for each in spaces:
        for axis in each.axes:
            size = axis.bound if isinstance(axis, Symmetric) else getattr(axis, "size", 0)
            yield from sorted(names_in(size))
