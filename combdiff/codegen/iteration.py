"""Iterations as loops, in the three ways that libraries have: arrays that are filled, lists, and a function of a step.

    x = np.array(x0, real)                    def step(carry, inputs):             NumPy, and jax.lax.scan
    states = np.empty((T, n), real)               (x,), (s,) = carry, inputs
    for t in range(T):                            return (A @ x + s,), (x,)
        states[t] = x                         (x,), (states,) = jax.lax.scan(step, (x0,), (S,), length=T)
        x = A @ x + S[t]

The steps of the plan that is done over and over stand in the loop as they are, under names of their own.

Invariant: a result is an array of its own, and holds for no steps as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from combdiff.dialects import NumPyDialect, parenthesised, tuple_text
from combdiff.ir import Domain
from combdiff.planning import Iteration, IterationResult, Plan, Words
from combdiff.records import dataclass


@dataclass(frozen=True)
class IterationLoop:
    """An iteration in a plan: its operation, its operands and results as they are called, the lines of a step.

    `states` and `slices` are the names that a step has for them, `outputs` the expressions of what it gives; `views`
    are slices that would keep the memory of a tensor that is dropped after the loop; `index`, `function` and the like
    are new names. `made` are arrays that a step holds to its end, `left` states that nothing reads after the loop.
    `asked` are the lines that make the truth values `conditions`; where one fails no later step changes anything.
    """

    operation: Iteration
    operands: tuple[str, ...]
    results: tuple[tuple[IterationResult, str, tuple[Domain, ...], type], ...]
    kinds: tuple[type, ...]
    states: tuple[str, ...]
    slices: tuple[str, ...]
    body: tuple[str, ...]
    outputs: tuple[str, ...]
    shared: tuple[bool, ...]
    views: tuple[str, ...]
    index: str
    function: str
    asked: tuple[str, ...]
    conditions: tuple[str, ...]
    condition: str
    made: tuple[str, ...]
    left: tuple[str, ...]

    @property
    def stacks(self) -> tuple[str, ...]:
        """The tensors that are read slice by slice."""
        first = self.operation.states
        return self.operands[first : first + self.operation.stacks]

    def of_kind(self, kind: str) -> list[tuple[int, str, tuple[Domain, ...], type]]:
        """The results of a kind: component, name, axes and element type."""
        return [(r.component, name, axes, dtype) for r, name, axes, dtype in self.results if r.kind == kind]


def results_of(
    plan: Plan, n: int, names: Sequence[str]
) -> tuple[tuple[IterationResult, str, tuple[Domain, ...], type], ...]:
    """The results of an iteration that the plan uses, with their names, axes and element types."""
    found = []
    for step, name in zip(plan.steps, names, strict=True):
        if isinstance(step.operation, IterationResult) and step.operands == (n,):
            found.append((step.operation, name, step.axes, step.kind))
    return tuple(found)


def loop_lines(loop: IterationLoop, words: Words, dialect: NumPyDialect) -> Iterator[str]:
    """The lines of an iteration."""
    if dialect.iterates == "function":
        yield from (_ending if loop.conditions else _function)(loop, words, dialect)
        return
    lists, steps = dialect.iterates == "list", words.extent(loop.operation.steps)
    starts = zip(loop.states, loop.operands, loop.kinds, strict=False)
    for state, start, kind in starts:
        yield f"{state} = {dialect.state(start, words.dtype(kind))}"
    collected = [*loop.of_kind("before"), *loop.of_kind("after")]
    for _, name, axes, kind in collected:
        shape = words.shape(axes)
        made = f"[None] * {parenthesised(steps)}" if lists else dialect.collection(shape, words.dtype(kind))
        yield f"{name} = {made}  # {shape} filled step by step"
    numbers = f"range({steps})"
    yield f"for {loop.index} in {f'reversed({numbers})' if loop.operation.reverse else numbers}:"
    yield from (f"    {line}" for line in [*_step(loop, dialect)] or ["pass"])
    for _, name, axes, kind in collected if lists else ():
        yield f"{name} = {dialect.collected(name, words.shape(axes), words.dtype(kind))}"
    for component, name, _, _ in loop.of_kind("last"):
        state = loop.states[component]
        yield f"{name} = {dialect.copy(state) if loop.shared[component] else state}"
    if dialect.native and loop.left:
        yield f"{' = '.join(loop.left)} = None  # no more is read of the last step"


def _step(loop: IterationLoop, dialect: NumPyDialect) -> Iterator[str]:
    yield from _end(loop) if loop.conditions else ()
    for component, name, _, _ in loop.of_kind("before"):
        yield f"{name}[{loop.index}] = {loop.states[component]}"
    for piece, stack in zip(loop.slices, loop.stacks, strict=True):
        yield f"{piece} = {stack}[{loop.index}]"
    yield from loop.body
    for component, name, _, _ in loop.of_kind("after"):  # of which some are what a state was before the step
        yield f"{name}[{loop.index}] = {loop.outputs[component]}"
    following = list(zip(loop.states, loop.outputs, strict=False))
    moved = [(state, after) for state, after in following if state != after]
    if moved:
        yield f"{', '.join(state for state, _ in moved)} = {', '.join(after for _, after in moved)}"
    if dropped := loop.views + loop.made * dialect.native:
        yield f"del {', '.join(dropped)}"


def _end(loop: IterationLoop) -> Iterator[str]:
    """The condition, and what is known of the steps that are left where it fails."""
    yield from loop.asked
    holds = loop.conditions[0] if len(loop.conditions) == 1 else f"({' and '.join(loop.conditions)})"
    yield f"if not {holds}:  # then no later step changes anything"
    for component, name, _, _ in (*loop.of_kind("before"), *loop.of_kind("after")):
        yield f"    {name}[{loop.index}:] = {loop.states[component]}"
    yield "    break"


def _ending(loop: IterationLoop, words: Words, dialect: NumPyDialect) -> Iterator[str]:
    """Whether there is one more step, and that step, as functions of its number and the states."""
    taken = f"    {loop.index}, {tuple_text(loop.states)} = carry"
    yield f"def {loop.condition}(carry):"
    yield taken
    yield from (f"    {line}" for line in loop.asked)
    yield f"    return {' & '.join((f'({loop.index} < {words.extent(loop.operation.steps)})', *loop.conditions))}"
    yield f"def {loop.function}(carry):"
    yield taken
    yield from (f"    {line}" for line in loop.body)
    yield f"    return {loop.index} + 1, {tuple_text(loop.outputs[: len(loop.states)])}"
    starts = [dialect.state(start, words.dtype(kind)) for start, kind in zip(loop.operands, loop.kinds, strict=False)]
    last = {component: name for component, name, *_ in loop.of_kind("last")}
    states = tuple_text([last.get(n, state) for n, state in enumerate(loop.states)])
    yield f"_, {states} = jax.lax.while_loop({loop.condition}, {loop.function}, (0, {tuple_text(starts)}))"


def _function(loop: IterationLoop, words: Words, dialect: NumPyDialect) -> Iterator[str]:
    """A step as a function of the states and the slices."""
    before, after = loop.of_kind("before"), loop.of_kind("after")
    yield f"def {loop.function}(carry, inputs):"
    yield f"    {tuple_text(loop.states)} = carry"
    if loop.slices:
        yield f"    {tuple_text(loop.slices)} = inputs"
    yield from (f"    {line}" for line in loop.body)
    given = [loop.states[component] for component, *_ in before] + [loop.outputs[component] for component, *_ in after]
    yield f"    return {tuple_text(loop.outputs[: len(loop.states)])}, {tuple_text(given)}"
    starts = [dialect.state(start, words.dtype(kind)) for start, kind in zip(loop.operands, loop.kinds, strict=False)]
    last = {component: name for component, name, *_ in loop.of_kind("last")}
    states = tuple_text([last.get(n, state) for n, state in enumerate(loop.states)])
    collected = tuple_text([name for _, name, *_ in (*before, *after)])
    inputs = tuple_text(loop.stacks) if loop.stacks else "None"
    order = ", reverse=True" if loop.operation.reverse else ""
    called = f"jax.lax.scan({loop.function}, {tuple_text(starts)}, {inputs}"
    yield f"{states}, {collected} = {called}, length={words.extent(loop.operation.steps)}{order})"
