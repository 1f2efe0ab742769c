"""Products taken apart, into a number, factors above the bar and factors below it; sums, into their terms.

    Σ_i 2·x[i]·power(y, -1)·x[i]   =   2 · (Σ_i (x[i], 2) over (y, 1))

Invariant: coefficient · above / below is the term; equal factors are one, with the sum of their exponents.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from combdiff.ir import (
    MINUS_ONE,
    ONE,
    Add,
    Apply,
    Function,
    Mul,
    Number,
    Primitive,
    Pullback,
    Sum,
    Term,
    Var,
    mul,
    negate,
    number_and_rest,
    squared_modulus,
    tidy,
    total,
    with_moduli,
)
from combdiff.records import dataclass

Factors = dict[Term, int]
"""Bases with their exponents, in order of first occurrence."""


@dataclass(frozen=True)
class Monomial:
    """`coefficient · above / below`."""

    coefficient: Number
    above: Factors
    below: Factors

    def with_moduli(self) -> Monomial:
        """The same, with |z|² for z* z."""
        return Monomial(self.coefficient, with_moduli(self.above), with_moduli(self.below))


def monomial(term: Term) -> Monomial:
    """Any scalar term as a product."""
    coefficient, parts = _parts(term)
    above: Factors = {}
    below: Factors = {}
    for part in parts:
        base, exponent, under = _exponent(part)
        side = below if under else above
        side[base] = side.get(base, 0) + exponent
    return Monomial(coefficient, above, below)


def terms_of_sum(term: Term) -> list[Term]:
    """The terms of a sum, with those of the sums in it and of their negatives: a, −b and c of a − (b − c)."""
    found: list[Term] = []
    todo = [(False, term)]
    while todo:
        negative, part = todo.pop()
        number, rest = number_and_rest(part)
        if isinstance(rest, Add) and (number is ONE or number is MINUS_ONE):
            todo += ((negative != (number is MINUS_ONE), inner) for inner in reversed(rest.terms))
        else:
            found.append(negate(part) if negative else part)
    return found


def _parts(term: Term) -> tuple[Number, list[Term]]:
    """The number and the other factors of a product, in order; products inside and powers −1 of them opened."""
    if isinstance(term, Number):
        return term, []
    if isinstance(term, Mul):
        return _all_parts(term.factors)
    if isinstance(term, Sum):
        return _sum_parts(term)
    if _is_inverse(term) and isinstance(term, Primitive):
        return _inverse_parts(term)
    cotangent, bare = factor_out(term)
    if cotangent is not ONE:
        return _all_parts((cotangent, bare))
    return ONE, [term]


def _all_parts(factors: Iterable[Term]) -> tuple[Number, list[Term]]:
    coefficient, found = ONE, []
    for factor in factors:
        number, parts = _parts(factor)
        product = mul(coefficient, number)
        assert isinstance(product, Number)
        coefficient = product
        found += parts
    return coefficient, found


def _sum_parts(term: Sum) -> tuple[Number, list[Term]]:
    """The number of a sum's body moved before the sum, unless that would round; a sum of a sum becomes one."""
    number, parts = _parts(term.body)
    if not number.exact:
        return ONE, [term]
    if len(parts) == 1 and isinstance(inner := parts[0], Sum):
        return number, [total(term.indices, inner)]
    body = Mul(tuple(parts)) if len(parts) > 1 else parts[0] if parts else ONE
    return number, [Sum(term.indices, body)]


def _is_inverse(term: Term) -> bool:
    return isinstance(term, Primitive) and term.name == "power" and term.arguments[1] is MINUS_ONE


def _inverse_parts(term: Primitive) -> tuple[Number, list[Term]]:
    number, parts = _parts(term.arguments[0])
    if not number.exact or number.imag or not number.real:
        return ONE, [term]
    inverted: list[Term] = [Primitive("power", (part, MINUS_ONE)) for part in parts]
    return Number(tidy(1 / Fraction(number.real))), inverted


def _exponent(term: Term) -> tuple[Term, int, bool]:
    """A factor as a base, a positive whole exponent, and whether it stands below the bar; z* z as |z|²."""
    base, exponent, under = _power(term)
    argument = squared_modulus(Primitive("real", (base,)) if isinstance(base, Mul) else base)
    return (base, exponent, under) if argument is None else (Primitive("abs", (argument,)), 2 * exponent, under)


def _power(term: Term) -> tuple[Term, int, bool]:
    if isinstance(term, Primitive) and term.name == "power" and isinstance(term.arguments[1], Number):
        base, power = term.arguments[0], term.arguments[1]
        if isinstance(power.real, int) and not power.imag and power.real:
            return _below(base) if power.real == -1 else (base, abs(power.real), power.real < 0)
        if power.real < 0 and not power.imag:
            return Primitive("power", (base, Number(-power.real))), 1, True
    return term, 1, False


def _below(base: Term) -> tuple[Term, int, bool]:
    """A denominator; `1 / x²` where the base is itself a power."""
    inner, exponent, under = _power(base)
    return (base, 1, True) if under else (inner, exponent, True)


def factor_out(term: Term) -> tuple[Term, Term]:
    """The cotangent of a real scalar map's pullback, and the gradient that it multiplies; 1 and term for others."""
    if isinstance(term, Apply):
        cotangent, bare = factor_out(term.function)
        return (cotangent, Apply(bare, term.arguments)) if cotangent is not ONE else (ONE, term)
    if isinstance(term, Pullback) and term.cotangent is not ONE and _is_real_scalar(term.function):
        return term.cotangent, Pullback(term.function, term.position, term.arguments, ONE)
    return ONE, term


def _is_real_scalar(function: Term) -> bool:
    """Whether a map is known to have one real number as its result; then its pullback is a multiple of one."""
    if not isinstance(function, Var) or not isinstance(function.type, Function):
        return False
    result = function.type.result
    return not function.type.linear and not result.order and result.dtype is not complex
