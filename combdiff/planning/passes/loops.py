"""Steps of a plan put into loops over blocks of an index.

    t = np.exp(x),  s = Σ_i t[i]·y[i]      for each block of i: t over the block, and what it adds to s

A *region* is the steps of one loop, with the label that the index has in each. Arrays from before the loop are read
block by block; what is used after it is collected: side by side, or added up where the index is summed over.

Invariant: the plan computes what it did, each step once, and steps only refer to earlier ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from heapq import heapify, heappop, heappush

from combdiff.ir import Domain, Range
from combdiff.planning.extents import extent_form
from combdiff.planning.operations.loops import Block, Collect
from combdiff.planning.operations.masks import IndexCondition, Mask, MaskedContract
from combdiff.planning.operations.operation import Step
from combdiff.planning.operations.reads import Read
from combdiff.planning.passes.loop_axis import Lane, lane
from combdiff.planning.plan import Loop, Plan
from combdiff.polyhedra import Linear
from combdiff.records import dataclass

START = "start"


@dataclass(frozen=True)
class Region:
    """The steps of a loop over a domain, with the label of its index in each, and the length of a block.

    `pairwise` says that sums over the index are added up pair by pair at the end, not one by one as they come.
    """

    domain: Domain
    labels: Mapping[int, int]
    block: int
    pairwise: bool = False

    def lane(self, plan: Plan, n: int) -> Lane:
        """The axes of the index in a step of the region; one that is computed at shifted positions reads no blocks."""
        return lane_of_blocks(plan, n, self.labels[n]) or Lane((None,) * len(plan.steps[n].operands), self.labels[n])


def lane_of_blocks(plan: Plan, n: int, label: int) -> Lane | None:
    """The axes of a label in a step that can be done on blocks of its operands; None where it cannot.

    What a read takes along an axis of another length, zeros beyond its end, is in no block of that axis.
    """
    step, found = plan.steps[n], lane(plan.steps[n], label)
    if found is None or found.result is None or not isinstance(step.operation, Read):
        return found
    pairs = zip(step.operands, found.operands, strict=True)
    read = [plan.steps[m].axes[axis] for m, axis in pairs if axis is not None]
    return found if all(extent_form(axis) == extent_form(step.axes[found.result]) for axis in read) else None


def in_loops(plan: Plan, regions: Sequence[Region]) -> Plan:
    """The plan with each region in a loop. No path from a region to itself may lead through steps outside of it."""
    return _Assembly(plan, regions).plan()


class _Assembly:
    """Puts the plan together, units (loops, and steps outside of them) in the order of their last steps."""

    def __init__(self, plan: Plan, regions: Sequence[Region]) -> None:
        self.old = plan
        self.unit_of = {n: [n] for n in range(len(plan.steps))}
        self.region_of: dict[int, Region] = {}
        for region in regions:
            members = sorted(region.labels)
            self.unit_of.update(dict.fromkeys(members, members))
            self.region_of.update(dict.fromkeys(members, region))
        self.steps: list[Step] = []
        self.loops: list[Loop] = []
        self.whole: dict[int, int] = {}  # the new number of each step's whole result
        self.part: dict[int, int] = {}  # and of the block of it, in its loop
        self.blocks: dict[tuple[int, int], int] = {}
        self.start = self._unused(START, plan.sizes)
        self.sizes = {**plan.sizes, self.start: 0}

    @staticmethod
    def _unused(name: str, taken: Mapping[str, int]) -> str:
        while name in taken:
            name += "_"
        return name

    def plan(self) -> Plan:
        """The plan with its loops."""
        for members in self._ordered():
            if members[0] in self.region_of:
                self.loop(self.region_of[members[0]])
            else:
                step = self.old.steps[members[0]]
                self.whole[members[0]] = self.emit(replace(step, operands=self._whole(step)))
        return replace(
            self.old,
            steps=tuple(self.steps),
            results=tuple(self.whole[n] for n in self.old.results),
            sizes=self.sizes,
            hints={self.whole.get(n, self.part.get(n, -1)): name for n, name in self.old.hints.items()},
            loops=tuple(self.loops),
        )

    def _ordered(self) -> list[list[int]]:
        """The units, each after those it uses; of those that are ready, the one whose last step came first."""
        units = {members[-1]: members for members in self.unit_of.values()}
        needs = {
            last: {self.unit_of[m][-1] for n in members for m in self.old.steps[n].operands} - {last}
            for last, members in units.items()
        }
        users: dict[int, list[int]] = {last: [] for last in units}
        for last, needed in needs.items():
            for other in needed:
                users[other].append(last)
        ready = [last for last, needed in needs.items() if not needed]
        heapify(ready)
        order = []
        while ready:
            last = heappop(ready)
            order.append(units[last])
            for user in users[last]:
                needs[user].remove(last)
                if not needs[user]:
                    heappush(ready, user)
        assert len(order) == len(units), "a region must not depend on itself by way of other steps"
        return order

    def _whole(self, step: Step) -> tuple[int, ...]:
        return tuple(self.whole[m] for m in step.operands)

    def emit(self, step: Step) -> int:
        self.steps.append(step)
        return len(self.steps) - 1

    # --- loops

    def loop(self, region: Region) -> None:
        """The steps of a region."""
        size = self._size(region)
        first = len(self.steps)
        self.blocks.clear()
        for n in sorted(region.labels):
            self.member(n, region, size)
        self.loops.append(Loop(first, len(self.steps), region.domain, size, self.start))

    def _size(self, region: Region) -> str:
        """The name of the length of a block: one for all loops over the domain with such blocks."""
        same = (loop.size for loop in self.loops if loop.domain == region.domain)
        for size in same:
            if self.sizes[size] == region.block:
                return size
        size = self._unused("block", self.sizes)
        self.sizes[size] = region.block
        return size

    def member(self, n: int, region: Region, size: str) -> None:
        """A step of a loop on blocks of its operands, and the collection of its blocks if they are needed whole."""
        step, found = self.old.steps[n], region.lane(self.old, n)
        operands = tuple(
            self.whole[m] if axis is None else self.part[m] if m in region.labels else self.block(m, axis, size)
            for m, axis in zip(step.operands, found.operands, strict=True)
        )
        if lane_of_blocks(self.old, n, region.labels[n]) is None or isinstance(step.operation, Mask | MaskedContract):
            step = self.shifted(step, region.labels[n])
        self.part[n] = self.emit(replace(step, operands=operands, axes=_cut(step.axes, found.result, size)))
        outside = any(m not in region.labels for m, _ in self.old.readers[n])
        if outside or n in self.old.results or found.result is None:
            collect = Collect(found.result, region.pairwise and found.result is None)
            self.whole[n] = self.emit(Step(collect, (self.part[n],), step.axes, step.kind))

    def block(self, m: int, axis: int, size: str) -> int:
        """The block of an array from before the loop."""
        if (m, axis) not in self.blocks:
            step = self.old.steps[m]
            cut = Step(Block(axis), (self.whole[m],), _cut(step.axes, axis, size), step.kind)
            self.blocks[m, axis] = self.emit(cut)
        return self.blocks[m, axis]

    def shifted(self, step: Step, label: int) -> Step:
        """A step that counts positions along a label, counting them from the start of the block."""
        start = Linear.symbol(self.start)
        match step.operation:
            case IndexCondition() as mask:
                return replace(step, operation=_moved(mask, label, start))
            case Mask(conditions=conditions) | MaskedContract(conditions=conditions) as op:
                shifted = tuple(_moved(condition, label, start) for condition in conditions)
                return replace(step, operation=replace(op, conditions=shifted))
            case Read(positions=positions):
                moved = tuple(replace(p, start=p.start + start.scale(p.steps[label])) for p in positions)
                return replace(step, operation=Read(moved))
        raise TypeError(f"no blocks of {step.operation!r}")


def _moved(mask: IndexCondition, label: int, start: Linear) -> IndexCondition:
    """A condition on positions along a label that are counted from a start."""
    return replace(mask, start=mask.start + start.scale(mask.steps[label]))


def _cut(axes: tuple[Domain, ...], axis: int | None, size: str) -> tuple[Domain, ...]:
    return tuple(Range(size) if n == axis else domain for n, domain in enumerate(axes))
