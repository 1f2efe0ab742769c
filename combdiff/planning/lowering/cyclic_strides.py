"""Walks round a cycle in strides: each position is reached once in every turn, or in none.

    Σ_i [2i ≡ d (mod n)]·y[i]  =  T[d]   with   T[e] = Σ_{q < 2} y[(e + q·n)/2]

This is what pulls back `x[2i]` on a cycle. Where i goes through the cycle once, a·i goes through it |a| times: i is
(e + q·n)/a in turn q, if that is whole. So how often an element is reached need not be known: n may be a named size.

Invariant: the value of the product is unchanged.
"""

from __future__ import annotations

from fractions import Fraction

from combdiff.ir import Cyclic, Delta, Names, Term, Var, affine, affine_parts, size_form
from combdiff.planning.lowering.graph import Graph
from combdiff.planning.lowering.mask_elimination import gathered
from combdiff.planning.lowering.products import Product
from combdiff.planning.operations.words import UNIT

MOST = 16  # turns that are written out


def unwind(graph: Graph, product: Product, names: Names) -> None:
    """Put a sum over turns in place of summed indices of which a δ on their cycle has a multiple."""
    while found := _wound(product):
        condition, var, stride, index = found
        cycle = var.type
        assert isinstance(cycle, Cyclic)
        value = gathered(graph, product, var)  # with the indices of the condition
        product.masks.remove(condition)
        place, size = names.fresh(Var("e", cycle)), size_form(cycle.size)
        turns = [affine([(place, Fraction(1, stride)), (size, Fraction(q, stride))]) for q in range(stride)]
        total = graph.combine([(UNIT, graph.relabel(value, var, turn)) for turn in turns])
        product.operands.append(graph.relabel(total, place, index))
        product.reads.append(())
        product.summed.remove(var)


def _wound(product: Product) -> tuple[Delta, Var, int, Term] | None:
    """A δ, a summed index that nothing else is asked of, its stride, and what the multiple of it is on the cycle."""
    conditions = [*product.masks, *product.lookups]
    for condition in product.masks:
        if not isinstance(condition, Delta) or not isinstance(condition.domain, Cyclic):
            continue
        form = affine([(condition.left, 1), (condition.right, -1)])
        for var, factor in affine_parts(form)[0]:
            stride, sign = abs(int(factor)), 1 if factor > 0 else -1
            alone = var in product.summed and not any(c is not condition and var in c.free for c in conditions)
            read = any(var in value.labels for value in product.operands)
            if alone and read and var.type == condition.domain and factor == sign * stride and 1 < stride <= MOST:
                return condition, var, stride, affine([(form, -sign), (var, stride)])
    return None
