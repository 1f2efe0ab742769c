"""What is the same in every step of an iteration, done once before it.

    x[t+1] = x[t] · (w[0, :] + tanh(b))      becomes      s = w[0, :] + tanh(b);  x[t+1] = x[t] · s

Terms have their sums and functions taken out of a step before (`ir.let_form`); this is for what is light in a term and
a step of a plan: slices, sums of two arrays, arrays of index conditions.

Invariant: a step of an iteration is left with what its states and slices have part in.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from combdiff.ir import Function, Lambda, Names, Space, Var
from combdiff.planning.operations.iterations import Iteration
from combdiff.planning.operations.leaves import Parameter
from combdiff.planning.operations.operation import PartialResult, Step
from combdiff.planning.plan import NewPlan, Plan, pruned, reading, repeated, step_by_step
from combdiff.records import dataclass


@dataclass(frozen=True)
class _Apart:
    """The plan of a step without what is the same in all steps: that, in order, and what of it the step reads.

    `made` are steps of the plan as it was, by their numbers, and `parameters` stand for those that are read.
    """

    system: Lambda
    plan: Plan
    made: tuple[int, ...]
    parameters: dict[int, Var]


def done_before(plan: Plan) -> Plan:
    """The plan with what iterations do alike in all steps done before them."""
    iterations = [step.operation for step in plan.steps if isinstance(step.operation, Iteration)]
    apart = {one.system: found for one in iterations if (found := _apart(one, plan.inner[one.system]))}
    if not apart:
        return plan

    def rewrite(new: NewPlan, step: Step) -> int:
        if not isinstance(step.operation, Iteration) or step.operation.system not in apart:
            return new.add(new.moved(step))
        found, operands = apart[step.operation.system], [new.number[m] for m in step.operands]
        before = plan.inner[step.operation.system]
        number = dict(_captured(step.operation, before, operands))
        for n in found.made:
            made = before.steps[n]
            number[n] = new.add(reading(made, number))
        more = (number[n] for n in found.parameters)
        operation = replace(step.operation, system=found.system)
        return new.add(replace(step, operation=operation, operands=(*operands, *more)))

    inner = {apart[key].system if key in apart else key: value for key, value in plan.inner.items()}
    inner.update((found.system, found.plan) for found in apart.values())
    return step_by_step(replace(plan, inner=inner), rewrite)


def _captured(operation: Iteration, inner: Plan, operands: list[int]) -> Iterator[tuple[int, int]]:
    """For each step of the plan that is a parameter, the same in all steps, the operand that is given for it."""
    own = operation.states + operation.stacks
    given = [p.name for p in operation.system.parameters[own:] if not isinstance(p.type, Function)]
    names = dict(zip(given, operands[own:], strict=True))
    for n, step in enumerate(inner.steps):
        if isinstance(step.operation, Parameter) and step.operation.name in names:
            yield n, names[step.operation.name]


def _apart(operation: Iteration, inner: Plan) -> _Apart | None:
    """The plan of a step taken apart; None where nothing is done that is the same in all steps."""
    own = {p.name for p in operation.system.parameters[: operation.states + operation.stacks]}
    same: set[int] = set()
    for n, step in enumerate(inner.steps):
        changes = (isinstance(step.operation, Parameter) and step.operation.name in own) or repeated(step)
        if not changes and not isinstance(step.operation, PartialResult) and same.issuperset(step.operands):
            same.add(n)
    made = [n for n in sorted(same) if not isinstance(inner.steps[n].operation, Parameter)]
    read = {m for n, step in enumerate(inner.steps) if n not in same for m in step.operands} | set(inner.results)
    moved = [n for n in made if n in read and not inner.numbers[n]]  # a Python number is no array to make
    if not moved:
        return None
    names = Names(operation.system)
    parameters = {n: names.fresh(Var("same", _space(inner.steps[n]))) for n in moved}
    steps = tuple(
        Step(Parameter(parameters[n].name), (), step.axes, step.kind) if n in parameters else step
        for n, step in enumerate(inner.steps)
    )
    every = (*operation.system.parameters, *parameters.values())
    system = Lambda(every, operation.system.body)
    below: set[int] = set()
    for n in reversed(made):
        if n in parameters or n in below:
            below.update((n, *inner.steps[n].operands))
    return _Apart(
        system, pruned(replace(inner, parameters=every, steps=steps)), tuple(n for n in made if n in below), parameters
    )


def _space(step: Step) -> Space:
    return Space(*step.axes, dtype=step.kind)
