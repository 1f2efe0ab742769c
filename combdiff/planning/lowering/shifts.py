"""What exponents are shifted by: the largest of an array, where conditions hold.

    Masked((j ≤ i,), x[i, j])     np.where(mask, x, -np.inf)
    Largest((j,), x[i, j])        x.max(axis=1, initial=-np.inf)
    Shift((a, b))                 np.nan_to_num(np.maximum(a, b), posinf=0, neginf=0)

Invariant: a condition is one array of truth values, made for the axes that it mentions alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import reduce

from combdiff.ir import IndexGuard, Largest, Masked, Shift, Term
from combdiff.planning.lowering.graph import Graph, LabelledStep
from combdiff.planning.operations import ElementwiseStep, ReduceMax
from combdiff.planning.views import mask

Lower = Callable[[Term], LabelledStep]


def masked(term: Masked, graph: Graph, value: Lower) -> LabelledStep:
    """The value where conditions hold, −∞ elsewhere."""
    conditions = [_condition(condition, graph, value) for condition in term.conditions]
    return reduce(lambda one, test: _apply("masked", graph, test, one), conditions, value(term.body))


def _condition(condition: Term, graph: Graph, value: Lower) -> LabelledStep:
    """What is not 0 where a condition holds."""
    if not isinstance(condition, IndexGuard):
        return value(condition)
    labels, operation = mask(condition)
    return graph.labelled(replace(operation, logical=True), (), labels, int)


def largest(term: Largest, graph: Graph, value: Lower) -> LabelledStep:
    """The largest value over the indices."""
    array = value(term.body)
    missing = [index for index in term.indices if index not in array.labels]
    array = graph.arrange(array, (*array.labels, *missing))
    summed = tuple(n for n, label in enumerate(array.labels) if label in term.indices)
    kept = [label for label in array.labels if label not in term.indices]
    return graph.labelled(ReduceMax(summed), (array,), kept, float)


def shift(term: Shift, graph: Graph, value: Lower) -> LabelledStep:
    """The largest of the values, 0 where that is not finite."""
    top = reduce(lambda one, other: _apply("maximum", graph, one, other), map(value, term.terms))
    return _apply("finite", graph, top)


def _apply(name: str, graph: Graph, *values: LabelledStep) -> LabelledStep:
    return graph.broadcast(lambda patterns: ElementwiseStep(name, patterns), values, float)
