"""Iterations in less memory: block by block, and back from states that were kept on the way.

    x[t+1] = g(x[t]) for all t, kept;  λ[t] = P g(x[t]; λ[t+1]);  θ̄ = Σ_t P_θ g(x[t]; λ[t+1])
    = x over the blocks, kept before some of them;  from the last block to the first: x over it again, λ, and its θ̄

The *region* is the steps that have the number of the step of an iteration as an index. What a step of the region reads
along that index is there block by block, all else must be whole: a sum over the index, or a last state, is whole after
the sweep that adds it up. The region is done in two sweeps, one forward, and one back for what needs the whole of
something that the first one gives. States are kept by the binomial schedule (see `kernels.schedules`).

Invariant: the plan computes what it did; sums over the index are added up block by block.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field, replace

from combdiff.ir import Domain, Lambda, Range, Space, Var, extent
from combdiff.planning.extents import extent_form
from combdiff.planning.operations.elementwise import ElementwiseStep
from combdiff.planning.operations.iterations import Iteration, IterationResult, Sweep, SweepBack, advances
from combdiff.planning.operations.leaves import Parameter
from combdiff.planning.operations.loops import Block
from combdiff.planning.operations.masks import IndexCondition, Mask, MaskedContract
from combdiff.planning.operations.operation import Step
from combdiff.planning.passes.loop_axis import Lane, label_of_operand, label_of_result, lane
from combdiff.planning.plan import Plan, peak, pruned
from combdiff.records import dataclass

SIZE, START = "steps", "start"
FORWARD, ADVANCE, BACK = "forward", "advance", "back"
CALLS = 8  # steps of an iteration that take as long as what a block costs beside its steps
WHOLE = Lane((), None)
COUNTING = (IndexCondition, Mask, MaskedContract)  # what may count positions along an index


def checkpointed(plan: Plan, limit: int) -> tuple[Plan | None, int]:
    """The plan in blocks of steps that does least again within `limit` bytes, and the least peak that blocks reach.

    The plan is None where no blocks keep to the limit.
    """
    best, least = None, peak(plan)
    for seed, step in enumerate(plan.steps):
        operation = step.operation
        if not isinstance(operation, Iteration) or operation.reverse:
            continue
        steps = extent(operation.steps, dict(plan.sizes))
        if plan.loops or plan.sweeps or steps < 2:
            continue
        swept = _Sweeps(_ReplayedRegion(plan, seed)).plan()
        for block in _sizes(steps):
            smallest = _with(swept, block, 2)
            least = min(least, needed := peak(smallest))
            if needed <= limit:
                found = _with(swept, block, _most_kept(swept, block, -(-steps // block), limit))
                if best is None or _work(found) < _work(best):
                    best = found
    return best, least


def _sizes(steps: int) -> Iterator[int]:
    """The lengths of blocks that are tried."""
    block = 1
    while block < steps:
        yield block
        block *= 2


def _with(plan: Plan, block: int, kept: int) -> Plan:
    """The plan with blocks of another length, and as many states kept, where they are needed again."""
    (sweep,) = plan.sweeps
    if not any(isinstance(step.operation, SweepBack) for step in plan.steps):
        kept = 0
    new = replace(sweep, kept=kept)
    steps = []
    for step in plan.steps:
        match step.operation:
            case Sweep():
                step = replace(step, operation=new)
            case SweepBack() as back:
                step = replace(step, operation=replace(back, forward=new))
        steps.append(step)
    return replace(plan, steps=tuple(steps), sizes={**plan.sizes, sweep.size: block})


def _most_kept(plan: Plan, block: int, blocks: int, limit: int) -> int:
    """As many states as fit, found by bisection."""
    low, high = 2, max(2, blocks)
    while low < high:
        middle = (low + high + 1) // 2
        if peak(_with(plan, block, middle)) <= limit:
            low = middle
        else:
            high = middle - 1
    return low


def _work(plan: Plan) -> int:
    """How long the sweeps take, in steps of the iteration: twice for a step back, and some for each block."""
    (sweep,) = plan.sweeps
    block = plan.sizes[sweep.size]
    blocks = -(-extent(sweep.steps, dict(plan.sizes)) // block)
    forward = 1 + (advances(blocks, sweep.kept) if sweep.kept else blocks)
    return (forward + 3 * blocks) * (block + CALLS)


# --- the region ----------------------------------------------------------------------------------------------------


class _ReplayedRegion:
    """The steps that have the number of a step as an index: `labels` gives its label in each, `phase` its sweep."""

    def __init__(self, plan: Plan, seed: int) -> None:
        self.plan = plan
        iteration = plan.steps[seed].operation
        assert isinstance(iteration, Iteration)
        self.domain = iteration.steps
        self.labels: dict[int, int] = {}
        self.refused: set[int] = set()
        self.todo: list[int] = []
        self.add(seed, 0)
        while self.todo:
            self.spread(self.todo.pop())
        self.phase = self.phases()

    def along(self, n: int) -> Lane:
        """The axes of the index in a step of the region."""
        step = self.plan.steps[n]
        match step.operation:
            case Iteration(states=states, stacks=stacks):
                rest = len(step.operands) - states - stacks
                return Lane((None,) * states + (0,) * stacks + (None,) * rest, 0)
            case IterationResult(kind=kind):
                return Lane((0,), None if kind == "last" else 0)
        return lane(step, self.labels[n]) or WHOLE

    def add(self, n: int, label: int) -> None:
        """The step belongs to the region, if it can, with the index at that label."""
        if n in self.labels or n in self.refused or not self.fits(n, label):
            return
        self.labels[n] = label
        self.todo.append(n)

    def fits(self, n: int, label: int) -> bool:
        """Whether a step can be done block by block along a label."""
        step = self.plan.steps[n]
        if isinstance(step.operation, Iteration):
            return extent_form(step.operation.steps) == extent_form(self.domain)
        if isinstance(step.operation, IterationResult):
            return step.operands[0] in self.labels
        found = None if isinstance(step.operation, (Parameter, *COUNTING)) else lane(step, label)
        if found is None or (step.kind is int and not isinstance(step.operation, ElementwiseStep)):
            return False  # truth values go with the numbers that they are of, index arrays with none
        places = [(self.plan.steps[m], axis) for m, axis in zip(step.operands, found.operands, strict=True)]
        domains = [each.axes[axis] for each, axis in (*places, (step, found.result)) if axis is not None]
        return all(extent_form(domain) == extent_form(self.domain) for domain in domains)

    def spread(self, n: int) -> None:
        """Take in what makes the operands of a step along the index, and what uses its result along it."""
        along, step = self.along(n), self.plan.steps[n]
        for m, axis in zip(step.operands, along.operands, strict=True):
            if axis is None:
                continue
            made = self.plan.steps[m]
            if isinstance(made.operation, IterationResult):
                self.add(made.operands[0], 0)
            self.add(m, label_of_result(made, axis))
        if along.result is None:
            return
        for consumer, position in self.plan.readers[n]:
            operation = self.plan.steps[consumer].operation
            if isinstance(operation, Iteration):
                label = 0 if operation.states <= position < operation.states + operation.stacks else None
            elif isinstance(operation, IterationResult):
                label = 0
            else:
                label = label_of_operand(self.plan.steps[consumer], position, along.result)
            if label is not None and (not isinstance(operation, Iteration) or along.result == 0):
                self.add(consumer, label)

    def operands(self, n: int) -> list[tuple[int, int | None, bool]]:
        """The operands of a step of the region, the axis of the index, and whether they are there block by block."""
        pairs = zip(self.plan.steps[n].operands, self.along(n).operands, strict=True)
        return [(m, axis, axis is not None and m in self.labels and self.along(m).result == axis) for m, axis in pairs]

    def phases(self) -> dict[int, int]:
        """The sweep that each step of the region is done in; those that neither can do leave the region."""
        while True:
            phase, late = self._levels()
            if not late:
                return phase
            for n in late:
                self._leave(n)

    def _leave(self, n: int) -> None:
        self.refused.add(n)
        del self.labels[n]
        for consumer, _ in self.plan.readers[n] if isinstance(self.plan.steps[n].operation, Iteration) else ():
            if consumer in self.labels:
                self._leave(consumer)

    def _levels(self) -> tuple[dict[int, int], list[int]]:
        """The sweep of each step of the region, and steps that need a third one, or another direction."""
        phase: dict[int, int] = {}
        whole: list[int] = []  # the number of sweeps after which each step is there as a whole
        for n, step in enumerate(self.plan.steps):
            if n not in self.labels:
                whole.append(max((whole[m] for m in step.operands), default=0))
                continue
            found = [phase[m] if inside else whole[m] for m, _, inside in self.operands(n)]
            operation = step.operation
            back = isinstance(operation, Iteration) and operation.reverse
            phase[n] = level = max([int(back), *found])
            if level > 1 or (isinstance(operation, Iteration) and back != (level == 1)):
                return phase, [n]
            whole.append(level + 1)
        self.whole = whole
        return phase, []

    @property
    def needed(self) -> list[int]:
        """The steps of the region that are needed as a whole: summed up, last states, or read by others so."""
        found = []
        for n in sorted(self.labels):
            if isinstance(self.plan.steps[n].operation, Iteration):
                continue
            outside = n in self.plan.results or any(m not in self.labels for m, _ in self.plan.readers[n])
            inside = any(
                operand == n and not block
                for m, _ in self.plan.readers[n]
                if m in self.labels
                for operand, _, block in self.operands(m)
            )
            if outside or inside:
                found.append(n)
        return found

    def below(self, wanted: Iterable[int]) -> set[int]:
        """The steps of the region that are done for some of them."""
        found, todo = set[int](), list(wanted)
        while todo:
            n = todo.pop()
            if n not in found:
                found.add(n)
                todo += [m for m, _, inside in self.operands(n) if inside]
        return found


# --- the plan of a block -------------------------------------------------------------------------------------------


@dataclass
class _Body:
    """The plan of a block, as it is put together: `captured` gives the numbers of the steps that it reads from outside.

    Its first parameters are states of iterations, in the order in which they stand.
    """

    region: _ReplayedRegion
    size: str
    start: str
    steps: list[Step] = field(default_factory=list)
    parameters: list[Var] = field(default_factory=list)
    number: dict[int, int] = field(default_factory=dict)
    captured: dict[int, int] = field(default_factory=dict)
    blocks: dict[tuple[int, int], int] = field(default_factory=dict)
    inner: dict[Lambda | str, Plan] = field(default_factory=dict)
    last: dict[tuple[int, int], int] = field(default_factory=dict)

    def emit(self, step: Step) -> int:
        """The number of a new step."""
        self.steps.append(step)
        return len(self.steps) - 1

    def parameter(self, name: str, like: Step) -> int:
        """A parameter like an array."""
        self.parameters.append(Var(name, Space(*like.axes, dtype=like.kind)))
        return self.emit(Step(Parameter(name), (), like.axes, like.kind))

    def states(self, n: int) -> dict[tuple[int, int], int]:
        """Parameters for the states that an iteration begins with."""
        plan, found = self.region.plan, {}
        operation = plan.steps[n].operation
        assert isinstance(operation, Iteration)
        for k, space in enumerate(p.type for p in operation.system.parameters[: operation.states]):
            assert isinstance(space, Space)
            like = Step(operation, (), space.axes, space.dtype)
            found[n, k] = self.parameter(f"state{n}_{k}", like)
        return found

    def outside(self, m: int) -> int:
        """An array that is whole; a number that is made of constants is made again."""
        if m not in self.captured:
            step = self.region.plan.steps[m]
            if self.region.plan.numbers[m]:
                self.captured[m] = self.emit(replace(step, operands=tuple(map(self.outside, step.operands))))
            else:
                self.captured[m] = self.parameter(f"given{m}", step)
        return self.captured[m]

    def block(self, m: int, axis: int) -> int:
        """The block of an array that is whole."""
        if (m, axis) not in self.blocks:
            step, whole = self.region.plan.steps[m], self.outside(m)
            self.blocks[m, axis] = self.emit(Step(Block(axis), (whole,), self._cut(step, axis), step.kind))
        return self.blocks[m, axis]

    def _cut(self, step: Step, axis: int | None) -> tuple[Domain, ...]:
        return tuple(Range(self.size) if n == axis else domain for n, domain in enumerate(step.axes))

    def member(self, n: int, starts: dict[tuple[int, int], int]) -> None:
        """A step of the region on blocks of its operands."""
        step, operation = self.region.plan.steps[n], self.region.plan.steps[n].operation
        operands = [
            self.number[m] if inside else self.outside(m) if axis is None else self.block(m, axis)
            for m, axis, inside in self.region.operands(n)[_own(step) :]
        ]
        if isinstance(operation, Iteration):
            own = [starts[n, k] for k in range(operation.states)]
            self.inner.update((each, self.region.plan.inner[each]) for each in operation.programs)
            operation = replace(operation, steps=Range(self.size))
            operands = own + operands
        axes = self._cut(step, self.region.along(n).result) if not isinstance(operation, Iteration) else step.axes
        self.number[n] = self.emit(Step(operation, tuple(operands), axes, step.kind))

    def last_states(self, n: int) -> list[int]:
        """The states that an iteration ends with, each a step."""
        operation = self.region.plan.steps[n].operation
        assert isinstance(operation, Iteration)
        found = []
        for k, parameter in enumerate(operation.system.parameters[: operation.states]):
            space = parameter.type
            assert isinstance(space, Space)
            found.append(self.emit(Step(IterationResult("last", k), (self.number[n],), space.axes, space.dtype)))
        return found

    def plan(self, results: list[int]) -> Plan:
        """The plan of the block."""
        plan = self.region.plan
        sizes = {**plan.sizes, self.size: 1, self.start: 0}
        whole = Plan(
            tuple(self.parameters), tuple(self.steps), tuple(results), tuple(range(len(results))), sizes, {}, self.inner
        )
        return pruned(whole)


def _own(step: Step) -> int:
    """How many of the operands of a step are the first states of an iteration."""
    return step.operation.states if isinstance(step.operation, Iteration) else 0


# --- the sweeps ----------------------------------------------------------------------------------------------------


class _Sweeps:
    """The plan with a region in two sweeps, units in the order of the sweeps that they wait for."""

    def __init__(self, region: _ReplayedRegion) -> None:
        self.region, self.old = region, region.plan
        self.size, self.start = (self._unused(name) for name in (SIZE, START))
        self.steps: list[Step] = []
        self.whole: dict[int, int] = {}
        self.inner = dict(self.old.inner)
        self.iterations = {
            phase: [n for n in sorted(region.labels) if self._is_iteration(n) and region.phase[n] == phase]
            for phase in (0, 1)
        }
        self.forward: Sweep | None = None
        self.kept = -1  # the number of the forward sweep

    def _unused(self, name: str) -> str:
        while name in self.old.sizes:
            name += "_"
        return name

    def _is_iteration(self, n: int) -> bool:
        return isinstance(self.old.steps[n].operation, Iteration)

    def plan(self) -> Plan:
        """The plan with its sweeps."""
        needed = self.region.needed
        for level in range(3):
            for n, step in enumerate(self.old.steps):
                if n not in self.region.labels and self.region.whole[n] == level:
                    self.whole[n] = self.emit(replace(step, operands=tuple(self.whole[m] for m in step.operands)))
            wanted = [n for n in needed if self.region.phase[n] == level]
            if level == 0:
                self.sweep(wanted)
            elif wanted:
                self.sweep_back(wanted)
        sizes = {**self.old.sizes, self.size: 1, self.start: 0}
        hints = {self.whole[n]: name for n, name in self.old.hints.items() if n in self.whole}
        results = tuple(self.whole[n] for n in self.old.results)
        new = replace(self.old, steps=tuple(self.steps), results=results, sizes=sizes, hints=hints, inner=self.inner)
        return pruned(new)

    def emit(self, step: Step) -> int:
        """The number of a new step."""
        self.steps.append(step)
        return len(self.steps) - 1

    def body(self, back: bool, wanted: list[int], name: str) -> tuple[_Body, list[int]]:
        """The plan of a block, stored under a name, and the numbers of the steps of what is wanted that it gives.

        Its first results are the next states, forward ones or back.
        """
        body = _Body(self.region, self.size, self.start)
        starts: dict[tuple[int, int], int] = {}
        own = self.iterations[int(back)]
        for n in (*self.iterations[0], *(self.iterations[1] if back else ())):
            starts |= body.states(n)
        members = self.region.below([*wanted, *own])
        for n in sorted(members):
            body.member(n, starts)
        states = [m for n in own for m in body.last_states(n)]
        given = [n for n in wanted if not self._is_last(n)]
        self.inner[name] = body.plan([*states, *(body.number[n] for n in given)])
        return body, given

    def _is_last(self, n: int) -> bool:
        operation = self.old.steps[n].operation
        return isinstance(operation, IterationResult) and operation.kind == "last"

    def starts(self, phase: int) -> list[int]:
        """The first states of the iterations of a sweep."""
        found = []
        for n in self.iterations[phase]:
            operation = self.old.steps[n].operation
            assert isinstance(operation, Iteration)
            found += [self.whole[m] for m in self.old.steps[n].operands[: operation.states]]
        return found

    def captured(self, *bodies: _Body) -> dict[str, int]:
        """What bodies read from outside: parameters, and the steps for them."""
        found = {m for body in bodies for m in body.captured if not self.old.numbers[m]}
        return {f"given{m}": self.whole[m] for m in sorted(found)}

    def results(self, n: int, phase: int, wanted: list[int], given: list[int]) -> None:
        """What is wanted, read from a sweep."""
        places, count = {}, 0
        for iteration in self.iterations[phase]:
            operation = self.old.steps[iteration].operation
            assert isinstance(operation, Iteration)
            places[iteration] = count
            count += operation.states
        for m in wanted:
            step, axis = self.old.steps[m], self.region.along(m).result
            if self._is_last(m):
                assert isinstance(step.operation, IterationResult)
                result = IterationResult("last", places[step.operands[0]] + step.operation.component)
            else:
                result = IterationResult("sum" if axis is None else "each", count + given.index(m), axis or 0)
            self.whole[m] = self.emit(Step(result, (n,), step.axes, step.kind))

    def sweep(self, wanted: list[int]) -> None:
        """The sweep forward."""
        body, given = self.body(False, wanted, FORWARD)
        captured, starts = self.captured(body), self.starts(0)
        self.forward = Sweep(FORWARD, self.region.domain, self.size, self.start, len(starts), tuple(captured), 0)
        self.kept = self.emit(Step(self.forward, (*starts, *captured.values()), (), float))
        self.results(self.kept, 0, wanted, given)

    def sweep_back(self, wanted: list[int]) -> None:
        """The sweep back, with the blocks forward again."""
        body, given = self.body(True, wanted, BACK)
        advance, _ = self.body(False, [], ADVANCE)
        captured, starts = self.captured(body, advance), self.starts(1)
        assert self.forward is not None
        operation = SweepBack(self.forward, BACK, ADVANCE, len(starts), tuple(captured))
        n = self.emit(Step(operation, (self.kept, *starts, *captured.values()), (), float))
        self.results(n, 1, wanted, given)
