"""Loops that end with their condition, where a library's loops can.

    for t in range(T):                                      for t in range(T):
        x = where(x > 1, x / 2, 0) + where(x <= 1, x, 0)        if not x > 1: break
                                                                x = x / 2

NumPy's loops can always: what they collect is the last state from there on. One that is a function of its states
(`jax.lax.while_loop`) collects nothing and reads no slices.

Invariant: the results are those of all steps.
"""

from __future__ import annotations

from dataclasses import replace

from combdiff.dialects import NumPyDialect
from combdiff.ir import Function
from combdiff.planning.operations.iterations import Iteration, IterationResult
from combdiff.planning.operations.operation import Step
from combdiff.planning.plan import NewPlan, Plan, repeated, step_by_step


def with_early_ends(plan: Plan, used: NumPyDialect) -> Plan:
    """The plan for a dialect, with the conditions of loops in place of what they decide in each step."""
    iterations = [n for n, step in enumerate(plan.steps) if isinstance(step.operation, Iteration)]
    endings = [n for n in iterations if _operation(plan, n).ending]
    ended = {n for n in endings if used.native or (used.iterates == "function" and _keeps_states_alone(plan, n))}
    if not endings:
        return plan

    def rewrite(new: NewPlan, step: Step) -> int:
        n, operation = len(new.number), step.operation
        if n in endings and isinstance(operation, Iteration):
            step = _ending(operation, step) if n in ended else replace(step, operation=replace(operation, ending=None))
        return new.add(new.moved(step))

    whole = step_by_step(plan, rewrite)
    kept = {program for step in whole.steps for program in repeated(step)}
    return replace(whole, inner={program: inner for program, inner in plan.inner.items() if program in kept})


def _keeps_states_alone(plan: Plan, n: int) -> bool:
    """Whether an iteration reads no slices, and nothing is asked for but its last states."""
    results = [plan.steps[m].operation for m, _ in plan.readers[n]]
    kinds = {each.kind for each in results if isinstance(each, IterationResult)}
    return not _operation(plan, n).stacks and kinds == {"last"}


def _operation(plan: Plan, n: int) -> Iteration:
    operation = plan.steps[n].operation
    assert isinstance(operation, Iteration)
    return operation


def _ending(operation: Iteration, step: Step) -> Step:
    """The iteration that ends; it reads what its step takes, and none of what was made for the other."""
    ending = operation.ending
    assert ending is not None
    many = sum(not isinstance(p.type, Function) for p in ending.system.parameters)
    ended = replace(operation, system=ending.system, conditions=ending.conditions, ending=None)
    return replace(step, operation=ended, operands=step.operands[:many])
