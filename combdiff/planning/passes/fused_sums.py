"""Sums of products that a compiler does without an array of what is summed: with the summed axes last, for each anew.

    t = c[:, :, None] - p.T                            (k, d, n), read by two sums
    (t * t).sum(1), einsum("abc,ac->ab", t, w)
    =  (lambda t: (t * t).sum(2))(c[:, None, :] - p),  ((c[:, :, None] - p.T) * w[:, None, :]).sum(2)

What is made of smaller arrays takes less time to make twice than to write and to read; and a compiler adds up along the
last axis in a tenth of the time in which it does so along another one.

Invariant: an array is made anew only where each of its readers is such a sum.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from combdiff.planning.operations.chosen_sums import ChosenSum
from combdiff.planning.operations.contraction import FUSED, Contract
from combdiff.planning.operations.elementwise import Combine, ElementwiseStep
from combdiff.planning.operations.operation import Step
from combdiff.planning.operations.words import Pattern
from combdiff.planning.passes.chosen_products import choice_of
from combdiff.planning.plan import NewPlan, Plan, step_by_step

LONG = 8  # elements of a sum from which on a compiler does it quickly along the last axes
LARGER = 4  # times as many elements as its operands have together, from which on an array is made for each sum


def with_fused_sums(plan: Plan) -> Plan:
    """The plan with each sum of products of an array that is soon made over an array of its own."""

    def rewrite(new: NewPlan, old: Step) -> int:
        step = new.moved(old)
        side = _summed_side(plan, old)
        if side is None:
            return new.add(step)
        product = old.operation
        assert isinstance(product, Contract)
        labels = (*product.out, *product.summed)
        mine = old.operands[side], (product.left, product.right)[side]
        order = tuple(map(mine[1].index, labels))
        if chosen := _chosen_sum(new, old, side, order):
            return new.add(chosen)
        made = _made(new, mine[0], order), labels
        both = zip(old.operands, step.operands, (product.left, product.right), strict=True)
        (left, one), (right, two) = (made if (m, labels) == mine else (moved, labels) for m, moved, labels in both)
        return new.add(replace(step, operation=Contract(one, two, product.out, FUSED), operands=(left, right)))

    return step_by_step(plan, rewrite)


def _chosen_sum(new: NewPlan, old: Step, side: int, order: Pattern) -> Step | None:
    """The sum of what truth values choose, by weights that are chosen; None for another."""
    choice, product = choice_of(new.old, old, side), old.operation
    assert isinstance(product, Contract)
    if choice is None:
        return None
    made = new.steps[_made(new, choice.array, order)]
    assert isinstance(made.operation, Combine)
    weights = choice.weights(new, old.operands[1 - side], (product.right, product.left)[side])
    chosen = ChosenSum(made.operation, made.axes, tuple(map(order.index, choice.places)), len(product.out))
    return replace(old, operation=chosen, operands=(weights, new.number[choice.truths], *made.operands))


def _summed_side(plan: Plan, step: Step) -> int | None:
    """Which operand of a sum of products is to be made for it alone, None where none is."""
    match step.operation:
        case Contract(in_place="") as product if product.summed:
            for side, (mine, other) in enumerate(((product.left, product.right), (product.right, product.left))):
                covers = set(other) <= set(mine) and len(set(mine)) == len(mine) == len(product.out + product.summed)
                if covers and _is_made_for_sums(plan, step.operands[side]):
                    return side
    return None


def _is_made_for_sums(plan: Plan, n: int) -> bool:
    """Whether a step is soon made of smaller arrays, or chosen from such a one, and read by sums of products alone."""
    step = plan.steps[n]
    match step.operation:
        case Combine():
            soon = LARGER * sum(map(plan.elements, step.operands)) <= plan.elements(n)
        case ElementwiseStep("chosen", (_, pattern)) if pattern == tuple(range(len(step.axes))):
            soon = plan.is_read_once(n) and _is_made_for_sums(plan, step.operands[1])
        case _:
            return False
    return soon and n not in plan.results and all(_is_read_by_sum(plan, reader, n) for reader, _ in plan.readers[n])


def _is_read_by_sum(plan: Plan, reader: int, n: int) -> bool:
    """Whether a step that reads another is a sum of products of it, or chooses from it for one."""
    step = plan.steps[reader]
    match step.operation:
        case ElementwiseStep("chosen", (_, pattern)) if pattern == tuple(range(len(step.axes))):
            (above,) = plan.readers[reader] if plan.is_read_once(reader) else ((None, 0),)
            return above[0] is not None and step.operands[1] == n and _is_read_by_sum(plan, above[0], reader)
        case Contract(in_place="") as product if product.summed:
            patterns = (product.left, product.right)
            own = {labels for labels, m in zip(patterns, step.operands, strict=True) if m == n}
            extents = dict(zip(next(iter(own)), plan.shape(n), strict=True))
            whole = set(product.out + product.summed)
            is_long = prod(extents[label] for label in product.summed) >= LONG
            return len(own) == 1 and is_long and set(*own) == whole and len(extents) == len(whole)
    return False


def _made(new: NewPlan, n: int, order: Pattern) -> int:
    """The number of a new step that is an old one with its axes in an order."""
    plan = new.old
    step = plan.steps[n]
    operands = tuple(new.number[m] for m in step.operands)
    axes = tuple(step.axes[axis] for axis in order)
    match step.operation:
        case Combine(patterns=patterns) as combine:
            moved = tuple(tuple(map(order.index, pattern)) for pattern in patterns)
            return new.shared(replace(step, operation=replace(combine, patterns=moved), operands=operands, axes=axes))
        case ElementwiseStep("chosen", (places, whole)) as chosen:
            moved = (tuple(map(order.index, places)), whole)
            operands = (operands[0], _made(new, step.operands[1], order))
            return new.add(replace(step, operation=replace(chosen, patterns=moved), operands=operands, axes=axes))
    raise AssertionError(step.operation)
