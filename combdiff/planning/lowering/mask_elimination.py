"""Conditions in products: running sums and windows, or reads of the elements alone at which they hold.

    Σ_j [j ≤ i]·x[j]·y[j]            the running sum of x·y, read at i
    Σ_j [j ≠ i]·x[j]                 a running sum from each end
    Σ_j [0 ≤ i − j]·[i − j ≤ 4]·x[j]   = Σ_z x[i − z] over z in 0 … 4: a window of x, 0 outside
    Σ_j [j ≤ i]·A[i, j]·x[j]         A kept where j ≤ i, which the product with x takes up (see `within`)
    [i ≥ j]·x[i]·y[j]                the product kept where i ≥ j

An operand that has some of the indices of a bound is kept where there are others with which the bound holds: what
stands elsewhere is in no term of the sum. It stays as it is where another one has all of them, and keeps those that it
lacks: the product of the two is done within the bound, and other products of it are those that others need, too.

Invariant: the value of the product is unchanged; no bound that is left out is needed; no array of 0 and 1 is made: what
a δ of two indices multiplies is written along a diagonal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import isfinite

from combdiff.ir import (
    ONE,
    ZERO,
    Cyclic,
    Delta,
    IndexGuard,
    Indicator,
    Names,
    Range,
    Symmetric,
    Term,
    Unequal,
    Var,
    affine,
    affine_parts,
    size_form,
    substitute,
)
from combdiff.planning.lowering.folds import fold
from combdiff.planning.lowering.graph import Graph, LabelledStep
from combdiff.planning.lowering.guards import Read, needless
from combdiff.planning.lowering.joining import product as joined
from combdiff.planning.lowering.products import Product
from combdiff.planning.operations.diagonals import DiagonalEmbed
from combdiff.planning.operations.elementwise import Combine, Scale
from combdiff.planning.operations.masks import IndexCondition, Mask
from combdiff.planning.operations.prefixes import PrefixSum
from combdiff.planning.operations.reads import Read as ViewStep
from combdiff.planning.operations.words import UNIT, SizeFactor
from combdiff.planning.views import domain_of, is_renaming, mask, mask_of_form
from combdiff.polyhedra import Linear, projected
from combdiff.records import dataclass

_NEVER = Indicator(affine([], -1))


@dataclass(frozen=True)
class IndexBound:
    """`sign·var + steps · others + start ≥ 0`."""

    condition: Indicator
    sign: int
    others: tuple[Var, ...]
    steps: tuple[int, ...]
    start: Linear


def apply_masks(graph: Graph, product: Product, names: Names) -> None:
    """Make the conditions of a product hold: those on summed indices in its operands, leaving the others in `masks`.

    Bounds become running sums and windows where they can.
    """
    product.masks = _needed(graph, product)
    fold(graph, product, names)
    while any(_without_mask(graph, product, var, names) for var in product.summed):
        pass
    inner = [condition for condition in product.masks if not condition.free.isdisjoint(product.summed)]
    product.masks = [condition for condition in product.masks if condition not in inner]
    for condition in inner:
        _host(graph, product, condition)
    held = [[c for c in inner if set(mask(c)[0]) <= set(value.labels)] for value in product.operands]
    bounds = {c for whole in held for c in whole if isinstance(c, Indicator) and not c.modulus}
    for n, (value, whole) in enumerate(zip(product.operands, held, strict=True)):
        met = {c for c in bounds if c.free.isdisjoint(set(product.summed).difference(value.labels))}
        rest = any(c not in whole and c not in met and _meets(c, value) for c in inner)
        product.operands[n] = keep(graph, value, [*whole, *(projected(inner, value.labels) if rest else ())])


def kept(graph: Graph, value: LabelledStep, conditions: Sequence[IndexGuard]) -> LabelledStep:
    """A value where conditions hold, 0 elsewhere, over the labels of all; at a δ it is read along one label."""
    delta = next((c for c in conditions if isinstance(c, Delta) and _is_unit(c)), None)
    if delta is None:
        return keep(graph, value, conditions)
    assert isinstance(delta.left, Var)
    assert isinstance(delta.right, Var)
    moved = [substitute(c, {delta.right: delta.left}) for c in conditions if c is not delta]
    rest = [c for c in moved if isinstance(c, IndexGuard)]
    if ZERO in moved:
        rest = [_NEVER]
    return _spread(graph, kept(graph, graph.relabel(value, delta.right, delta.left), rest), delta.left, delta.right)


def _spread(graph: Graph, value: LabelledStep, along: Var, other: Var) -> LabelledStep:
    """A value written where two labels coincide, the second a new one; zeros elsewhere."""
    inside = value.labels if along in value.labels else (along, *value.labels)
    places, below = (*range(len(inside)), inside.index(along)), graph.steps[value.step]
    source = replace(value, conj=False)
    if isinstance(below.operation, DiagonalEmbed) and along in value.labels:
        places, source = tuple(below.operation.along[n] for n in places), LabelledStep(below.operands[0], ())
    found = graph.labelled(DiagonalEmbed(places), (source,), (*inside, other), graph.kind(value))
    return replace(found, conj=value.conj)


def keep(graph: Graph, value: LabelledStep, conditions: Sequence[IndexGuard]) -> LabelledStep:
    """A value where conditions hold, 0 elsewhere, over the labels of all; a view is 0 beside what it views."""
    seen = view_reads(graph, value) if any(isinstance(c, Indicator) for c in conditions) else []
    conditions = [c for c in conditions if not (isinstance(c, Indicator) and all(needless(c, each) for each in seen))]
    if not conditions:
        return value
    found = [mask(condition) for condition in conditions]
    labels = tuple(dict.fromkeys((*value.labels, *(label for labels, _ in found for label in labels))))
    if not labels:
        guards = [LabelledStep(graph.emit(operation, (), (), int), ()) for _, operation in found]
        return joined(graph, [*guards, value], ())
    masks = tuple(over(labels, own, operation) for own, operation in found)
    whole = graph.arrange(replace(value, conj=False), labels)
    below = graph.steps[whole.step]
    if isinstance(below.operation, Mask):
        masks, whole = (*below.operation.conditions, *masks), LabelledStep(below.operands[0], labels)
    operation = Mask(tuple(dict.fromkeys(masks)))
    return replace(graph.labelled(operation, (whole,), labels, graph.kind(whole)), conj=value.conj)


def view_reads(graph: Graph, value: LabelledStep) -> list[tuple[Read, ...]]:
    """The index expressions at which each view of a sum of views reads axes that end; it is 0 outside of them."""
    found: list[tuple[Read, ...]] = []
    met, left = {value}, [value]  # sums share their parts: as a tree they may be exponentially large
    while left:
        one = left.pop()
        step = graph.steps[one.step]
        match step.operation:
            case ViewStep(positions=positions):
                axes = zip(positions, graph.steps[step.operands[0]].axes, strict=True)
                places = [_place(label) for label in one.labels]
                reads = (
                    (affine([*zip(places, position.steps, strict=True)], position.start.constant), axis)
                    for position, axis in axes
                    if isinstance(axis, Range) and position.divisor == 1
                    if not (position.start.symbols or position.wrap)
                )
                found.append(tuple(reads))
                continue
            case Combine(factors=factors, patterns=patterns) if all(_is_finite(factor) for factor in factors):
                pairs = zip(step.operands, patterns, strict=True)
                parts = [LabelledStep(n, tuple(one.labels[label] for label in pattern)) for n, pattern in pairs]
            case Scale(factor=factor) if _is_finite(factor):
                parts = [replace(one, step=step.operands[0])]
            case _:
                found.append(())
                continue
        left += set(parts) - met
        met.update(parts)
    return found


def _place(label: Var) -> Term:
    """Which element of its axis an index is, the first of which is 0, as views count them."""
    axis = domain_of(label)
    return affine([(label, 1), (size_form(axis.bound), 1)]) if isinstance(axis, Symmetric) else label


def _is_finite(factor: SizeFactor) -> bool:
    """Whether zeros times a factor are zeros."""
    return isfinite(factor.number.real) and isfinite(factor.number.imag)


def over(labels: Sequence[Var], own: Sequence[Var], condition: IndexCondition) -> IndexCondition:
    """A condition on some of the labels as one on all of them."""
    steps = dict(zip(own, condition.steps, strict=True))
    return replace(condition, steps=tuple(steps.get(label, 0) for label in labels))


def _is_unit(delta: Delta) -> bool:
    """Whether a δ compares two indices of one domain."""
    return isinstance(delta.left, Var) and isinstance(delta.right, Var) and is_renaming(delta.left, delta.right)


def _host(graph: Graph, product: Product, condition: IndexGuard) -> None:
    """See to it that some operand has all indices of a condition: the same is read along those that it lacks."""
    labels = mask(condition)[0]
    if not product.operands:
        product.operands.append(graph.constant(ONE))
        product.reads.append(())
    missing = [[label for label in labels if label not in value.labels] for value in product.operands]
    if not all(missing):
        return
    best = min(range(len(missing)), key=lambda n: (len(missing[n]), graph.size(product.operands[n])))
    value = product.operands[best]
    product.operands[best] = graph.arrange(value, (*value.labels, *missing[best]))


def _meets(condition: IndexGuard, value: LabelledStep) -> bool:
    return not condition.free.isdisjoint(value.labels)


def _needed(graph: Graph, product: Product) -> list[IndexGuard]:
    """The conditions that must be told: those where no read is 0 by itself, or something may be undefined."""
    every = [read for known in product.reads for read in known]
    pairs = list(zip(product.operands, product.reads, strict=True))
    unsafe = [known for value, known in pairs if graph.unsafe[value.step]]
    return [m for m in product.masks if not all(needless(m, known) for known in (every, *unsafe))]


def _without_mask(graph: Graph, product: Product, var: Var, names: Names) -> bool:
    """Put a running sum or a window in place of the bounds of a summed index; says whether it was done."""
    asked = [m for m in (*product.masks, *product.lookups) if var in m.free]
    apart = len(asked) == 1 and isinstance(asked[0], Unequal) and not asked[0].cycle
    found = _bounds(var, _sides(asked[0]) if apart else asked)
    inner = [value for value in product.operands if var in value.labels]
    mixed = any(other in value.labels for bound in found for other in bound.others for value in inner)
    if not found or mixed:
        return False
    if len(asked) == 1 and found[0].others:
        if not inner:
            product.operands.append(graph.arrange(graph.constant(ONE), (var,)))
            product.reads.append(())
        product.masks = [mask for mask in product.masks if mask is not asked[0]]
        _run(graph, product, var, found)
        return True
    return len(asked) == 2 and bool(inner) and _slide(graph, product, var, found, names)


def _sides(condition: IndexGuard) -> list[IndexGuard]:
    """Below and above what an index is not equal to."""
    return [Indicator(affine([(child, sign)], -1)) for child in condition.children for sign in (1, -1)]


def _bounds(var: Var, asked: Sequence[IndexGuard]) -> list[IndexBound]:
    """Conditions on an index as bounds of it; none where one is no such bound."""
    found = [index_bound(var, condition) for condition in asked]
    bounds = [bound for bound in found if bound is not None]
    return bounds if len(bounds) == len(found) else []


def index_bound(var: Var, condition: IndexGuard) -> IndexBound | None:
    """A condition on an index as a bound of it; None where it is no such bound."""
    if not isinstance(condition, Indicator) or condition.modulus:
        return None
    labels, steps, start, _ = mask_of_form(condition.form)
    along = dict(zip(labels, steps, strict=True))
    if abs(along[var]) != 1:
        return None
    others = tuple(label for label in labels if label is not var)
    return IndexBound(condition, along[var], others, tuple(along[o] for o in others), start)


def gathered(graph: Graph, product: Product, var: Var) -> LabelledStep:
    """The product of the operands that have an index, taken out of the product; summed over what no one else has.

    Operands that have no other indices than those join them, so that more is summed over first.
    """
    pairs = list(zip(product.operands, product.reads, strict=True))
    labels = {label for value, _ in pairs if var in value.labels for label in value.labels}
    inner = [value for value, _ in pairs if value.labels and labels.issuperset(value.labels)]
    outer = [pair for pair in pairs if not (pair[0].labels and labels.issuperset(pair[0].labels))]
    product.operands, product.reads = [value for value, _ in outer], [known for _, known in outer]
    private = product.private(labels) - {var}
    product.summed = [index for index in product.summed if index not in private]
    return joined(graph, inner, labels - private)


def _run(graph: Graph, product: Product, var: Var, bounds: Sequence[IndexBound]) -> None:
    """Σ_j [j ≤ i]·f(j) as a running sum of f, Σ_j [j ≠ i]·f(j) as one from each end: no term is taken away again."""
    value = graph.plain(gathered(graph, product, var))
    axis = value.labels.index(var)
    sums = []
    for bound in bounds:
        labels = (*value.labels[:axis], *bound.others, *value.labels[axis + 1 :])
        operation = PrefixSum(axis, bound.sign, bound.steps, bound.start)
        sums.append((UNIT, graph.labelled(operation, (value,), labels, graph.kind(value))))
    product.operands.append(graph.combine(sums) if len(sums) > 1 else sums[0][1])
    product.reads.append(())
    product.summed.remove(var)


def _slide(graph: Graph, product: Product, var: Var, found: list[IndexBound], names: Names) -> bool:
    """Σ_j [0 ≤ i − j]·[i − j ≤ w]·f(j) as a window of f, where w is a number."""
    lower, upper = found
    width = affine([(lower.condition.form, 1), (upper.condition.form, 1)])
    parts, last = affine_parts(width)
    if parts or last < 0 or isinstance(var.type, Cyclic) or not lower.others or not isinstance(last, int):
        return False
    value = gathered(graph, product, var)
    new = names.fresh(Var("z", Range(last + 1)))
    coefficient = dict(affine_parts(lower.condition.form)[0])[var]
    rest = affine([(lower.condition.form, 1), (var, -coefficient)])
    place = affine([(new, coefficient), (rest, -coefficient)])
    product.operands.append(graph.relabel(value, var, place))
    product.reads.append(((place, domain_of(var)),))
    product.summed = [new if index is var else index for index in product.summed]
    product.masks = [m for m in product.masks if m is not lower.condition and m is not upper.condition]
    return True
