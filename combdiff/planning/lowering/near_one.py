"""Functions near the point where they are delicate: log and exp near 1, steps where two numbers are equal.

    log(1 + x)          log1p(x): for |x| = 1e-18 the sum 1 + x is 1
    exp(x) - 1 + y      expm1(x) + y
    1 - exp(x)          -expm1(x)
    Σ_i (exp(x[i]) - 1) Σ_i expm1(x[i]), and no difference of two sums
    heaviside(x - y)    1 where y < x, ½ where x = y, of infinite numbers too, of which x - y is no number

Invariant: real numbers alone; finite numbers compare as their difference does.
"""

from __future__ import annotations

from collections.abc import Callable

from combdiff.ir import HALF, MINUS_ONE, ONE, Add, Mul, Number, Primitive, Term, add, dtype_of, join, mul, relation
from combdiff.planning.lowering.graph import Graph, LabelledStep
from combdiff.planning.operations.elementwise import ElementwiseStep

Lower = Callable[[Term], LabelledStep]


def log_near_one(term: Term, graph: Graph, value: Lower) -> LabelledStep | None:
    """log(1 + x) of what x is; None for another term."""
    match term:
        case Primitive(name="log", arguments=(Add(terms=terms) as argument,)) if ONE in terms:
            rest = add(*(part for part in terms if part is not ONE))
            real = dtype_of(argument) is not complex and not isinstance(rest, Number)
            return _applied("log1p", graph, value(rest)) if real else None
    return None


def step_at_tie(term: Term, value: Lower) -> LabelledStep | None:
    """heaviside(x − y) of which of the two is larger; None for another term."""
    match term:
        case Primitive(name="heaviside", arguments=(Add(terms=(one, other)),)):
            x, y = (one, _negated(other)) if _negated(other) else (other, _negated(one))
            if y is None or isinstance(x, Number) or isinstance(y, Number):
                return None
            larger, equal = relation("less", y, x), relation("equal", x, y)
            return value(add(larger, mul(HALF, equal)))
    return None


def exp_near_one(term: Add, graph: Graph, value: Lower) -> tuple[int, LabelledStep, Term] | None:
    """Of a sum with exp(x) − 1 or 1 − exp(x): its sign, exp(x) − 1, and the rest of the sum; None for others."""
    if (found := _near_one(term)) is None:
        return None
    sign, inner, rest = found
    return sign, _applied("expm1", graph, value(inner.arguments[0])), add(*rest)


def summands(term: Add) -> tuple[Term, ...]:
    """The terms of a sum, with exp(x) − 1 or 1 − exp(x) as one of them."""
    if (found := _near_one(term)) is None:
        return term.terms
    _, _, rest = found
    return add(*(part for part in term.terms if part not in rest)), *rest


def _near_one(term: Add) -> tuple[int, Primitive, tuple[Term, ...]] | None:
    """The sign of exp(x) − 1 in a sum, that exponential, and the other terms."""
    for one, sign in ((MINUS_ONE, 1), (ONE, -1)):
        for part in term.terms if one in term.terms else ():
            inner = part if sign > 0 else _negated(part)
            if isinstance(inner, Primitive) and inner.name == "exp" and dtype_of(inner) is not complex:
                return sign, inner, tuple(other for other in term.terms if other is not part and other is not one)
    return None


def _negated(term: Term) -> Term | None:
    """t of −t."""
    alone = isinstance(term, Mul) and len(term.factors) == 2 and term.factors[0] is MINUS_ONE
    return term.factors[1] if alone and isinstance(term, Mul) else None


def _applied(name: str, graph: Graph, value: LabelledStep) -> LabelledStep:
    kind = join(graph.kind(value), float)
    return graph.broadcast(lambda patterns: ElementwiseStep(name, patterns), [value], kind)
