"""Plans: the list of array steps that computes all results of a program, with what each step costs.

    x ↦ (Σ_{i,j} x[i]·A[i,j]·x[j],  i ↦ Σ_j A[i,j]·x[j])       at N = 100
    = 0  parameter A                     2  0 @ 1    matrix-vector   10000 products
      1  parameter x                     3  1 @ 2    dot               100 products

Every network comes with several orders of nearly the least cost. They are chosen together, one after the other
until none can be improved, so that the contractions of all results and bindings that are equal are done once.

Invariant: a plan is immutable, every step is needed for a result, and steps only refer to earlier ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from math import prod

from combdiff.domains import Cyclic, Domain, Function, Range, Space, Symmetric, Whole, extent
from combdiff.lowering.graph import Graph
from combdiff.lowering.lower import Lowering
from combdiff.lowering.networks import PathFinder
from combdiff.lowering.solves import with_solves
from combdiff.lowering.steps import (
    UNIT,
    VIEWS,
    Arrange,
    Block,
    Choice,
    Collect,
    Combine,
    Constant,
    Contract,
    Elementwise,
    LinearSolve,
    MatrixFunction,
    Parameter,
    Pattern,
    Read,
    Select,
    Solve,
    Step,
)
from combdiff.lowering.views import Mask
from combdiff.matrices import MATRIX_TABLE
from combdiff.substitution import subterms
from combdiff.terms import Lambda, Let, Term, Tuple, Var

ROUNDS = 4
TYPICAL = 24  # of a named size, where a plan is made without arrays
ITEM_BYTES = {int: 8, float: 8, complex: 16}


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
    """The steps from `first` up to `last` are done for each block of a domain; `size` names the size of a block."""

    first: int
    last: int
    domain: Domain
    size: str


Layout = int | tuple["Layout", ...]


@dataclass(frozen=True)
class Plan:
    """The steps that compute `results` (step numbers); `sizes` are those the orders were chosen for.

    `layout` is how a call returns them: the position of a single result, or a tuple of layouts. `inner` are the plans
    of the systems that solvers evaluate, `loop` the steps that are done block by block.
    """

    parameters: tuple[Var, ...]
    steps: tuple[Step, ...]
    results: tuple[int, ...]
    layout: Layout
    sizes: Mapping[str, int]
    hints: Mapping[int, str]
    inner: Mapping[Lambda, Plan] = field(default_factory=dict)
    loop: Loop | None = None

    @cached_property
    def last_use(self) -> tuple[int, ...]:
        """For each step the last step that reads its memory, also through views; results are read to the end."""
        last = list(range(len(self.steps)))
        for n in range(len(self.steps) - 1, -1, -1):
            last[n] = len(self.steps) if n in self.results else last[n]
            for operand in self.steps[n].operands:
                last[operand] = max(last[operand], n if self.steps[n].fresh else last[n])
        if self.loop:  # what is made before the loop stays to its end
            first, end = self.loop.first, self.loop.last
            last[:first] = [end if first <= use < end else use for use in last[:first]]
        return tuple(last)

    def shape(self, step: int) -> tuple[int, ...]:
        """The shape of a step's result."""
        return tuple(extent(axis, dict(self.sizes)) for axis in self.steps[step].axes)

    def elements(self, step: int) -> int:
        """The number of elements of a step's result."""
        return prod(self.shape(step))

    def __str__(self) -> str:
        lines = [f"{'step':>4}  {'operation':<22}{'operands':<14}{'shape':<22}{'flops':>12}{'bytes':>12}"]
        for n, (step, spent) in enumerate(zip(self.steps, cost(self), strict=True)):
            shape = " × ".join(str(extent(axis, dict(self.sizes))) for axis in step.axes) or "1"
            operands = ", ".join(map(str, step.operands))
            lines.append(f"{n:>4}  {spent.operation:<22}{operands:<14}{shape:<22}{spent.flops:>12}{spent.bytes:>12}")
        return "\n".join([*lines, f"peak memory {peak(self)} bytes, arguments not counted"])


def make_plan(program: Lambda, sizes: Mapping[str, int], find_paths: PathFinder) -> Plan:
    """The plan of a program.

    `program` is `Lambda(parameters, body)` with a number, a tensor or a Tuple of them as body, under any lets. `sizes`
    gives every named size. `find_paths` proposes contraction paths for networks too large to search. Raises
    UnsupportedError for what arrays cannot express, such as sums over the real line.
    """
    graph = Graph(sizes, find_paths)
    lowering = Lowering(program, graph)
    results = tuple(lowering.results(program.body))
    chosen = _choose(graph, results)
    body: Term = program.body
    while isinstance(body, Let):
        body = body.body
    draft = Plan(program.parameters, (), results, _layout(body, count()), dict(sizes), lowering.hints)
    plan = _extract(graph, chosen, draft)
    systems = [step.operation.system for step in plan.steps if isinstance(step.operation, Solve)]
    return replace(plan, inner={system: make_plan(system, sizes, find_paths) for system in systems})


def _layout(body: Term, positions: Iterator[int]) -> Layout:
    """Where each result stands in what a call returns, tuples within tuples."""
    return tuple(_layout(item, positions) for item in body.items) if isinstance(body, Tuple) else next(positions)


def size_names(program: Term) -> set[str]:
    """All names of sizes in a program: of the domains of its variables and in its index expressions."""
    names: set[str] = set()
    for term in (*subterms(program), *(var for node in subterms(program) for var in node.bound)):
        if isinstance(term, Var):
            names |= _names_in_type(term)
    return names


def _names_in_type(var: Var) -> set[str]:
    match var.type:
        case Whole():
            return {var.name}
        case Space(axes=axes):
            domains = set(axes)
        case Function(arguments=arguments, result=result):
            domains = {axis for space in (*arguments, result) for axis in space.axes}
        case domain:
            domains = {domain}
    sizes = {domain.size for domain in domains if isinstance(domain, Range | Cyclic)}
    sizes |= {domain.bound for domain in domains if isinstance(domain, Symmetric)}
    return {size for size in sizes if isinstance(size, str)}


# --- choosing among orders -----------------------------------------------------------------------------------------


def _choose(graph: Graph, results: Iterable[int]) -> dict[int, int]:
    """The alternative taken for each Choice: the combination of least total cost that single changes lead to."""
    choices = [n for n, step in enumerate(graph.steps) if isinstance(step.operation, Choice)]
    chosen = {n: graph.steps[n].operands[0] for n in choices}
    price = [flops(step, [graph.steps[n] for n in step.operands], graph.sizes) for step in graph.steps]
    contested = _contested(graph)
    candidates = [n for n in choices if any(_contracted(graph, m) & contested for m in graph.steps[n].operands)]
    for _ in range(ROUNDS):
        before = dict(chosen)
        for n in candidates:
            chosen[n] = min(
                graph.steps[n].operands,
                key=lambda m, n=n: _total(graph, price, results, {**chosen, n: m}),  # type: ignore[misc]
            )
        if chosen == before:
            break
    return chosen


def _contested(graph: Graph) -> set[int]:
    """Contractions that occur in the orders of more than one network."""
    count = Counter(n for network in graph.networks for n in frozenset().union(*network))
    return {n for n, networks in count.items() if networks > 1}


def _contracted(graph: Graph, step: int) -> set[int]:
    """The contractions below a step, as far as the next choice."""
    found, todo = set(), [step]
    while todo:
        n = todo.pop()
        operation = graph.steps[n].operation
        if n not in found and not isinstance(operation, Choice):
            found.add(n)
            todo += graph.steps[n].operands
    return found


def _needed(graph: Graph, results: Iterable[int], chosen: Mapping[int, int]) -> list[int]:
    """The steps that the results need, in order; a Choice stands for the alternative taken."""
    needed = {chosen.get(n, n) for n in results}
    for n in range(len(graph.steps) - 1, -1, -1):
        if n in needed:
            needed |= {chosen.get(m, m) for m in graph.steps[n].operands}
    return sorted(needed)


def _total(graph: Graph, price: list[int], results: Iterable[int], chosen: Mapping[int, int]) -> int:
    return sum(price[n] for n in _needed(graph, results, chosen))


# --- the chosen steps as a list ------------------------------------------------------------------------------------


def _extract(graph: Graph, chosen: Mapping[int, int], draft: Plan) -> Plan:
    """The needed steps, numbered anew; transposed operands are read in place."""
    number: dict[int, int] = {}
    steps: list[Step] = []
    for n in _needed(graph, draft.results, chosen):
        step = _absorbed(graph, graph.steps[n], chosen)
        number[n] = len(steps)
        steps.append(step)
    hints = {number[m]: name for n, name in draft.hints.items() if (m := chosen.get(n, n)) in number}
    renumbered = [replace(step, operands=tuple(number[m] for m in step.operands)) for step in steps]
    results = tuple(number[chosen.get(n, n)] for n in draft.results)
    solved = with_solves(renumbered, results)
    return pruned(replace(draft, steps=tuple(solved), results=results, hints=hints))


def _absorbed(graph: Graph, step: Step, chosen: Mapping[int, int]) -> Step:
    """The step on the array under each operand that is only a transposition."""
    operands = [chosen.get(n, n) for n in step.operands]
    patterns = patterns_of(step)
    for position, n in enumerate(operands):
        below = graph.steps[n]
        if patterns and isinstance(below.operation, Arrange) and None not in below.operation.order:
            inverse = dict(zip(below.operation.order, patterns[position], strict=True))
            patterns[position] = tuple(inverse[axis] for axis in range(len(inverse)))
            operands[position] = chosen.get(below.operands[0], below.operands[0])
    return replace(with_patterns(step, patterns), operands=tuple(operands))


def patterns_of(step: Step) -> list[Pattern]:
    """The label or axis number along each axis of each operand, for operations that have such patterns."""
    match step.operation:
        case Contract(left=left, right=right):
            return [left, right]
        case Combine(patterns=patterns) | Elementwise(patterns=patterns) | Select(patterns=patterns):
            return list(patterns)
    return []


def with_patterns(step: Step, patterns: list[Pattern]) -> Step:
    """The step with other patterns."""
    match step.operation:
        case Contract():
            return replace(step, operation=replace(step.operation, left=patterns[0], right=patterns[1]))
        case Combine() | Elementwise() | Select():
            return replace(step, operation=replace(step.operation, patterns=tuple(patterns)))
    return step


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
        case MatrixFunction(name=name):
            extents = [extent(axis, known) for axis in operands[0].axes]
            return max(1, int(MATRIX_TABLE[name].cost * prod(extents) * extents[-1]))
        case LinearSolve():
            rows, *others = (extent(axis, known) for axis in (*operands[0].axes[:1], *operands[1].axes))
            return max(1, rows**3 // 3 + rows * prod(others))
        case Parameter() | Constant() | Read() | Arrange() | Choice() | Block():
            return 0
        case Combine() | Elementwise() | Select() | Mask():
            return max(1, len(operands)) * prod(extent(axis, known) for axis in step.axes)
    return prod(extent(axis, known) for operand in operands for axis in operand.axes) if operands else 0


def describe(step: Step) -> str:
    """A short name for what a step does."""
    match step.operation:
        case Contract(kernel=kernel):
            return kernel
        case Elementwise(name=name) | MatrixFunction(name=name) | Parameter(name=name):
            return name
        case Read() as read:
            return "view" if read.diagonal() is None else "diagonal"
        case operation:
            return type(operation).__name__.lower()


def cost(plan: Plan) -> tuple[StepCost, ...]:
    """The cost of each step at the sizes of the plan; views and arguments take no bytes.

    Steps of a loop count all of its rounds, the last as if it were as long as the others.
    """
    return tuple(
        StepCost(
            n,
            describe(step),
            flops(step, [plan.steps[m] for m in step.operands], plan.sizes) * _rounds(plan, n),
            0 if isinstance(step.operation, (*VIEWS, Constant)) else plan.elements(n) * ITEM_BYTES[step.kind],
            workspace(plan, n),
        )
        for n, step in enumerate(plan.steps)
    )


def peak(plan: Plan) -> int:
    """The most bytes that arrays of the plan take at one time, arguments not counted."""
    held = most = 0
    freed = Counter[int]()
    costs = cost(plan)
    loop = plan.loop or Loop(len(costs), len(costs), Range(1), "")
    for n, spent in enumerate(costs):
        if n == loop.first:  # what the loop collects is there from its start
            held += sum(costs[m].bytes for m in range(n, loop.last) if _collects(plan, m))
        held += 0 if _collects(plan, n) else spent.bytes
        freed[plan.last_use[n]] += spent.bytes
        most = max(most, held + spent.workspace)
        held -= freed[n]
    return most


def _collects(plan: Plan, n: int) -> bool:
    return isinstance(plan.steps[n].operation, Collect)


def _rounds(plan: Plan, n: int) -> int:
    """How often a step is done."""
    if plan.loop is None or not plan.loop.first <= n < plan.loop.last:
        return 1
    return -(-extent(plan.loop.domain, dict(plan.sizes)) // plan.sizes[plan.loop.size])


def workspace(plan: Plan, n: int) -> int:
    """Bytes that NumPy takes while a step is done and gives back: copies in another layout or element type, terms.

    Arguments count as contiguous. The number is an upper bound, up to buffers of a few kilobytes.
    """
    step = plan.steps[n]
    size = plan.elements(n)
    match step.operation:
        case Contract() as op if op.kernel not in ("multiply", "outer", "einsum"):
            operands = zip(step.operands, (op.left, op.right), (True, False), strict=True)
            return sum(_copied(plan, op, step.kind, *operand) for operand in operands)
        case Combine(factors=factors):
            scaled = sum(factor != UNIT for factor in factors)
            return min(2, scaled + (len(factors) > 2)) * size * ITEM_BYTES[step.kind]
        case Elementwise(name="power"):  # some are written as two operations
            return size * ITEM_BYTES[step.kind]
        case Mask() | Select():
            return 3 * size * ITEM_BYTES[float]
        case Read() as read if read.diagonal() is None:
            whole = plan.elements(step.operands[0]) * ITEM_BYTES[step.kind]
            return whole + (len(read.positions) + 3) * size * ITEM_BYTES[complex]
    return 0


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
