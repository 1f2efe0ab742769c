"""Which exponentials may overflow: those whose exponent is not bounded by its form.

    exp(x[i] − log Σ_j exp(x[j]))     cannot: exp(x[i]) is one of the terms of the sum
    exp(−x²)                          cannot: its exponent is never positive
    exp(x[i]),  1 / Σ_j exp(x[j])     may

Invariant: an exponential that is said not to overflow has an exponent below a small constant, whatever the tensors are.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from itertools import product

from combdiff.ir import (
    Add,
    Mul,
    Names,
    Number,
    Primitive,
    Term,
    Var,
    canonical_names,
    dtype_of,
    is_domain,
    remembered,
    substitute,
    subterms,
)
from combdiff.simplification import canonical, normalise
from combdiff.stability.exponentials import ELEMENTARY, holds_exp, is_logarithm, is_nonnegative, is_positive, parts

LARGEST = 20  # of an exponent that counts as bounded
LEAST_WEIGHT = 1e-6  # of a term of a sum of exponentials that bounds another

Exponent = dict[Term, Fraction]
"""A sum as multiples of canonical terms."""


def risk(term: Term) -> int:
    """How many different exponentials in a number or tensor may overflow."""
    return len(risky(term))


@remembered
def risky(term: Term) -> frozenset[Term]:
    """The exponentials in a term that may overflow; those of a sum inside a logarithm cannot."""
    inside: Iterable[Term] = term.children
    if isinstance(term, Primitive) and term.name == "log" and (found := parts(term.arguments[0])):
        inside = (part.exponent for part in found)
    below = frozenset[Term]().union(*map(risky, inside))
    return below | {term} if _is_risky(term) else below


def _is_risky(term: Term) -> bool:
    """Whether a term is an exponential without bound, or a reciprocal or root of a sum of exponentials."""
    if not isinstance(term, Primitive) or term.name not in ELEMENTARY or dtype_of(term) is complex:
        return False
    if term.name in ("power", "sqrt"):
        return is_divided(term) and not _is_balanced(term.arguments[0])
    return term.name in ("cosh", "sinh") or (term.name == "exp" and not is_bounded(term.arguments[0]))


def is_divided(term: Primitive) -> bool:
    """Whether a power is no whole positive one, of what holds exponentials."""
    exponent = term.arguments[1] if term.name == "power" else None
    whole = isinstance(exponent, Number) and isinstance(exponent.real, int) and exponent.real > 0
    return not whole and holds_exp(term.arguments[0]) and dtype_of(term) is not complex


def _is_balanced(base: Term) -> bool:
    """Whether terms of both signs are all divided by what bounds them."""
    exponents = [node.arguments[0] for node in _exponentials(base)] if isinstance(base, Add) else []
    divided = all(any(map(is_logarithm, subterms(e))) and is_bounded(e) for e in exponents)
    return bool(exponents) and divided and not is_positive(base)


def _exponentials(term: Term) -> list[Primitive]:
    return [node for node in subterms(term) if isinstance(node, Primitive) and node.name == "exp"]


def is_bounded(exponent: Term) -> bool:
    """Whether a sum of terms and −log(…) is at most a small constant by its form.

    Each logarithm is one of a sum that has an exponential with what is beside it; what is left is never positive.
    """
    terms, constant = _multiples(exponent)
    return constant <= LARGEST and _cancels(terms, frozenset(v for v in exponent.free if is_domain(v.type)))


def _cancels(terms: Exponent, indices: frozenset[Var]) -> bool:
    if all(factor < 0 and is_nonnegative(term) for term, factor in terms.items()):
        return True
    for logarithm, factor in terms.items():
        if factor < 0 and isinstance(logarithm, Primitive) and logarithm.name == "log":
            share = min(Fraction(1), -factor)
            rest = _plus(terms, {logarithm: share})
            for summand in _summands(logarithm.children[0], indices):
                left = _less(rest, {term: share * part for term, part in summand.items()})
                if left is not None and _cancels(left, indices):
                    return True
            for other in [t for t, c in rest.items() if c >= share and is_logarithm(t) and t is not logarithm]:
                if _includes(logarithm, other) and _cancels(_plus(rest, {other: -share}), indices):
                    return True
    return False


@lru_cache(maxsize=8192)
def _includes(logarithm: Term, other: Term) -> bool:
    """Whether every exponential of one sum is in another, too."""
    found, wanted = (parts(canonical_names(one.children[0])) for one in (logarithm, other))
    terms = {(part.indices, part.exponent) for part in found if part.weight.real >= LEAST_WEIGHT}
    return all((part.indices, part.exponent) in terms and part.weight.real <= 1 / LEAST_WEIGHT for part in wanted)


@lru_cache(maxsize=8192)
def _summands(sum_: Term, indices: frozenset[Var]) -> tuple[Exponent, ...]:
    """The exponents in a sum of exponentials that are not weighted by next to nothing, at the indices given.

    (The dicts are not to be changed.)
    """
    found: list[Exponent] = []
    for part in parts(sum_):
        choices = [[v for v in sorted(indices, key=lambda v: v.name) if v.type == index.type] for index in part.indices]
        for values in product(*choices) if part.weight.real >= LEAST_WEIGHT else ():
            terms, constant = _multiples(substitute(part.exponent, dict(zip(part.indices, values, strict=True))))
            if constant >= -LARGEST:
                found.append(terms)
    return tuple(found)


def _less(terms: Exponent, other: Exponent) -> Exponent | None:
    """terms − other, where each multiple of other is part of that in terms."""
    for term, factor in other.items():
        if terms.get(term, Fraction(0)) * factor < factor * factor:
            return None
    return _plus(terms, {term: -factor for term, factor in other.items()})


def _plus(one: Exponent, other: Exponent) -> Exponent:
    total = {term: one.get(term, Fraction(0)) + other.get(term, Fraction(0)) for term in {**one, **other}}
    return {term: factor for term, factor in total.items() if factor}


@remembered
def _multiples(term: Term) -> tuple[Exponent, float | Fraction]:
    """A term as multiples of canonical terms, and a number. (The dict is not to be changed.)"""
    if isinstance(term, Add):
        found: Exponent = {}
        constant: float | Fraction = Fraction(0)
        for part in term.terms:
            more, number = _multiples(part)
            found, constant = _plus(found, more), constant + number
        return found, constant
    if isinstance(term, Number):
        return ({}, term.real) if not term.imag else ({term: Fraction(1)}, Fraction(0))
    if isinstance(term, Mul) and isinstance(first := term.factors[0], Number) and first.exact and not first.imag:
        rest = Mul(term.factors[1:]) if len(term.factors) > 2 else term.factors[1]
        more, number = _multiples(rest)
        factor = Fraction(first.real)
        return {t: f * factor for t, f in more.items()}, number * factor
    if isinstance(term, Primitive) and term.name == "log" and parts(term.arguments[0]):
        return {canonical_names(term): Fraction(1)}, Fraction(0)  # a canonical form may hide the signs of the sum
    named = canonical(normalise(term, Names(term)))
    return (
        _multiples(named)
        if isinstance(named, Add | Number) or _has_factor(named)
        else ({named: Fraction(1)}, Fraction(0))
    )


def _has_factor(term: Term) -> bool:
    return isinstance(term, Mul) and isinstance(first := term.factors[0], Number) and first.exact and not first.imag
