"""δ's on cycles and on the real line, which are solved one at a time.

    Σ_i δ(i + 1, d)·y[i]                 becomes   y[d − 1]                        i and d on one cycle
    Σ_i δ(2i, d)·y[i]                    becomes   Σ_{z<2} [d ≡ 0 (mod 2)]·y[d/2 + 3z]   on a cycle of 6
    Σ_{i<9} δ(d, i + 1)·y[i]             becomes   Σ_{z<2} … ·y[6z + d − 1]        d on a cycle of 6
    ∫ δ(2t − s)·f(t) dt                  becomes   f(s/2)/2

Invariant: the value of the product is unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import gcd

from combdiff.ir import (
    Cyclic,
    Delta,
    Indicator,
    Names,
    Number,
    Range,
    Real,
    SummedProduct,
    Term,
    Var,
    affine,
    affine_parts,
    counts_modulo,
    delta,
    exchanged,
    factors_of,
    indicator,
    mul,
    substitute,
    subterms,
    unequal,
)
from combdiff.polyhedra import Linear, in_domain, linear, symbol
from combdiff.simplification.normal_form.conditions import compares_bare_indices, compares_indices
from combdiff.simplification.normal_form.linear_systems import solving_order

MOST_LEFT_OUT = 3  # elements at the edge of a cycle, each a factor


def one_by_one(product: SummedProduct, names: Names) -> SummedProduct:
    """The product without the δ's on cycles and on the real line that say what a summed index is."""
    indices, factors = product.indices, product.factors
    for position, factor in enumerate(factors):
        rest = [*factors[:position], *factors[position + 1 :]]
        solution = _single(factor, indices, rest, names) if isinstance(factor, Delta) else None
        if solution is not None:
            index, value, extra, more = solution
            replaced = factors_of(mul(*(substitute(_around(f, index), {index: value}) for f in rest)))
            left = (*(i for i in indices if i is not index), *more)
            return one_by_one(SummedProduct(left, (*replaced, *extra)), names)
    return product


Single = tuple[Var, Term, list[Term], list[Var]]


def _single(factor: Delta, indices: Sequence[Var], rest: Sequence[Term], names: Names) -> Single | None:
    """A summed index, its value where the δ is 1, further factors and further summed indices."""
    if not compares_indices(factor) or compares_bare_indices(factor):
        return None
    form = affine([(factor.left, 1), (factor.right, -1)])
    candidates = [(v, c) for v, c in affine_parts(form)[0] if v in indices and v.type == factor.domain]
    order = solving_order(indices, [factor, *rest]) if len(candidates) > 1 else indices
    for index, coefficient in sorted(candidates, key=lambda part: (abs(part[1]), order.index(part[0]))):
        if isinstance(factor.domain, Real):
            value = affine([(form, -1 / Fraction(coefficient)), (index, 1)])
            return index, value, [Number(abs(1 / Fraction(coefficient)))] if abs(coefficient) != 1 else [], []
        if isinstance(factor.domain, Cyclic) and all(counts_modulo(index, _around(other, index)) for other in rest):
            solution = _modular(index, coefficient, form, factor.domain, names)
            if solution is not None:
                return solution
    return None


def whole_turns(product: SummedProduct, names: Names) -> SummedProduct:
    """The product, in which an index of which δ's on cycles ask is counted round the cycle, and its turns beside it.

    Σ_{i<9} δ(d, i + 1)·y[i] is Σ_{z<2,i<6} δ(d, i + 1)·[6z + i ≤ 8]·y[6z + i] for d on a cycle of 6 elements.
    """
    for factor in product.factors:
        if (
            not isinstance(factor, Delta)
            or not isinstance(cycle := factor.domain, Cyclic)
            or compares_bare_indices(factor)
        ):
            continue
        steps = unit_steps(factor, product.indices)
        sizes = counted_sizes(steps, cycle)
        size = cycle.size
        if not sizes or any(index.type == cycle or sizes.get(index) == size for index in steps):
            continue
        assert isinstance(size, int)
        order = solving_order(product.indices, product.factors)
        index = max(sizes, key=lambda index: (sizes[index], -order.index(index)))  # what is left is a shorter sum
        place = names.fresh(Var(index.name, Range(size)))
        turns = [names.fresh(Var("z", Range(-(-sizes[index] // size))))] if sizes[index] > size else []
        value = affine([(place, 1), *((turn, size) for turn in turns)])
        counted = indicator(affine([(value, -1)], sizes[index] - 1))
        factors = [counted, *(substitute(other, {index: value}) for other in product.factors)]
        left = [other for other in product.indices if other is not index]
        return whole_turns(SummedProduct.over([*left, place, *turns], factors), names)
    return product


def unit_steps(factor: Delta, indices: Sequence[Var]) -> list[Var]:
    """The summed indices that a δ has once, so that it says what they are."""
    if not compares_indices(factor):
        return []
    parts, _ = affine_parts(affine([(factor.left, 1), (factor.right, -1)]))
    return [index for index, c in parts if index in indices and abs(c) == 1]


def counted_sizes(indices: Iterable[Var], cycle: Cyclic) -> dict[Var, int]:
    """The sizes of those indices that count, where these and the cycle's are numbers."""
    if not isinstance(cycle.size, int) or not cycle.size:
        return {}
    return {i: i.type.size for i in indices if isinstance(i.type, Range) and isinstance(i.type.size, int)}


def _around(term: Term, index: Var) -> Term:
    """The term with what it asks of an edge of an index's cycle asked modulo its size: [i ≥ 1] is [i ≢ 0]."""
    if not isinstance(index.type, Cyclic):
        return term
    conditions = [node for node in subterms(term) if isinstance(node, Indicator) and index in node.free]
    edges: dict[Term, Term] = {
        node: other for node in conditions if (other := _edge(node, index, index.type)) is not None
    }
    return exchanged(term, edges) if edges else term


def _edge(condition: Indicator, index: Var, cycle: Cyclic) -> Term | None:
    """A condition that only the first or last elements of a cycle fail, or only one meets, asked modulo its size."""
    if condition.modulus:
        return None
    bound = linear(condition.form)
    for side, first, step in zip(in_domain(Linear.symbol(symbol(index)), cycle), (0, -1), (1, -1), strict=True):
        left_out, kept = side - bound, bound + side
        if not left_out.coefficients and 0 < left_out.constant <= MOST_LEFT_OUT:
            places = (first + step * n for n in range(int(left_out.constant)))
            return mul(*(unequal(affine([(index, 1)], -place), cycle) for place in places))
        if not kept.coefficients and kept.constant == 0:
            return delta(index, affine([], first), cycle)
    return None


def _modular(index: Var, coefficient: int | Fraction, form: Term, cycle: Cyclic, names: Names) -> Single | None:
    """The solutions of `coefficient·index + rest ≡ 0 (mod n)`: gcd(coefficient, n) of them where that divides rest."""
    rest = affine([(form, 1), (index, -coefficient)])
    if abs(coefficient) == 1:
        return index, affine([(rest, -coefficient)]), [], []
    size = cycle.size
    if not isinstance(size, int) or not isinstance(coefficient, int) or not size:
        return None
    turns = gcd(coefficient, size)
    inverse = pow(coefficient // turns, -1, size // turns) if size > turns else 0
    value = affine([(rest, Fraction(-inverse, turns))])
    conditions = [indicator(rest, turns)] if turns > 1 else []
    if turns == 1:
        return index, value, conditions, []
    step = names.fresh(Var("z", Range(turns)))
    return index, affine([(value, 1), (step, size // turns)]), conditions, [step]
