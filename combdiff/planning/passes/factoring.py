"""Sums of products with a common factor: the factor multiplies the sum of the others.

    A·B + 2·A·C     becomes     A·(B + 2·C)        one matrix product instead of two
    e·A + B·A       becomes     (diag e + B)·A     for each row of A a number, and a matrix

Contractions that one sum alone uses are compared by the axes they give to the sum and those of the common operand, so
that neither the names of indices nor the order of operands and axes matters. One that is element by element along an
axis over which another sums is a product with a diagonal matrix.

Invariant: a factored plan never costs more operations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from combdiff.ir import join
from combdiff.planning.extents import elements
from combdiff.planning.operations.contraction import Contract
from combdiff.planning.operations.diagonals import DiagonalEmbed
from combdiff.planning.operations.elementwise import Combine
from combdiff.planning.operations.operation import Step
from combdiff.planning.operations.reads import Arrange
from combdiff.planning.operations.words import UNIT, SizeFactor
from combdiff.planning.passes.masked_products import along_labels, in_either, kept_where, on_diagonal
from combdiff.planning.plan import NewPlan, Plan, flops, step_by_step
from combdiff.records import dataclass

ROUNDS = 4  # sums within sums that are factored
Label = tuple[str, int]  # ("out", axis of the sum) or ("sum", axis of the common operand)


@dataclass(frozen=True)
class _Part:
    """One product of a sum: the common operand, the other one, and their labels in terms of the sum and the common."""

    position: int
    place: int  # of the other operand in the product
    common: int
    other: int
    common_labels: tuple[Label, ...]
    other_labels: tuple[Label, ...]
    diagonal: Step | None = None  # the other operand along a diagonal, where it is taken so

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
    parts = list(_parts(plan, step))
    for part in parts:
        groups.setdefault(part.key, []).append(part)
    whole = [*groups.values(), *_with_diagonals(plan, list(groups.values()), parts)]
    found = [group for group in whole if len({part.position for part in group}) == len(group) > 1]
    found = [group for group in found if _is_kept_as_one(plan.steps, group)]
    priced = [(_saved(plan.steps, step, group, plan.sizes), -n) for n, group in enumerate(found)]
    best = max(priced, default=(0, 0))
    return found[-best[1]] if best[0] > 0 else []


def _saved(steps: Sequence[Step], step: Step, group: Sequence[_Part], sizes: Mapping[str, int]) -> int:
    """Operations that factoring saves."""
    products = [steps[step.operands[part.position]] for part in group]
    each = [flops(product, [steps[m] for m in product.operands], sizes) for product in products]
    size = elements(step.axes, sizes)
    other = elements(steps[group[0].other].axes, sizes)
    return sum(each[1:]) + len(group) * (size - other)


def _is_kept_as_one(steps: Sequence[Step], group: Sequence[_Part]) -> bool:
    """Whether the sum of the others is not 0 at just the places that one condition tells, or the common operand is read
    everywhere: what it holds elsewhere, perhaps infinite, has no share in the products."""
    labels, kept = group[0].other_labels, []
    for part in group:
        pattern = tuple(map(labels.index, part.other_labels))
        own = kept_where(steps[part.other]) if part.diagonal is None else on_diagonal(part.diagonal)
        kept.append([along_labels(condition, pattern, len(labels)) for condition in own])
    return not all(kept) or bool(in_either(kept))


def _with_diagonals(plan: Plan, groups: Sequence[Sequence[_Part]], parts: Sequence[_Part]) -> Iterator[list[_Part]]:
    """Groups of products that sum over an axis of the common operand, with those that are diagonal along it."""
    for group in groups:
        found = {part.position: part for part in group}
        for part in parts:
            if part.position not in found and (one := _along_diagonal(plan, part, group[0])):
                found[part.position] = one
        if len(found) > len(group):
            yield list(found.values())


def _along_diagonal(plan: Plan, part: _Part, product: _Part) -> _Part | None:
    """A part whose other operand is written along a diagonal, so that it has the labels of a product; None if it has
    not."""
    if part.common != product.common:
        return None
    pairs = zip(product.common_labels, part.common_labels, strict=True)
    moved = [(summed, own) for summed, own in pairs if summed != own]
    if len(moved) != 1 or moved[0][0][0] != "sum" or moved[0][1][0] != "out":
        return None
    (summed, own) = moved[0]
    if set(product.other_labels) != {*part.other_labels, summed, own} or own not in part.other_labels:
        return None
    axes = plan.steps[product.other].axes
    if axes[product.other_labels.index(own)] != axes[product.other_labels.index(summed)]:
        return None
    along = tuple(part.other_labels.index(own if label == summed else label) for label in product.other_labels)
    diagonal = Step(DiagonalEmbed(along), (part.other,), axes, plan.steps[part.other].kind)
    return replace(part, common_labels=product.common_labels, other_labels=product.other_labels, diagonal=diagonal)


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
                yield _Part(position, other, product.operands[common], product.operands[other], *labels)


def _emit_factored(new: NewPlan, step: Step, group: Sequence[_Part]) -> int:
    """The sum of the other factors, its product with the common one, and what else the sum adds; the last step."""
    assert isinstance(step.operation, Combine)
    factors = [step.operation.factors[part.position] for part in group]
    steps, moved = new.old.steps, new.moved(step)
    others = [
        new.number[part.other] if part.diagonal is None else new.shared(new.moved(part.diagonal)) for part in group
    ]
    inner = new.shared(_sum_of_others(steps, group, factors, others))
    whole = group[0]
    old = steps[step.operands[whole.position]]
    pair = [new.number[whole.common]] * 2
    pair[whole.place] = inner
    product = new.add(replace(old, operands=tuple(pair), kind=join(*(new.steps[m].kind for m in pair))))
    order = step.operation.patterns[whole.position]
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
    steps: Sequence[Step], group: Sequence[_Part], factors: Sequence[SizeFactor], others: Sequence[int]
) -> Step:
    labels = group[0].other_labels
    patterns = tuple(tuple(labels.index(label) for label in part.other_labels) for part in group)
    numbers = [factor.number for factor in factors]
    kinds = [complex if z.imag else int if isinstance(z.real, int) else float for z in numbers]
    kind = join(*(steps[part.other].kind for part in group), *kinds)
    return Step(Combine(tuple(factors), patterns), tuple(others), steps[group[0].other].axes, kind)
