"""Products with an inverse as solutions of linear systems, where the inverse itself is not needed.

    t = inv(A);  y = t @ x      becomes      y = solve(A, x)

A solution takes a third of the work of an inverse and loses less to rounding. So an inverse of one matrix that only
stands in products over one index becomes solutions, as long as those are not more work than the inverse.

Invariant: the steps have the same results, up to rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from combdiff.planning.operations.contraction import Contract
from combdiff.planning.operations.matrices import LinearSolve, MatrixFunctionStep
from combdiff.planning.operations.operation import Step
from combdiff.planning.plan import Plan, pruned

MOST_SOLVES = 2  # from three on, one inverse is less work


def with_solves(plan: Plan) -> Plan:
    """The plan with solutions in place of products with inverses."""
    steps, found = plan.steps, list(plan.steps)
    for n, step in enumerate(steps):
        if step.operation != MatrixFunctionStep("inv") or n in plan.results:
            continue
        users = [m for m, user in enumerate(steps) if n in user.operands]
        solutions = [_solved(found[m], n, step.operands[0]) if _is_of_one_kind(found, m) else None for m in users]
        if len(users) <= MOST_SOLVES and None not in solutions:
            for m, solution in zip(users, solutions, strict=True):
                found[m] = solution or found[m]
    return pruned(replace(plan, steps=tuple(found)))


def _is_of_one_kind(steps: Sequence[Step], n: int) -> bool:
    """Whether the operands of a step have one element type, as some libraries ask of systems."""
    return len({steps[m].kind for m in steps[n].operands}) == 1


def _solved(step: Step, inverse: int, matrix: int) -> Step | None:
    """A product as a solution, if it is one of the inverse of the matrix with a vector or matrix, over one index."""
    if not isinstance(step.operation, Contract) or step.operands.count(inverse) != 1:
        return None
    position = step.operands.index(inverse)
    patterns = (step.operation.left, step.operation.right)
    rows_columns, right = patterns[position], patterns[1 - position]
    if step.operation.batch or len(step.operation.summed) != 1 or len(rows_columns) != 2 or len(right) > 2:
        return None
    (summed,) = step.operation.summed
    own = next(label for label in rows_columns if label != summed)
    operation = LinearSolve(rows_columns[0] == summed, right[0] != summed, step.operation.out[0] != own)
    return replace(step, operation=operation, operands=(matrix, step.operands[1 - position]))
