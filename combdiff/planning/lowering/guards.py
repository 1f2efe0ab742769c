"""Conditions that arrays need not be told: what reads say already, and values computed where they are needed.

    Σ_k [0 ≤ d − k < n]·v[d − k]·w[k]     v reads 0 outside of its axis: the conditions hold by themselves
    [d ≡ 0 (mod 2)]·t[d/2]·x[d + 1]       computed as T[i] = t[i]·x[2i + 1] and read at i = d/2, with zeros between

Invariant: leaving out the conditions that `needless` finds changes no product, as one of its factors is 0 there.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import lcm

from combdiff.ir import (
    Affine,
    Apply,
    Delta,
    Domain,
    IndexGuard,
    Indicator,
    Names,
    Range,
    Space,
    Sum,
    Symmetric,
    Term,
    Unequal,
    Var,
    affine,
    affine_parts,
    factors_of,
    mul,
    substitute,
    total,
    type_of,
)
from combdiff.polyhedra import implied, in_domain, linear, plain_congruence, premises_of, tighten
from combdiff.records import dataclass
from combdiff.simplification import plain_conditions

Read = tuple[Term, Domain]  # an index expression, and the axis outside of which it reads 0


def reads(term: Term, varying: Sequence[bool] | None = None) -> tuple[Read, ...]:
    """The index expressions with which an access reads axes that end, of those axes along which it is `varying`."""
    if not isinstance(term, Apply) or not isinstance(space := type_of(term.function), Space):
        return ()
    found = zip(term.arguments, space.axes, varying or [True] * space.order, strict=True)
    return tuple((index, axis) for index, axis, kept in found if kept and isinstance(axis, Range | Symmetric))


def needless(condition: IndexGuard, known: Sequence[Read]) -> bool:
    """Whether what is read is 0 wherever the condition does not hold."""
    if isinstance(condition, Delta) or (isinstance(condition, Unequal) and condition.cycle):
        return False
    if isinstance(condition, Indicator) and condition.modulus:
        return plain_congruence(condition) in [_whole(index) for index, _ in known]
    variables = condition.free.union(*(index.free for index, _ in known))
    forms = [tighten(form) for index, axis in known for form in in_domain(linear(index), axis)]
    form = linear(condition.form)
    enough = [form - 1, form.scale(-1) - 1] if isinstance(condition, Unequal) else [form]
    return any(implied(tighten(one), [*forms, *map(tighten, premises_of(variables))]) for one in enough)


def _whole(index: Term) -> Term | None:
    """The condition that an index expression is a whole number."""
    divisor = _divisor(index)
    return plain_congruence(Indicator(affine([(index, divisor)]), divisor)) if divisor > 1 else None


def _divisor(index: Term) -> int:
    parts, offset = affine_parts(index)
    return lcm(*(Fraction(c).denominator for _, c in parts), Fraction(offset).denominator)


@dataclass(frozen=True)
class Placement:
    """A term over a new index, and where the old index finds its elements: `position` in the old indices."""

    term: Term
    index: Var
    position: Term


def placement(term: Term, names: Names) -> Placement | None:
    """A product that is 0 but for every n-th value of an index, over an index that counts those; None for others."""
    indices, body = (term.indices, term.body) if isinstance(term, Sum) else ((), term)
    factors = list(factors_of(body))
    for index, axis in (read for factor in factors for read in reads(factor)):
        if not isinstance(index, Affine) or _divisor(index) == 1 or not index.free.isdisjoint(indices):
            continue
        counted = [(v, c) for v, c in index.coefficients if abs(Fraction(c)) == Fraction(1, _divisor(index))]
        conditions = plain_conditions([f for f in factors if isinstance(f, Indicator)])
        if not counted or _whole(index) not in conditions:
            continue
        var, coefficient = counted[0]
        new = names.fresh(Var("i", axis))
        rest = affine([(index, 1), (var, -coefficient)])
        value = affine([(new, 1 / Fraction(coefficient)), (rest, -1 / Fraction(coefficient))])
        moved = plain_conditions(list(_factors(mul(*(substitute(f, {var: value}) for f in factors)))))
        return Placement(total(indices, mul(*moved)), new, index)
    return None


def _factors(term: Term) -> tuple[Term, ...]:
    return factors_of(term)
