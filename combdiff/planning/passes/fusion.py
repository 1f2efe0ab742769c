"""Chains of element-wise steps, evaluated block by block, so that what lies between them stays in the cache.

    t = np.sin(x);  s = t * y;  r = s + z          for start in range(0, n, 32768):
                                                       t = np.sin(x[start:stop]);  s = t * y[start:stop];  …
                                                       r[start:stop] = s + z[start:stop]

New arrays of some size cost more than the arithmetic that fills them. A chain goes along one index, its *lane*: steps
that work element by element, and those that sum other indices or, last of all, the lane itself. What needs all of a
member at once (a read at other positions, a transpose) comes in a later *stage*.

Invariant: a plan gives the same results with and without `fused`, up to rounding, and never takes more memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from combdiff.ir import OPPOSITES, Domain, extent
from combdiff.planning.extents import extent_form
from combdiff.planning.operations.contraction import ChosenProduct, Contract
from combdiff.planning.operations.elementwise import Combine, ConjugateElements, ElementwiseStep, Scale
from combdiff.planning.operations.masks import IndexCondition, Mask, MaskedContract
from combdiff.planning.operations.matrices import MatrixFunctionStep
from combdiff.planning.operations.operation import ITEM_BYTES, Step
from combdiff.planning.operations.positions import Position
from combdiff.planning.operations.prefixes import Powers
from combdiff.planning.operations.reads import Arrange, Read
from combdiff.planning.operations.reductions import Reduce, ReduceExtreme
from combdiff.planning.passes.loop_axis import Lane, label_of_operand, label_of_result, lane, place
from combdiff.planning.passes.loops import Region, in_loops, lane_of_blocks
from combdiff.planning.passes.summands import in_pairs, passes
from combdiff.planning.plan import Plan, peak, reading
from combdiff.records import dataclass

LEAST = 1 << 17  # elements of arrays that are worth a loop
BLOCK = 1 << 15  # elements of an array in a block, in the mean: a few fit a second-level cache
OWN = 2 * BLOCK * ITEM_BYTES[float]  # bytes of the blocks of a loop, for which it may take more memory than without
BOXES = 8  # times as many elements of a block where conditions are met box by box, which takes some time in each block
RUN = 1 << 7  # elements of a block along its last axis, where NumPy goes through that axis at once
SPILLED = 1 << 17  # elements of the widest array in a block, at most
SAVED = 2  # arrays that a loop must save at least
_ELEMENTWISE = (Combine, ElementwiseStep, Scale, ConjugateElements, Mask, Powers)
_FOLLOWING = (Arrange, Read, Reduce, MatrixFunctionStep)
_FOLLOWING_KERNELS = ("dot", "einsum", "matrix-vector", "batched matrix-vector")


def fused(plan: Plan) -> Plan:
    """The plan with its long element-wise chains over large arrays in loops over blocks."""
    chains = _Chains(plan)
    groups = [group for group in chains.groups() if chains.saved(group) >= SAVED]
    if not groups:
        return plan
    done = in_loops(*_sums_in_pairs(plan, [chains.region(group) for group in groups]))
    return done if peak(done) <= peak(plan) + OWN else plan


@dataclass(frozen=True)
class _FusedGroup:
    """The steps of one loop, with their labels, and the domain of their lane."""

    labels: Mapping[int, int]
    domain: Domain


def _begins(step: Step) -> bool:
    """Whether a step works element by element, or on all of an operand that is longer."""
    outer = isinstance(step.operation, Contract) and not step.operation.summed
    return _of_data(step) and (outer or isinstance(step.operation, (*_ELEMENTWISE, ReduceExtreme)))


def _of_data(step: Step) -> bool:
    """Whether a step makes numbers, or truth values from them: arrays of indices are no part of a chain."""
    return step.kind is not int or (isinstance(step.operation, ElementwiseStep) and step.operation.name in OPPOSITES)


def _follows(step: Step) -> bool:
    """Whether a step may be done for blocks of an operand that is made block by block."""
    op = step.operation
    if isinstance(op, ChosenProduct):
        op = op.product
    if isinstance(op, MaskedContract):
        op = Contract(*op.patterns, op.out) if len(op.patterns) == 2 else Reduce(())
    reduces = isinstance(op, Contract) and (not op.summed or op.kernel in _FOLLOWING_KERNELS)
    return _of_data(step) and (_begins(step) or reduces or isinstance(op, _FOLLOWING))


class _Chains:
    """The label of the lane in each step that has one, and the stage in which each step is done."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.steps = plan.steps
        self.labels: dict[int, int] = {}
        self.stages: list[int] = []
        self.consumers = [[reader for reader, _ in readers] for readers in plan.readers]
        for n in range(len(plan.steps)):
            label = self._label(n)
            if label is not None:
                self.labels[n] = label
            self.stages.append(self._stage(n))
        self._postpone()
        self._take_in()

    # --- lanes

    def _label(self, n: int) -> int | None:
        """The label that a step continues a lane of its operands with, or begins one: along its longest axis."""
        step = self.steps[n]
        if not _follows(step):
            return None
        votes = Counter[int]()
        for position, m in enumerate(step.operands):
            axis = self._result_axis(m)
            label = None if axis is None else label_of_operand(step, position, axis)
            if label is not None and self._fits(step, label):
                votes[label] += self.plan.elements(m)
        if votes:
            return max(votes, key=lambda label: (votes[label], -label))
        if not _begins(step) or not step.axes or self._work(n) < LEAST:
            return None
        shape = self.plan.shape(n)
        label = label_of_result(step, shape.index(max(shape)))
        return label if self._fits(step, label) else None

    def _fits(self, step: Step, label: int) -> bool:
        """Whether a step has a lane along a label, of one extent throughout."""
        found = lane(step, label)
        if found is None:
            return False
        domains = [step.axes[found.result]] if found.result is not None else []
        pairs = zip(step.operands, found.operands, strict=True)
        domains += [self.steps[m].axes[axis] for m, axis in pairs if axis is not None]
        return len({extent_form(domain) for domain in domains}) == 1

    def lane(self, n: int) -> Lane:
        """The axes of the lane in a member; one that is computed at shifted positions reads no blocks."""
        found = lane_of_blocks(self.plan, n, self.labels[n])
        return found or Lane((None,) * len(self.steps[n].operands), self.labels[n])

    def _result_axis(self, n: int) -> int | None:
        return self.lane(n).result if n in self.labels else None

    def domain(self, n: int) -> Domain:
        """The domain of the lane of a member."""
        found = self.lane(n)
        if found.result is not None:
            return self.steps[n].axes[found.result]
        pairs = zip(self.steps[n].operands, found.operands, strict=True)
        return next(self.steps[m].axes[axis] for m, axis in pairs if axis is not None)

    def joined(self, m: int, n: int) -> bool:
        """Whether a member reads another one block by block, each where it is read at all."""
        if m not in self.labels or n not in self.labels or self._result_axis(m) is None:
            return False
        axes = [axis for o, axis in zip(self.steps[n].operands, self.lane(n).operands, strict=True) if o == m]
        return all(axis == self._result_axis(m) for axis in axes)

    # --- stages

    def _stage(self, n: int) -> int:
        """The first stage after those of the operands that are needed whole."""
        operands = self.steps[n].operands
        return max((self.stages[m] + (m in self.labels and not self.joined(m, n)) for m in operands), default=0)

    def _postpone(self) -> None:
        """Members that a later stage alone uses are done there, where no other array must be held for it."""
        for n in reversed(range(len(self.steps))):
            if n not in self.labels or n in self.plan.results or not self.consumers[n]:
                continue
            later = min(self.stages[c] for c in self.consumers[n])
            users = all(self.joined(n, c) and self.stages[c] == later for c in self.consumers[n])
            if users and later > self.stages[n] and not any(self._held_for(m, n) for m in self.steps[n].operands):
                self.stages[n] = later

    def _held_for(self, m: int, n: int) -> bool:
        """Whether an operand would have to be held for a step that is done later."""
        if not self.joined(m, n) or self.collected(m):
            return False
        return any(c != n and self.stages[c] == self.stages[m] for c in self.consumers[m])

    def collected(self, n: int) -> bool:
        """Whether the whole of a member is needed."""
        together = (self.joined(n, c) and self.stages[c] == self.stages[n] for c in self.consumers[n])
        return n in self.plan.results or self._result_axis(n) is None or not all(together)

    def _take_in(self) -> None:
        """Reads that would copy, and masks, are done for each block where members alone use them, block by block."""
        for m in range(len(self.steps)):
            users = self.consumers[m]
            if m in self.labels or not users or m in self.plan.results or not self._shifts(m):
                continue
            places = {axis for n in users for axis in self._read_along(m, n)}
            stages = {self.stages[n] for n in users}
            if len(places) == len(stages) == 1 and None not in places:
                (label,) = places
                assert label is not None
                self.labels[m] = label
                self.stages[m] = stages.pop()

    def _read_along(self, m: int, n: int) -> Iterator[int | None]:
        """The axes of the lane in an operand of a step, None where it is needed whole."""
        for o, axis in zip(self.steps[n].operands, self.lane(n).operands if n in self.labels else (), strict=False):
            if o == m:
                yield axis
        if n not in self.labels:
            yield None

    def _shifts(self, m: int) -> bool:
        """Whether a step is a mask, or a read of an array that would be copied for it."""
        match self.steps[m].operation:
            case IndexCondition():
                return self.plan.elements(m) >= LEAST
            case Read(positions=positions):
                source = self.steps[m].operands[0]
                plain = all(p.divisor == 1 for p in positions)
                return plain and any(self._leaves(m, p, source, axis) for axis, p in enumerate(positions))
        return False

    def _leaves(self, m: int, position: Position, source: int, axis: int) -> bool:
        """Whether a position leaves its axis, at the sizes of the plan."""
        shape, size = self.plan.shape(m), self.plan.shape(source)[axis]
        start = position.start.evaluate(self.plan.sizes)
        ends = [step * (n - 1) for step, n in zip(position.steps, shape, strict=True)]
        return start + sum(min(0, end) for end in ends) < 0 or start + sum(max(0, end) for end in ends) >= size

    # --- groups

    def groups(self) -> list[_FusedGroup]:
        """The members of each stage that read each other or the same arrays."""
        parent = {n: n for n in self.labels}

        def root(n: int) -> int:
            while parent[n] != n:
                n = parent[n]
            return n

        shared: dict[tuple[int, int, object], int] = {}
        for n in sorted(self.labels):
            for m, axis in zip(self.steps[n].operands, self.lane(n).operands, strict=True):
                if axis is not None:
                    key = (m, self.stages[n], axis)
                    inside = self.joined(m, n) and self.stages[m] == self.stages[n]
                    parent[root(n)] = root(m if inside else shared.setdefault(key, n))
        found: dict[int, dict[int, int]] = {}
        for n, label in self.labels.items():
            found.setdefault(root(n), {})[n] = label
        return [_FusedGroup(labels, self.domain(min(labels))) for labels in found.values()]

    def saved(self, group: _FusedGroup) -> float:
        """How many arrays of the largest size a loop saves; 0 where that is small."""
        largest = max(map(self._work, group.labels))
        if largest < LEAST:
            return 0
        made = sum(_passes(self.steps[n]) * self._work(n) for n in group.labels)
        held = sum(self.plan.elements(n) for n in group.labels if self.collected(n))
        return (made - held) / largest

    def _work(self, n: int) -> int:
        """The elements that a step goes through, of arrays along its lane if it has one."""
        operands = self.steps[n].operands
        if n in self.labels:
            operands = tuple(m for m, axis in zip(operands, self.lane(n).operands, strict=True) if axis is not None)
        return max(map(self.plan.elements, (n, *operands)))

    def region(self, group: _FusedGroup) -> Region:
        """A group as a region, with blocks that the cache holds."""
        length = extent(group.domain, dict(self.plan.sizes))
        widest = max(1, max(map(self._work, group.labels)) // max(1, length))
        steps = [self.steps[n] for n in group.labels]
        made = [self.plan.elements(n) / max(1, length) for n in group.labels if self.steps[n].fresh]
        row = max(1, int(sum(made) / max(1, len(made))))
        small = any(step.kind is complex or _multiplies(step) for step in steps)
        block = BLOCK * (BOXES if any(map(_in_boxes, steps)) else 1)
        rows = max(1, block // (row * (2 if small else 1)))
        if any(self._runs_last(n) for n in group.labels):
            rows = max(rows, RUN)
        rows = max(1, min(rows, SPILLED // widest))
        return Region(group.domain, group.labels, rows, pairwise=True)

    def _runs_last(self, n: int) -> bool:
        """Whether a step makes an array of several axes with the lane along the last one."""
        many = len(self.steps[n].axes)
        return many > 1 and self._result_axis(n) == many - 1


def _in_boxes(step: Step) -> bool:
    """Whether conditions between several labels hold for a step."""
    conditions = step.operation.conditions if isinstance(step.operation, Mask | MaskedContract) else ()
    return any(sum(map(bool, condition.steps)) > 1 for condition in conditions)


def _multiplies(step: Step) -> bool:
    """Whether a step is a product that BLAS does, which gives parts of longer ones to threads."""
    return isinstance(step.operation, ChosenProduct) or (
        isinstance(step.operation, Contract) and bool(step.operation.summed)
    )


def _passes(step: Step) -> int:
    """How many operations on arrays a step takes."""
    if isinstance(step.operation, Combine):
        return passes(step)
    return 0 if isinstance(step.operation, Arrange) else 1


def _sums_in_pairs(plan: Plan, groups: Sequence[Region]) -> tuple[Plan, list[Region]]:
    """The plan with sums in loops taken apart, and the regions in its numbers."""
    steps: list[Step] = []
    number: list[int] = []
    group_of = {n: position for position, group in enumerate(groups) for n in group.labels}
    labels: list[dict[int, int]] = [{} for _ in groups]
    for n, old in enumerate(plan.steps):
        step = reading(old, number)
        parts = [(step, tuple(range(len(step.axes))))]
        if n in group_of:
            group, label = group_of[n], groups[group_of[n]].labels[n]
            if isinstance(step.operation, Combine) and len(step.operands) > 1:
                parts = in_pairs(step, [plan.steps[m].kind for m in old.operands], len(steps))
            for position, (_, pattern) in enumerate(parts, len(steps)):
                sums = isinstance(step.operation, Contract | ChosenProduct | MaskedContract | Reduce | ReduceExtreme)
                own = label if sums else place(pattern, label)
                if own is not None:
                    labels[group][position] = own
        steps += [part for part, _ in parts]
        number.append(len(steps) - 1)
    split = [replace(group, labels=found) for found, group in zip(labels, groups, strict=True)]
    results, hints = tuple(number[n] for n in plan.results), {number[n]: name for n, name in plan.hints.items()}
    return replace(plan, steps=tuple(steps), results=results, hints=hints), split
