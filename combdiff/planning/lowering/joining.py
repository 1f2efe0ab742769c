"""Factors that are read at the same places, multiplied before they are read.

    Σ_k x[i + k]²·w[k]                 u = x·x once for each element of x, then windows of u
    Σ_{k,j} v[d − k, j]·t[d − k, j]    u[z] = Σ_j v[z, j]·t[z, j], then u[d − k] summed over k
    Σ_i r[i]·X[i, j − 1]               u[z] = Σ_i r[i]·X[i, z], then u[j − 1], with zeros beside it
    Σ_i w[d − i]·y[i], w short         Σ_z w[z]·y[d − z], with zeros beside y

A window has each element of its tensor as often as it is wide, so that a product of windows is that much dearer than
the window of a product; and an index that only these factors have is summed over before. What one factor alone is read
along, beyond the ends of its axis, the product is read along: zeros are laid around the result, not around the factor.
Of a long array and a short one that slides along it (a kernel, in the gradient of a convolution) the long one is read
in windows: nothing is multiplied where the short one has ended.

Invariant: the value of the product is unchanged: factors that read 0 outside of their axes make a product that does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from math import prod
from typing import NamedTuple

from combdiff.ir import Domain, Var, extent
from combdiff.planning.extents import extent_form
from combdiff.planning.lowering.graph import Graph, LabelledStep
from combdiff.planning.operations.positions import Position
from combdiff.planning.operations.reads import Read
from combdiff.planning.views import domain_of
from combdiff.polyhedra import Linear

SHORT = 2  # times what slides fits into what it slides along, from where on the latter is read in windows


class _Window(NamedTuple):
    """`Σ steps · labels + start` along an axis with a domain."""

    steps: tuple[tuple[Var, int], ...]
    start: Linear
    wrap: bool
    domain: Domain


def product(graph: Graph, values: Sequence[LabelledStep], kept: Iterable[Var]) -> LabelledStep:
    """Σ of the product of values over all labels but those kept; windows that are the same are of one product."""
    values, kept = _in_windows(graph, values, frozenset(kept)), frozenset(kept)
    while found := _shared(graph, values):
        window, members = found
        whole = _whole(values, window)
        rest = [value for n, value in enumerate(values) if n not in members]
        needed = kept.union(*(value.labels for value in rest))
        inner = [_unslid(graph, values[n], axis, window, whole) for n, axis in members.items()]
        labels = {label for value in inner for label in value.labels}
        values = [*rest, _slid(graph, product(graph, inner, (labels & needed) | {whole}), window, whole)]
    if late := _padded(graph, values, kept):
        n, axis, window = late
        whole = _whole(values, window)
        inner = [_unslid(graph, v, axis, window, whole) if m == n else v for m, v in enumerate(values)]
        return _slid(graph, product(graph, inner, kept | {whole}), window, whole)
    return graph.product(values, kept)


def _in_windows(graph: Graph, values: Sequence[LabelledStep], kept: frozenset[Var]) -> list[LabelledStep]:
    """The values with short ones that slide along others read whole, and the others in windows of their length."""
    values = list(values)
    while found := _sliding(graph, values, kept):
        n, axis, window, summed = found
        whole = _whole(values, window)
        step = dict(window.steps)[summed]
        turned = [(whole, step), *((label, -step * size) for label, size in window.steps if label is not summed)]
        other = _Window(tuple(turned), window.start.scale(-step), False, domain_of(summed))
        values = [
            _unslid(graph, value, axis, window, whole)
            if m == n
            else _slid(graph, value, other, summed)
            if summed in value.labels
            else value
            for m, value in enumerate(values)
        ]
    return values


def _sliding(
    graph: Graph, values: Sequence[LabelledStep], kept: frozenset[Var]
) -> tuple[int, int, _Window, Var] | None:
    """A value of which a short axis slides along a long label that others have: its number, the axis, the label."""
    for n, value in enumerate(values):
        for axis, window in _windows(graph, value, 2):
            for summed, size in window.steps if not window.wrap else ():
                others = [v for m, v in enumerate(values) if m != n and summed in v.labels]
                rest = {label for label, _ in window.steps} - {summed}
                apart = all(rest.isdisjoint(v.labels) and _is_alone(graph, v, summed) for v in others)
                short, many = (extent(domain, graph.sizes) for domain in (window.domain, domain_of(summed)))
                if summed not in kept and abs(size) == 1 and others and apart and many >= max(1, SHORT * short):
                    return n, axis, window, summed
    return None


def _is_alone(graph: Graph, value: LabelledStep, label: Var) -> bool:
    """Whether no axis is read along a label and others: a window of a window is as large as both together."""
    step, at = graph.steps[value.step], value.labels.index(label)
    positions = step.operation.positions if isinstance(step.operation, Read) else ()
    return all(sum(map(bool, position.steps)) == 1 for position in positions if position.steps[at])


def _whole(values: Sequence[LabelledStep], window: _Window) -> Var:
    """A label that no value has, along the whole of what a window is read from."""
    taken = {label.name for value in values for label in value.labels}
    return Var(next(name for n in count() if (name := f"#z{n}") not in taken), window.domain)


def _padded(graph: Graph, values: Sequence[LabelledStep], kept: frozenset[Var]) -> tuple[int, int, _Window] | None:
    """A view that is longer than what it views, along a label of the result that it alone has: its number and axis."""
    for n, value in enumerate(values if len(values) > 1 or set(values[0].labels) - kept else ()):
        others = {label for m, other in enumerate(values) if m != n for label in other.labels}
        for axis, window in _windows(graph, value, 1):
            label = window.steps[0][0]
            longer = extent(domain_of(label), graph.sizes) > extent(window.domain, graph.sizes)
            alone = len(window.steps) == 1 and label in kept and label not in others
            if alone and longer and not window.wrap:
                return n, axis, window
    return None


def _shared(graph: Graph, values: Sequence[LabelledStep]) -> tuple[_Window, dict[int, int]] | None:
    """A window that several values are, with their numbers and the axes of what they are windows of."""
    found: dict[_Window, dict[int, int]] = {}
    for n, value in enumerate(values):
        for axis, window in _windows(graph, value, 2):
            found.setdefault(window, {}).setdefault(n, axis)
    for window, members in found.items():
        repeated = prod(extent(domain_of(label), graph.sizes) for label, _ in window.steps)
        if len(members) > 1 and extent(window.domain, graph.sizes) <= repeated:
            return window, members
    return None


def _windows(graph: Graph, value: LabelledStep, least: int) -> Iterator[tuple[int, _Window]]:
    """The axes that a view reads along so many labels, or more, along which it reads no other axis."""
    step = graph.steps[value.step]
    if not isinstance(step.operation, Read) or len(set(value.labels)) < len(value.labels):
        return
    positions = step.operation.positions
    for axis, position in enumerate(positions):
        used = [n for n, size in enumerate(position.steps) if size]
        others = [p for m, p in enumerate(positions) if m != axis]
        if len(used) >= least and position.divisor == 1 and not any(p.steps[n] for p in others for n in used):
            steps = sorted(((value.labels[n], position.steps[n]) for n in used), key=lambda pair: pair[0].name)
            domain = graph.steps[step.operands[0]].axes[axis]
            yield axis, _Window(tuple(steps), position.start, position.wrap, domain)


def _unslid(graph: Graph, value: LabelledStep, axis: int, window: _Window, whole: Var) -> LabelledStep:
    """The view with an axis read whole, along one label in place of those of the window."""
    step = graph.steps[value.step]
    assert isinstance(step.operation, Read)
    gone = {label for label, _ in window.steps}
    first = next(n for n, label in enumerate(value.labels) if label in gone)
    kept = [n for n, label in enumerate(value.labels) if n == first or label not in gone]
    labels = tuple(whole if n == first else value.labels[n] for n in kept)
    positions = []
    for m, position in enumerate(step.operation.positions):
        steps = tuple(int(n == first) if m == axis else position.steps[n] for n in kept)
        positions.append(Position(steps, Linear()) if m == axis else replace(position, steps=steps))
    read = Read(tuple(positions))
    source = graph.steps[step.operands[0]]
    same = [extent_form(domain_of(label)) for label in labels] == [extent_form(a) for a in source.axes]
    if read.diagonal() == tuple(range(len(labels))) and same:
        return LabelledStep(step.operands[0], labels, value.conj)
    result = graph.labelled(read, (LabelledStep(step.operands[0], ()),), labels, step.kind)
    return replace(result, conj=value.conj)


def _slid(graph: Graph, value: LabelledStep, window: _Window, whole: Var) -> LabelledStep:
    """The window of a value; of a view that reads the axis whole, the window of what that views."""
    step, at = graph.steps[value.step], value.labels.index(whole)
    bare = tuple(
        Position(tuple(int(n == m) for n in range(len(value.labels))), Linear()) for m in range(len(value.labels))
    )
    positions, source = bare, value.step
    if isinstance(step.operation, Read) and sum(bool(p.steps[at]) for p in step.operation.positions) == 1:
        (place,) = (p for p in step.operation.positions if p.steps[at])
        axis = graph.steps[step.operands[0]].axes[step.operation.positions.index(place)]
        if place.along() == at and not place.wrap and extent_form(axis) == extent_form(window.domain):
            positions, source = step.operation.positions, step.operands[0]
    new = [label for label, _ in window.steps]
    labels = (*value.labels[:at], *new, *value.labels[at + 1 :])
    slid = []
    for position in positions:
        own = tuple(size for _, size in window.steps) if position.steps[at] else (0,) * len(new)
        steps = (*position.steps[:at], *own, *position.steps[at + 1 :])
        here = replace(position, start=window.start, wrap=window.wrap) if position.steps[at] else position
        slid.append(replace(here, steps=steps))
    result = graph.labelled(Read(tuple(slid)), (LabelledStep(source, ()),), labels, step.kind)
    return replace(result, conj=value.conj)
