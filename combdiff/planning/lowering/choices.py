"""Numbers compared: arrays of truth values, and what they choose from.

    [x[i] < y[j]]                 x[:, None] < y[None, :], as numbers 0 and 1 where it is a factor by itself
    Σ_i [x[i] > 0]·x[i]·y[i, j]   np.where(x > 0, x, 0) and np.where((x > 0)[:, None], y, 0), contracted
    [x[i] > 0]·log(x[i])          np.where(x > 0, np.log(x), 0)

Invariant: what is not chosen has no part in the result, not even where it is infinite or no number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from math import prod

from combdiff.ir import Range, Relation, Term, Var, affine, extent
from combdiff.planning.lowering.graph import Graph, LabelledStep
from combdiff.planning.lowering.products import Product
from combdiff.planning.operations.elementwise import ElementwiseStep
from combdiff.planning.operations.reads import Arrange, Read
from combdiff.planning.operations.reductions import ReduceExtreme
from combdiff.planning.views import domain_of

Lower = Callable[[Term], LabelledStep]


def compared(term: Relation, graph: Graph, value: Lower) -> LabelledStep:
    """A relation as numbers 0 and 1."""
    return _step(graph, "truth", int, _step(graph, term.name, int, *map(value, term.arguments)))


def extreme(graph: Graph, array: LabelledStep, indices: Sequence[Var], name: str) -> LabelledStep:
    """The largest or smallest element, `amax` or `amin`, over some indices."""
    array = _narrow(graph, array, indices)
    summed = tuple(n for n, label in enumerate(array.labels) if label in indices)
    kept = [label for label in array.labels if label not in indices]
    return graph.labelled(ReduceExtreme(summed, name), (array,), kept, graph.kind(array)) if summed else array


def extreme_ties(graph: Graph, array: LabelledStep, indices: Sequence[Var], name: str) -> LabelledStep:
    """How many elements are the largest, or smallest, over some indices."""
    lacking = [label for label in indices if label not in array.labels and label.type != Range(1)]
    array = graph.arrange(array, (*array.labels, *lacking))
    truths = _step(graph, "truth", float, _beside_extreme(graph, array, indices, name))
    return graph.reduce(truths, set(truths.labels) - set(indices))


def extreme_at(
    graph: Graph, array: LabelledStep, indices: Sequence[Var], name: str, places: Mapping[Var, Term], sign: str
) -> LabelledStep:
    """Whether the element at a place is the largest, or smallest, over some indices, or is not, as a number 0 or 1.

    It is compared with that in the array in which that was found: computed once more, in another order, it may differ.
    """
    found = _beside_extreme(graph, array, indices, name, sign)
    return _step(graph, "truth", int, graph.read(found, [places.get(label, label) for label in found.labels]))


def _beside_extreme(
    graph: Graph, array: LabelledStep, indices: Sequence[Var], name: str, sign: str = "equal"
) -> LabelledStep:
    """Whether elements are the largest, or smallest, over some indices; with the sign `not_equal` whether not."""
    return _step(graph, sign, int, _narrow(graph, array, indices), extreme(graph, array, indices, name))


def _narrow(graph: Graph, array: LabelledStep, indices: Sequence[Var]) -> LabelledStep:
    """An array without those of some indices that have one value."""
    first = {label: affine([], 0) for label in indices if label.type == Range(1)}
    return graph.read(array, [first.get(label, label) for label in array.labels])


def choose_inside(graph: Graph, product: Product) -> list[LabelledStep]:
    """Takes the relations out of a product whose other factors they choose from, and does so where a Σ needs it.

    Those on labels that are not summed are given back: they choose from the result. A product of relations alone stays.
    """
    pairs = list(zip(product.operands, product.reads, strict=True))
    tests = [value for value, _ in pairs if _is_truth(graph, value.step)]
    rest = [pair for pair in pairs if pair[0] not in tests]
    if not tests or not rest:
        return []
    product.operands, product.reads = [value for value, _ in rest], [known for _, known in rest]
    inner = [test for test in tests if not set(product.summed).isdisjoint(test.labels)]
    for test in inner:
        hosts = [n for n, value in enumerate(product.operands) if set(test.labels) <= set(value.labels)]
        for n in hosts or [_widened(graph, product, test)]:
            product.operands[n] = _chosen(graph, product.operands[n], test)
    return [test for test in tests if test not in inner]


def chosen(graph: Graph, value: LabelledStep, tests: list[LabelledStep]) -> LabelledStep:
    """The value where all relations hold, 0 elsewhere."""
    return reduce(lambda found, test: _chosen(graph, found, test), tests, value)


def _chosen(graph: Graph, value: LabelledStep, test: LabelledStep) -> LabelledStep:
    step = graph.steps[test.step]
    condition = LabelledStep(step.operands[0], test.labels) if _is_plain_truth(graph, test.step) else test
    return _step(graph, "chosen", graph.kind(value), condition, value)


def _widened(graph: Graph, product: Product, test: LabelledStep) -> int:
    """The operand that is smallest when it is made the same along the labels of a relation that it lacks."""
    missing = [[label for label in test.labels if label not in value.labels] for value in product.operands]
    extents = [prod(extent(domain_of(label), graph.sizes) for label in labels) for labels in missing]
    best = min(range(len(missing)), key=lambda n: (extents[n] * graph.size(product.operands[n]), len(missing[n])))
    value = product.operands[best]
    product.operands[best] = graph.arrange(value, (*value.labels, *missing[best]))
    return best


def _is_truth(graph: Graph, step: int) -> bool:
    """Whether a step holds a relation, or reads from one that does."""
    if isinstance(graph.steps[step].operation, Read | Arrange):
        return _is_truth(graph, graph.steps[step].operands[0])
    return _is_plain_truth(graph, step)


def _is_plain_truth(graph: Graph, step: int) -> bool:
    operation = graph.steps[step].operation
    return isinstance(operation, ElementwiseStep) and operation.name == "truth"


def _step(graph: Graph, name: str, kind: type, *values: LabelledStep) -> LabelledStep:
    return graph.broadcast(lambda patterns: ElementwiseStep(name, patterns), values, kind)
