"""Which numbers are positive by their form, whatever the tensors are.

    1 + 2 Σ_i exp(x[i])      is positive        x² + |y|      is not negative

Invariant: a term that is said to be positive is real, and positive wherever it has a value.
"""

from __future__ import annotations

from collections import Counter

from combdiff.ir import Add, Mul, Number, Primitive, Sum, Term, dtype_of, remembered

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
            alone = [factor for factor, count in Counter(term.factors).items() if count % 2]
            return dtype_of(term) is not complex and all(map(is_nonnegative, alone))
        case Add() | Sum():
            return all(map(is_nonnegative, term.children))
        case Primitive(name="power", arguments=(base, Number(real=int() as exponent, imag=0))) if exponent % 2 == 0:
            return dtype_of(base) is not complex
        case Primitive(name="abs" | "relu"):
            return dtype_of(term) is not complex
    return is_positive(term)
