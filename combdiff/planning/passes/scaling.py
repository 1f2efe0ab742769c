"""Numbers multiplied where least is to be multiplied: into the vector, not into the product or the sum.

    t = A @ x,  2·t      becomes      t = A @ (2·x)      for a vector that is shorter than the product
    t = m − x,  −1·t     becomes      t = x − m          where the sum takes no more operations than before

Invariant: a plan never costs more operations after it, and arrays that are needed unscaled stay so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from combdiff.ir import join
from combdiff.planning.extents import elements
from combdiff.planning.operations.contraction import Contract
from combdiff.planning.operations.elementwise import Combine, Scale
from combdiff.planning.operations.operation import Step
from combdiff.planning.operations.words import SizeFactor
from combdiff.planning.passes.summands import passes
from combdiff.planning.plan import NewPlan, Plan, step_by_step

ROUNDS = 4  # products within products
KERNELS = ("matrix-vector", "batched matrix-vector", "outer", "multiply")


def scaled_early(plan: Plan) -> Plan:
    """The plan with factors of products multiplied into their smallest operands, those of sums into their terms."""
    for _ in range(ROUNDS):
        moved = {step.operands[0]: step.operation.factor for step in plan.steps if isinstance(step.operation, Scale)}
        moved = {m: f for m, f in moved.items() if plan.is_read_once(m) and _saves(plan, m, f)}
        if not moved:
            return plan
        plan = _moved(plan, moved)
    return plan


def _saves(plan: Plan, n: int, factor: SizeFactor) -> bool:
    """Whether a factor of a step costs less where the step is made."""
    step = plan.steps[n]
    if isinstance(step.operation, Combine):
        return passes(_scaled_sum(step, step.operation, factor)) < passes(step) + 1
    return _place(plan.steps, n, factor, plan.sizes) is not None


def _scaled_sum(step: Step, sum_: Combine, factor: SizeFactor) -> Step:
    """A sum with its factors multiplied by another; what is added stands before what is subtracted."""
    terms = zip(step.operands, sum_.patterns, (each.times(factor) for each in sum_.factors), strict=True)
    operands, patterns, factors = zip(*sorted(terms, key=lambda term: term[2].is_negative), strict=True)
    return replace(step, operation=Combine(factors, patterns), operands=operands, kind=scaled_kind(factor, step.kind))


def _place(steps: Sequence[Step], n: int, factor: SizeFactor, sizes: Mapping[str, int]) -> int | None:
    """The operand of a product to multiply by a factor; None where the product itself is not larger."""
    op = steps[n].operation
    if not isinstance(op, Contract) or op.kernel not in KERNELS:
        return None
    weights = [elements(steps[m].axes, sizes) for m in (*steps[n].operands, n)]
    position = int(weights[1] < weights[0])
    fits = not factor.number.imag or steps[steps[n].operands[position]].kind is complex
    return position if fits and weights[position] < weights[2] else None


def _moved(plan: Plan, moved: Mapping[int, SizeFactor]) -> Plan:
    """The plan with these products and sums scaled, and what scaled them before read as it is."""

    def rewrite(new: NewPlan, step: Step) -> int:
        n, operands = len(new.number), list(new.moved(step).operands)
        if n in moved and isinstance(step.operation, Combine):
            return new.add(new.moved(_scaled_sum(step, step.operation, moved[n])))
        if n in moved:
            position = _place(plan.steps, n, moved[n], plan.sizes)
            assert position is not None
            below = plan.steps[step.operands[position]]
            scaled = Step(Scale(moved[n]), (operands[position],), below.axes, scaled_kind(moved[n], below.kind))
            operands[position] = new.add(scaled)
            step = replace(step, kind=scaled_kind(moved[n], step.kind))
        if isinstance(step.operation, Scale) and step.operands[0] in moved:
            return new.number[step.operands[0]]
        return new.add(replace(step, operands=tuple(operands)))

    return step_by_step(plan, rewrite)


def scaled_kind(factor: SizeFactor, kind: type) -> type:
    """The element type of a number times an array of a type."""
    real = kind if isinstance(factor.number.real, int) else join(kind, float)
    return complex if factor.number.imag else real
