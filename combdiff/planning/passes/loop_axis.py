"""Where an index runs through an array step: along which axis of each operand, and of the result.

    z[i] = Σ_j X[i, j]·w[j]       along i: axis 0 of X, none of w, axis 0 of z
                                  along j: axis 1 of X, axis 0 of w, none of z (it is summed over)

Labels are numbered as the operation of a step does.

Invariant: where a label has a lane, the step on blocks of it gives blocks of the result, or, where it is summed over,
numbers that add up to it.
"""

from __future__ import annotations

from collections.abc import Sequence

from combdiff.planning.operations.operation import Step
from combdiff.records import dataclass


@dataclass(frozen=True)
class Lane:
    """Where an index runs in a step: the axis of each operand (None: the operand lacks it), and of the result (None:
    it is summed over)."""

    operands: tuple[int | None, ...]
    result: int | None


def lane(step: Step, label: int) -> Lane | None:
    """The axes that a label of a step names; None for steps that need all of the index at once."""
    labels = step.operation.labels(step)
    if labels is None or label in labels.whole:
        return None
    return Lane(tuple(place(pattern, label) for pattern in labels.operands), place(labels.result, label))


def label_of_result(step: Step, axis: int) -> int:
    """The label that an axis of the result has."""
    labels = step.operation.labels(step)
    return labels.result[axis] if labels else axis


def label_of_operand(step: Step, position: int, axis: int) -> int | None:
    """The label that an axis of an operand has; None where there is none."""
    labels = step.operation.labels(step)
    return labels.operands[position][axis] if labels else None


def place(pattern: Sequence[int | None], label: int) -> int | None:
    """Where a label stands in a pattern, None where it does not."""
    return pattern.index(label) if label in pattern else None
