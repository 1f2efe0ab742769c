"""δ's written along a diagonal: no array of zeros and ones is multiplied or added.

    3 * spread(C)                spread(3 * C): zeros with 3 C where two axes coincide
    X.T @ X + spread(mu)         X.T @ X, and then mu added along its diagonal, in place

A sum with an array of zeros reads and writes as many elements as the result has, most of them 0. (Laue, Mitterreiter
and Giesen, section 3: unit tensors need never be stored.) Products of an array with itself, weighted by a
vector, become Gram matrices (`grams`).

Invariant: a plan gives the same results with and without `structured`.
"""

from __future__ import annotations

from dataclasses import replace

from combdiff.planning.operations.diagonals import DiagonalEmbed, DiagonalScatterAdd
from combdiff.planning.operations.elementwise import Combine, Scale
from combdiff.planning.operations.leaves import Fill
from combdiff.planning.operations.operation import Step
from combdiff.planning.operations.reads import Arrange
from combdiff.planning.operations.words import UNIT, Pattern, SizeFactor
from combdiff.planning.passes.grams import gram, scaled_weight
from combdiff.planning.passes.scaling import scaled_kind
from combdiff.planning.plan import NewPlan, Plan, pruned, step_by_step


def structured(plan: Plan) -> Plan:
    """The plan with numbers multiplied before arrays are written along diagonals, and weighted Gram matrices."""
    steps: list[Step] = []
    for step in plan.steps:
        step = gram(steps, step, plan.sizes) or step
        below = step.operands[0] if isinstance(step.operation, Scale) else None
        if (
            below is not None
            and isinstance(spread := steps[below].operation, DiagonalEmbed)
            and plan.is_read_once(below)
        ):
            inner = steps[steps[below].operands[0]]
            steps[below] = replace(step, operands=steps[below].operands, axes=inner.axes)
            step = replace(step, operation=spread, operands=(below,))
        elif below is not None and plan.is_read_once(below) and (scaled := scaled_weight(steps, step)):
            steps[below], step = scaled[0], replace(scaled[1], operands=(scaled[1].operands[0], below))
        steps.append(step)
    return step_by_step(pruned(replace(plan, steps=tuple(steps))), lambda new, step: _Depositing(new).rewrite(step))


class _Depositing:
    """Sums in which an addend is an array along a diagonal: it is added to the sum of the others."""

    def __init__(self, new: NewPlan) -> None:
        self.old = new.old
        self.new = new.steps
        self.number = new.number
        self._add = new.add
        self._moved = new.moved

    def rewrite(self, step: Step) -> int:
        """The number of a step, or of such a sum."""
        found = self._deposited(step)
        return self._add(self._moved(step)) if found is None else found

    def _deposited(self, step: Step) -> int | None:
        """The number of a step that is a sum with such addends; None for others."""
        if not isinstance(step.operation, Combine):
            return None
        addends = list(zip(step.operands, step.operation.patterns, step.operation.factors, strict=True))
        along = [n for n, (m, pattern, _) in enumerate(addends) if self._diagonal(m, pattern, step)]
        rest = [addend for n, addend in enumerate(addends) if n not in along]
        if not along or {axis for _, pattern, _ in rest for axis in pattern} != set(range(len(step.axes))):
            return None
        total, owned = self._rest(rest, step)
        for n in along:
            m, pattern, factor = addends[n]
            total = self._add(self._deposit(m, pattern, factor, total, owned, step))
            owned = True
        return total

    def _diagonal(self, m: int, pattern: Pattern, step: Step) -> bool:
        """Whether an addend lies along a diagonal of the whole sum and is made for it alone."""
        addend = self.old.steps[m]
        if not isinstance(addend.operation, DiagonalEmbed) or len(pattern) < len(step.axes):
            return False
        return self.old.is_read_once(m) or isinstance(self.old.steps[addend.operands[0]].operation, Fill)

    def _rest(self, rest: list[tuple[int, Pattern, SizeFactor]], step: Step) -> tuple[int, bool]:
        """The sum of the other addends, and whether it is made for this alone."""
        (m, pattern, factor), *more = rest
        operand = self.old.steps[m]
        own, moved = operand.fresh and self.old.is_read_once(m), self.number[m]
        if not more and own and factor != UNIT:
            scaled = scaled_weight(self.new, replace(step, operation=Scale(factor), operands=(moved,)))
            if scaled:
                weight, made = scaled
                moved = self._add(replace(made, operands=(made.operands[0], self._add(weight))))
                factor = UNIT
        if more or factor != UNIT:
            operation = Combine(tuple(f for *_, f in rest), tuple(p for _, p, _ in rest))
            return self._add(replace(step, operation=operation, operands=tuple(self.number[m] for m, *_ in rest))), True
        if pattern != tuple(range(len(pattern))):
            order = tuple(pattern.index(axis) for axis in range(len(pattern)))
            moved = self._add(replace(step, operation=Arrange(order), operands=(moved,)))
        return moved, own

    def _deposit(self, m: int, pattern: Pattern, factor: SizeFactor, total: int, owned: bool, step: Step) -> Step:
        """The step that adds an addend along a diagonal to the sum of the others."""
        addend = self.old.steps[m]
        assert isinstance(addend.operation, DiagonalEmbed)
        along, inner = addend.operation.along, self.number[addend.operands[0]]
        if factor != UNIT:
            part = self.new[inner]
            inner = self._add(
                replace(part, operation=Scale(factor), operands=(inner,), kind=scaled_kind(factor, part.kind))
            )
        order = tuple(along[pattern.index(axis)] for axis in range(len(pattern)))
        return replace(step, operation=DiagonalScatterAdd(order, owned), operands=(total, inner))
