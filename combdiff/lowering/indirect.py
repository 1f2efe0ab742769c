"""Expressions for indices that integer arrays hold.

    Take(axis=1) on A, idx            A[:, idx]
    Scatter on k, idx                 _scatter(k, idx, n)
    Scatter(axes=2) on k, a·m + b     _scatter(k, t, n * m).reshape(n, m)
    Hit on idx                        (np.arange(n)[:, None] == idx).astype(real)

Invariant: an expression has the value of its step for arrays of every size.
"""

from __future__ import annotations

from collections.abc import Sequence

from combdiff.affine import Linear
from combdiff.errors import UnsupportedError
from combdiff.lowering.fragments import parenthesised
from combdiff.lowering.index_arrays import Words, grid
from combdiff.lowering.steps import Hit, Scatter, Step, Take


def indirect(writer: Words, operation: Take | Scatter | Hit, operands: Sequence[str], step: Step) -> str:
    """The expression of a step that reads or adds up at indices held in an array."""
    match operation:
        case Take():
            return _take(writer, operation, operands, step)
        case Scatter():
            return _scatter(writer, operation, operands, step)
        case Hit():
            return _hit(writer, operation, operands[0], step)


def _stored(writer: Words, index: str, first: Linear, extent: str) -> str:
    """Where an index is stored; `extent` is the size of a cycle, empty elsewhere."""
    if extent:
        return f"{index} % {extent}" if extent.isalnum() else f"{index} % ({extent})"
    return index if first == Linear() else f"{index} - ({writer.form(first)})"


def _take(writer: Words, op: Take, operands: Sequence[str], step: Step) -> str:
    axes = writer.plan.steps[step.operands[0]].axes
    index = _stored(writer, operands[1], op.first, writer.extent(axes[op.axis]) if op.wrap else "")
    if op.plain:
        return f"{operands[0]}[{', '.join([*[':'] * op.axis, index])}]"
    rank, items = len(step.axes), []
    for axis, place in zip(axes, op.left, strict=True):
        if place is None:
            text = index if index == operands[1] else f"({index})"
            items.append(writer.placed(text, op.index, rank))
        else:
            writer.uses_device = True
            items.append(writer.placed(writer.dialect.arange(writer.extent(axis)), (place,), rank))
    return f"{operands[0]}[{', '.join(items)}]"


def _scatter(writer: Words, op: Scatter, operands: Sequence[str], step: Step) -> str:
    if "_scatter" not in writer.dialect.helpers():
        raise UnsupportedError(
            f"adding up at indices held in an array is not supported on the backend {writer.dialect.name!r}",
            hint="give NumPy arrays",
        )
    extents = [writer.extent(axis) for axis in step.axes]
    index = _stored(writer, operands[1], op.first, extents[0] if op.wrap else "")
    size = extents[0] if op.axes == 1 else " * ".join(map(parenthesised, extents[: op.axes]))
    text = f"_scatter({operands[0]}, {index}, {size})"
    return text if op.axes == 1 else f"{text}.reshape({', '.join(extents)})"


def _hit(writer: Words, op: Hit, index: str, step: Step) -> str:
    rank = len(step.axes)
    form = grid(writer, op.steps, op.start, step.axes)
    value = writer.placed(index, op.index, rank)
    test = f"({form} - {value}) % ({writer.form(op.modulus)}) == 0" if op.modulus != Linear() else f"{form} == {value}"
    cast = writer.dialect.cast if rank else writer.dialect.scalar
    return cast(f"({test})" if rank else test, writer.dtype(int))
