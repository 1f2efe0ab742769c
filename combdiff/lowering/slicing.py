"""Plans in less memory: the steps along one axis in a loop over blocks of it.

    J[p,q,r,s] = Σ_k L[k,p,q]·L[k,r,s],  F[p,q] = Σ_{r,s} J[p,q,r,s]·D[r,s]        with too large a J
    = for each block of p: J over the block, and from it that block of F

From an axis of a large array the *region* spreads to the steps that carry the same index: to those that make the array,
and, as it is not to be held whole, to all that use it. A step that sums over the index adds up what the blocks give,
other results are put side by side. No step is done twice, so slicing costs no operations.

Invariant: a sliced plan computes what the plan does, and its peak is counted like any other's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from combdiff.domains import Domain, Range, extent
from combdiff.lowering.plan import Loop, Plan, cost, peak
from combdiff.lowering.steps import (
    Arrange,
    Block,
    Collect,
    Combine,
    Conjugate,
    Contract,
    Elementwise,
    Read,
    Reduce,
    Scale,
    Select,
    Step,
)
from combdiff.lowering.views import extent_form

CANDIDATES = 8  # arrays whose axes are tried, the largest first
SMALL = 16  # an array that takes a smaller part of the limit than 1 / SMALL may be held whole


class _Refused(Exception):
    """The region cannot be computed in blocks."""


def sliced(plan: Plan, limit: int) -> tuple[Plan | None, int]:
    """The plan with the largest blocks whose peak is at most `limit` bytes, and the least peak that slicing reaches.

    The plan is None where no slicing keeps to the limit.
    """
    best, least = None, peak(plan)
    if least <= limit:
        return plan, least
    for (step, axis), small in product(_candidates(plan), (limit // SMALL, 0)):
        try:
            smallest = _split(plan, step, axis, small)
        except _Refused:
            continue
        least = min(least, peak(smallest))
        if peak(smallest) <= limit:
            found = _enlarged(smallest, limit)
            if best is None or _rounds(found) < _rounds(best):
                best = found
    return best, least


def _candidates(plan: Plan) -> Iterator[tuple[int, int]]:
    """Axes of the largest arrays that steps make."""
    spent = cost(plan)
    steps = sorted(range(len(spent)), key=lambda n: -(spent[n].bytes + spent[n].workspace))[:CANDIDATES]
    for n in steps:
        for axis, domain in enumerate(plan.steps[n].axes):
            if extent(domain, dict(plan.sizes)) > 1:
                yield n, axis


def _rounds(plan: Plan) -> int:
    assert plan.loop is not None
    return -(-extent(plan.loop.domain, dict(plan.sizes)) // plan.sizes[plan.loop.size])


def _enlarged(plan: Plan, limit: int) -> Plan:
    """The plan with the largest block that keeps to the limit, found by bisection."""
    assert plan.loop is not None
    low, high = 1, extent(plan.loop.domain, dict(plan.sizes))
    while low < high:
        middle = (low + high + 1) // 2
        if peak(_with_block(plan, middle)) <= limit:
            low = middle
        else:
            high = middle - 1
    return _with_block(plan, low)


def _with_block(plan: Plan, block: int) -> Plan:
    assert plan.loop is not None
    return replace(plan, sizes={**plan.sizes, plan.loop.size: block})


# --- the region ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Along:
    """Where the index of a region runs in a step: the axis of each operand, and of the result (None: summed)."""

    operands: tuple[int | None, ...]
    result: int | None


def _along(step: Step, label: int) -> _Along:
    """The axes that a label of a step names; labels are numbered as its operation does."""
    match step.operation:
        case Contract(left=left, right=right, out=out):
            return _Along((_place(left, label), _place(right, label)), _place(out, label))
        case Combine(patterns=patterns) | Elementwise(patterns=patterns) | Select(patterns=patterns):
            return _Along(tuple(_place(pattern, label) for pattern in patterns), label)
        case Conjugate() | Scale():
            return _Along((label,), label)
        case Reduce(summed=summed):
            kept = None if label in summed else label - sum(axis < label for axis in summed)
            return _Along((label,), kept)
        case Arrange(order=order):
            return _Along((order[label],), label)
        case Read(positions=positions):
            used = [n for n, position in enumerate(positions) if position.steps[label]]
            if len(used) == 1 and positions[used[0]].along() == label:
                return _Along((used[0],), label)
    raise _Refused


def _label_of_result(step: Step, axis: int) -> int:
    """The label that an axis of the result has."""
    match step.operation:
        case Contract(out=out):
            return out[axis]
        case Reduce(summed=summed):
            return [n for n in range(len(step.axes) + len(summed)) if n not in summed][axis]
    return axis


def _label_of_operand(step: Step, position: int, axis: int) -> int:
    """The label that an axis of an operand has. Raises _Refused where there is none."""
    match step.operation:
        case Contract(left=left, right=right):
            return (left, right)[position][axis]
        case Combine(patterns=patterns) | Elementwise(patterns=patterns) | Select(patterns=patterns):
            return patterns[position][axis]
        case Conjugate() | Scale() | Reduce():
            return axis
        case Arrange(order=order) if axis in order:
            return order.index(axis)
        case Read() as read if (diagonal := read.diagonal()) is not None:
            return diagonal[axis]
    raise _Refused


def _place(pattern: Sequence[int], label: int) -> int | None:
    return pattern.index(label) if label in pattern else None


class _Region:
    """The steps along one index: `labels` gives the label of the index in each."""

    def __init__(self, plan: Plan, seed: int, axis: int, small: int) -> None:
        self.plan = plan
        self.domain = plan.steps[seed].axes[axis]
        self.labels: dict[int, int] = {}
        self.weights = _weights(plan)
        self.small = small
        self.consumers: dict[int, list[tuple[int, int]]] = {n: [] for n in range(len(plan.steps))}
        for n, step in enumerate(plan.steps):
            for position, operand in enumerate(step.operands):
                self.consumers[operand].append((n, position))
        self.todo: list[int] = []
        self.add(seed, _label_of_result(plan.steps[seed], axis))
        while self.todo:
            self.spread(self.todo.pop())

    def add(self, n: int, label: int) -> None:
        """The step belongs to the region, with the index at that label."""
        if self.labels.setdefault(n, label) != label:
            raise _Refused
        step, along = self.plan.steps[n], self.along(n)
        places = [(self.plan.steps[m], axis) for m, axis in zip(step.operands, along.operands, strict=True)]
        domains = [each.axes[axis] for each, axis in (*places, (step, along.result)) if axis is not None]
        if step.kind is int or any(extent_form(domain) != extent_form(self.domain) for domain in domains):
            raise _Refused
        self.todo.append(n)

    def along(self, n: int) -> _Along:
        """The axes of the index in a step of the region."""
        return _along(self.plan.steps[n], self.labels[n])

    def spread(self, n: int) -> None:
        """Take in the steps that make large operands, and, where the result is large, all that use it."""
        along = self.along(n)
        for m, axis in zip(self.plan.steps[n].operands, along.operands, strict=True):
            if axis is not None and m not in self.labels and self.weights[m] > self.small:
                self.add(m, _label_of_result(self.plan.steps[m], axis))
            elif axis is not None and m in self.labels and self.along(m).result != axis:
                raise _Refused
        if along.result is not None and self.weights[n] > self.small and n not in self.plan.results:
            for consumer, position in self.consumers[n]:
                label = _label_of_operand(self.plan.steps[consumer], position, along.result)
                if consumer not in self.labels:
                    self.add(consumer, label)
                elif self.labels[consumer] != label:
                    raise _Refused


def _weights(plan: Plan) -> list[int]:
    """The bytes of the memory behind each step that the plan itself makes; arguments weigh nothing."""
    weights: list[int] = []
    for step, spent in zip(plan.steps, cost(plan), strict=True):
        view = isinstance(step.operation, Arrange | Read)
        weights.append(max([spent.bytes, *(weights[m] for m in step.operands)]) if view else spent.bytes)
    return weights


# --- the plan ------------------------------------------------------------------------------------------------------


def _split(plan: Plan, seed: int, axis: int, small: int) -> Plan:
    """The plan with the region of an axis in a loop over blocks of one index; `small` arrays may be held whole."""
    region = _Region(plan, seed, axis, small)
    inside = region.labels
    after: set[int] = set()
    for n, step in enumerate(plan.steps):
        if n not in inside and any(m in inside or m in after for m in step.operands):
            after.add(n)
        elif n in inside and any(m in after or (m in inside and region.along(m).result is None) for m in step.operands):
            raise _Refused
    return _Assembly(plan, region, after).plan()


class _Assembly:
    """Puts a plan together from the steps before the loop, in it, and after it."""

    def __init__(self, plan: Plan, region: _Region, after: set[int]) -> None:
        self.old, self.region, self.after = plan, region, after
        self.steps: list[Step] = []
        self.whole: dict[int, int] = {}  # the new number of each step's whole result
        self.part: dict[int, int] = {}  # and of the block of it, in the loop
        self.blocks: dict[tuple[int, int], int] = {}
        self.size = "block"
        while self.size in plan.sizes:
            self.size += "_"

    def plan(self) -> Plan:
        """The plan, with blocks of one index."""
        inside = sorted(self.region.labels)
        outside = [n for n in range(len(self.old.steps)) if n not in self.region.labels]
        for n in outside:
            if n not in self.after:
                self.place(n)
        first = len(self.steps)
        for n in inside:
            self.place_block(n)
        last = len(self.steps)
        for n in outside:
            if n in self.after:
                self.place(n)
        return replace(
            self.old,
            steps=tuple(self.steps),
            results=tuple(self.whole[n] for n in self.old.results),
            sizes={**self.old.sizes, self.size: 1},
            hints={self.whole[n]: name for n, name in self.old.hints.items() if n in self.whole},
            loop=Loop(first, last, self.region.domain, self.size),
        )

    def emit(self, step: Step) -> int:
        self.steps.append(step)
        return len(self.steps) - 1

    def place(self, n: int) -> None:
        """A step outside of the loop."""
        step = self.old.steps[n]
        self.whole[n] = self.emit(replace(step, operands=tuple(self.whole[m] for m in step.operands)))

    def place_block(self, n: int) -> None:
        """A step of the loop on blocks of its operands, and the collection of its blocks if they are needed whole."""
        step, along = self.old.steps[n], self.region.along(n)
        operands = tuple(
            self.whole[m] if axis is None else self.part[m] if m in self.part else self.block(m, axis)
            for m, axis in zip(step.operands, along.operands, strict=True)
        )
        self.part[n] = self.emit(replace(step, operands=operands, axes=self.cut(step.axes, along.result)))
        outside = any(m not in self.region.labels for m, _ in self.region.consumers[n])
        if outside or n in self.old.results or along.result is None:
            self.whole[n] = self.emit(Step(Collect(along.result), (self.part[n],), step.axes, step.kind))

    def block(self, m: int, axis: int) -> int:
        """The block of an array from before the loop."""
        if (m, axis) not in self.blocks:
            step = self.old.steps[m]
            cut = Step(Block(axis), (self.whole[m],), self.cut(step.axes, axis), step.kind)
            self.blocks[m, axis] = self.emit(cut)
        return self.blocks[m, axis]

    def cut(self, axes: tuple[Domain, ...], axis: int | None) -> tuple[Domain, ...]:
        return tuple(Range(self.size) if n == axis else domain for n, domain in enumerate(axes))
