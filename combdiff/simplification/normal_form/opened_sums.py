"""Definitions that are sums, written out in sums with whose terms theirs cancel.

    let t = 2 + x² in (2 x² − t) / t²     →     let t = 2 + x² in (x² − 2) / t²

The derivative of a fraction has its denominator above the line, by the name that this has.

Invariant: the value is unchanged, and no sum is longer.
"""

from __future__ import annotations

from combdiff.ir import (
    Add,
    Apply,
    Lambda,
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
    if not opening.definitions:
        return body
    changed = [(var, opening.run(value)) for var, value in bindings]
    return let(changed, joined(result, map(opening.run, items_of(result))))


def _as_product(term: Term) -> Term:
    """A term with z z* for Re(z z*), as terms of complex sums have it."""
    number, rest = number_and_rest(term)
    z = squared_modulus(rest)
    return mul(number, *sorted(factors_of(mul(z, conj(z))), key=order_key)) if z else term


def _inner(value: Term) -> Term:
    return value.body if isinstance(value, Lambda) else value


class _Opening(Rewriter):
    def __init__(self, definitions: dict[Var, Term]) -> None:
        super().__init__()
        self.definitions = definitions

    def node(self, term: Term) -> Term:
        """The term with such sums in it opened."""
        new = self.inside(term) if self.definitions.keys() & term.free else term
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
