"""Arrays that would be read again and again down their columns are copied once, row by row.

    c[:, :, None] − p.T            (k, d, n) of (k, d) and (n, d), where d is short and n long
    c[:, :, None] − rows(p.T)      the same, with one inner loop over n for each c[k, d], not over d for each k and n

NumPy's inner loop runs along the axis that lies closest in memory in the operands: a long array is made in short loops
where they are given with the short axis last.

Invariant: each step computes the same; what is copied is smaller than what is made of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod
from typing import Any

from combdiff.planning.operations.operation import Step
from combdiff.planning.operations.reads import Arrange, Rows
from combdiff.planning.operations.words import Pattern
from combdiff.planning.passes.axis_orders import START, aligned
from combdiff.planning.plan import NewPlan, Plan, patterns_of, step_by_step, with_patterns

COPY = 4  # elements that are done in the time in which one is copied to another order
STEP = 1 << 11  # and in the time in which a step begins


def in_rows(plan: Plan) -> Plan:
    """The plan with copies of what is read down its columns more often than a copy takes."""

    def rewrite(new: NewPlan, old: Step) -> int:
        step, patterns = new.moved(old), patterns_of(old)
        operands = list(step.operands)
        for place, order in _turned(plan, len(new.number)):
            below = new.steps[operands[place]]
            below = replace(below, operation=Arrange(order), operands=(operands[place],), axes=_in(order, below.axes))
            copy = replace(below, operation=Rows(), operands=(new.shared(below),))
            operands[place], patterns[place] = new.shared(copy), _in(order, patterns[place])
        return new.add(with_patterns(replace(step, operands=tuple(operands)), patterns))

    return step_by_step(plan, rewrite)


def _turned(plan: Plan, n: int) -> Iterator[tuple[int, Pattern]]:
    """The places of operands of a step that are better copied, each with its axes in the order of the result's."""
    shape = plan.shape(n)
    for place, (m, along) in enumerate(aligned(plan.steps[n])):
        order = tuple(sorted(range(len(along)), key=along.__getitem__))
        if order == tuple(range(len(order))) or len(shape) - 1 not in along:
            continue
        loops = prod(shape) * (1 / max(1, shape[along[-1]]) - 1 / max(1, shape[-1]))  # that are saved
        if START * loops > COPY * plan.elements(m) + STEP:
            yield place, order


def _in(order: Pattern, along: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(along[axis] for axis in order)
