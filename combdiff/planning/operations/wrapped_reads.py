"""Expressions for reads around a cycle: rolls, or index arrays for the axes that wrap and slices for the others.

    u[p, (i + 1) mod n]       becomes    np.roll(u, -1, 1)
    u[p, (i + 1) mod 3]       becomes    np.concatenate((u[:, 1:], u[:, :1]), 1)
    u[(i + start) mod n]      becomes    _wrapped(np, u, 0, start, block)      of a block: a slice, or two joined
    S[p, k, (k + b) mod K]    becomes    i1 = np.arange(K)
                                         i2 = (i1[:, None] + np.arange(-B, B + 1)) % K
                                         S[:, i1[:, None], i2]

They read only what is needed, where a view of a wrapped axis needs a copy of the whole array with the axis made longer.
An index array of two axes or more has a name, under which other reads use it again.

Invariant: an expression has the value of its step for arrays of every size.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

from combdiff.dialects import parenthesised
from combdiff.ir import Domain
from combdiff.planning.extents import elements, extent_form, never_negative
from combdiff.planning.operations.operation import Step
from combdiff.planning.operations.positions import Position
from combdiff.planning.operations.words import Words
from combdiff.polyhedra import Linear

Positions = Sequence[Position]  # of a read, one for each axis
Lengths = Sequence[Linear]  # of these axes

MOST = 4  # a view that repeats elements more often than this is worth the copy it is of
MOST_PERMUTED = 3  # labels whose orders are all compared with the index arrays that are there


def wrapped_read(words: Words, read: Positions, operand: str, step: Step) -> str | None:
    """The expression of a read that wraps; None for those that need zeros, and for large windows."""
    source = words.axes[step.operands[0]]
    sizes = words.planned
    if text := _rolled(words, read, operand, step):
        return text
    if words.dialect.strided and (text := _sliced(words, read, operand, step)):
        return text
    if words.dialect.strided and elements(step.axes, sizes) > MOST * elements(source, sizes):
        return None
    return indexed_read(words, read, operand, [extent_form(axis) for axis in source], step)


def indexed_read(words: Words, read: Positions, operand: str, lengths: Lengths, step: Step) -> str | None:
    """The expression by index arrays of a read of an operand with axes of these lengths; None where it leaves it."""
    bare = [_bare(n, read, step, length) for n, length in enumerate(lengths)]
    gathered = [n for n, label in enumerate(bare) if label is None]
    labels = tuple(sorted({label for n in gathered for label in _labels(read[n])}))
    if not labels or not all(_inside(words, read[n], step, lengths[n]) for n in gathered):
        return None
    known = words.index_arrays.names
    orders = permutations(labels) if len(labels) <= MOST_PERMUTED else [labels]
    written = [(order, _grids(words, [(read[n], lengths[n]) for n in gathered], step, order)) for order in orders]
    labels, grids = next((one for one in written if not known.keys().isdisjoint(one[1])), written[0])
    for label in labels:
        if sum(text.count(each := _range(words, step.axes[label])) for text in {*grids} - known.keys()) > 1:
            words.index_arrays.named(each)
    items = [":"] * len(lengths)
    for n, text in zip(gathered, grids, strict=True):
        large = len(_labels(read[n])) > 1
        items[n] = words.index_arrays.named(text) if large else words.index_arrays.short(text)
    text = f"{operand}[{', '.join(items)}]"
    return words.dialect.transposed(text, _order(bare, gathered, labels, len(step.axes)))


def _rolled(words: Words, read: Positions, operand: str, step: Step) -> str | None:
    """The expression where each axis is read around along a label of its own, forwards or backwards."""
    source, turned, shifts, order = words.axes[step.operands[0]], [], {}, []
    for n, (position, axis) in enumerate(zip(read, source, strict=True)):
        labels = _labels(position)
        if len(labels) != 1 or abs(position.steps[labels[0]]) != 1 or position.divisor != 1:
            return None
        if extent_form(step.axes[labels[0]]) != extent_form(axis) or not (
            position.wrap or position.along() is not None
        ):
            return None
        order += labels
        turned.append("::-1" if position.steps[labels[0]] < 0 else ":")
        # u[(c - i) mod n] is v[(i + n - 1 - c) mod n] of the reversed v
        shift = position.start + 1 if turned[n] == "::-1" else position.start.scale(-1)
        if shift != Linear():
            shifts[n] = shift
    if sorted(order) != list(range(len(step.axes))):
        return None
    text = words.dialect.indexed(operand, turned)
    if len(shifts) == 1 and (joined := _joined(words, text, *next(iter(shifts.items())), source)):
        text = joined
    elif shifts:
        by, axes = (", ".join(map(str, part)) for part in (map(words.form, shifts.values()), shifts))
        by, axes = (f"({part})" if len(shifts) > 1 else part for part in (by, axes))
        text = f"{words.dialect.np}.roll({text}, {by}, {axes})"
    return words.dialect.transposed(text, [order.index(label) for label in range(len(order))])


def _joined(words: Words, array: str, axis: int, shift: Linear, source: Sequence[Domain]) -> str | None:
    """The parts of an axis in the order of np.roll, which takes five times as long for few numbers."""
    length = extent_form(source[axis])
    if not words.dialect.strided or shift.symbols or length.symbols:
        return None
    at, before = -int(shift.constant), ":, " * axis
    if abs(at) >= int(length.constant):
        return None
    return f"{words.dialect.np}.concatenate(({array}[{before}{at}:], {array}[{before}:{at}]), {axis})"


def _sliced(words: Words, read: Positions, operand: str, step: Step) -> str | None:
    """The expression where parts of axes are read, each along a label of its own; None for other reads."""
    source = words.axes[step.operands[0]]
    used = [_labels(position) for position in read]
    if sorted(label for labels in used for label in labels) != list(range(len(step.axes))):
        return None
    for axis, (position, labels) in enumerate(zip(read, used, strict=True)):
        if len(labels) != 1 or position.steps[labels[0]] != 1 or position.divisor != 1:
            return None
        length = extent_form(step.axes[labels[0]])
        if position.along() is None or length != extent_form(source[axis]):
            if not position.wrap:
                return None
            operand = (
                f"_wrapped({words.dialect.np}, {operand}, {axis}, {words.form(position.start)}, {words.form(length)})"
            )
    return words.dialect.transposed(operand, [used.index([label]) for label in range(len(used))])


def _range(words: Words, axis: Domain) -> str:
    return words.dialect.arange(words.extent(axis))


def _grids(words: Words, read: Sequence[tuple[Position, Linear]], step: Step, labels: Sequence[int]) -> list[str]:
    """The positions on axes of some lengths that are read by index arrays, as arrays over the labels."""
    texts = []
    for position, length in read:
        steps = tuple(position.steps[label] for label in labels)
        text = words.grid(steps, position.start, [step.axes[label] for label in labels])
        wraps = position.wrap and position.along() is None
        texts.append(f"({text}) % {parenthesised(words.form(length))}" if wraps else text)
    return texts


def _labels(position: Position) -> list[int]:
    return [label for label, size in enumerate(position.steps) if size]


def _bare(n: int, read: Positions, step: Step, length: Linear) -> int | None:
    """The label that an axis runs along, where no other axis is read along it; None for other axes."""
    label = read[n].along()
    used = sum(label in _labels(position) for position in read)
    return label if label is not None and used == 1 and extent_form(step.axes[label]) == length else None


def _inside(words: Words, position: Position, step: Step, length: Linear) -> bool:
    """Whether a position is always on its axis: it stays there, or it wraps, where one that is empty is not read."""
    equal = any(extent_form(step.axes[label]) == length for label in _labels(position))
    if position.divisor > 1 or (equal and (position.wrap or position.along() is not None)):
        return position.divisor == 1
    first, last = position.ends(step.axes)
    stays = never_negative(first) and never_negative(length - 1 - last)
    return stays and not position.wrap and not words.dialect.strided


def _order(bare: Sequence[int | None], gathered: Sequence[int], labels: Sequence[int], rank: int) -> list[int]:
    """Where the labels stand in what is read: index arrays that are not side by side give axes in front."""
    together = list(gathered) == list(range(gathered[0], gathered[-1] + 1))
    before = [label for label in bare[: gathered[0]] if label is not None] if together else []
    after = [label for label in bare if label is not None and label not in before]
    placed = [*before, *labels, *after]
    return [placed.index(label) for label in range(rank)]
