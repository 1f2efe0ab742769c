"""Which numbers are positive by their form, whatever the tensors are.

    1 + 2 Σ_i exp(x[i])      is positive        x² + |y|, z̄ z      are not negative

Invariant: what is said to be positive is a real number, perhaps of complex type, and positive wherever it has a value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from combdiff.ir.domains import Whole
from combdiff.ir.indices import Coordinate
from combdiff.ir.terms import Add, Mul, Number, Primitive, Sum, Term, Var, conj, remembered
from combdiff.ir.types import dtype_of

POSITIVE = ("exp", "cosh")  # for every real argument


@remembered
def is_positive(term: Term) -> bool:
    """Whether a term is real and positive by its form, where it has a value."""
    match term:
        case Number():
            return not term.imag and term.real > 0
        case Add() | Mul() | Sum():
            return all(map(is_positive, term.children))
        case Primitive(name="power"):
            exponent = term.arguments[1]
            return is_positive(term.arguments[0]) and isinstance(exponent, Number) and not exponent.imag
        case Primitive(name="sqrt"):
            return is_positive(term.arguments[0])
        case Primitive() if term.name in POSITIVE:
            return dtype_of(term) is not complex
    return False


def is_nonnegative(term: Term) -> bool:
    """Whether a term is real and not negative by its form, where it has a value."""
    match term:
        case Number():
            return not term.imag and term.real >= 0
        case Mul():
            return all(map(is_nonnegative, _unpaired(term)))
        case Add() | Sum():
            return all(map(is_nonnegative, term.children))
        case Coordinate(form=Var(type=Whole())):
            return True  # a size
        case Primitive(name="power", arguments=(base, Number(imag=0) as exponent)):
            even = isinstance(exponent.real, int) and exponent.real % 2 == 0
            return (even and dtype_of(base) is not complex) or is_nonnegative(base)
        case Primitive(name="abs" | "relu"):
            return dtype_of(term) is not complex
    return is_positive(term)


def _unpaired(product: Mul) -> Iterator[Term]:
    """The factors of a product that stand beside no equal real one and no conjugate of theirs: x of x·x·x."""
    counts = Counter(product.factors)
    for factor, count in counts.items():
        if dtype_of(factor) is complex:
            yield from [factor] * (count - counts[conj(factor)])
        elif count % 2:
            yield factor
