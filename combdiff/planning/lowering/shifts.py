"""What exponents are shifted by and what is squared is divided by: the largest of an array, where conditions hold.

    Masked((j ≤ i,), x[i, j])     np.where(mask, x, -np.inf)
    Largest((j,), x[i, j])        x.max(axis=1, initial=-np.inf)
    Shift((a, b))                 where(isfinite(m), m, 0) of m = np.maximum(a, b)
    Magnitude((j,), x[j], 2)      _magnitude(x, (0,), 2)
    Rescaled(x[j], s)             _rescaled(x, s)

Invariant: a condition is one array of truth values, made for the axes that it mentions alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from math import frexp, isfinite

from combdiff.ir import ONE, IndexGuard, Largest, Magnitude, Masked, Number, Rescaled, Shift, Term, Var, join
from combdiff.planning.lowering.graph import Graph, LabelledStep
from combdiff.planning.lowering.running_exponentials import prefix_largest
from combdiff.planning.operations.elementwise import ElementwiseStep
from combdiff.planning.operations.leaves import Fill
from combdiff.planning.operations.operation import Operation
from combdiff.planning.operations.reductions import MagnitudeStep, ReduceExtreme, Rescale
from combdiff.planning.operations.words import Pattern, SizeFactor
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
    return prefix_largest(term, graph, value) or _reduced(graph, value(term.body), term.indices, ReduceExtreme)


def magnitude(term: Magnitude, graph: Graph, value: Lower) -> LabelledStep:
    """A power of 2 near the largest size of the body over the indices; of a number another number."""
    array = value(term.body)
    operation = graph.steps[array.step].operation
    if isinstance(operation, Fill):
        return graph.constant(_of_number(operation.number, term.degree))
    return _reduced(graph, array, term.indices, lambda summed: MagnitudeStep(summed, term.degree))


def _of_number(given: Number, degree: int) -> Number:
    """The magnitude of a number."""
    size = max(abs(float(given.real)), abs(float(given.imag)))
    safe = sys.float_info.max ** (2 / (3 * degree))
    if not size or not isfinite(size) or 1 / safe < size * size < safe:
        return ONE
    return Number(2.0 ** (frexp(size)[1] - 1))


def rescaled(term: Rescaled, graph: Graph, value: Lower) -> LabelledStep:
    """The body divided by its scale."""
    array, scale = graph.plain(value(term.body)), value(term.scale)
    operation = graph.steps[scale.step].operation
    if isinstance(operation, Fill):
        return graph.combine([(SizeFactor(Number(1 / operation.number.real)), array)])
    kind = join(graph.kind(array), float)
    return graph.broadcast(lambda patterns: Rescale((patterns[0], patterns[1])), (array, scale), kind)


def _reduced(
    graph: Graph, array: LabelledStep, indices: Sequence[Var], make: Callable[[Pattern], Operation]
) -> LabelledStep:
    """An array reduced over indices, those that it lacks too."""
    missing = [index for index in indices if index not in array.labels]
    array = graph.arrange(array, (*array.labels, *missing))
    summed = tuple(n for n, label in enumerate(array.labels) if label in indices)
    kept = [label for label in array.labels if label not in indices]
    return graph.labelled(make(summed), (array,), kept, float)


def shift(term: Shift, graph: Graph, value: Lower) -> LabelledStep:
    """The largest of the values, 0 where that is not finite; beside a number +∞ is the largest finite number."""
    top = reduce(lambda one, other: _apply("maximum", graph, one, other), map(value, term.terms))
    return _apply("capped" if any(isinstance(one, Number) for one in term.terms) else "finite", graph, top)


def _apply(name: str, graph: Graph, *values: LabelledStep) -> LabelledStep:
    return graph.broadcast(lambda patterns: ElementwiseStep(name, patterns), values, float)
