"""Definitions that are sums, written out in sums with whose terms theirs cancel, and numbers times sums with theirs.

    let t = 2 + x² in (2 x² − t) / t²     →     let t = 2 + x² in (x² − 2) / t²
    2 (x[d] − 1/4 Σ_j x[j])               →     2 x[d] − 1/2 Σ_j x[j]

The derivative of a fraction has its denominator above the line, by the name that this has.

Invariant: the value is unchanged, and no sum is longer.
"""

from __future__ import annotations

from fractions import Fraction

from combdiff.ir import (
    MINUS_ONE,
    ONE,
    Add,
    Apply,
    Lambda,
    Number,
    Rewriter,
    Term,
    Var,
    add,
    apply,
    conj,
    dtype_of,
    factors_of,
    items_of,
    joined,
    let,
    mul,
    number_and_rest,
    split,
    squared_modulus,
)
from combdiff.simplification.egraph.extraction import order_key
from combdiff.simplification.normal_form.lengths import length_alone


def with_sums_opened(body: Term) -> Term:
    """A let program with its definitions that are sums written out in other sums, where these are shorter then."""
    bindings, result = split(body)
    opening = _Opening({var: value for var, value in bindings if isinstance(_inner(value), Add)})
    changed = [(var, opening.run(value)) for var, value in bindings]
    return let(changed, joined(result, map(opening.run, items_of(result))))


def _as_product(term: Term) -> Term:
    """A term with z z* for Re(z z*), as terms of complex sums have it."""
    number, rest = number_and_rest(term)
    z = squared_modulus(rest)
    return mul(number, *sorted(factors_of(mul(z, conj(z))), key=order_key)) if z else term


def _with_fractions_multiplied(term: Term) -> Term:
    """A number times a sum with fractions as a sum, where this has no more numbers: 2 x − 1/2 y, but 2 (x − 3 y)."""
    number, rest = number_and_rest(term)
    if number in (ONE, MINUS_ONE) or not isinstance(rest, Add):
        return term
    fractions = any(isinstance(inner.real, Fraction) or isinstance(inner.imag, Fraction) for inner in _numbers(rest))
    found = add(*(mul(number, each) for each in rest.terms))
    return found if fractions and len(_numbers(found)) <= 1 + len(_numbers(rest)) else term


def _numbers(sum_: Term) -> list[Number]:
    """The numbers that terms of a sum begin with."""
    numbers = (number_and_rest(term)[0] for term in (sum_.terms if isinstance(sum_, Add) else (sum_,)))
    return [number for number in numbers if number not in (ONE, MINUS_ONE)]


def _inner(value: Term) -> Term:
    return value.body if isinstance(value, Lambda) else value


class _Opening(Rewriter):
    def __init__(self, definitions: dict[Var, Term]) -> None:
        super().__init__()
        self.definitions = definitions

    def node(self, term: Term) -> Term:
        """The term with such sums in it opened."""
        new = _with_fractions_multiplied(self.inside(term))
        while isinstance(new, Add) and (found := self._opened(new)):
            new = found
        return new

    def _opened(self, sum_: Add) -> Term | None:
        """A sum with one definition in it written out, if that makes it shorter."""
        for part in sum_.terms:
            number, read = number_and_rest(part)
            whole = self._value(read)
            if isinstance(whole, Add):
                others = (each for each in sum_.terms if each is not part)
                written = map(_as_product, whole.terms) if dtype_of(sum_) is complex else whole.terms
                found = add(*others, *(mul(number, each) for each in written))
                if length_alone(found) < length_alone(sum_):
                    return found
        return None

    def _value(self, read: Term) -> Term | None:
        """What a definition is at the places at which it is read."""
        var, at = (read.function, read.arguments) if isinstance(read, Apply) else (read, ())
        return apply(self.definitions[var], at) if isinstance(var, Var) and var in self.definitions else None
