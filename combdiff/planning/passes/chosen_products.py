"""Products of an array of which truth values choose some elements: they choose from its weights instead.

    Σ_i [t[i] > 0]·w[i]·X[i,a]     np.where(t > 0, w, 0) @ X, where np.where((t > 0)[:, None], X, 0) is a copy of X

Invariant: what is not chosen has no part in the result, not even where it is infinite or no number.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf

from combdiff.planning.operations.contraction import ChosenProduct, Contract
from combdiff.planning.operations.elementwise import ElementwiseStep
from combdiff.planning.operations.operation import Step
from combdiff.planning.plan import NewPlan, Plan, step_by_step

LEAST = 4  # times as many elements of the array as truth values, from which on this is worth a call


def with_chosen_weights(plan: Plan, most: float = inf) -> Plan:
    """The plan with products of chosen elements, of at most so many, as products with chosen weights."""

    def rewrite(new: NewPlan, old: Step) -> int:
        step = new.moved(old)
        for side in (0, 1) if isinstance(old.operation, Contract) and old.operation.summed else ():
            if plan.is_read_once(old.operands[side]) and (found := _weighed(plan, new, old, side, most)):
                return new.add(replace(step, operation=found[0], operands=found[1]))
        return new.add(step)

    return step_by_step(plan, rewrite)


def _weighed(
    plan: Plan, new: NewPlan, old: Step, side: int, most: float
) -> tuple[ChosenProduct, tuple[int, ...]] | None:
    """The product and its operands, of which one side is chosen by truth values that are few; None for another."""
    choice, product = plan.steps[old.operands[side]], old.operation
    assert isinstance(product, Contract)
    match choice.operation:
        case ElementwiseStep("chosen", (places, pattern)) if pattern == tuple(range(len(choice.axes))):
            truths, array = choice.operands
        case _:
            return None
    mine, others = (product.right, product.left) if side else (product.left, product.right)
    labels = tuple(mine[place] for place in places)
    elements = plan.elements(array)
    if not set(others) <= set(labels) or not LEAST * plan.elements(truths) <= elements <= most:
        return None
    chosen = ElementwiseStep("chosen", (tuple(range(len(labels))), tuple(map(labels.index, others))))
    condition, other = new.number[truths], new.number[old.operands[1 - side]]
    if (new.steps[other].operation, new.steps[other].operands[:1]) == (chosen, (condition,)):
        weights = other  # chosen already
    else:
        weights = new.add(Step(chosen, (condition, other), new.steps[condition].axes, new.steps[other].kind))
    return ChosenProduct(Contract(mine, labels, product.out), places), (new.number[array], weights, condition)
