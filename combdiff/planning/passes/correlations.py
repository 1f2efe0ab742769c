"""Convolutions and correlations: products with a sliding window that are matrix products by blocks.

    Σ_k x[b, i + k]·w[k]      windows of many i at once, times the banded matrix T[m, l] = w[m − l]
    Σ_{b,i} x[b, i + k]·v[b, i]     blocks of v times windows of x; then the sums along the diagonals of the product

A sliding window has each element of x as often as it is wide, so that multiplying the window itself moves that much
memory; by blocks each element is moved little more than once. Strides, channels and windows along further axes
(images) take part: `Σ_{k,l,c} x[b, 2i + k, 2j + l, c]·w[k, l, c, o]` slides along j, with k and c summed over as well.

Invariant: a plan gives the same results with and without `correlated`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations

from combdiff.planning.extents import extent_form
from combdiff.planning.operations.contraction import Contract
from combdiff.planning.operations.operation import Step
from combdiff.planning.operations.positions import Position
from combdiff.planning.operations.reads import Read
from combdiff.planning.operations.sliding import Correlate
from combdiff.planning.operations.words import Pattern
from combdiff.planning.plan import NewPlan, Plan, step_by_step
from combdiff.records import dataclass


def correlated(plan: Plan) -> Plan:
    """The plan with products of sliding windows done by blocks."""

    def rewrite(new: NewPlan, step: Step) -> int:
        for slide in _slides(plan, step):
            whole = _unslid(plan, slide, new.number)
            array = whole.operands[0] if _is_all(whole, new.steps[whole.operands[0]]) else new.add(whole)
            operands = array, new.number[slide.other]
            return new.add(replace(step, operation=_correlation(plan, step, slide), operands=operands))
        return new.add(new.moved(step))

    return step_by_step(plan, rewrite)


@dataclass(frozen=True)
class _Slide:
    """A contraction of a view in which an axis of its operand is read at `start ± s·long ± short`.

    `labels` and `with_` are the labels of the contraction along the axes of the view and of the other operand.
    """

    view: int
    labels: Pattern
    other: int
    with_: Pattern
    axis: int
    short: int
    long: int
    lags: bool

    @property
    def whole(self) -> Pattern:
        """The labels of the view, in order, with that of the whole axis in place of the two."""
        return tuple(label for label in self.labels if label != self.short)

    @property
    def kept(self) -> Pattern:
        """The labels of rows that the window slides along."""
        return tuple(n for n in self.whole if n != self.long and (n in self.with_) == self.lags)


def _slides(plan: Plan, step: Step) -> Iterator[_Slide]:
    """The ways to see a step as a correlation, the best first: along the last axis, the shorter label in the window."""
    if not isinstance(op := step.operation, Contract):
        return
    sides = [
        (step.operands[0], op.left, step.operands[1], op.right),
        (step.operands[1], op.right, step.operands[0], op.left),
    ]
    for read, labels, other, with_ in sides:
        view = plan.steps[read]
        if not isinstance(view.operation, Read) or len(set(labels)) < len(labels) or len(set(with_)) < len(with_):
            continue
        for axis in reversed(range(len(view.operation.positions))):
            pair = _pair(view.operation, axis)
            found = (
                _Slide(read, labels, other, with_, axis, labels[n], labels[m], lags)
                for n, m in permutations(pair, 2)
                for lags in (True, False)
                if abs(view.operation.positions[axis].steps[n]) == 1
            )
            yield from sorted((slide for slide in found if _fits(op, slide)), key=lambda slide: _width(plan, slide))


def _pair(read: Read, axis: int) -> list[int]:
    """The two labels along an axis, where no other axis is read along them."""
    position = read.positions[axis]
    used = [n for n, size in enumerate(position.steps) if size]
    others = [p for m, p in enumerate(read.positions) if m != axis]
    alone = not any(p.steps[n] for p in others for n in used)
    return used if len(used) == 2 and position.divisor == 1 and alone else []


def _width(plan: Plan, slide: _Slide) -> tuple[int, int]:
    """The width of the window at the sizes of the plan; of equal ones that which keeps more axes comes first."""
    axis = plan.steps[slide.view].axes[slide.labels.index(slide.short)]
    return int(extent_form(axis).evaluate(plan.sizes)), -len(slide.kept)


def _fits(op: Contract, slide: _Slide) -> bool:
    """Whether the sum is over the label in the window and others of both operands, or, for lags, over the rest."""
    labels, other, out = set(slide.labels), set(slide.with_), set(op.out)
    inside, outside = (slide.long, slide.short) if slide.lags else (slide.short, slide.long)
    found = inside in other - out and outside in out - other
    return found and not labels & other & out


def _unslid(plan: Plan, slide: _Slide, number: list[int]) -> Step:
    """The view with the sliding axis read whole, along the label that is left."""
    view = plan.steps[slide.view]
    assert isinstance(view.operation, Read)
    axis = plan.steps[view.operands[0]].axes[slide.axis]
    short, long = slide.labels.index(slide.short), slide.labels.index(slide.long)
    positions = []
    for m, position in enumerate(view.operation.positions):
        steps = tuple(int(n == long) for n in range(len(position.steps))) if m == slide.axis else position.steps
        steps = (*steps[:short], *steps[short + 1 :])
        whole = Position(steps, position.start.scale(0))
        positions.append(whole if m == slide.axis else replace(position, steps=steps))
    axes = tuple(axis if n == long else domain for n, domain in enumerate(view.axes) if n != short)
    return Step(Read(tuple(positions)), (number[view.operands[0]],), axes, view.kind)


def _is_all(read: Step, source: Step) -> bool:
    """Whether a view is all of its operand as it is."""
    assert isinstance(read.operation, Read)
    whole = read.operation.diagonal() == tuple(range(len(read.axes)))
    return whole and all(extent_form(a) == extent_form(b) for a, b in zip(read.axes, source.axes, strict=True))


def _correlation(plan: Plan, step: Step, slide: _Slide) -> Correlate:
    """The operation, on the view with the sliding axis whole."""
    op, view = step.operation, plan.steps[slide.view]
    assert isinstance(op, Contract)
    assert isinstance(view.operation, Read)
    labels, kept = slide.whole, slide.kept
    summed = [n for n in labels if n != slide.long and n not in kept]
    fresh = [n for n in slide.with_ if n not in slide.labels]
    if slide.lags:
        right, out = [*kept, slide.long, *fresh], [slide.short, *summed, *fresh]
    else:
        right, out = [slide.short, *summed, *fresh], [*kept, slide.long, *fresh]
    position = view.operation.positions[slide.axis]
    start, turned = position.start, []
    for label in (slide.short, slide.long):
        n = slide.labels.index(label)
        turned.append(position.steps[n] < 0)
        if turned[-1]:
            start += (extent_form(view.axes[n]) - 1).scale(position.steps[n])
    return Correlate(
        left=tuple(labels.index(n) for n in (*kept, slide.long, *summed)),
        right=tuple(slide.with_.index(n) for n in right),
        out=tuple(out.index(n) for n in op.out),
        kept=len(kept),
        start=start,
        stride=abs(position.steps[slide.labels.index(slide.long)]),
        wrap=position.wrap,
        turned=(turned[0], turned[1]),
        lags=slide.lags,
    )
