"""Plans: the list of array steps that computes all results of a program, with what each step costs.

    x ↦ (Σ_{i,j} x[i]·A[i,j]·x[j],  i ↦ Σ_j A[i,j]·x[j])       at N = 100
    = 0  parameter A                     2  0 @ 1    matrix-vector   10000 products
      1  parameter x                     3  1 @ 2    dot               100 products

Invariant: a plan is immutable, every step is needed for a result, and steps only refer to earlier ones.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod

from combdiff.ir import MATRIX_TABLE, Domain, Lambda, Var, extent
from combdiff.kernels import GRAM_BLOCK, GRAM_SMALL
from combdiff.planning.indirections import Clip, IndexEquals, Iota, Scatter, Take
from combdiff.planning.operations import (
    UNIT,
    VIEWS,
    Arrange,
    Block,
    Choice,
    Collect,
    Combine,
    ConjugateElements,
    Contract,
    Correlate,
    DiagonalEmbed,
    DiagonalScatterAdd,
    ElementwiseStep,
    Fill,
    Fold,
    Gram,
    Iteration,
    IterationResult,
    LinearSolve,
    Mask,
    MaskedContract,
    MatrixFunctionStep,
    Parameter,
    Pattern,
    PrefixSum,
    Read,
    ReduceMax,
    Scale,
    SolveEquation,
    Step,
)
from combdiff.planning.passes.stacks import stack_elements, stack_of
from combdiff.planning.sliding import Sliding
from combdiff.planning.views import IndexCondition

ITEM_BYTES = {int: 8, float: 8, complex: 16}
BUFFER = 1 << 13  # elements of an operand that NumPy lays out at a time
BOX_ELEMENTS, BOX_BYTES = 1 << 14, 32  # in a box that is masked, and bytes for the mask and copies of each


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


@dataclass(frozen=True)
class Plan:
    """The steps that compute `results` (step numbers); `sizes` are those the orders were chosen for.

    `layout` is how a call returns them: the position of a single result, or a tuple of layouts. `inner` are the plans
    of the systems that solvers evaluate, `loops` the steps that are done block by block, in order. `orders` tell of
    parameters in which order of their axes an array comes, where it is another than theirs.
    """

    parameters: tuple[Var, ...]
    steps: tuple[Step, ...]
    results: tuple[int, ...]
    layout: Layout
    sizes: Mapping[str, int]
    hints: Mapping[int, str]
    inner: Mapping[Lambda, Plan] = field(default_factory=dict)
    loops: tuple[Loop, ...] = ()
    orders: Mapping[str, Pattern] = field(default_factory=dict)

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

    @property
    def given_sizes(self) -> dict[str, int]:
        """The named sizes of the program, without those of blocks."""
        own = {name for loop in self.loops for name in (loop.size, loop.start)}
        return {name: size for name, size in self.sizes.items() if name not in own}

    def is_number(self, n: int) -> bool:
        """Whether a step is a Python number, made of constants and sizes alone."""
        step = self.steps[n]
        if isinstance(step.operation, Fill):
            return True
        arithmetic = isinstance(step.operation, Scale | Combine | ConjugateElements | ElementwiseStep | Contract)
        return arithmetic and not step.axes and all(map(self.is_number, step.operands))

    def is_filled(self, n: int) -> bool:
        """Whether a step is an array of one number."""
        return isinstance(self.steps[n].operation, Arrange) and self.is_number(self.steps[n].operands[0])

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
        return tuple(extent(axis, dict(self.sizes)) for axis in self.steps[step].axes)

    def elements(self, step: int) -> int:
        """The number of elements of a step's result."""
        return elements(self.steps[step].axes, self.sizes)

    def __str__(self) -> str:
        lines = [f"{'step':>4}  {'operation':<22}{'operands':<14}{'shape':<22}{'flops':>12}{'bytes':>12}"]
        for n, (step, spent) in enumerate(zip(self.steps, cost(self), strict=True)):
            shape = " × ".join(str(extent(axis, dict(self.sizes))) for axis in step.axes) or "1"
            operands = ", ".join(map(str, step.operands))
            lines.append(f"{n:>4}  {spent.operation:<22}{operands:<14}{shape:<22}{spent.flops:>12}{spent.bytes:>12}")
        return "\n".join([*lines, f"peak memory {peak(self)} bytes, arguments not counted"])


def elements(axes: Iterable[Domain], sizes: Mapping[str, int]) -> int:
    """The number of elements of an array over the axes."""
    known = dict(sizes)
    return prod(extent(axis, known) for axis in axes)


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
    steps = tuple(
        replace(plan.steps[n], operands=tuple(number[m] for m in plan.steps[n].operands)) for n in sorted(needed)
    )
    hints = {number[n]: name for n, name in plan.hints.items() if n in number}
    return replace(plan, steps=steps, results=tuple(number[n] for n in plan.results), hints=hints)


# --- costs ---------------------------------------------------------------------------------------------------------


def flops(step: Step, operands: list[Step], sizes: Mapping[str, int]) -> int:
    """Operations on numbers that a step does: for a contraction, the product of the extents of all its labels."""
    known = dict(sizes)
    match step.operation:
        case Contract(left=left, right=right):
            axes = (*operands[0].axes, *operands[1].axes)
            return prod(dict(zip((*left, *right), (extent(axis, known) for axis in axes), strict=True)).values())
        case MaskedContract(patterns=patterns):  # were there no conditions
            pairs = [pair for one, p in zip(operands, patterns, strict=True) for pair in zip(p, one.axes, strict=True)]
            return prod({label: extent(axis, known) for label, axis in pairs}.values())
        case Gram(axis=axis):
            rows, columns = (extent(operands[0].axes[n], known) for n in (axis, 1 - axis))
            return rows * columns * (columns + 1) // 2
        case MatrixFunctionStep(name=name):
            extents = [extent(axis, known) for axis in operands[0].axes]
            share = MATRIX_TABLE[name].cost
            return max(1, prod(extents) * extents[-1] * share.numerator // share.denominator)
        case LinearSolve():
            rows, *others = (extent(axis, known) for axis in (*operands[0].axes[:1], *operands[1].axes))
            return max(1, rows**3 // 3 + rows * prod(others))
        case Parameter() | Fill() | Read() | Arrange() | Choice() | Block() | IterationResult():
            return 0
        case DiagonalScatterAdd():
            return prod(extent(axis, known) for axis in operands[1].axes)
        case Collect(axis=axis) if axis is not None:
            return 0
        case Correlate() as op:
            return _sliding(op, step, operands, sizes).flops
        case Take() | Scatter():
            return prod(
                extent(axis, known) for axis in (step if isinstance(step.operation, Take) else operands[0]).axes
            )
        case Combine() | ElementwiseStep() | IndexCondition() | IndexEquals() | Clip() | Iota():
            return max(1, len(operands)) * prod(extent(axis, known) for axis in step.axes)
    return prod(extent(axis, known) for operand in operands for axis in operand.axes) if operands else 0


def rounds(plan: Plan, loop: Loop) -> int:
    """How many blocks a loop goes through."""
    return -(-extent(loop.domain, dict(plan.sizes)) // plan.sizes[loop.size])


def describe(step: Step) -> str:
    """A short name for what a step does."""
    match step.operation:
        case Contract(kernel=kernel):
            return kernel
        case ElementwiseStep(name=name) | MatrixFunctionStep(name=name) | Parameter(name=name):
            return name
        case IterationResult(kind=kind):
            return {"last": "last state", "before": "states", "after": "of each step"}[kind]
        case Read() as read:
            return "view" if read.diagonal() is None else "diagonal"
        case operation:
            return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(operation).__name__).lower()


def cost(plan: Plan) -> tuple[StepCost, ...]:
    """The cost of each step at the sizes of the plan; views that copy nothing and arguments take no bytes.

    Flops of the steps of a loop are those of all its rounds.
    """
    return tuple(
        StepCost(
            n,
            describe(step),
            _flops(plan, n),
            _held(plan, n) * ITEM_BYTES[step.kind],
            workspace(plan, n),
        )
        for n, step in enumerate(plan.steps)
    )


def _flops(plan: Plan, n: int) -> int:
    """Operations of a step in all rounds of the loop that it belongs to, and of an iteration in all of its steps."""
    step = plan.steps[n]
    if isinstance(step.operation, Iteration):
        inner = plan.inner[step.operation.system]
        return extent(step.operation.steps, dict(plan.sizes)) * sum(spent.flops for spent in cost(inner))
    return flops(step, [plan.steps[m] for m in step.operands], _whole_sizes(plan, n))


def _held(plan: Plan, n: int) -> int:
    """Elements of the new array that a step makes."""
    step = plan.steps[n]
    if isinstance(step.operation, Read):
        return _read_elements(plan, n, step.operation)[0]
    if isinstance(step.operation, Collect) and step.operation.pairwise and (loop := _loop(plan, n)):
        return plan.elements(n) * rounds(plan, loop)
    if plan.is_filled(n):
        return plan.elements(n)
    written_over = isinstance(step.operation, DiagonalScatterAdd) and step.operation.owned
    return 0 if written_over or isinstance(step.operation, (*VIEWS, Fill)) else plan.elements(n)


def peak(plan: Plan) -> int:
    """The most bytes that arrays of the plan take at one time, arguments not counted."""
    held = most = 0
    freed = Counter[int]()
    costs = cost(plan)
    ends = {loop.first: loop.last for loop in plan.loops}
    for n, spent in enumerate(costs):  # what a loop collects is there from its start
        held += sum(costs[m].bytes for m in range(n, ends.get(n, n)) if _collects(plan, m))
        held += 0 if _collects(plan, n) else spent.bytes
        freed[plan.last_use[n]] += spent.bytes
        most = max(most, held + spent.workspace)
        held -= freed[n]
    copies = sum(plan.elements(n) * ITEM_BYTES[plan.steps[n].kind] for n in plan.copied)
    return max(most, held + copies)


def _collects(plan: Plan, n: int) -> bool:
    return isinstance(plan.steps[n].operation, Collect)


def _loop(plan: Plan, n: int) -> Loop | None:
    """The loop that a step belongs to."""
    return next((loop for loop in plan.loops if loop.first <= n < loop.last), None)


def _whole_sizes(plan: Plan, n: int) -> Mapping[str, int]:
    """The sizes with which a step of a loop would do all blocks at once."""
    loop = _loop(plan, n)
    return {**plan.sizes, loop.size: extent(loop.domain, dict(plan.sizes))} if loop else plan.sizes


def workspace(plan: Plan, n: int) -> int:
    """Bytes that NumPy takes while a step is done and gives back: copies in another layout or element type, terms.

    Arguments count as contiguous. The number is an upper bound, but for the interpreter's own objects.
    """
    step = plan.steps[n]
    size, item = plan.elements(n), ITEM_BYTES[step.kind]
    held = sum(plan.elements(m) for m in step.operands)
    match step.operation:
        case Iteration(system=system, states=states):  # of a step, and the states that it begins with
            inner = plan.inner[system]
            held = sum(plan.elements(m) * ITEM_BYTES[plan.steps[m].kind] for m in step.operands[:states])
            return peak(inner) + held
        case Contract(in_place="stack") as op:
            stack = stack_of(op)
            assert stack is not None
            sizes = dict(zip(stack.array, plan.shape(step.operands[stack.matrix]), strict=True))
            return stack_elements(stack, sizes) * item
        case Contract() as op if op.kernel in ("multiply", "outer"):
            return _buffers(plan, n, [tuple(map(op.out.index, p)) for p in (op.left, op.right)])
        case Contract() as op if op.kernel != "einsum":
            operands = zip(step.operands, (op.left, op.right), (True, False), strict=True)
            return sum(_copied(plan, op, step.kind, *operand) for operand in operands)
        case Contract():
            return sum(min(BUFFER, plan.elements(m)) for m in step.operands) * item
        case Combine(factors=factors, patterns=patterns):
            scaled = sum(factor != UNIT for factor in factors)
            return min(2, scaled + (len(factors) > 2)) * size * item + _buffers(plan, n, patterns)
        case ElementwiseStep(name=name, patterns=patterns):  # some powers are written as two operations
            return (name == "power") * size * item + _buffers(plan, n, patterns)
        case ReduceMax():
            return 2 * held * item + 4 * size * item + _buffers(plan, n, [()])
        case IndexCondition() | IndexEquals() | Clip() | Iota():
            return 3 * size * ITEM_BYTES[float]
        case Mask():
            return size // 8 * item + BOX_BYTES * min(BOX_ELEMENTS, size)
        case MaskedContract():
            return (size + held // 2) * item + BOX_BYTES * min(BOX_ELEMENTS, size + held)
        case Read() as read:
            copied, places = _read_elements(plan, n, read)
            return copied * item + places * ITEM_BYTES[int]
        case Collect(pairwise=True) if loop := _loop(plan, n):  # a list becomes an array before it is added up
            return rounds(plan, loop) * size * item
        case Gram(axis=axis):
            return 2 * gram_block(*(plan.shape(step.operands[0])[n] for n in (axis, 1 - axis))) * item
        case DiagonalScatterAdd(owned=owned):
            return (0 if owned else size * item) + min(BUFFER, held) * item
        case DiagonalEmbed():
            return min(BUFFER, held) * item
        case Take() as take:  # indices in place on a cycle, or counted along axes that are read too
            return 2 * sum(plan.elements(step.operands[place.operand]) for place in take.read) * ITEM_BYTES[int]
        case Correlate() as op:
            return _sliding(op, step, [plan.steps[m] for m in step.operands], plan.sizes).elements * item
        case Fold(stride=stride):
            count, width, *rest = plan.shape(step.operands[0])
            laid = abs(stride) * (count + -(-width // abs(stride))) * prod(rest)
            return (laid + 2 * min(BUFFER, held)) * item
        case MatrixFunctionStep() | LinearSolve() | SolveEquation() | Scatter() | PrefixSum():
            return 3 * held * item
    return 0


def _read_elements(plan: Plan, n: int, read: Read) -> tuple[int, int]:
    """The elements that a read copies, and those of arrays of places that it takes.

    A view copies nothing, but where it leaves its operand: that is laid out with zeros, or itself, around it. What
    wraps is gathered by index arrays where it has not much more elements than that.
    """
    source = plan.steps[plan.steps[n].operands[0]]
    size, shape = plan.elements(n), plan.shape(n)
    starts = {loop.start for loop in plan.loops}
    if any(p.divisor > 1 for p in read.positions):
        return size, (0 if read.places(len(shape)) else (len(read.positions) + 3) * size)
    longer, places, inside = 1, 0, True
    for place, axis in zip(read.positions, source.axes, strict=True):
        length, first = extent(axis, dict(plan.sizes)), int(place.start.evaluate(plan.sizes))
        low = first + sum(min(0, along * (many - 1)) for along, many in zip(place.steps, shape, strict=True))
        high = first + sum(max(0, along * (many - 1)) for along, many in zip(place.steps, shape, strict=True))
        if low < 0 or high >= length or not starts.isdisjoint(place.start.symbols):
            longer, inside = longer * (high + 1 - low), False
        else:
            longer *= length
        if place.wrap and place.along() is None:
            places += 3 * prod(many for along, many in zip(place.steps, shape, strict=True) if along)
    if inside or not size:
        return 0, 0
    return (min(size, longer) if places else longer), places


def _buffers(plan: Plan, n: int, patterns: Sequence[Pattern]) -> int:
    """Bytes of the buffers in which NumPy lays out elements of operands, at most two at a time.

    Of those that are repeated along an axis, have another order of axes or another element type.
    """
    step = plan.steps[n]
    rank = tuple(range(len(step.axes)))
    pairs = [(plan.steps[m], pattern) for m, pattern in zip(step.operands, patterns, strict=True) if pattern]
    laid = sum(pattern != rank or one.kind is not step.kind or not one.fresh for one, pattern in pairs)
    return min(2, laid) * min(BUFFER, plan.elements(n)) * ITEM_BYTES[step.kind]


def gram_block(rows: int, columns: int) -> int:
    """The elements of the rows that `_gram` takes at a time, of a matrix with so many rows and columns."""
    if columns < 64 or rows * columns <= GRAM_SMALL:
        return rows * columns
    return columns * min(rows, max(16, min(columns // 2, GRAM_BLOCK // columns)))


def _sliding(op: Correlate, step: Step, operands: Sequence[Step], sizes: Mapping[str, int]) -> Sliding:
    """The product of a sliding window, with the extents of its groups of axes."""
    known = dict(sizes)
    left, right = ([extent(one.axes[n], known) for n in order] for one, order in _ordered(op, operands))
    result = dict(zip(op.out, (extent(axis, known) for axis in step.axes), strict=True))
    after = op.kept + 1 if op.lags else len(left) - op.kept
    return Sliding(
        rows=prod(left[: op.kept]),
        size=left[op.kept],
        inner=prod(left[op.kept + 1 :]),
        width=result[0] if op.lags else right[0],
        count=right[op.kept] if op.lags else result[op.kept],
        outer=prod(right[after:]),
        stride=op.stride,
        wrap=op.wrap,
        lags=op.lags,
        plain=len(left) == op.kept + 1 and len(right) == after,
        mixed=operands[0].kind is not operands[1].kind,
    )


def _ordered(op: Correlate, operands: Sequence[Step]) -> Iterator[tuple[Step, Pattern]]:
    return zip(operands, (op.left, op.right), strict=True)


def _copied(plan: Plan, op: Contract, kind: type, operand: int, pattern: Pattern, is_left: bool) -> int:
    """Bytes of the copy of an operand that a matrix product needs, 0 if it reads the operand in place."""
    step = plan.steps[operand]
    bytes_ = plan.elements(operand) * ITEM_BYTES[kind]
    rows = op.left_only if is_left else op.summed
    columns = op.summed if is_left else op.right_only
    in_place = pattern in ((*op.batch, *rows, *columns), (*op.batch, *columns, *rows))
    merged = len(rows) > 1 or len(columns) > 1
    whole = isinstance(step.operation, Parameter) or step.fresh
    return 0 if step.kind is kind and in_place and (whole or not merged) else bytes_ * (1 + (step.kind is not kind))
