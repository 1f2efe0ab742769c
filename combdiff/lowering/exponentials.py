"""What exponents are shifted by: the largest of an array, where conditions hold.

    Masked((j ≤ i,), x[i, j])     np.where(mask, x, -np.inf)
    Largest((j,), x[i, j])        x.max(axis=1, initial=-np.inf)
    Shift((a, b))                 np.nan_to_num(np.maximum(a, b), posinf=0, neginf=0)

Invariant: a condition is one array of truth values, made for the axes that it mentions alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from combdiff.indexing import Guard
from combdiff.largest import Largest, Masked, Shift
from combdiff.lowering import steps
from combdiff.lowering.graph import Graph, Value
from combdiff.lowering.steps import Elementwise
from combdiff.lowering.views import mask
from combdiff.terms import Term

Lower = Callable[[Term], Value]


def masked(term: Masked, graph: Graph, value: Lower) -> Value:
    """The value where conditions hold, −∞ elsewhere."""
    conditions = [_condition(condition, graph, value) for condition in term.conditions]
    return reduce(lambda one, test: _apply("masked", graph, test, one), conditions, value(term.body))


def _condition(condition: Term, graph: Graph, value: Lower) -> Value:
    """What is not 0 where a condition holds."""
    if not isinstance(condition, Guard):
        return value(condition)
    labels, operation = mask(condition)
    return graph.labelled(operation, (), labels, int)


def largest(term: Largest, graph: Graph, value: Lower) -> Value:
    """The largest value over the indices."""
    array = value(term.body)
    missing = [index for index in term.indices if index not in array.labels]
    array = graph.arrange(array, (*array.labels, *missing))
    summed = tuple(n for n, label in enumerate(array.labels) if label in term.indices)
    kept = [label for label in array.labels if label not in term.indices]
    return graph.labelled(steps.Largest(summed), (array,), kept, float)


def shift(term: Shift, graph: Graph, value: Lower) -> Value:
    """The largest of the values, 0 where that is not finite."""
    top = reduce(lambda one, other: _apply("maximum", graph, one, other), map(value, term.terms))
    return _apply("finite", graph, top)


def _apply(name: str, graph: Graph, *values: Value) -> Value:
    return graph.broadcast(lambda patterns: Elementwise(name, patterns), values, float)
