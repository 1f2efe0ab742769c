"""Fourier transforms along one axis after another as one along all of these: libraries have a call for them.

    np.fft.fft(np.fft.fft(x, axis=0))      becomes      np.fft.fftn(x, axes=(0, 1))

Invariant: what else reads the transform along one axis keeps it.
"""

from __future__ import annotations

from dataclasses import replace

from combdiff.planning.operations.operation import Step
from combdiff.planning.operations.transforms import FourierTransform
from combdiff.planning.plan import NewPlan, Plan, step_by_step


def with_joint_transforms(plan: Plan) -> Plan:
    """The plan with transforms of transforms, which nothing else reads, as one."""

    def rewrite(new: NewPlan, old: Step) -> int:
        step = new.moved(old)
        joined = (
            _joined(step, new.steps[step.operands[0]]) if old.operands and plan.is_read_once(old.operands[0]) else None
        )
        return new.add(joined or step)

    return step_by_step(plan, rewrite)


def _joined(step: Step, below: Step) -> Step | None:
    """A transform of a transform as one step; None where there are none, or they are along one axis."""
    match step.operation, below.operation:
        case FourierTransform(axes=last, sign=sign), FourierTransform(axes=first, sign=other):
            if sign == other and not set(last) & set(first):
                both = FourierTransform(tuple(sorted((*first, *last))), sign)
                return replace(step, operation=both, operands=below.operands)
    return None
