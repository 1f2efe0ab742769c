"""Conditions in products: running sums and windows in place of masks, where they can be.

    Σ_j [j ≤ i]·x[j]·y[j]            the running sum of x·y, read at i
    Σ_j [0 ≤ i − j]·[i − j ≤ 4]·x[j]   = Σ_z x[i − z] over z in 0 … 4: a window of x, 0 outside
    [i ≥ 1]·(x[i] + 1)               the product cut off at i = 1

Where an operand has both indices of a bound, A[i, j]·[j ≤ i], nothing runs: there the mask selects from it.

Invariant: the value of the product is unchanged; no bound that is left out is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from combdiff.affine import Linear
from combdiff.domains import Cyclic, Range
from combdiff.indexing import Delta, Indicator, affine, affine_parts
from combdiff.lowering.graph import Graph, Value
from combdiff.lowering.guards import needless
from combdiff.lowering.joining import product as joined
from combdiff.lowering.products import Product
from combdiff.lowering.steps import Keep, Running
from combdiff.lowering.views import domain_of, mask, mask_of_form
from combdiff.substitution import Names
from combdiff.terms import Var


@dataclass(frozen=True)
class _Bound:
    """`sign·var + steps · others + start ≥ 0`."""

    condition: Indicator
    sign: int
    others: tuple[Var, ...]
    steps: tuple[int, ...]
    start: Linear


def apply_masks(graph: Graph, product: Product, names: Names) -> None:
    """Multiply by the conditions of a product, those that must be told.

    Bounds become running sums and windows where they can. Each other mask selects from the operands that may be
    undefined where it is 0, or is one more operand.
    """
    product.masks = _needed(graph, product)
    while any(_without_mask(graph, product, var, names) for var in product.summed):
        pass
    for condition in product.masks:
        labels, operation = mask(condition)
        operands = product.operands
        selected = [n for n, value in enumerate(operands) if _needs_guard(graph, value, labels)]
        if len(operands) == 1 and set(labels) <= set(operands[0].labels):
            selected = [0]
        if len(labels) == 1 and not selected:
            selected = [n for n, value in enumerate(operands) if labels[0] in value.labels][:1]
        cut = [_cut_off(graph, condition, operands[n]) for n in selected]
        guard = Value(graph.emit(operation, (), map(domain_of, labels), int), labels)
        for n, value in zip(selected, cut, strict=True):
            operands[n] = value or graph.select(guard, operands[n])
        if not selected:
            operands.append(guard)


def _needed(graph: Graph, product: Product) -> list[Delta | Indicator]:
    """The conditions that must be told: those where no read is 0 by itself, or something may be undefined."""
    every = [read for known in product.reads for read in known]
    pairs = list(zip(product.operands, product.reads, strict=True))
    unsafe = [known for value, known in pairs if graph.unsafe[value.step]]
    return [m for m in product.masks if not all(needless(m, known) for known in (every, *unsafe))]


def _needs_guard(graph: Graph, value: Value, labels: Sequence[Var]) -> bool:
    return graph.unsafe[value.step] and not set(labels).isdisjoint(value.labels)


def _without_mask(graph: Graph, product: Product, var: Var, names: Names) -> bool:
    """Put a running sum or a window in place of the bounds of a summed index; says whether it was done."""
    found = _bounds(var, product)
    inner = [value for value in product.operands if var in value.labels]
    mixed = any(other in value.labels for bound in found for other in bound.others for value in inner)
    if not found or not inner or mixed:
        return False
    if len(found) == 1 and found[0].others:
        _run(graph, product, var, found[0])
        return True
    defined = not any(graph.unsafe[value.step] for value in inner)  # elsewhere a mask selects
    return len(found) == 2 and defined and _slide(graph, product, var, found, names)


def _bounds(var: Var, product: Product) -> list[_Bound]:
    """The bounds of an index, if nothing else is asked of it."""
    asked = [m for m in (*product.masks, *product.lookups) if var in m.free]
    found = []
    for condition in asked:
        if not isinstance(condition, Indicator) or condition.modulus:
            return []
        labels, steps, start = mask_of_form(condition.form)
        along = dict(zip(labels, steps, strict=True))
        if abs(along[var]) != 1:
            return []
        others = tuple(label for label in labels if label is not var)
        found.append(_Bound(condition, along[var], others, tuple(along[o] for o in others), start))
    return found


def _gathered(graph: Graph, product: Product, var: Var) -> Value:
    """The product of the operands that have an index, taken out of the product; summed over what no one else has.

    Operands that have no other indices than those join them, so that more is summed over first.
    """
    pairs = list(zip(product.operands, product.reads, strict=True))
    labels = {label for value, _ in pairs if var in value.labels for label in value.labels}
    inner = [value for value, _ in pairs if value.labels and labels.issuperset(value.labels)]
    outer = [pair for pair in pairs if not (pair[0].labels and labels.issuperset(pair[0].labels))]
    product.operands, product.reads = [value for value, _ in outer], [known for _, known in outer]
    mentioned = {label for value, _ in outer for label in value.labels}
    mentioned |= {v for condition in (*product.masks, *product.lookups) for v in condition.free}
    private = {x for x in labels if x in product.summed and x not in mentioned} - {var}
    product.summed = [index for index in product.summed if index not in private]
    return joined(graph, inner, labels - private)


def _run(graph: Graph, product: Product, var: Var, bound: _Bound) -> None:
    """Σ_j [j ≤ i]·f(j) as a running sum of f."""
    value = graph.plain(_gathered(graph, product, var))
    axis = value.labels.index(var)
    labels = (*value.labels[:axis], *bound.others, *value.labels[axis + 1 :])
    operation = Running(axis, bound.sign, bound.steps, bound.start)
    product.operands.append(graph.labelled(operation, (value,), labels, graph.kind(value)))
    product.reads.append(())
    product.summed.remove(var)
    product.masks.remove(bound.condition)


def _slide(graph: Graph, product: Product, var: Var, found: list[_Bound], names: Names) -> bool:
    """Σ_j [0 ≤ i − j]·[i − j ≤ w]·f(j) as a window of f, where w is a number."""
    lower, upper = found
    width = affine([(lower.condition.form, 1), (upper.condition.form, 1)])
    parts, last = affine_parts(width)
    if parts or last < 0 or isinstance(var.type, Cyclic) or not lower.others or not isinstance(last, int):
        return False
    value = _gathered(graph, product, var)
    new = names.fresh(Var("z", Range(last + 1)))
    coefficient = dict(affine_parts(lower.condition.form)[0])[var]
    rest = affine([(lower.condition.form, 1), (var, -coefficient)])
    place = affine([(new, coefficient), (rest, -coefficient)])
    product.operands.append(graph.relabel(value, var, place))
    product.reads.append(((place, domain_of(var)),))
    product.summed = [new if index is var else index for index in product.summed]
    product.masks = [m for m in product.masks if m is not lower.condition and m is not upper.condition]
    return True


def _cut_off(graph: Graph, condition: Delta | Indicator, value: Value) -> Value | None:
    """The value where a bound of one of its indices holds, and 0 elsewhere; None for other conditions."""
    if not isinstance(condition, Indicator) or condition.modulus:
        return None
    labels, steps, start = mask_of_form(condition.form)
    if len(labels) != 1 or labels[0] not in value.labels:
        return None
    plain = graph.plain(value)
    operation = Keep(plain.labels.index(labels[0]), steps[0], start)
    return graph.labelled(operation, (plain,), plain.labels, graph.kind(plain))
