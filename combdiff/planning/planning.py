"""Planning: from a program to the steps that compute all of its results, contraction orders chosen together.

    x ↦ (Σ_{i,j} x[i]·A[i,j]·x[j],  i ↦ Σ_j A[i,j]·x[j])
    = A @ x once, for both results

Every network comes with several orders of nearly the least cost. They are chosen together, one after the other
until none can be improved, so that the contractions of all results and bindings that are equal are done once.

Invariant: the plan costs no more than the first orders found, each taken for itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import count

from combdiff.ir import (
    Cyclic,
    Function,
    Lambda,
    Let,
    Names,
    Range,
    Space,
    Symmetric,
    Term,
    Tuple,
    Var,
    Whole,
    names_in,
    subterms,
)
from combdiff.planning.lowering.graph import Graph
from combdiff.planning.lowering.guarded_factors import guard_conditions
from combdiff.planning.lowering.joint_iterations import with_joint_iterations
from combdiff.planning.lowering.lower import Lowering
from combdiff.planning.lowering.narrow_reads import with_narrow_reads
from combdiff.planning.networks import PathFinder
from combdiff.planning.operations.calls import SolveEquation
from combdiff.planning.operations.iterations import Iteration
from combdiff.planning.operations.loops import Choice
from combdiff.planning.operations.operation import Step
from combdiff.planning.operations.reads import Arrange
from combdiff.planning.operations.words import Pattern
from combdiff.planning.passes.pipeline import ITERATED, PLANNING, rewritten_by
from combdiff.planning.plan import Layout, Plan, flops, patterns_of, pruned, reading, with_patterns
from combdiff.simplification import without_deltas
from combdiff.status import stage

ROUNDS = 4


def make_plan(
    program: Lambda,
    sizes: Mapping[str, int],
    find_paths: PathFinder,
    orders: Mapping[str, Pattern] | None = None,
    partial: frozenset[str] = frozenset(),
) -> Plan:
    """The plan of a program.

    `program` is `Lambda(parameters, body)` with a number, a tensor or a Tuple of them as body, under any lets. `sizes`
    gives every named size. `find_paths` proposes contraction paths for networks too large to search. An argument with
    an entry in `orders` comes with its axes in that order, which is the one that they have in memory; one named in
    `partial` may be infinite or no number where a condition of the program does not hold. Raises UnsupportedError for
    what arrays cannot express, such as sums over the real line.
    """
    solved = with_narrow_reads(without_deltas(program.body, Names(program)))
    program = guard_conditions(Lambda(program.parameters, solved), partial)
    program = Lambda(program.parameters, with_joint_iterations(program.body, Names(program)))
    graph = Graph(sizes, find_paths)
    lowering = Lowering(program, graph, orders or {}, partial)
    results = tuple(lowering.results(program.body))
    stage("choosing the order of contractions")
    chosen = _choose(graph, results)
    body: Term = program.body
    while isinstance(body, Let):
        body = body.body
    draft = Plan(
        program.parameters, (), results, _layout(body, count()), dict(sizes), lowering.hints, orders=orders or {}
    )
    plan = _extract(graph, chosen, draft)
    inside = [step.operation for step in plan.steps if isinstance(step.operation, SolveEquation | Iteration)]
    inner: dict[Lambda | str, Plan] = {
        program: make_plan(program, sizes, find_paths, partial=each.partial)
        for each in inside
        for program in (each.planned if isinstance(each, Iteration) else (each.system,))
    }
    for ending in (each.ending for each in inside if isinstance(each, Iteration) and each.ending):
        inner[ending.conditions] = _of_truths(inner[ending.conditions])
    whole = replace(plan, inner=inner)
    return rewritten_by(whole, ITERATED)


def _of_truths(plan: Plan) -> Plan:
    """A plan of conditions with their truth values in place of the numbers 0 and 1."""
    return pruned(replace(plan, results=tuple(plan.steps[n].operands[0] for n in plan.results)))


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
    return {name for size in sizes for name in names_in(size)}


# --- choosing among orders -----------------------------------------------------------------------------------------


def _choose(graph: Graph, results: Iterable[int]) -> dict[int, int]:
    """The alternative taken for each Choice: the combination of least total cost that single changes lead to."""
    choices = [n for n, step in enumerate(graph.steps) if isinstance(step.operation, Choice)]
    chosen = {n: graph.steps[n].operands[0] for n in choices}
    price = [flops(step, [graph.steps[n] for n in step.operands], graph.sizes) for step in graph.steps]
    contested = _contested(graph)
    candidates = [n for n in choices if any(_contracted(graph, m) & contested for m in graph.steps[n].operands)]
    demand = _Demand(graph, price, chosen)
    for n in results:
        demand.take(n)
    for _ in range(ROUNDS):
        before = dict(chosen)
        for n in candidates:
            demand.settle(n)
        if chosen == before:
            break
    return chosen


class _Demand:
    """How often each step is read by what the results need, and what the steps that are read cost together.

    A Choice reads the alternative that is chosen for it. To try another one changes only what is needed by it alone, so
    that a round over all choices takes about as long as the plan.
    """

    def __init__(self, graph: Graph, price: list[int], chosen: dict[int, int]) -> None:
        self.graph = graph
        self.price = price
        self.chosen = chosen
        self.reads = [0] * len(graph.steps)
        self.total = 0

    def _below(self, n: int) -> tuple[int, ...]:
        return (self.chosen[n],) if n in self.chosen else self.graph.steps[n].operands

    def take(self, step: int) -> None:
        """One more reader of a step."""
        todo = [step]
        while todo:
            n = todo.pop()
            self.reads[n] += 1
            if self.reads[n] == 1:
                self.total += 0 if n in self.chosen else self.price[n]
                todo += self._below(n)

    def drop(self, step: int) -> None:
        """One reader of a step less."""
        todo = [step]
        while todo:
            n = todo.pop()
            self.reads[n] -= 1
            if not self.reads[n]:
                self.total -= 0 if n in self.chosen else self.price[n]
                todo += self._below(n)

    def settle(self, n: int) -> None:
        """Take the first alternative of a Choice with which all that is needed costs least."""
        alternatives = self.graph.steps[n].operands
        self._switch(n, min(alternatives, key=partial(self._total_with, n)))

    def _total_with(self, n: int, alternative: int) -> int:
        self._switch(n, alternative)
        return self.total

    def _switch(self, n: int, alternative: int) -> None:
        if self.reads[n]:
            self.drop(self.chosen[n])
            self.take(alternative)
        self.chosen[n] = alternative


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


# --- the chosen steps as a list ------------------------------------------------------------------------------------


def _extract(graph: Graph, chosen: Mapping[int, int], draft: Plan) -> Plan:
    """The needed steps, numbered anew; transposed operands are read in place.

    Steps that were told apart by Choices of which the same alternative was taken are one.
    """
    number: dict[int, int] = {}
    made: dict[Step, int] = {}
    for n in _needed(graph, draft.results, chosen):
        step = _absorbed(graph, graph.steps[n], chosen)
        step = reading(step, number)
        number[n] = made.setdefault(step, len(made))
    hints = {number[m]: name for n, name in draft.hints.items() if (m := chosen.get(n, n)) in number}
    results = tuple(number[chosen.get(n, n)] for n in draft.results)
    return rewritten_by(pruned(replace(draft, steps=tuple(made), results=results, hints=hints)), PLANNING)


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
