"""The δ's and conditions of a product: of which kind one is, and the plainest form of all of them together.

    [i ≥ d] [i ≤ d]                becomes   δ(i, d)
    [d ≥ 2] [d ≥ 5] [d ≥ 0]        becomes   [d ≥ 5]
    [d ≢ 0] [d ≥ 0]                becomes   [d ≥ 1]
    [x ≥ y] [x < y]                becomes   0
    δ(d + 1, 0) of d = 0, 1, …     becomes   0

Invariant: the value of the product is unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from combdiff.ir import (
    ONE,
    ZERO,
    Delta,
    Indicator,
    Range,
    Real,
    Relation,
    Symmetric,
    Term,
    Unequal,
    Var,
    Whole,
    affine,
    affine_parts,
    exchanged,
    indicator,
    is_index,
    opposite,
    subterms,
)
from combdiff.polyhedra import (
    Lattice,
    Linear,
    contradictory,
    enclosed,
    implied,
    is_empty,
    lattice_of,
    linear,
    loosest,
    plain_congruence,
    premises_of,
    prune,
    symbol,
    term_of,
    tightest,
)


def compares_indices(factor: Delta) -> bool:
    """Whether both sides of a δ are index expressions, of an axis that is known."""
    return is_index(factor.left) and is_index(factor.right) and bool(factor.domain)


def compares_whole_numbers(factor: Delta) -> bool:
    """Whether a δ compares index expressions as numbers, not modulo a size and not on the real line."""
    return compares_indices(factor) and isinstance(factor.domain, Range | Symmetric)


def compares_bare_indices(factor: Delta) -> bool:
    """Whether a δ compares two bare indices of its domain; those are left to the laws."""
    left, right = factor.left, factor.right
    return isinstance(left, Var) and isinstance(right, Var) and left.type == right.type == factor.domain


def is_counted(form: Term) -> bool:
    """Whether an index expression is one of indices that count, and of sizes."""
    kinds = [var.type for var, _ in affine_parts(form)[0] if not isinstance(var.type, Whole)]
    return bool(kinds) and all(isinstance(kind, Range | Symmetric) for kind in kinds)


def vanishing(form: Term) -> Delta:
    """The δ that says that an index expression is 0."""
    parts, offset = affine_parts(form)
    left = affine([part for part in parts if part[1] > 0], max(offset, 0))
    domain = next(v.type for v, _ in parts if not isinstance(v.type, Whole))
    return Delta(left, affine([(left, 1), (form, -1)]), domain)  # type: ignore[arg-type]


def met(factors: Sequence[Term]) -> list[Term]:
    """The factors with δ(i, d) for [i ≥ d] [i ≤ d]."""
    # What is at one place is a part of an axis, as a range is.
    found = [e for e in enclosed(factors) if not e.room and len(e.form.free) > 1 and is_counted(e.form)]
    ends = {condition for each in found for condition in each.conditions}
    return [*(f for f in factors if f not in ends), *dict.fromkeys(vanishing(each.form) for each in found)]


def plain_conditions(factors: Sequence[Term]) -> Sequence[Term]:
    """The factors with the conditions among them in their plainest form, and those that others imply left out."""
    relations = [f for f in factors if isinstance(f, Relation)]
    if any(each.opposite in relations for each in relations):
        return [ZERO]
    conditions = [f for f in factors if isinstance(f, Indicator | Unequal) and not _on_the_real_line(f)]
    equal = [f for f in factors if isinstance(f, Delta) and compares_whole_numbers(f)]
    if not conditions and all(map(compares_bare_indices, equal)):
        return factors
    variables = {symbol(v): v for f in (*conditions, *equal) for v in f.free}
    indicators = [f for f in conditions if isinstance(f, Indicator)]
    congruences = [c for f in indicators if f.modulus if (c := plain_congruence(f)) is not ONE]
    lattice = lattice_of(congruences)
    bounds = sorted((tightest(linear(f.form), lattice) for f in indicators if not f.modulus), key=str)
    apart = {linear(f.form): f for f in conditions if isinstance(f, Unequal) and not f.cycle}
    premises = [*(tightest(form, lattice) for form in premises_of(variables.values())), *_equal_sides(equal)]
    if is_empty(lattice):
        return [ZERO]
    found = _pruned(_told_on(lattice, bounds, premises), tuple(apart), tuple(premises))
    if found is None:
        return [ZERO]
    around = [f for f in conditions if isinstance(f, Unequal) and f.cycle]
    chosen = [*(indicator(term_of(form, variables)) for form in found[0]), *(apart[form] for form in found[1])]
    return [f for f in factors if f not in conditions] + chosen + list(dict.fromkeys((*around, *congruences)))


def where_they_hold(factors: Sequence[Term]) -> Sequence[Term]:
    """The factors of a product with 1 for what conditions among them say, and 0 for what they rule out.

    [x > y] ([x > y] u + [x ≤ y] v) is [x > y] u.
    """
    conditions = dict.fromkeys(f for f in factors if isinstance(f, Relation | Indicator | Unequal))
    known: dict[Term, Term] = {other: ZERO for f in conditions if (other := opposite(f)) is not None}
    known |= dict.fromkeys(conditions, ONE)
    told = [f not in conditions and any(part in known for part in subterms(f)) for f in factors] if known else []
    return [exchanged(f, known) if each else f for f, each in zip(factors, told, strict=True)] if any(told) else factors


def _told_on(lattice: Lattice, bounds: Sequence[Linear], premises: Sequence[Linear]) -> tuple[Linear, ...]:
    """The bounds that points of a lattice may fail that meet the others: i − j ≥ −1 tells that an even i − j is ≥ 0."""
    left = list(dict.fromkeys(bounds))
    for bound in bounds if lattice else ():
        others = [other for other in left if other is not bound]
        loose = loosest(bound, lattice)
        if loose != bound and implied(loose, [*others, *premises]):
            left = others
    return tuple(left)


def _equal_sides(deltas: Iterable[Delta]) -> Iterator[Linear]:
    """What δ's say: `i − j ≥ 0` and `j − i ≥ 0` for δ(i, j)."""
    for each in deltas:
        form = linear(affine([(each.left, 1), (each.right, -1)]))
        yield from (form, form.scale(-1))


def _on_the_real_line(condition: Indicator | Unequal) -> bool:
    return any(isinstance(v.type, Real) for v in condition.free)


@lru_cache(maxsize=1024)
def _pruned(
    bounds: tuple[Linear, ...], apart: tuple[Linear, ...], premises: tuple[Linear, ...]
) -> tuple[tuple[Linear, ...], tuple[Linear, ...]] | None:
    """The bounds, and the forms that are not 0, that the others do not imply; None where they contradict each other.

    A form that is not 0 and not less is at least 1: a bound, in its place.
    """
    known = [*bounds, *premises]
    for form in apart:
        sides = (form, form.scale(-1))
        end = next((side - 1 for side in sides if implied(side, known)), None)
        if end is not None:
            return _pruned((*bounds, end), tuple(f for f in apart if f is not form), premises)
    if contradictory(known):
        return None
    return prune(bounds, premises), apart
