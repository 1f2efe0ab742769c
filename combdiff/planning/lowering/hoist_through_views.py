"""Functions of elements, computed before the elements are read: the same ones, each of them once.

    Σ_k sin(x[i + k])·w[k]      sin(x) once for each element of x, then windows of it
    cos(u[i − 1]) + cos(u[i])   u periodic: one cosine, read twice

Invariant: a function is moved only where it is defined for all numbers, or where all elements are read anyway; and only
where it is 0 beyond an axis, as what is read there is, or nothing is read there that counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from combdiff.ir import Var, extent
from combdiff.planning.extents import extent_form, never_negative
from combdiff.planning.lowering.graph import TOTAL, Graph, LabelledStep
from combdiff.planning.operations.elementwise import ElementwiseStep
from combdiff.planning.operations.operation import Step
from combdiff.planning.operations.reads import Read


def read_late(
    graph: Graph, name: str, values: Sequence[LabelledStep], kind: type, *, zero_beyond: bool
) -> LabelledStep | None:
    """A function of one array that is a view and of numbers, as a view of the function; None where it is none.

    `zero_beyond` says that the function may be 0 where the view reads beyond an axis.
    """
    arrays = [value for value in values if value.labels]
    if len(arrays) != 1 or arrays[0].conj:
        return None
    (value,) = arrays
    view = graph.steps[value.step]
    if not isinstance(view.operation, Read):
        return None
    whole = graph.steps[view.operands[0]]
    if not zero_beyond and not _stays_inside(view, whole):
        return None
    more = graph.size(value) >= prod(extent(axis, graph.sizes) for axis in whole.axes)
    if not (_permutes(view, whole) or (more and (name in TOTAL or _covers(graph, view, whole)))):
        return None
    labels = tuple(Var(f"#{n}", axis) for n, axis in enumerate(whole.axes))
    source = LabelledStep(view.operands[0], labels)
    operands = [source if operand is value else operand for operand in values]
    inner = graph.broadcast(lambda patterns: ElementwiseStep(name, patterns), operands, kind)
    return replace(graph.labelled(view.operation, (inner,), value.labels, kind), conj=inner.conj)


def _stays_inside(view: Step, whole: Step) -> bool:
    """Whether a view reads nothing beyond an axis of its operand, whatever the sizes are."""
    assert isinstance(view.operation, Read)
    for position, axis in zip(view.operation.positions, whole.axes, strict=True):
        first, last = position.ends(view.axes)
        inside = never_negative(first) and never_negative(extent_form(axis) - 1 - last)
        if not position.wrap and (position.divisor > 1 or not inside):
            return False
    return True


def _covers(graph: Graph, view: Step, whole: Step) -> bool:
    """Whether a view has each element of its operand, at the sizes of the graph, and along axes of its own."""
    assert isinstance(view.operation, Read)
    seen: set[int] = set()
    for position, axis in zip(view.operation.positions, whole.axes, strict=True):
        along = [n for n, step in enumerate(position.steps) if step]
        if position.wrap or position.divisor > 1 or not seen.isdisjoint(along):
            return False
        seen.update(along)
        low = high = int(position.start.evaluate(graph.sizes))
        reach = 1
        for step, count in sorted((abs(position.steps[n]), extent(view.axes[n], graph.sizes)) for n in along):
            if step > reach:
                return False
            reach += step * (count - 1)
        for n in along:
            far = position.steps[n] * (extent(view.axes[n], graph.sizes) - 1)
            low, high = low + min(far, 0), high + max(far, 0)
        if low > 0 or high < extent(axis, graph.sizes) - 1:
            return False
    return True


def _permutes(view: Step, whole: Step) -> bool:
    """Whether a view has each element of its operand once."""
    assert isinstance(view.operation, Read)
    used = []
    for position, axis in zip(view.operation.positions, whole.axes, strict=True):
        along = [n for n, step in enumerate(position.steps) if step]
        plain = len(along) == 1 and abs(position.steps[along[0]]) == 1 and position.divisor == 1
        if not plain or not position.wrap or extent_form(view.axes[along[0]]) != extent_form(axis):
            return False
        used += along
    return sorted(used) == list(range(len(view.axes)))
