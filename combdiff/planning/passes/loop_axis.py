"""Where an index runs through an array step: along which axis of each operand, and of the result.

    z[i] = Σ_j X[i, j]·w[j]       along i: axis 0 of X, none of w, axis 0 of z
                                  along j: axis 1 of X, axis 0 of w, none of z (it is summed over)

Labels are numbered as the operation of a step does.

Invariant: where a label has a lane, the step on blocks of it gives blocks of the result, or, where it is summed over,
numbers that add up to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from combdiff.planning.operations import (
    Arrange,
    Combine,
    ConjugateElements,
    Contract,
    ElementwiseStep,
    Mask,
    MaskedContract,
    PrefixSum,
    Read,
    Reduce,
    ReduceMax,
    Scale,
    Step,
)


@dataclass(frozen=True)
class Lane:
    """Where an index runs in a step: the axis of each operand (None: the operand lacks it), and of the result (None:
    it is summed over)."""

    operands: tuple[int | None, ...]
    result: int | None


def lane(step: Step, label: int) -> Lane | None:
    """The axes that a label of a step names; None for steps that need all of the index at once."""
    match step.operation:
        case Contract(left=left, right=right, out=out):
            return Lane((place(left, label), place(right, label)), place(out, label))
        case Combine(patterns=patterns) | ElementwiseStep(patterns=patterns):
            return Lane(tuple(place(pattern, label) for pattern in patterns), label)
        case MaskedContract(patterns=patterns, out=out):
            return Lane(tuple(place(pattern, label) for pattern in patterns), place(out, label))
        case ConjugateElements() | Scale() | Mask():
            return Lane((label,), label)
        case PrefixSum(axis=axis, steps=bounds):
            shift = (len(bounds) - 1) * (label > axis)
            return Lane((label - shift,), label) if not axis <= label < axis + len(bounds) else None
        case Reduce(summed=summed) | ReduceMax(summed=summed):
            if label not in summed:
                return Lane((label,), label - sum(axis < label for axis in summed))
            return Lane((label,), None) if isinstance(step.operation, Reduce) else None
        case Arrange(order=order):
            return Lane((order[label],), label)
        case Read(positions=positions):
            used = [n for n, position in enumerate(positions) if position.steps[label]]
            if len(used) == 1 and positions[used[0]].along() == label:
                return Lane((used[0],), label)
    return None


def label_of_result(step: Step, axis: int) -> int:
    """The label that an axis of the result has."""
    match step.operation:
        case Contract(out=out) | MaskedContract(out=out):
            return out[axis]
        case Reduce(summed=summed) | ReduceMax(summed=summed):
            return [n for n in range(len(step.axes) + len(summed)) if n not in summed][axis]
    return axis


def label_of_operand(step: Step, position: int, axis: int) -> int | None:
    """The label that an axis of an operand has; None where there is none."""
    match step.operation:
        case Contract(left=left, right=right):
            return (left, right)[position][axis]
        case Combine(patterns=patterns) | ElementwiseStep(patterns=patterns):
            return patterns[position][axis]
        case MaskedContract(patterns=patterns):
            return patterns[position][axis]
        case ConjugateElements() | Scale() | Reduce() | ReduceMax() | Mask():
            return axis
        case PrefixSum(axis=along, steps=bounds):
            return axis + (len(bounds) - 1) * (axis > along) if axis != along else None
        case Arrange(order=order) if axis in order:
            return order.index(axis)
        case Read() as read if (diagonal := read.diagonal()) is not None:
            return diagonal[axis]
    return None


def place(pattern: Sequence[int], label: int) -> int | None:
    """Where a label stands in a pattern, None where it does not."""
    return pattern.index(label) if label in pattern else None
