"""Products of an array of which truth values choose some elements: they choose from its weights instead.

    Σ_i [t[i] > 0]·w[i]·X[i,a]     np.where(t > 0, w, 0) @ X, where np.where((t > 0)[:, None], X, 0) is a copy of X

Invariant: what is not chosen has no part in the result, not even where it is infinite or no number.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf

from combdiff.planning.operations.contraction import FUSED, ChosenProduct, Contract
from combdiff.planning.operations.elementwise import ElementwiseStep
from combdiff.planning.operations.operation import Step
from combdiff.planning.operations.words import Pattern
from combdiff.planning.plan import NewPlan, Plan, step_by_step
from combdiff.records import dataclass

LEAST = 4  # times as many elements of the array as truth values, from which on this is worth a call


def with_chosen_weights(plan: Plan, most: float = inf) -> Plan:
    """The plan with products of chosen elements, of at most so many, as products with chosen weights."""

    def rewrite(new: NewPlan, old: Step) -> int:
        step = new.moved(old)
        for side in (0, 1) if _is_product(old) else ():
            if plan.is_read_once(old.operands[side]) and (found := _weighed(plan, new, old, side, most)):
                return new.add(replace(step, operation=found[0], operands=found[1]))
        return new.add(step)

    return step_by_step(plan, rewrite)


def _is_product(step: Step) -> bool:
    """Whether a step is a product of arrays that are there, not of elements while they are summed."""
    product = step.operation
    return isinstance(product, Contract) and bool(product.summed) and product.in_place != FUSED


@dataclass(frozen=True)
class ChosenSide:
    """What truth values choose of an array that is one side of a product: the numbers of both in the plan.

    `labels` are those of the product that the truth values have, `places` the axes of the array along them.
    """

    truths: int
    array: int
    labels: Pattern
    places: Pattern

    def weights(self, new: NewPlan, other: int, others: Pattern) -> int:
        """The number of the other side, which has the labels `others`, chosen by the truth values."""
        chosen = ElementwiseStep("chosen", (tuple(range(len(self.labels))), tuple(map(self.labels.index, others))))
        condition, weights = new.number[self.truths], new.number[other]
        before = new.steps[weights]
        if (before.operation, before.operands[:1]) == (chosen, (condition,)):  # chosen already
            return weights
        return new.shared(Step(chosen, (condition, weights), new.steps[condition].axes, before.kind))


def choice_of(plan: Plan, step: Step, side: int) -> ChosenSide | None:
    """The choice that is one side of a product, if the other side can be chosen instead."""
    choice, product = plan.steps[step.operands[side]], step.operation
    assert isinstance(product, Contract)
    mine, others = (product.right, product.left) if side else (product.left, product.right)
    match choice.operation:
        case ElementwiseStep("chosen", (places, pattern)) if pattern == tuple(range(len(choice.axes))):
            truths, array = choice.operands
            labels = tuple(mine[place] for place in places)
            return ChosenSide(truths, array, labels, places) if set(others) <= set(labels) else None
    return None


def _weighed(
    plan: Plan, new: NewPlan, old: Step, side: int, most: float
) -> tuple[ChosenProduct, tuple[int, ...]] | None:
    """The product and its operands, of which one side is chosen by truth values that are few; None for another."""
    choice, product = choice_of(plan, old, side), old.operation
    assert isinstance(product, Contract)
    if choice is None or not LEAST * plan.elements(choice.truths) <= plan.elements(choice.array) <= most:
        return None
    mine, others = (product.right, product.left) if side else (product.left, product.right)
    weights = choice.weights(new, old.operands[1 - side], others)
    whole = ChosenProduct(Contract(mine, choice.labels, product.out), choice.places)
    return whole, (new.number[choice.array], weights, new.number[choice.truths])
