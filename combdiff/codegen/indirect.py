"""Expressions for indices that integer arrays hold.

    Take(axis=1) on A, idx            A[:, idx]
    Scatter on k, idx                 _scatter(k, idx, n)
    Scatter(axes=2) on k, a·m + b     _scatter(k, t, n * m).reshape(n, m)
    Hit on idx                        (np.arange(n)[:, None] == idx).astype(real)
    Ramp                              np.arange(n)[:, None] + np.arange(1, m + 1)

Invariant: an expression has the value of its step for arrays of every size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from combdiff.codegen.fragments import parenthesised, tuple_text
from combdiff.codegen.index_arrays import Words, grid
from combdiff.ir import Domain
from combdiff.planning import At, Clip, IndexEquals, Iota, Pattern, Scatter, Step, Take
from combdiff.polyhedra import Linear


def indirect(
    writer: Words, operation: Take | Scatter | IndexEquals | Clip | Iota, operands: Sequence[str], step: Step
) -> str:
    """The expression of a step that reads or adds up at indices held in an array."""
    match operation:
        case Take():
            return _take(writer, operation, operands, step)
        case Scatter():
            return _scatter(writer, operation, operands, step)
        case IndexEquals():
            return _hit(writer, operation, operands[0], step)
        case Clip(first=first, extent=extent):
            last = writer.form(first + extent - 1)
            return f"{writer.dialect.np}.clip({operands[0]}, {writer.form(first)}, {last})"
        case Iota():
            return grid(writer, operation.steps, operation.start, step.axes, full=True)


def _stored(writer: Words, index: str, op: At | Scatter, domain: Domain) -> str:
    """Where an index is stored."""
    if op.wrap:
        return f"{index} % {parenthesised(writer.extent(domain))}"
    return index if op.first == Linear() else f"{index} - ({writer.form(op.first)})"


def _take(writer: Words, op: Take, operands: Sequence[str], step: Step) -> str:
    axes = writer.plan.steps[step.operands[0]].axes
    indices = [_stored(writer, operands[each.operand], each, axis) for each, axis in _read(op, axes)]
    if not writer.dialect.indexes:
        along = tuple_text(["None" if isinstance(place, At) else str(place) for place in op.places])
        patterns = [tuple_text(map(str, each.pattern)) for each in op.read]
        return f"_take({operands[0]}, {along}, {tuple_text(indices)}, {tuple_text(patterns)}, {len(step.axes)})"
    block, items, held = op.block, [], iter(indices)
    for axis, place in zip(axes, op.places, strict=True):
        if isinstance(place, At):
            items.append(_in_block(writer, next(held), place.pattern, block))
        elif place in block:
            items.append(_in_block(writer, writer.dialect.arange(writer.extent(axis)), (place,), block))
        else:
            items.append(":")
    while items[-1] == ":":
        items.pop()
    return f"{operands[0]}[{', '.join(items)}]"


def _read(op: Take, axes: Sequence[Domain]) -> Iterator[tuple[At, Domain]]:
    return ((place, axis) for place, axis in zip(op.places, axes, strict=True) if isinstance(place, At))


def _in_block(writer: Words, index: str, pattern: Pattern, block: Pattern) -> str:
    """An array of indices among others."""
    text = index if index.isidentifier() or pattern == block else f"({index})"
    return writer.placed(text, tuple(map(block.index, pattern)), len(block))


def _scatter(writer: Words, op: Scatter, operands: Sequence[str], step: Step) -> str:
    extents = [writer.extent(axis) for axis in step.axes]
    index = _stored(writer, operands[1], op, step.axes[0])
    size = extents[0] if op.axes == 1 else " * ".join(map(parenthesised, extents[: op.axes]))
    text = f"_scatter({operands[0]}, {index}, {size})"
    return text if op.axes == 1 else f"{text}.reshape({', '.join(extents)})"


def _hit(writer: Words, op: IndexEquals, index: str, step: Step) -> str:
    rank = len(step.axes)
    form = grid(writer, op.steps, op.start, step.axes)
    value = writer.placed(index, op.index, rank)
    test = f"({form} - {value}) % ({writer.form(op.modulus)}) == 0" if op.modulus != Linear() else f"{form} == {value}"
    cast = writer.dialect.cast if rank else writer.dialect.scalar
    return cast(f"({test})" if rank else test, writer.dtype(int))
