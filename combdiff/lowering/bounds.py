"""Bounds without masks: running sums, and arrays cut off along an axis.

    Σ_{j ≤ i} x[j]              Running on x: np.cumsum(x), read at i
    [i ≥ 1]·x[i]                Keep on x: zeros, and x[1:] written among them

Invariant: an expression has the value of its step for arrays of every size.
"""

from __future__ import annotations

from combdiff.lowering.index_arrays import Words, grid
from combdiff.lowering.steps import Keep, Running, Step


def bounded(writer: Words, operation: Running | Keep, operand: str, step: Step) -> str:
    """The expression of a step that sums up to a bound, or cuts off at one."""
    rank, axis = len(step.axes), operation.axis
    if isinstance(operation, Running):
        labels = step.axes[axis : axis + len(operation.steps)]
        bound = grid(writer, operation.steps, operation.start, labels, full=True)
        return f"_running({operand}, {axis}, {operation.sign}, {bound})"
    if "_keep" in writer.dialect.helpers():
        return f"_keep({operand}, {axis}, {operation.step}, {writer.form(operation.start)})"
    steps = tuple(operation.step * (n == axis) for n in range(rank))
    return writer.dialect.where(f"({grid(writer, steps, operation.start, step.axes)} >= 0)", operand)
