"""Logarithms of running sums of exponentials as log-sum-exps that the library accumulates.

    s[i] = Σ_{j ≤ i} exp(x[j] − c m[i]),  c m[i] + log s[i]      becomes      np.logaddexp.accumulate(x)

where nothing else reads the sums and their logarithms.

Invariant: the value is that of the logarithm, up to the rounding of one addition for each element.
"""

from __future__ import annotations

from dataclasses import replace

from combdiff.planning.operations.elementwise import Combine, ElementwiseStep, Scale
from combdiff.planning.operations.operation import Step
from combdiff.planning.operations.prefixes import PrefixExponentials, PrefixLogSumExp
from combdiff.planning.operations.words import NEGATIVE, UNIT
from combdiff.planning.plan import Plan, step_by_step


def with_running_logarithms(plan: Plan) -> Plan:
    """The plan with log-sum-exps accumulated where the logarithms of running sums were taken."""
    return step_by_step(plan, lambda new, old: new.add(new.moved(_accumulated(plan, old) or old)))


def _accumulated(plan: Plan, whole: Step) -> Step | None:
    """A step that is c m + log Σ_{j ≤ i} exp(x[j] − c m), of all up to each position, as one of x; None for others."""
    along = tuple(range(len(whole.axes)))
    if not isinstance(whole.operation, Combine) or whole.operation.patterns != (along, along):
        return None
    addends = tuple(zip(whole.operands, whole.operation.factors, strict=True))
    for (shift, factor), (logarithm, unit) in (addends, addends[::-1]):
        log = plan.steps[logarithm]
        if log.operation != ElementwiseStep("log", (along,)) or unit != UNIT:
            continue
        sums = plan.steps[log.operands[0]]
        match sums.operation:
            case PrefixExponentials(low=False, patterns=(inner, outer)) if outer == along and len(inner) == len(along):
                over, (exponent, down) = sums.operation, sums.operands
                summed = [plan.steps[exponent].axes[inner.index(axis)] for axis in along]
                is_alone = plan.is_read_once(logarithm) and plan.is_read_once(log.operands[0])
                is_shifted = plan.steps[down].operation == Scale(NEGATIVE.times(factor))
                is_shifted &= plan.steps[down].operands == (shift,)
                if is_alone and is_shifted and over.takes_all_beside(sums, summed):
                    operation = PrefixLogSumExp(over.axis, over.sign, over.steps, over.start, inner)
                    return replace(whole, operation=operation, operands=(exponent,))
    return None
