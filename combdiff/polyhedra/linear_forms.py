"""Index expressions as linear forms, and what the domains of indices say about them.

    2i − j + n        =  Linear 2·i − j + #n          i over Range(n):  i ≥ 0  and  #n − i − 1 ≥ 0

An index is a symbol by its name; a size has a # before it, so that an index n and a size n are told apart.

Invariant: `term_of(linear(t), variables)` is t.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from fractions import Fraction
from math import gcd, lcm

from combdiff.ir import (
    ONE,
    Cyclic,
    Delta,
    Indicator,
    Range,
    Symmetric,
    Term,
    Var,
    Whole,
    affine,
    affine_parts,
    indicator,
    size_parts,
)
from combdiff.polyhedra.affine import Linear, eliminate, implied

_BOUNDED = Range | Symmetric | Cyclic  # domains of indices, beside those of sizes


def symbol(var: Var) -> str:
    """The name of an index or size in a linear form."""
    return f"#{var.name}" if isinstance(var.type, Whole) else var.name


def linear(term: Term) -> Linear:
    """An index expression as a linear form."""
    parts, offset = affine_parts(term)
    return Linear(tuple((symbol(v), c) for v, c in parts), offset)


def term_of(form: Linear, variables: Mapping[str, Var]) -> Term:
    """A linear form as an index expression."""
    known = ((variables.get(name) or Var(name[1:], Whole()), c) for name, c in form.coefficients)
    return affine(known, form.constant)


def in_domain(form: Linear, domain: object) -> list[Linear]:
    """What is ≥ 0 where the form is an index of the domain (on a cycle, its representative)."""
    match domain:
        case Range(size) | Cyclic(size):
            return [form, size_linear(size) - form - 1]
        case Symmetric(bound):
            return [form + size_linear(bound), size_linear(bound) - form]
    return []


def size_linear(size: int | str) -> Linear:
    """A size as a linear form."""
    names, offset = size_parts(size)
    return Linear(tuple((f"#{name}", value) for name, value in names.items()), offset)


def premises_of(variables: Iterable[Var]) -> list[Linear]:
    """What is known to be ≥ 0 of indices, by their domains, and of sizes."""
    forms = [form for v in variables for form in in_domain(Linear.symbol(symbol(v)), v.type)]
    sizes = {name for form in forms for name in form.symbols if name.startswith("#")}
    sizes |= {symbol(v) for v in variables if isinstance(v.type, Whole)}
    return sorted((*forms, *map(Linear.symbol, sorted(sizes))), key=str)


def is_inside(place: Term, axis: object, beside: Iterable[Var] = ()) -> bool:
    """Whether an index expression is an index of an axis, whatever the indices in it are, and where there are others.

    Where there is an index of n elements, 0 is a place among them; n may be 0 else.
    """
    premises = premises_of({*place.free, *beside})
    return all(implied(side, premises) for side in in_domain(linear(place), axis))


def projected(conditions: Iterable[Term], kept: Collection[Var]) -> list[Term]:
    """Conditions on some indices: that there are others with which conditions hold, rational ones at least."""
    forms = _met_by(conditions)
    variables = {var for form in forms for var, _ in affine_parts(form)[0]}
    others = sorted((var for var in variables if isinstance(var.type, _BOUNDED) and var not in kept), key=str)
    constraints = [*map(linear, forms), *premises_of(others)]
    left = eliminate(constraints, map(symbol, others), premises_of(variables.intersection(kept))).feasible
    by_name = {symbol(var): var for var in variables}
    found = [indicator(term_of(form, by_name)) for form in left if not by_name.keys().isdisjoint(form.symbols)]
    return [c for c in found if isinstance(c, Indicator) and not c.free.isdisjoint(kept)]


def met_by_each(alternatives: Collection[Collection[Term]]) -> list[Term]:
    """Conditions that hold wherever all conditions of one alternative do: d = 1 or d ≥ 3 is d ≥ 1 at least."""
    forms = [_met_by(conditions) for conditions in alternatives]
    variables = {var for found in forms for form in found for var, _ in affine_parts(form)[0]}
    systems = [[*map(linear, found), *premises_of(variables)] for found in forms]
    wanted = dict.fromkeys(form for found in forms for form in found)
    return [indicator(form) for form in wanted if all(implied(linear(form), system) for system in systems)]


def _met_by(conditions: Iterable[Term]) -> list[Term]:
    """What is ≥ 0 where conditions on indices hold, by those that are inequalities and equations."""
    forms: list[Term] = []
    for condition in conditions:
        if isinstance(condition, Indicator) and not condition.modulus:
            forms.append(condition.form)
        elif isinstance(condition, Delta) and isinstance(condition.domain, Range | Symmetric) and not condition.lookup:
            forms += [affine([(condition.left, sign), (condition.right, -sign)]) for sign in (1, -1)]
    return forms


def plain_congruence(condition: Indicator) -> Term:
    """The condition with whole coefficients, reduced by its modulus."""
    parts, offset = affine_parts(condition.form)
    scale = lcm(*(Fraction(c).denominator for _, c in parts), Fraction(offset).denominator)
    modulus = condition.modulus * scale
    whole = [(v, _centred(int(c * scale), modulus)) for v, c in parts]
    constant = int(offset * scale) % modulus
    common = gcd(modulus, constant, *(c for _, c in whole))
    form = affine([(v, c // common) for v, c in whole], constant // common)
    leading = next((c for _, c in affine_parts(form)[0]), 1)
    modulus //= common
    if leading < 0:
        parts, offset = affine_parts(affine([(form, -1)]))
        form = affine(parts, offset % modulus)
    return indicator(form, modulus) if modulus > 1 else ONE


def _centred(value: int, modulus: int) -> int:
    value %= modulus
    return value - modulus if 2 * value > modulus else value
