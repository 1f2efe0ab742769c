"""The δ's of a product that compare whole numbers, solved together: a linear system Aα = β for summed indices α.

    Σ_{i,k} δ(i + k, d)·y[i]·w[k]        becomes   Σ_k [0 ≤ d − k < m]·y[d − k]·w[k]
    Σ_i δ(2i, d)·y[i]                    becomes   [d ≡ 0 (mod 2)]·y[d/2]
    Σ_{i,j} δ(2i + 3j, d)·y[i, j]        becomes   Σ_z [0 ≤ …]·y[3z − d, d − 2z]

It is solved for those that read tensors of high order: i, j of a result rather than k, l of a sum in it, so that what
is left is a sum over the kernel; among others the canonical order decides, whatever their names. The solutions (see
`polyhedra.affine`) leave sums over the kernel, a δ of the cokernel, integrality conditions, and the ranges of the
indices solved for as conditions on what is left (Urban & van der Smagt 2017, sec. 4).

Invariant: the value of the product is unchanged; conditions guard what a substitution may have moved out of range.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from math import ceil, floor, gcd, lcm

from combdiff.ir import (
    ONE,
    ZERO,
    Apply,
    Delta,
    Domain,
    Names,
    Range,
    Real,
    Sum,
    SummedProduct,
    Term,
    Var,
    Whole,
    affine,
    delta,
    indicator,
    mul,
    substitute,
    subterms,
)
from combdiff.polyhedra import NEVER, Linear, eliminate, in_domain, integer_points, linear, premises_of, symbol, term_of
from combdiff.simplification.normal_form.canonical import canonical_order
from combdiff.simplification.normal_form.conditions import compares_bare_indices, compares_whole_numbers


def together(product: SummedProduct, names: Names) -> SummedProduct:
    """The product without the δ's that compare whole numbers and mention summed indices: those of one system."""
    indices, factors = product.indices, product.factors
    equations = [f for f in factors if isinstance(f, Delta) and is_equation(f, indices)]
    if all(compares_bare_indices(equation) for equation in equations):
        return product
    mentioned = frozenset().union(*(equation.free for equation in equations))
    rest = [f for f in factors if f not in equations]
    unknowns = [i for i in indices if i in mentioned]
    if len(unknowns) > 1:
        unknowns = [i for i in solving_order(indices, factors) if i in mentioned]
    solution = _solution(equations, unknowns, rest, names)
    if solution is None:  # a kernel without closed bounds: solve for indices that the others determine
        solution = _solution(equations, _independent(equations, unknowns), rest, names)
    if solution is None:
        return product
    replacement, loops, extra = solution
    kept = [i for i in indices if i not in replacement or i in loops]
    left = [*kept, *(loop for loop in loops if loop not in kept)]
    return SummedProduct.over(left, [*extra, *(substitute(f, replacement) for f in rest)])


def is_equation(factor: Delta, indices: Sequence[Var]) -> bool:
    """Whether a δ compares whole numbers and mentions a summed index."""
    whole = compares_whole_numbers(factor)
    return whole and not factor.free.isdisjoint(indices) and not any(isinstance(v.type, Real) for v in factor.free)


Solution = tuple[dict[Var, Term], list[Var], list[Term]]


def _solution(equations: list[Delta], unknowns: list[Var], rest: list[Term], names: Names) -> Solution | None:
    """What the unknowns are, the indices that stay summed, and the conditions that come with them."""
    forms = [linear(affine([(e.left, 1), (e.right, -1)])) for e in equations]
    if any(not isinstance(value, int) for form in forms for _, value in form.coefficients):
        forms = [form.scale(lcm(*(Fraction(v).denominator for _, v in form.coefficients))) for form in forms]
    symbols = [symbol(v) for v in unknowns]
    matrix = [[int(form.coefficient(name)) for name in symbols] for form in forms]
    beta = [
        (form - Linear(tuple(zip(symbols, row, strict=True)))).scale(-1)
        for form, row in zip(forms, matrix, strict=True)
    ]
    variables = {symbol(v): v for f in (*equations, *rest) for v in f.free} | dict(zip(symbols, unknowns, strict=True))
    points = integer_points(matrix, beta, symbols, variables)
    ranges = [form for v, a in zip(unknowns, points.alpha, strict=True) for form in in_domain(a, v.type)]
    shifts: dict[str, Linear] = {}
    for name in points.loops:
        if name in variables:
            continue
        bounds = _constant_bounds(name, ranges, variables)
        if bounds is None:
            return None
        variables[name] = names.fresh(Var("z", Range(max(bounds[1] - bounds[0] + 1, 0))))
        shifts[name] = Linear(((name, 1),), bounds[0])
    forms = [form.substitute(shifts) for form in (*points.alpha, *ranges)]
    alpha, ranges = forms[: len(unknowns)], forms[len(unknowns) :]
    loops = [variables[name] for name in points.loops]
    replacement = {v: a for v, form in zip(unknowns, alpha, strict=True) if (a := term_of(form, variables)) is not v}
    domain = equations[0].domain
    extra = [
        *(_equal(form, variables, domain) for form in points.equalities),
        *(indicator(term_of(form, variables), m) for form, m in points.congruences),
        *(indicator(term_of(form, variables)) for form in ranges),
    ]
    return replacement, loops, extra


def _equal(form: Linear, variables: Mapping[str, Var], domain: Domain | None) -> Term:
    """δ for `form = 0`: a bare index, or what has positive coefficients, on the left."""
    form = form.scale(Fraction(1, gcd(*(int(c) for _, c in form.coefficients)) or 1))
    bare = next((name for name, c in form.coefficients if abs(c) == 1 and name in variables), None)
    if bare is not None and not isinstance(variables[bare].type, Whole):
        rest = (form - Linear(((bare, form.coefficient(bare)),))).scale(-form.coefficient(bare))
        return delta(variables[bare], term_of(rest, variables), domain)
    left = Linear(tuple((name, c) for name, c in form.coefficients if c > 0))
    if not form.coefficients:
        return ONE if not form.constant else ZERO
    return delta(term_of(left, variables), term_of((form - left).scale(-1), variables), domain)


def _independent(equations: list[Delta], unknowns: list[Var]) -> list[Var]:
    """Unknowns, as many as the equations determine when the others are given; those with small coefficients first."""
    forms = [linear(affine([(e.left, 1), (e.right, -1)])) for e in equations]
    chosen: list[Var] = []
    rows: list[list[Fraction]] = []
    for var in sorted(unknowns, key=lambda v: max(abs(Fraction(form.coefficient(symbol(v)))) for form in forms)):
        column = [Fraction(form.coefficient(symbol(var))) for form in forms]
        for row in rows:
            pivot = next(n for n, x in enumerate(row) if x)
            column = [x - column[pivot] / row[pivot] * y for x, y in zip(column, row, strict=True)]
        if any(column):
            rows.append(column)
            chosen.append(var)
    return chosen


def _constant_bounds(name: str, ranges: list[Linear], variables: Mapping[str, Var]) -> tuple[int, int] | None:
    """The least and greatest value of a loop variable over all indices, where sizes are numbers."""
    mentioned = {n for form in ranges for n in form.symbols}
    system = [*ranges, *premises_of(v for n, v in variables.items() if n in mentioned)]
    others = sorted({n for form in system for n in form.symbols} - {name})
    left = eliminate(system, others).feasible
    if left == (NEVER,):
        return 0, -1
    sides = [(Fraction(f.coefficient(name)), Fraction(f.constant)) for f in left if f.symbols]
    low = [-constant / c for c, constant in sides if c > 0]
    high = [-constant / c for c, constant in sides if c < 0]
    return (ceil(max(low)), floor(min(high))) if low and high else None


def solving_order(indices: Sequence[Var], factors: Iterable[Term]) -> Sequence[Var]:
    """The summed indices in the order in which they are solved for, whatever they are called.

    First are those of tensors of high order, then the first axes of tensors by name.
    """
    places: dict[Var, list[tuple[int, str, int]]] = {index: [] for index in indices}
    body = mul(*factors)
    for access in (node for node in subterms(body) if isinstance(node, Apply)):
        for axis, argument in enumerate(access.arguments):
            for index in argument.free & places.keys():
                places[index].append((-len(access.arguments), getattr(access.function, "name", ""), axis))
    canonical = canonical_order(Sum(tuple(indices), body))
    return sorted(canonical, key=lambda index: sorted(places[index]) or [(0, "", 0)])
