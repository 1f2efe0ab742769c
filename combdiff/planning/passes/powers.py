"""All powers of numbers up to one: each is a product of two that there are, and not a power of its own.

    t[:, None] ** np.arange(m)      becomes      1, t;  t², t³ = t²·(1, t);  t⁴ … t⁷ = t⁴·(1 … t³);  …

Polynomials are such sums, and NumPy takes for a power with an exponent that varies the time of twenty products. A power
by products is that of a number within half a rounding of the one that is given.

Invariant: powers of 0 and of infinities are what they are, one by one; those with exponents below 0 are taken so.
"""

from __future__ import annotations

from dataclasses import replace

from combdiff.planning.operations.elementwise import Combine, ElementwiseStep
from combdiff.planning.operations.indirections import Iota
from combdiff.planning.operations.leaves import Fill
from combdiff.planning.operations.operation import Step
from combdiff.planning.operations.prefixes import Powers
from combdiff.planning.operations.words import UNIT
from combdiff.planning.plan import NewPlan, Plan, step_by_step
from combdiff.polyhedra import Linear

LEAST = 1 << 12  # powers that are worth it
SHORTEST = 4  # exponents of one number


def with_powers_by_products(plan: Plan) -> Plan:
    """The plan with powers by products, where the exponents are those of a range."""

    def rewrite(new: NewPlan, old: Step) -> int:
        step = new.moved(old)
        found = _powers(plan, old)
        return new.add(replace(step, operation=found, operands=step.operands[:1]) if found else step)

    return step_by_step(plan, rewrite)


def _powers(plan: Plan, step: Step) -> Powers | None:
    """The powers that a step takes, of an array that has not the axis of the exponents."""
    op = step.operation
    if not isinstance(op, ElementwiseStep) or op.name != "power" or step.kind is int:
        return None
    (base, exponents), (along, axes) = step.operands, op.patterns
    first = _first(plan, exponents)
    if len(axes) != 1 or axes[0] in along or not along or first is None or plan.steps[base].kind is not step.kind:
        return None
    count = plan.shape(exponents)[0]
    if count < SHORTEST or count * plan.elements(base) < LEAST:
        return None
    return Powers(axes[0], along, first)


def _first(plan: Plan, n: int) -> Linear | None:
    """The first of the numbers from one on that a step is; None where it is others."""
    step = plan.steps[n]
    match step.operation:
        case Iota(steps=(1,), start=start):
            return start
        case ElementwiseStep(name="counted"):
            return _first(plan, step.operands[0])
        case Combine(factors=factors, patterns=((0,), ()) | ((), (0,)) as patterns) if factors == (UNIT, UNIT):
            ranged, beside = step.operands if patterns[0] else step.operands[::-1]
            first, added = _first(plan, ranged), plan.steps[beside].operation
            if first is None or not isinstance(added, Fill) or not isinstance(added.number.real, int):
                return None
            return first + added.number.real
    return None
