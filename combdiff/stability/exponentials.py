"""Sums of exponentials: which terms are such sums, and which are positive by their form.

    1 + 2 Σ_i exp(x[i])      has the parts   1·exp(0)   and, summed over i,   2·exp(x[i])

Logarithms of them can be evaluated without overflow (see `lowering.exponentials`), and quotients with them be written
as exponentials of differences (see `stabilisation`).

Invariant: a sum of exponentials is the sum of its parts, and positive.
"""

from __future__ import annotations

from dataclasses import dataclass

from combdiff.ir import ONE, ZERO, Add, Mul, Number, Primitive, Sum, Term, Var, add, dtype_of, mul, remembered

POSITIVE = ("exp", "cosh")  # for every real argument
EXPONENTIAL = ("exp", "cosh", "sinh")
ELEMENTARY = (*EXPONENTIAL, "log", "power", "sqrt")  # what the laws of exponentials are about


@dataclass(frozen=True)
class WeightedExponential:
    """Σ over the indices of weight·exp(exponent), the weight positive."""

    indices: tuple[Var, ...]
    weight: Number
    exponent: Term


@remembered
def parts(term: Term) -> tuple[WeightedExponential, ...]:
    """The parts of a sum of exponentials of real numbers; none for other terms, or without an exponential."""
    found = _parts(term)
    return found if any(part.exponent is not ZERO for part in found) else ()


def _parts(term: Term) -> tuple[WeightedExponential, ...]:
    match term:
        case Number():
            return (WeightedExponential((), term, ZERO),) if is_positive(term) else ()
        case Primitive(name="exp"):
            return (WeightedExponential((), ONE, term.arguments[0]),) if dtype_of(term) is not complex else ()
        case Add():
            inside = [_parts(part) for part in term.terms]
            return tuple(part for found in inside for part in found) if all(inside) else ()
        case Sum():
            return tuple(
                WeightedExponential((*term.indices, *p.indices), p.weight, p.exponent) for p in _parts(term.body)
            )
        case Mul():
            return _product(term)
    return ()


def _product(term: Mul) -> tuple[WeightedExponential, ...]:
    """A product of positive numbers and exponentials."""
    factors = [_parts(factor) for factor in term.factors]
    if any(len(found) != 1 or found[0].indices for found in factors):
        return ()
    weight = mul(*(found[0].weight for found in factors))
    assert isinstance(weight, Number)
    return (WeightedExponential((), weight, add(*(found[0].exponent for found in factors))),)


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
        case Add() | Mul() | Sum():
            return all(map(is_nonnegative, term.children))
        case Primitive(name="power", arguments=(base, Number(real=int() as exponent, imag=0))) if exponent % 2 == 0:
            return dtype_of(base) is not complex
        case Primitive(name="abs" | "relu"):
            return dtype_of(term) is not complex
    return is_positive(term)


@remembered
def holds_exp(term: Term) -> bool:
    """Whether an exponential of real numbers occurs in a term, outside of the logarithms of sums of them."""
    if isinstance(term, Primitive) and term.name in EXPONENTIAL and dtype_of(term) is not complex:
        return True
    if is_logarithm(term):
        return any(holds_exp(part.exponent) for part in parts(term.children[0]))
    return any(map(holds_exp, term.children))


def is_logarithm(term: Term) -> bool:
    """Whether a term is the logarithm of a sum of exponentials, which is evaluated as a whole."""
    return isinstance(term, Primitive) and term.name == "log" and bool(parts(term.arguments[0]))
