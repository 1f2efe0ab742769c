"""Numbers multiplied where least is to be multiplied: into the vector, not into the product.

    t = A @ x,  2·t      becomes      t = A @ (2·x)      for a vector that is shorter than the product

Invariant: a plan never costs more operations after it, and arrays that are needed unscaled stay so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from combdiff.ir import join
from combdiff.planning.extents import elements
from combdiff.planning.operations import Contract, Scale, SizeFactor, Step
from combdiff.planning.plan import Plan, rewritten

ROUNDS = 4  # products within products
KERNELS = ("matrix-vector", "batched matrix-vector", "outer", "multiply")


def scaled_early(plan: Plan) -> Plan:
    """The plan with factors of products multiplied into their smallest operands."""
    for _ in range(ROUNDS):
        uses = Counter([m for step in plan.steps for m in step.operands] + list(plan.results))
        moved = {step.operands[0]: step.operation.factor for step in plan.steps if isinstance(step.operation, Scale)}
        moved = {m: f for m, f in moved.items() if uses[m] == 1 and _place(plan.steps, m, f, plan.sizes) is not None}
        if not moved:
            return plan
        plan = _moved(plan, moved)
    return plan


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
    """The plan with these products scaled, and what scaled them before read as it is."""
    new: list[Step] = []
    number: dict[int, int] = {}
    for n, step in enumerate(plan.steps):
        operands = [number[m] for m in step.operands]
        if n in moved:
            position = _place(plan.steps, n, moved[n], plan.sizes)
            assert position is not None
            below = plan.steps[step.operands[position]]
            new.append(Step(Scale(moved[n]), (operands[position],), below.axes, scaled_kind(moved[n], below.kind)))
            operands[position] = len(new) - 1
            step = replace(step, kind=scaled_kind(moved[n], step.kind))
        if isinstance(step.operation, Scale) and step.operands[0] in moved:
            number[n] = number[step.operands[0]]
            continue
        number[n] = len(new)
        new.append(replace(step, operands=tuple(operands)))
    return rewritten(plan, new, number)


def scaled_kind(factor: SizeFactor, kind: type) -> type:
    """The element type of a number times an array of a type."""
    real = kind if isinstance(factor.number.real, int) else join(kind, float)
    return complex if factor.number.imag else real
