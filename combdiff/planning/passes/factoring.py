"""Sums of products with a common factor: the factor multiplies the sum of the others.

    A·B + 2·A·C     becomes     A·(B + 2·C)        one matrix product instead of two

Contractions that one sum alone uses are compared by the axes they give to the sum and those of the common operand, so
that neither the names of indices nor the order of operands and axes matters.

Invariant: a factored plan never costs more operations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from combdiff.ir import Domain, join
from combdiff.planning.extents import elements
from combdiff.planning.operations import UNIT, Arrange, Combine, Contract, Pattern, SizeFactor, Step
from combdiff.planning.plan import NewPlan, Plan, flops, step_by_step
from combdiff.records import dataclass

ROUNDS = 4  # sums within sums that are factored
Label = tuple[str, int]  # ("out", axis of the sum) or ("sum", axis of the common operand)


@dataclass(frozen=True)
class _Part:
    """One product of a sum: the common operand, the other one, and their labels in terms of the sum and the common."""

    position: int
    common: int
    other: int
    common_labels: tuple[Label, ...]
    other_labels: tuple[Label, ...]

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for products that can be put together."""
        return self.common, self.common_labels, tuple(sorted(self.other_labels))


def factored(plan: Plan) -> Plan:
    """The plan with common factors taken out of sums where that is cheaper."""
    for _ in range(ROUNDS):
        before, plan = plan, _factored_once(plan)
        if plan.steps == before.steps:
            break
    return plan


def _factored_once(plan: Plan) -> Plan:
    def rewrite(new: NewPlan, step: Step) -> int:
        group = _best(plan, step) if isinstance(step.operation, Combine) else []
        return _emit_factored(new, step, group) if group else new.add(new.moved(step))

    return step_by_step(plan, rewrite)


def _best(plan: Plan, step: Step) -> list[_Part]:
    """The products of a sum with the common factor that saves most; none where nothing is saved."""
    groups: dict[object, list[_Part]] = {}
    for part in _parts(plan, step):
        groups.setdefault(part.key, []).append(part)
    found = [group for group in groups.values() if len({part.position for part in group}) == len(group) > 1]
    priced = [(_saved(plan.steps, step, group, plan.sizes), -n) for n, group in enumerate(found)]
    best = max(priced, default=(0, 0))
    return found[-best[1]] if best[0] > 0 else []


def _saved(steps: Sequence[Step], step: Step, group: Sequence[_Part], sizes: Mapping[str, int]) -> int:
    """Operations that factoring saves."""
    product = steps[step.operands[group[0].position]]
    each = flops(product, [steps[m] for m in product.operands], sizes)
    size = elements(step.axes, sizes)
    other = elements(steps[group[0].other].axes, sizes)
    return (len(group) - 1) * each + len(group) * (size - other)


def _parts(plan: Plan, step: Step) -> Iterator[_Part]:
    """Each product of the sum, with either operand as the common one."""
    assert isinstance(step.operation, Combine)
    for position, (m, pattern) in enumerate(zip(step.operands, step.operation.patterns, strict=True)):
        product = plan.steps[m]
        op = product.operation
        if not isinstance(op, Contract) or not plan.is_read_once(m) or len(pattern) != len(step.axes):
            continue
        for common, other, first, second in ((0, 1, op.left, op.right), (1, 0, op.right, op.left)):
            if len(set(first)) == len(first) and len(set(second)) == len(second):
                names: dict[int, Label] = {label: ("out", pattern[n]) for n, label in enumerate(op.out)}
                names |= {label: ("sum", n) for n, label in enumerate(first) if label not in names}
                labels = tuple(names[x] for x in first), tuple(names[x] for x in second)
                yield _Part(position, product.operands[common], product.operands[other], *labels)


def _emit_factored(new: NewPlan, step: Step, group: Sequence[_Part]) -> int:
    """The sum of the other factors, its product with the common one, and what else the sum adds; the last step."""
    assert isinstance(step.operation, Combine)
    factors = [step.operation.factors[part.position] for part in group]
    labels, steps, moved = group[0].other_labels, new.old.steps, new.moved(step)
    inner = new.add(_sum_of_others(steps, group, factors, new.number))
    product = new.add(_product(steps, step, group[0], new.number[group[0].common], inner, new.steps[inner].kind))
    order = _order(group[0], labels)
    grouped = {part.position for part in group}
    rest = [n for n in range(len(step.operands)) if n not in grouped]
    if rest:
        operation = Combine(
            (*(step.operation.factors[n] for n in rest), UNIT), (*(step.operation.patterns[n] for n in rest), order)
        )
        return new.add(replace(moved, operation=operation, operands=(*(moved.operands[n] for n in rest), product)))
    if order == tuple(range(len(order))):
        return product
    arranged = Arrange(tuple(order.index(axis) for axis in range(len(order))))
    return new.add(replace(moved, operation=arranged, operands=(product,)))


def _sum_of_others(
    steps: Sequence[Step], group: Sequence[_Part], factors: Sequence[SizeFactor], number: Sequence[int]
) -> Step:
    labels = group[0].other_labels
    patterns = tuple(tuple(labels.index(label) for label in part.other_labels) for part in group)
    numbers = [factor.number for factor in factors]
    kinds = [complex if z.imag else int if isinstance(z.real, int) else float for z in numbers]
    kind = join(*(steps[part.other].kind for part in group), *kinds)
    operands = tuple(number[part.other] for part in group)
    return Step(Combine(tuple(factors), patterns), operands, steps[group[0].other].axes, kind)


def _product(steps: Sequence[Step], step: Step, part: _Part, common: int, inner: int, kind: type) -> Step:
    """The common operand times the sum of the others, its axes in the natural order of a contraction."""
    labels = tuple(dict.fromkeys((*part.common_labels, *part.other_labels)))
    left, right = (tuple(labels.index(x) for x in group) for group in (part.common_labels, part.other_labels))
    out = tuple(labels.index(("out", axis)) for axis in _order(part, part.other_labels))
    axes: tuple[Domain, ...] = tuple(step.axes[labels[x][1]] for x in out)
    return Step(Contract(left, right, out), (common, inner), axes, join(steps[part.common].kind, kind))


def _order(part: _Part, others: Sequence[Label]) -> Pattern:
    """The axes of the sum in the order of the product: those of both operands, then of the first, then the second."""
    first = [axis for kind, axis in part.common_labels if kind == "out"]
    second = [axis for kind, axis in others if kind == "out"]
    both = [axis for axis in first if axis in second]
    return tuple(both + [axis for axis in first if axis not in both] + [axis for axis in second if axis not in both])
