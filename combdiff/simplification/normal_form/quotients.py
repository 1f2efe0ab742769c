"""Shares of a sum: a factor that is an addend of what divides it stands together with the quotient.

    exp(x[a])·exp(x[d]) / S²,  S = Σ_i exp(x[i])      before: two factors and a number, each of which may overflow
    (exp(x[a]) / S)·(exp(x[d]) / S)                   after: two shares, which are at most 1

Invariant: the product is unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from combdiff.ir import (
    Add,
    Apply,
    Sum,
    Term,
    Var,
    add,
    apply,
    factors_of,
    mul,
    raised,
    substitute,
    whole_power,
)
from combdiff.simplification.egraph.extraction import index_variables
from combdiff.simplification.normal_form.expansion import Addend


def with_shares(factors: Iterable[Term], definitions: Mapping[Var, Term]) -> Addend:
    """The factors of a product, those that are addends of a divisor multiplied with it; `definitions` are bindings."""
    found = [part for factor in factors for part in with_divisors_in_front(factor)]
    for divisor in [factor for factor in found if whole_power(factor)[1] < 0]:
        base, exponent = whole_power(divisor)
        left = -exponent
        summed = _sum(base, definitions)
        if summed is None:
            continue
        for factor in list(found):
            part, count = whole_power(factor)
            if factor is not divisor and 0 < count <= left and _is_addend(part, summed):
                found[found.index(factor)] = mul(factor, raised(base, -count))
                left -= count
        if left < -exponent:
            found.remove(divisor)
            found += [raised(base, -left)] if left else []
    return tuple(found)


def with_divisors_in_front(factor: Term) -> Addend:
    """A sum with the powers that divide each of its addends in front of it: a/S² − b/S is S⁻¹·(a/S − b)."""
    if not isinstance(factor, Add):
        return (factor,)
    tables = [exponents(part) for part in factor.terms]
    common = {base: max(table.get(base, 0) for table in tables) for base in tables[0]}
    common = {base: n for base, n in common.items() if n < 0}
    if not common:
        return (factor,)
    terms = (mul(*(raised(base, n - common.get(base, 0)) for base, n in table.items())) for table in tables)
    return (*(raised(base, n) for base, n in common.items()), add(*terms))


def exponents(product: Term) -> dict[Term, int]:
    """The factors of a product by their bases, with how often each occurs."""
    found: dict[Term, int] = {}
    for base, n in map(whole_power, factors_of(product)):
        found[base] = found.get(base, 0) + n
    return found


def _sum(base: Term, definitions: Mapping[Var, Term]) -> Sum | None:
    """The Σ over one index that a divisor is, perhaps by name."""
    tensor, at = (base.function, base.arguments) if isinstance(base, Apply) else (base, ())
    value = apply(definitions[tensor], at) if isinstance(tensor, Var) and tensor in definitions else base
    return value if isinstance(value, Sum) and len(value.indices) == 1 else None


def _is_addend(part: Term, summed: Sum) -> bool:
    """Whether a factor is what the Σ runs over, at some index."""
    (index,) = summed.indices
    return any(substitute(summed.body, {index: i}) is part for i in index_variables(part) if i.type == index.type)
