"""Plans: the list of array steps that computes all results of a program, with what each step costs.

    x ↦ (Σ_{i,j} x[i]·A[i,j]·x[j],  i ↦ Σ_j A[i,j]·x[j])       at N = 100
    = 0  parameter A                     2  0 @ 1    matrix-vector   10000 products
      1  parameter x                     3  1 @ 2    dot               100 products

Invariant: a plan is immutable, every step is needed for a result, and steps only refer to earlier ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from itertools import combinations
from math import prod

from combdiff.ir import Domain, Lambda, Space, Var, extent
from combdiff.planning.extents import elements, shape
from combdiff.planning.operations.calls import NamedCall, SolveEquation
from combdiff.planning.operations.contraction import Contract
from combdiff.planning.operations.diagonals import DiagonalScatterAdd
from combdiff.planning.operations.elementwise import Combine, ConjugateElements, ElementwiseStep, Scale
from combdiff.planning.operations.indirections import IndexEquals, Iota, Scatter, Take
from combdiff.planning.operations.iterations import Iteration, Sweep, SweepBack
from combdiff.planning.operations.leaves import Fill, Parameter
from combdiff.planning.operations.loops import Block, Collect
from combdiff.planning.operations.masks import IndexCondition, MaskedContract
from combdiff.planning.operations.matrices import Gram
from combdiff.planning.operations.operation import BUFFER, ITEM_BYTES, InnerCost, Occurrence, PartialResult, Step
from combdiff.planning.operations.reads import Arrange, Read
from combdiff.planning.operations.reductions import Rescale
from combdiff.planning.operations.words import Pattern, SizeFactor
from combdiff.records import dataclass

LEAST_WRITTEN_OVER = 1 << 14  # elements from which new memory is noticed
_ARITHMETIC = Scale | Combine | ConjugateElements | ElementwiseStep | Contract | Rescale
_WRITABLE = (Contract, Combine, Scale, ElementwiseStep, ConjugateElements, Gram)


@dataclass(frozen=True)
class StepCost:
    """What one step costs: multiplications or other operations on numbers, and bytes of a new array."""

    step: int
    operation: str
    flops: int
    bytes: int
    workspace: int


@dataclass(frozen=True)
class Loop:
    """The steps from `first` up to `last` are done for each block of a domain.

    `size` names the size of a block, `start` the position of its first element.
    """

    first: int
    last: int
    domain: Domain
    size: str
    start: str


Layout = int | tuple["Layout", ...]


def _is_positive(value: complex | None) -> bool:
    return value is not None and not value.imag and value.real > 0


@dataclass(frozen=True)
class Plan:
    """The steps that compute `results` (step numbers); `sizes` are those the orders were chosen for.

    `layout` is how a call returns them: the position of a single result, or a tuple of layouts. `inner` are the plans
    of the systems that solvers evaluate, of what iterations do at each step, and of blocks of them, by their names;
    `hosted` those of systems that NumPy's solvers evaluate for another library; `loops` the steps that are done block
    by block, in order. `orders` tell of parameters in which order of their axes an array comes, where it is another
    than theirs. `writes_over` says that the library writes results over operands that nothing reads any more, `even`
    that the arguments are of one width: all float32 and complex64, say, and not float64 beside them. `precisions` are
    the bytes of a real number in the element type of each tensor among the parameters, where they are known.
    """

    parameters: tuple[Var, ...]
    steps: tuple[Step, ...]
    results: tuple[int, ...]
    layout: Layout
    sizes: Mapping[str, int]
    hints: Mapping[int, str]
    inner: Mapping[Lambda | str, Plan] = field(default_factory=dict)
    hosted: Mapping[Lambda, Plan] = field(default_factory=dict)
    loops: tuple[Loop, ...] = ()
    orders: Mapping[str, Pattern] = field(default_factory=dict)
    writes_over: bool = False
    even: bool = False
    precisions: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def last_use(self) -> tuple[int, ...]:
        """For each step the last step that reads its memory, also through views; results are read to the end."""
        last = list(range(len(self.steps)))
        for n in range(len(self.steps) - 1, -1, -1):
            last[n] = len(self.steps) if n in self.results else last[n]
            for operand in self.steps[n].operands:
                last[operand] = max(last[operand], n if self.steps[n].fresh else last[n])
        for loop in reversed(self.loops):  # what is made before a loop stays to its end
            first, end = loop.first, loop.last
            last[:first] = [end if first <= use < end else use for use in last[:first]]
        return tuple(last)

    @cached_property
    def readers(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """For each step the steps that have it as an operand, each with its position among the operands."""
        found: list[list[tuple[int, int]]] = [[] for _ in self.steps]
        for n, step in enumerate(self.steps):
            for position, operand in enumerate(step.operands):
                found[operand].append((n, position))
        return tuple(map(tuple, found))

    def is_read_once(self, n: int) -> bool:
        """Whether a step is one operand of one step, or one result, and nothing else."""
        return len(self.readers[n]) + self.results.count(n) == 1

    @property
    def given_sizes(self) -> dict[str, int]:
        """The named sizes of the program, without those of blocks."""
        own = {name for loop in self.loops for name in (loop.size, loop.start)}
        own |= {name for sweep in self.sweeps for name in (sweep.size, sweep.start)}
        return {name: size for name, size in self.sizes.items() if name not in own}

    @property
    def sweeps(self) -> tuple[Sweep, ...]:
        """The iterations that are done block by block."""
        return tuple(step.operation for step in self.steps if isinstance(step.operation, Sweep))

    @cached_property
    def numbers(self) -> tuple[bool, ...]:
        """Of each step, whether it is a Python number, made of constants and sizes alone."""
        return self._made_by_arithmetic(lambda step: False)

    @cached_property
    def maybe_numbers(self) -> tuple[bool, ...]:
        """Of each step, whether it is a Python number where the parameters are."""
        return self._made_by_arithmetic(lambda step: isinstance(step.operation, Parameter) and not step.axes)

    def _made_by_arithmetic(self, given: Callable[[Step], bool]) -> tuple[bool, ...]:
        """Of each step, whether it is a constant, a size, given, or made of such numbers by Python's arithmetic."""
        found: list[bool] = []
        for step in self.steps:
            arithmetic = isinstance(step.operation, _ARITHMETIC)
            made = arithmetic and not step.axes and all(found[m] for m in step.operands)
            size = isinstance(step.operation, Iota) and not step.axes
            found.append(made or size or isinstance(step.operation, Fill) or given(step))
        return tuple(found)

    @cached_property
    def positive(self) -> tuple[bool, ...]:
        """Of each step, whether it is a number that is positive at the sizes of the plan, as far as that is plain."""
        known: list[complex | None] = []
        for step in self.steps:
            operands = [known[m] for m in step.operands]
            match step.operation:
                case Fill(number=number):
                    known.append(number.value())
                case Iota(start=start) if not step.axes:
                    known.append(float(start.evaluate(self.sizes)))
                case Combine(factors=factors) | Scale(factor=factors) if not step.axes and None not in operands:
                    each = factors if isinstance(factors, tuple) else (factors,)
                    known.append(sum(self._factor(f) * x for f, x in zip(each, operands, strict=True) if x is not None))
                case Contract() if not step.axes and None not in operands:
                    known.append(prod(value for value in operands if value is not None))
                case ElementwiseStep(name="power"):
                    base, exponent = operands
                    is_positive = exponent is not None and not exponent.imag and _is_positive(base)
                    known.append(1.0 if is_positive else None)  # its sign is all that is asked for
                case _:
                    known.append(None)
        return tuple(map(_is_positive, known))

    def _factor(self, factor: SizeFactor) -> complex:
        """A number times extents at the sizes of the plan."""
        return factor.number.value() * prod(extent(domain, dict(self.sizes)) for domain in factor.extents)

    @cached_property
    def typed(self) -> tuple[Step, ...]:
        """The steps with the precision of their element types."""
        if all(each == ITEM_BYTES[float] for each in self.precisions.values()):
            return self.steps
        most, found = max(self.precisions.values()), list[int]()
        for n, step in enumerate(self.steps):
            operation, below = step.operation, [found[m] for m in step.operands]
            if isinstance(operation, Parameter) and step.kind is not int:
                below = [self.precisions.get(operation.name, most)]
            elif isinstance(operation, Fill) or operation.is_truth:
                below = [0]  # a number takes the element type of what is beside it
            elif isinstance(operation, Take | Scatter):
                below = below[:1]  # the others are indices
            elif operation.takes_type or self.is_filled(n) or isinstance(operation, NamedCall | SolveEquation):
                below = [most]
            elif step.kind is int:
                below = [ITEM_BYTES[int]]
            found.append(max(below, default=ITEM_BYTES[float]))
        return tuple(replace(s, precision=each or ITEM_BYTES[float]) for s, each in zip(self.steps, found, strict=True))

    @cached_property
    def widths(self) -> tuple[frozenset[str], ...]:
        """Of each step, the arguments whose element types decide how wide its own is; those of one width are one."""
        found: list[frozenset[str]] = []
        own: frozenset[str]
        for n, step in enumerate(self.steps):
            match step.operation:
                case Parameter() | IndexCondition() | IndexEquals() | Arrange() if self.even:
                    own = frozenset()
                case Parameter(name=name):
                    own = frozenset([name])
                case NamedCall() | SolveEquation() | PartialResult():
                    own = frozenset([f"#{n}"])
                case IndexCondition() | IndexEquals() | Arrange():
                    own = frozenset(var.name for var in self.parameters if isinstance(var.type, Space))
                case _:
                    own = frozenset()
            found.append(own.union(*(found[m] for m in step.operands)))
        return tuple(found)

    def writable(self, n: int) -> Iterator[int]:
        """The operands whose memory the result of a step may take, as they are not read any more."""
        step = self.steps[n]
        looped = any(loop.first <= n < loop.last for loop in self.loops)
        if step.axes and (looped or self.elements(n) >= LEAST_WRITTEN_OVER):
            yield from (m for position, m in enumerate(step.operands) if self._is_writable(n, m, position))

    def _is_writable(self, n: int, m: int, position: int) -> bool:
        step, operand = self.steps[n], self.steps[m]
        whole = _places(step)[position] == tuple(range(len(step.axes))) and operand.axes == step.axes
        own = isinstance(operand.operation, _WRITABLE) and operand.fresh and operand.kind is step.kind is not int
        wide = all(self.widths[other] <= self.widths[m] for other in step.operands)
        return whole and own and wide and self.last_use[m] == n

    def taken_over(self, n: int) -> int | None:
        """The operand whose memory the result of a step takes, where that is known without the text of the step."""
        if not self.writes_over or not self.steps[n].operation.is_called:
            return None
        if (m := next(self.writable(n), None)) is None:
            return None
        step = self.steps[n]
        itself = m, tuple(range(len(step.axes)))
        pairs = zip(step.operands, _places(step), strict=True)
        others = [self._memory(pair[0]) for pair in pairs if pair != itself]  # its transpose is another, too
        return m if m not in others else None  # NumPy copies what it would read and write at once

    def _memory(self, n: int) -> int:
        """The step whose memory a view reads."""
        while not self.steps[n].fresh and self.steps[n].operands:
            n = self.steps[n].operands[0]
        return n

    def is_whole(self, n: int) -> bool:
        """Whether a result lies in a row: an argument, an array of its own, rows of one, or what may be its operand."""
        step = self.steps[n]
        if isinstance(step.operation, Rescale) or (isinstance(step.operation, Block) and not step.operation.axis):
            return self.is_whole(step.operands[0])
        if isinstance(step.operation, Read) and step.operation.keeps_order and self.is_whole(m := step.operands[0]):
            return step.fresh or self.elements(n) == self.elements(m)  # of the axes left out each has one element
        return not step.operands or (step.in_rows and self.in_order[n])

    @cached_property
    def in_order(self) -> tuple[bool, ...]:
        """Of each step, whether its axes are in memory in their order, perhaps with gaps, as far as is known.

        NumPy lays out what it does element by element as its operands are, or writes it over one.
        """
        found: list[bool] = []
        for n, step in enumerate(self.steps):
            places = _places(step)
            if (m := self.taken_over(n)) is not None:
                found.append(found[m])
            elif not step.fresh and isinstance(step.operation, Read):
                found.append(step.operation.keeps_order and found[step.operands[0]])
            elif not step.fresh and isinstance(step.operation, Arrange):
                found.append(places[0] == tuple(sorted(places[0])) and found[step.operands[0]])
            elif step.fresh and any(-1 in place for place in places):
                found.append(True)
            else:
                known = [place for m, place in zip(step.operands, places, strict=True) if found[m]]
                whole = tuple(range(len(step.axes)))
                found.append(whole in known or (len(known) == len(places) and not _is_turned(known)))
        return tuple(found)

    def is_filled(self, n: int) -> bool:
        """Whether a step is an array of one number."""
        return isinstance(self.steps[n].operation, Arrange) and self.numbers[self.steps[n].operands[0]]

    def owner(self, n: int) -> int | None:
        """The step that made the memory of a result that may be given away, if there is one."""
        step = self.steps[n]
        if isinstance(step.operation, Arrange) and not self.is_filled(n):
            return None if None in step.operation.order else self.owner(step.operands[0])
        own = step.fresh or isinstance(
            step.operation, DiagonalScatterAdd
        )  # owned ones write over what nothing else reads
        return n if own or self.is_filled(n) else None

    @property
    def copied(self) -> tuple[int, ...]:
        """The results that are copied before they are returned, as they share memory with an argument or another."""
        returned: set[int] = set()
        found = []
        for n in self.results:
            owner = self.owner(n)
            if owner is None or owner in returned:
                found.append(n)
            else:
                returned.add(owner)
        return tuple(found)

    def shape(self, step: int) -> tuple[int, ...]:
        """The shape of a step's result."""
        return shape(self.steps[step].axes, self.sizes)

    def elements(self, step: int) -> int:
        """The number of elements of a step's result."""
        return elements(self.steps[step].axes, self.sizes)

    def __str__(self) -> str:
        lines = [f"{'step':>4}  {'operation':<22}{'operands':<14}{'shape':<22}{'flops':>12}{'bytes':>12}"]
        for n, (step, spent) in enumerate(zip(self.steps, cost(self), strict=True)):
            shown = " × ".join(map(str, self.shape(n))) or "1"
            operands = ", ".join(map(str, step.operands))
            lines.append(f"{n:>4}  {spent.operation:<22}{operands:<14}{shown:<22}{spent.flops:>12}{spent.bytes:>12}")
        return "\n".join([*lines, f"peak memory {peak(self)} bytes, arguments not counted"])


def reading(step: Step, number: Mapping[int, int] | Sequence[int]) -> Step:
    """The step with other numbers for its operands."""
    operands = tuple([number[m] for m in step.operands])
    return step if operands == step.operands else replace(step, operands=operands)


class NewPlan:
    """A plan that becomes another, step by step: the new steps, and the number among them of each old one done so far.

    What the old plan knows of its steps, such as who reads them, a pass asks of `old`.
    """

    def __init__(self, plan: Plan) -> None:
        self.old = plan
        self.steps: list[Step] = []
        self.number: list[int] = []

    def add(self, step: Step) -> int:
        """The number of a new step, whose operands are new ones."""
        self.steps.append(step)
        return len(self.steps) - 1

    def shared(self, step: Step) -> int:
        """The number of a new step, or of an equal one that is there."""
        return self.steps.index(step) if step in self.steps else self.add(step)

    def moved(self, step: Step) -> Step:
        """An old step that reads the new ones."""
        return reading(step, self.number)


def step_by_step(plan: Plan, rewrite: Callable[[NewPlan, Step], int]) -> Plan:
    """The plan in which each step is what `rewrite` adds for it and gives the number of, without what nothing needs."""
    new = NewPlan(plan)
    for step in plan.steps:
        new.number.append(rewrite(new, step))
    return rewritten(plan, new.steps, new.number)


def rewritten(plan: Plan, steps: Iterable[Step], number: Mapping[int, int] | Sequence[int]) -> Plan:
    """The plan with other steps, of which `number` gives the one for each old one, without those that nothing needs."""
    hints = {number[n]: name for n, name in plan.hints.items()}
    return pruned(replace(plan, steps=tuple(steps), results=tuple(number[n] for n in plan.results), hints=hints))


def pruned(plan: Plan) -> Plan:
    """The plan without steps that nothing needs any more; parameters stay only where they are used."""
    needed = set(plan.results)
    for n in range(len(plan.steps) - 1, -1, -1):
        if n in needed:
            needed.update(plan.steps[n].operands)
    number = {n: position for position, n in enumerate(sorted(needed))}
    steps = tuple(reading(plan.steps[n], number) for n in sorted(needed))
    hints = {number[n]: name for n, name in plan.hints.items() if n in number}
    return replace(plan, steps=steps, results=tuple(number[n] for n in plan.results), hints=hints)


def with_real_results(plan: Plan) -> Plan:
    """The plan with what is computed from integers alone as real numbers in the end.

    The derivative by x of a·x is a, and real, whatever a holds, and that of Σ_i i·x[i] is a real array.
    """
    whole: list[bool] = []
    for step in plan.steps:
        below = [whole[m] for m in step.operands if not isinstance(plan.steps[m].operation, Fill)]
        given = isinstance(step.operation, Parameter | Iota) and step.kind is int
        whole.append(given or (bool(below) and all(below) and not step.operation.takes_type))
    steps, results = list(plan.steps), []
    for n in plan.results:
        counted = whole[n] and plan.steps[n].kind is not complex
        results.append(len(steps) if counted else n)
        if counted:
            axes = plan.steps[n].axes
            steps.append(Step(ElementwiseStep("counted", (tuple(range(len(axes))),)), (n,), axes, float))
    return replace(plan, steps=tuple(steps), results=tuple(results))


def patterns_of(step: Step) -> list[Pattern]:
    """The label or axis number along each axis of each operand, for operations that have such patterns."""
    match step.operation:
        case Contract(left=left, right=right):
            return [left, right]
        case Combine(patterns=patterns) | ElementwiseStep(patterns=patterns) | MaskedContract(patterns=patterns):
            return list(patterns)
    return []


def with_patterns(step: Step, patterns: list[Pattern]) -> Step:
    """The step with other patterns."""
    match step.operation:
        case Contract():
            return replace(step, operation=replace(step.operation, left=patterns[0], right=patterns[1]))
        case Combine() | ElementwiseStep() | MaskedContract():
            return replace(step, operation=replace(step.operation, patterns=tuple(patterns)))
    return step


# --- costs ---------------------------------------------------------------------------------------------------------


def flops(step: Step, operands: Sequence[Step], sizes: Mapping[str, int]) -> int:
    """Operations on numbers that a step does at some sizes."""
    return step.operation.flops(Occurrence(step, tuple(operands), sizes))


def rounds(plan: Plan, loop: Loop) -> int:
    """How many blocks a loop goes through."""
    return -(-extent(loop.domain, dict(plan.sizes)) // plan.sizes[loop.size])


def occurrence(plan: Plan, n: int) -> Occurrence:
    """A step with what its cost may depend on."""
    step, loop = plan.typed[n], _loop(plan, n)
    operands = tuple(plan.typed[m] for m in step.operands)
    numbers = tuple(plan.numbers[m] for m in step.operands)
    whole = tuple(plan.is_whole(m) for m in step.operands)
    starts = frozenset(loop.start for loop in plan.loops)
    at = Occurrence(step, operands, plan.sizes, numbers, whole, rounds(plan, loop) if loop else 1, starts)
    return replace(at, inner=tuple(_inner_cost(plan, key, operands[_changing(step) :]) for key in repeated(step)))


def repeated(step: Step) -> tuple[Lambda | str, ...]:
    """The plans within a plan that a step does over and over."""
    match step.operation:
        case Iteration(programs=programs):
            return programs
        case SolveEquation(system=system):
            return (system,)
        case Sweep(body=body):
            return (body,)
        case SweepBack(body=body, advance=advance):
            return body, advance
    return ()


def _changing(step: Step) -> int:
    """How many operands give the first parameters of such plans values that change; the others are the last ones."""
    match step.operation:
        case SolveEquation():
            return 1
        case Iteration(states=states) | Sweep(states=states):
            return states
        case SweepBack(states=states):
            return 1 + states
    return 0


def _inner_cost(plan: Plan, key: Lambda | str, same: Sequence[Step]) -> InnerCost:
    """At the sizes of the plan around it, and those of its own; what changes counts as the widest argument."""
    inner = replace(plan.inner[key], sizes={**plan.inner[key].sizes, **plan.sizes})
    if plan.precisions:
        names = [p.name for p in inner.parameters]
        known = {p: step.precision for p, step in zip(reversed(names), reversed(same), strict=False)}
        inner = replace(inner, precisions=dict.fromkeys(names, max(plan.precisions.values())) | known)
    costs = cost(inner)
    return InnerCost(sum(spent.flops for spent in costs), _peak(inner, costs))


def cost(plan: Plan) -> tuple[StepCost, ...]:
    """The cost of each step at the sizes of the plan; views that copy nothing and arguments take no bytes.

    Flops of the steps of a loop are those of all its rounds.
    """
    found = []
    for n, step in enumerate(plan.steps):
        at, op = occurrence(plan, n), step.operation
        done = op.flops(replace(at, sizes=_whole_sizes(plan, n)))
        found.append(StepCost(n, op.title, done, op.held(at) * at.item, op.workspace(at)))
    return tuple(found)


def held(plan: Plan, n: int) -> int:
    """The bytes that the result of a step takes, as `cost` has them."""
    at = occurrence(plan, n)
    return plan.steps[n].operation.held(at) * at.item


def peak(plan: Plan) -> int:
    """The most bytes that arrays of the plan take at one time, arguments not counted."""
    return _peak(plan, cost(plan))


def _peak(plan: Plan, costs: Sequence[StepCost]) -> int:
    held = most = 0
    freed = Counter[int]()
    taken = [0 if (m := plan.taken_over(n)) is None else costs[m].bytes for n in range(len(plan.steps))]
    ends = {loop.first: loop.last for loop in plan.loops}
    made: dict[int, list[int]] = {}
    for n, step in enumerate(plan.steps):
        if isinstance(step.operation, PartialResult) and step.operation.is_made_along:
            made.setdefault(step.operands[0], []).append(n)
    results = {m for each in made.values() for m in each}
    for n, spent in enumerate(costs):  # what a loop or an iteration collects is there from its start
        held += sum(costs[m].bytes for m in range(n, ends.get(n, n)) if _collects(plan, m))
        held += sum(costs[m].bytes for m in made.get(n, ()))
        held += 0 if _collects(plan, n) or n in results else spent.bytes - taken[n]
        freed[plan.last_use[n]] += spent.bytes
        freed[n] -= taken[n]
        laid = min(taken[n], BUFFER * plan.typed[n].item) if taken[n] and not _is_all_in_rows(plan, n) else 0
        most = max(most, held + spent.workspace + laid)
        held -= freed[n]
    copies = sum(plan.elements(n) * plan.typed[n].item for n in plan.copied)
    return max(most, held + copies)


def _is_turned(patterns: Iterable[Pattern]) -> bool:
    """Whether NumPy lays out a result in another order than that of its axes: two of them are the other way round in
    each operand that has both.
    """
    before = {pair for pattern in patterns for pair in combinations(pattern, 2)}
    return any(one > other and (other, one) not in before for one, other in before)


def _is_all_in_rows(plan: Plan, n: int) -> bool:
    """Whether the operands of a step lie in memory as its result does: NumPy goes through them without buffers."""
    own = tuple(range(len(plan.steps[n].axes)))
    pairs = zip(plan.steps[n].operands, _places(plan.steps[n]), strict=True)
    return all(not plan.steps[m].axes or (places == own and plan.is_whole(m)) for m, places in pairs)


def _places(step: Step) -> tuple[Pattern, ...]:
    """The axis of the result along each axis of each operand."""
    labels = step.operation.labels(step)
    if labels is None or not all(label in labels.result for pattern in labels.operands for label in pattern):
        return ((-1,),) * len(step.operands)
    return tuple(
        tuple(labels.result.index(label) for label in pattern if label is not None) for pattern in labels.operands
    )


def _collects(plan: Plan, n: int) -> bool:
    return isinstance(plan.steps[n].operation, Collect)


def _loop(plan: Plan, n: int) -> Loop | None:
    """The loop that a step belongs to."""
    return next((loop for loop in plan.loops if loop.first <= n < loop.last), None)


def _whole_sizes(plan: Plan, n: int) -> Mapping[str, int]:
    """The sizes with which a step of a loop would do all blocks at once."""
    loop = _loop(plan, n)
    return {**plan.sizes, loop.size: extent(loop.domain, dict(plan.sizes))} if loop else plan.sizes
