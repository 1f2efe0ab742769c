"""Conditions under a Σ as bounds of its indices.

    Σ_k [k ≤ d, d ≤ k + 2] t       with k over 0 … 4      is laid out as      Σ_{k=max(0, d - 2)}^{min(4, d)} t
    Σ_{i,j} [i ≠ j] t                                     is laid out as      Σ_{i,j≠i} t

The bounds come from Fourier-Motzkin elimination of the conditions and the domains, the innermost index first (Urban &
van der Smagt 2017, sec. 4). An index that runs over its whole domain is only named.

Invariant: the bounded Σ adds the same terms; a range that is empty as written adds none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from combdiff.ir import (
    Delta,
    Indicator,
    Mul,
    Real,
    Sum,
    Term,
    Unequal,
    Var,
    Whole,
    affine,
    affine_parts,
    factors_of,
    mul,
)
from combdiff.polyhedra import Bound as LinearBound
from combdiff.polyhedra import Bounds, Linear, eliminate, in_domain, linear, premises_of, symbol, term_of
from combdiff.printing.conditions import form_of, tells_its_cycle, write_form
from combdiff.printing.documents import Bound, Doc, FunctionCall, Name, Rounded
from combdiff.printing.monomials import monomial
from combdiff.printing.naming import Scope


def split_bounds(indices: Sequence[Var], body: Term) -> tuple[list[Indicator], Term]:
    """The conditions of a product that bound summed indices, and the rest of the product.

    One that is looked up keeps its range, since what idx holds is held to it: Σ_{j<4} [j ≤ 2] δ(j, idx[i]).
    """
    factors = factors_of(body)
    looked_up = {f.lookup[0] for f in factors if isinstance(f, Delta) and f.lookup}
    open_ones = [index for index in indices if index not in looked_up]
    taken = [f for f in factors if isinstance(f, Indicator) and _bounds(f, open_ones)]
    rest = [f for f in factors if f not in taken]
    return taken, mul(*rest) if taken else body


def split_inequalities(
    indices: Sequence[Var], later: frozenset[Var], body: Term, scope: Scope
) -> tuple[tuple[Bound, ...], Term]:
    """Summed indices with what each is not equal to, and the rest of the body, with conditions on `later` indices."""
    factors = factors_of(body)
    taken: dict[Term, Var] = {}
    for factor in (f for f in factors if isinstance(f, Unequal) and tells_its_cycle(f)):
        inner = [v for v in indices if v in factor.free]
        coefficients = dict(affine_parts(factor.form)[0])
        if inner and abs(coefficients.get(inner[-1], 0)) == 1 and factor.free.isdisjoint(later):
            taken[factor] = inner[-1]
    bounds = tuple(
        Bound(Name(scope[v]), apart=tuple(_other_side(f, v, scope) for f in taken if taken[f] is v)) for v in indices
    )
    return bounds, mul(*(f for f in factors if f not in taken)) if taken else body


def _other_side(condition: Term, index: Var, scope: Scope) -> Doc:
    """What an index is not equal to."""
    assert isinstance(condition, Unequal)
    coefficient = dict(affine_parts(condition.form)[0])[index]
    return write_form(form_of(affine([(condition.form, -coefficient), (index, 1)])), scope)


def sizes_of(term: Sum) -> list[Var]:
    """The named sizes that may stand in the bounds of a Σ."""
    opened = tuple(monomial(term.body).above)  # conditions in products inside the product are bounds, too
    taken = split_bounds(term.indices, Mul(opened) if len(opened) > 1 else term.body)[0]
    bounded = [v for v in term.indices if any(v in condition.free for condition in taken)]
    forms = [form for v in bounded for form in in_domain(linear(v), v.type)]
    own = {v.name for v in bounded}  # #0, #1, … where a program is compared up to names
    names = sorted({name for form in forms for name in form.symbols if name.startswith("#")} - own)
    return [Var(name[1:], Whole()) for name in names]


def _bounds(condition: Indicator, indices: Sequence[Var]) -> bool:
    whole = not any(isinstance(v.type, Real) for v in condition.free)
    return whole and not condition.modulus and not condition.free.isdisjoint(indices)


def write_bounds(indices: Sequence[Var], conditions: Iterable[Indicator], scope: Scope) -> tuple[Bound, ...]:
    """The indices that the conditions mention, outermost first, each with its bounds."""
    forms = [linear(c.form) for c in conditions]
    variables = {symbol(v): v for c in conditions for v in c.free}
    inner = [v for v in indices if symbol(v) in variables]
    ranges = {v: in_domain(linear(v), v.type) for v in inner}
    outer = [v for v in variables.values() if v not in inner]
    system = [*forms, *(form for own in ranges.values() for form in own)]
    sizes = sorted({name for form in system for name in form.symbols if name.startswith("#")} - variables.keys())
    variables |= {name: Var(name[1:], Whole()) for name in sizes}
    assume = premises_of([*outer, *(v for v in variables.values() if isinstance(v.type, Whole))])
    found = eliminate(system, [symbol(v) for v in reversed(inner)], assume).bounds[::-1]
    return tuple(_bound(b, variables, scope, whole=_is_whole(b, ranges[variables[b.name]])) for b in found)


def _is_whole(bounds: Bounds, own: Sequence[Linear]) -> bool:
    """Whether the bounds are those of the domain."""
    name = Linear.symbol(bounds.name)
    sides = [*(name - form for form, d in bounds.lower if d == 1), *(form - name for form, d in bounds.upper if d == 1)]
    return sides == own and len(bounds.lower) == len(bounds.upper) == 1


def _bound(bounds: Bounds, variables: Mapping[str, Var], scope: Scope, *, whole: bool) -> Bound:
    name = Name(scope[variables[bounds.name]])
    if whole:
        return Bound(name)
    lower = _side(bounds.lower, "maximum", variables, scope, up=True)
    return Bound(name, lower, _side(bounds.upper, "minimum", variables, scope, up=False))


def _side(bounds: Sequence[LinearBound], fold: str, variables: Mapping[str, Var], scope: Scope, *, up: bool) -> Doc:
    docs: list[Doc] = []
    for form, divisor in bounds:
        doc = write_form(form_of(term_of(form, variables)), scope)
        docs.append(doc if divisor == 1 else Rounded(doc, divisor, up))
    return docs[0] if len(docs) == 1 else FunctionCall(fold, tuple(docs))
