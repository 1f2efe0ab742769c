"""Plans in less memory: the steps along one axis in a loop over blocks of it.

    J[p,q,r,s] = Σ_k L[k,p,q]·L[k,r,s],  F[p,q] = Σ_{r,s} J[p,q,r,s]·D[r,s]        with too large a J
    = for each block of p: J over the block, and from it that block of F

From an axis of a large array the *region* spreads to the steps that carry the same index: to those that make the array,
and, as it is not to be held whole, to all that use it. A step that sums over the index adds up what the blocks give,
other results are put side by side. A step that is read along two of its indices (T + Tᵀ) is done for each of them, any
other once.

Invariant: a sliced plan computes what the plan does, and its peak is counted like any other's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import TypeVar

from combdiff.ir import extent
from combdiff.planning.extents import extent_form
from combdiff.planning.passes.loop_axis import Lane, label_of_operand, label_of_result, lane
from combdiff.planning.passes.loops import Region, in_loops
from combdiff.planning.plan import Plan, cost, held, peak, reading, rounds
from combdiff.records import dataclass

CANDIDATES = 8  # arrays whose axes are tried, the largest first
SMALL = 16  # an array that takes a smaller part of the limit than 1 / SMALL may be held whole
COPIES = 32  # steps that are done once more at most
MOST_SIZES = 8  # sizes of arrays that are tried as the largest to be held whole

_Found = TypeVar("_Found")


class _Refused(Exception):
    """The region cannot be computed in blocks."""


@dataclass
class _Twice(Exception):
    """A step that the region holds along one index is read along another one: by a step, as one of its operands.

    `equal` is a step that computes the same and can be read there, None where there is none.
    """

    reader: int
    position: int
    equal: int | None


def sliced(plan: Plan, limit: int) -> tuple[Plan | None, int]:
    """The plan with the largest blocks whose peak is at most `limit` bytes, and the least peak that slicing reaches.

    The plan is None where no slicing keeps to the limit. What arrays are small enough to be held whole follows from
    the limit; where that leads to none, every size that arrays have is tried, so that the least peak is no matter of
    the limit that was asked for.
    """
    if (whole := peak(plan)) <= limit:
        return plan, whole
    best, least = _sliced(plan, limit, (limit // SMALL, 0))
    if best is None:
        best, other = _sliced(plan, limit, _sizes(plan))
        least = min(least, other)
    return best, min(least, whole)


def _sliced(plan: Plan, limit: int, smalls: Sequence[int]) -> tuple[Plan | None, int]:
    """The plan with the largest blocks, and the least peak, where arrays of at most some size are held whole."""
    best, least = None, peak(plan)
    for (step, axis), small in product(_candidates(plan), smalls):
        try:
            smallest = _split_with_copies(plan, step, axis, small)
        except _Refused:
            continue
        least = min(least, needed := peak(smallest))
        if needed <= limit:
            found = _enlarged(smallest, limit)
            if best is None or rounds(found, found.loops[0]) < rounds(best, best.loops[0]):
                best = found
    return best, least


def _sizes(plan: Plan) -> list[int]:
    """The sizes that arrays of a plan have, the largest first."""
    weights = _Weights(plan)
    return sorted({weight for n in range(len(plan.steps)) if (weight := weights.of(n))}, reverse=True)[:MOST_SIZES]


def _candidates(plan: Plan) -> Iterator[tuple[int, int]]:
    """Axes of the largest arrays that steps make."""
    spent = cost(plan)
    steps = sorted(range(len(spent)), key=lambda n: -(spent[n].bytes + spent[n].workspace))[:CANDIDATES]
    for n in steps:
        for axis, domain in enumerate(plan.steps[n].axes):
            if extent(domain, dict(plan.sizes)) > 1:
                yield n, axis


def _enlarged(plan: Plan, limit: int) -> Plan:
    """The plan with the largest block that keeps to the limit, found by bisection."""
    low, high = 1, extent(plan.loops[0].domain, dict(plan.sizes))
    while low < high:
        middle = (low + high + 1) // 2
        if peak(_with_block(plan, middle)) <= limit:
            low = middle
        else:
            high = middle - 1
    return _with_block(plan, low)


def _with_block(plan: Plan, block: int) -> Plan:
    return replace(plan, sizes={**plan.sizes, plan.loops[0].size: block})


# --- the region ----------------------------------------------------------------------------------------------------


class _SlicedRegion:
    """The steps along one index: `labels` gives the label of the index in each."""

    def __init__(self, plan: Plan, seed: int, axis: int, small: int) -> None:
        self.plan = plan
        self.domain = plan.steps[seed].axes[axis]
        self.extent = extent_form(self.domain)
        self.labels: dict[int, int] = {}
        self.weights = _Weights(plan)
        self.small = small
        self.todo: list[int] = []
        self.add(seed, label_of_result(plan.steps[seed], axis))
        while self.todo:
            self.spread(self.todo.pop())

    def add(self, n: int, label: int) -> None:
        """The step belongs to the region, with the index at that label."""
        if self.labels.setdefault(n, label) != label:
            raise _Refused
        step, along = self.plan.steps[n], self.along(n)
        places = [(self.plan.steps[m], axis) for m, axis in zip(step.operands, along.operands, strict=True)]
        domains = [each.axes[axis] for each, axis in (*places, (step, along.result)) if axis is not None]
        if step.kind is int or any(each != self.domain and extent_form(each) != self.extent for each in domains):
            raise _Refused
        self.todo.append(n)

    def along(self, n: int) -> Lane:
        """The axes of the index in a step of the region."""
        return _known(lane(self.plan.steps[n], self.labels[n]))

    def spread(self, n: int) -> None:
        """Take in the steps that make large operands, and, where the result is large, all that use it."""
        along = self.along(n)
        for position, (m, axis) in enumerate(zip(self.plan.steps[n].operands, along.operands, strict=True)):
            if axis is not None and m not in self.labels and self.weights.of(m) > self.small:
                self.add(m, label_of_result(self.plan.steps[m], axis))
            elif axis is not None and m in self.labels and self.along(m).result != axis:
                raise _Twice(n, position, self.equal(m, axis, n))
        if along.result is not None and self.weights.of(n) > self.small and n not in self.plan.results:
            for consumer, position in self.plan.readers[n]:
                label = _known(label_of_operand(self.plan.steps[consumer], position, along.result))
                if consumer not in self.labels:
                    self.add(consumer, label)
                elif self.labels[consumer] != label:
                    read = self.along(consumer).operands[position]
                    raise _Twice(consumer, position, self.equal(n, read, consumer))

    def equal(self, m: int, axis: int | None, reader: int) -> int | None:
        """Another step before the reader that computes what a step does, not in the region, or along that axis."""
        steps = self.plan.steps
        others = (n for n, step in enumerate(steps[:reader]) if n != m and step == steps[m])
        return next((n for n in others if n not in self.labels or self.along(n).result == axis), None)


def _known(found: _Found | None) -> _Found:
    """What was found. Raises _Refused where nothing was."""
    if found is None:
        raise _Refused
    return found


class _Weights:
    """The bytes of the memory behind steps that a plan itself makes; arguments weigh nothing."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.known: dict[int, int] = {}

    def of(self, n: int) -> int:
        """The weight of a step: of a view that of what it is a view of."""
        if n not in self.known:
            step = self.plan.steps[n]
            behind = () if step.fresh else step.operands
            self.known[n] = max([held(self.plan, n), *map(self.of, behind)])
        return self.known[n]


# --- the plan ------------------------------------------------------------------------------------------------------


def _split_with_copies(plan: Plan, seed: int, axis: int, small: int) -> Plan:
    """The plan split, after steps that are read along two indices are there once for each."""
    for _ in range(COPIES):
        try:
            return _split(plan, seed, axis, small)
        except _Twice as twice:
            if twice.equal is not None:
                plan = _reading(plan, twice, twice.equal)
                continue
            copied = plan.steps[twice.reader].operands[twice.position]
            plan, seed = _with_copy(plan, twice, copied), seed + (seed > copied)
    raise _Refused


def _reading(plan: Plan, twice: _Twice, equal: int) -> Plan:
    """The plan with another step in one place of a reader."""
    steps = list(plan.steps)
    operands = list(steps[twice.reader].operands)
    operands[twice.position] = equal
    steps[twice.reader] = replace(steps[twice.reader], operands=tuple(operands))
    return replace(plan, steps=tuple(steps))


def _with_copy(plan: Plan, twice: _Twice, copied: int) -> Plan:
    """The plan with a copy of the step that is read along two indices, right behind it, for one of its readers."""
    number = [n + (n > copied) for n in range(len(plan.steps))]
    steps = [reading(step, number) for step in plan.steps]
    steps.insert(copied + 1, steps[copied])
    hints = {number[n]: name for n, name in plan.hints.items()}
    longer = replace(plan, steps=tuple(steps), results=tuple(number[n] for n in plan.results), hints=hints)
    return _reading(longer, replace(twice, reader=number[twice.reader]), copied + 1)


def _split(plan: Plan, seed: int, axis: int, small: int) -> Plan:
    """The plan with the region of an axis in a loop over blocks of one index; `small` arrays may be held whole."""
    region = _SlicedRegion(plan, seed, axis, small)
    inside = region.labels
    after: set[int] = set()
    for n, step in enumerate(plan.steps):
        if n not in inside and any(m in inside or m in after for m in step.operands):
            after.add(n)
        elif n in inside and any(m in after for m in step.operands):
            raise _Refused
        elif n in inside:  # of what the loop makes there are blocks alone, and a sum only after it
            read = zip(step.operands, region.along(n).operands, strict=True)
            if any(m in inside and (axis is None or axis != region.along(m).result) for m, axis in read):
                raise _Refused
    return in_loops(plan, [Region(region.domain, inside, 1)])
