"""Sums over windows that lie side by side, of which each index is in one or few: they are laid out in a row.

    Σ_i y[i, d − 3i]·u[i]      y has 3 columns: T[i, j] = y[i, j]·u[i] in a row, read as T[⌊d/3⌋, d mod 3]

This is what pulls back `x[3i + j]`. Read as it stands, y would be looked at for all pairs of i and d. Windows longer
than their distance (of a convolution with a stride) overlap, and what they have at the same place is added. How long a
window is need not be known before the arrays are: its size only decides whether this is worth it.

Invariant: the value of the product is unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from combdiff.ir import Cyclic, Names, Var, extent
from combdiff.planning.extents import extent_form
from combdiff.planning.lowering.graph import Graph, LabelledStep
from combdiff.planning.lowering.joining import product as joined
from combdiff.planning.lowering.products import Product
from combdiff.planning.operations.positions import Position
from combdiff.planning.operations.reads import Read
from combdiff.planning.operations.sliding import Fold
from combdiff.planning.views import domain_of
from combdiff.polyhedra import Linear
from combdiff.records import dataclass

MOST = 8  # windows that an index is in at most


@dataclass(frozen=True)
class _Tile:
    """The position of `whole` is `stride · summed + inner + start`, with the new label `inner` along a window."""

    summed: Var
    whole: Var
    inner: Var
    stride: int
    start: Linear


def fold(graph: Graph, product: Product, names: Names) -> None:
    """Lay out the windows of a product in a row, where they are side by side."""
    for value in product.operands:
        windows = _apart(_windows(graph, product, value, names))
        if windows:
            inner = _inner(product.operands, windows)
            _lay_out(graph, product, inner, windows)
            return


def _inner(operands: Sequence[LabelledStep], windows: Sequence[_Tile]) -> list[LabelledStep]:
    """The operands that have a summed index of windows, and those that have no other indices than these."""
    summed, whole = {window.summed for window in windows}, {window.whole for window in windows}
    first = [value for value in operands if not summed.isdisjoint(value.labels)]
    labels = {label for value in first for label in value.labels} - whole
    return [value for value in operands if value in first or (value.labels and labels.issuperset(value.labels))]


def _windows(graph: Graph, product: Product, value: LabelledStep, names: Names) -> Iterator[_Tile]:
    """The axes of a view that are read at `a·summed ± whole + c`, none much longer than |a| at the sizes."""
    step = graph.steps[value.step]
    if not isinstance(step.operation, Read) or len(set(value.labels)) < len(value.labels):
        return
    for position, axis in zip(step.operation.positions, graph.steps[step.operands[0]].axes, strict=True):
        used = [n for n, size in enumerate(position.steps) if size]
        if len(used) != 2 or position.divisor > 1 or position.wrap:
            continue
        for m, n in (used, used[::-1]):
            summed, whole, along, sign = value.labels[m], value.labels[n], position.steps[m], position.steps[n]
            form, width = extent_form(axis), extent(axis, graph.sizes)
            free = summed in product.summed and not any(summed in c.free for c in (*product.masks, *product.lookups))
            plain = abs(sign) == 1 and not any(isinstance(domain_of(x), Cyclic) for x in (whole, summed))
            if not free or not plain or (abs(along) == 1 and form not in (Linear(), Linear((), 1))):
                continue
            if width <= min(MOST * abs(along), extent(domain_of(whole), graph.sizes)):
                start = position.start.scale(-sign) - (form - 1 if sign < 0 else Linear())
                yield _Tile(summed, whole, names.fresh(Var("j", axis)), -along * sign, start)


def _apart(windows: Iterator[_Tile]) -> list[_Tile]:
    """Windows of which no two have a label in common."""
    found: list[_Tile] = []
    for window in windows:
        taken = {label for other in found for label in (other.summed, other.whole)}
        if taken.isdisjoint((window.summed, window.whole)):
            found.append(window)
    return found


def _lay_out(graph: Graph, product: Product, inner: Sequence[LabelledStep], windows: Sequence[_Tile]) -> None:
    """Put one operand in place of those that have the summed indices of windows."""
    pairs = list(zip(product.operands, product.reads, strict=True))
    rest = [pair for pair in pairs if not any(pair[0] is value for value in inner)]
    moved = [_moved(graph, value, windows) for value in inner]
    labels = {label for value in moved for label in value.labels}
    product.operands, product.reads = [value for value, _ in rest], [known for _, known in rest]
    private = product.private(labels) - {window.summed for window in windows}
    found = graph.plain(joined(graph, moved, labels - private))
    for window in windows:
        found = _folded(graph, found, window)
    gone = private | {window.summed for window in windows}
    product.summed = [index for index in product.summed if index not in gone]
    product.operands.append(found)
    product.reads.append(())


def _folded(graph: Graph, value: LabelledStep, window: _Tile) -> LabelledStep:
    """A value over the whole index of a window."""
    order = [label for label in value.labels if label not in (window.summed, window.inner)]
    rows = graph.arrange(value, (window.summed, window.inner, *order))
    operation = Fold(window.stride, window.start)
    return graph.labelled(operation, (rows,), (window.whole, *order), graph.kind(rows))


def _moved(graph: Graph, value: LabelledStep, windows: Sequence[_Tile]) -> LabelledStep:
    """A value with the position in a window in place of the whole index; a view is read where it lies."""
    step, source, labels = graph.steps[value.step], value.step, value.labels
    positions = [Position(tuple(int(n == m) for n in range(len(labels))), Linear()) for m in range(len(labels))]
    if isinstance(step.operation, Read):
        positions, source = list(step.operation.positions), step.operands[0]
    every = list(dict.fromkeys((*labels, *(label for w in windows for label in (w.summed, w.inner)))))
    found = []
    for position in positions:
        steps = dict.fromkeys(every, 0) | dict(zip(labels, position.steps, strict=True))
        start = position.start
        for window in windows:
            along = steps.pop(window.whole, 0)
            steps[window.summed] += along * window.stride
            steps[window.inner] += along
            start += window.start.scale(along)
        found.append((steps, replace(position, start=start)))
    kept = [label for label in every if any(steps.get(label) for steps, _ in found)]
    read = Read(tuple(replace(p, steps=tuple(steps[label] for label in kept)) for steps, p in found))
    axes = graph.steps[source].axes
    same = [extent_form(domain_of(label)) for label in kept] == [extent_form(axis) for axis in axes]
    if same and read.diagonal() == tuple(range(len(kept))):
        return LabelledStep(source, tuple(kept), value.conj)
    result = graph.labelled(read, (LabelledStep(source, ()),), kept, step.kind)
    return replace(result, conj=value.conj)
