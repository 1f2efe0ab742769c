"""Products of arrays that are kept where conditions hold: they are summed over the positions at which these hold alone.

    T = keep(A, j ≤ i);  y = T @ x      becomes     y = the product of A and x within j ≤ i

No array with zeros is made, and no element beside the conditions is multiplied. What is zero wherever a condition fails
passes that on to what is made of it; a sum of a triangle without its diagonal and of a diagonal is a triangle.

Invariant: a plan gives the same results with and without `within`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations

from combdiff.planning.operations.contraction import Contract
from combdiff.planning.operations.diagonals import DiagonalEmbed
from combdiff.planning.operations.elementwise import Combine, ConjugateElements, Scale
from combdiff.planning.operations.masks import IndexCondition, Mask, MaskedContract
from combdiff.planning.operations.operation import Step
from combdiff.planning.operations.reads import Arrange
from combdiff.planning.operations.reductions import Reduce
from combdiff.planning.operations.words import Pattern
from combdiff.planning.plan import NewPlan, Plan, step_by_step
from combdiff.polyhedra import Linear

Hosted = list[tuple[IndexCondition, int]]


def within(plan: Plan) -> Plan:
    """The plan with products and sums of kept arrays done within the conditions."""
    support: list[tuple[IndexCondition, ...]] = []  # conditions on the axes of each step, beside which it is zero

    def rewrite(new: NewPlan, old: Step) -> int:
        step, once = new.moved(old), bool(old.operands) and plan.is_read_once(old.operands[0])
        step = _product(new.steps, support, step) or (once and _kept(new.steps, step)) or step
        support.append(_support(new.steps, support, step))
        return new.add(step)

    return step_by_step(plan, rewrite)


def _patterns(steps: Sequence[Step], step: Step) -> tuple[tuple[Pattern, ...], Pattern] | None:
    """The labels along the axes of the operands, and of the result, of a product or a sum."""
    match step.operation:
        case Contract(left=left, right=right, out=out):
            return (left, right), out
        case Reduce(summed=summed):
            labels = tuple(range(len(steps[step.operands[0]].axes)))
            return (labels,), tuple(label for label in labels if label not in summed)
        case MaskedContract(patterns=patterns, out=out):
            return patterns, out
    return None


def _product(steps: Sequence[Step], support: Sequence[tuple[IndexCondition, ...]], step: Step) -> Step | None:
    """A product or sum in which an operand is zero beside some conditions, of the rest alone; not one of scalars."""
    found = _patterns(steps, step)
    if found is None or not any(found[0]) or not any(support[m] for m in step.operands):
        return None
    patterns, out = found
    count = 1 + max(label for pattern in patterns for label in pattern)
    hosted = [
        (along_labels(condition, pattern, count), host)
        for host, (m, pattern) in enumerate(zip(step.operands, patterns, strict=True))
        for condition in support[m]
    ]
    told = [isinstance(steps[m].operation, Mask) and bool(support[m]) for m in step.operands]
    operands = tuple(steps[m].operands[0] if each else m for each, m in zip(told, step.operands, strict=True))
    return _unrepeated(steps, replace(step, operation=_within(patterns, out, hosted), operands=operands))


def _unrepeated(steps: Sequence[Step], step: Step) -> Step:
    """A product without what repeats an operand along labels that the other one has, for conditions alone.

    The result is kept by these conditions instead, where it has all their labels.
    """
    masked = step.operation
    assert isinstance(masked, MaskedContract)
    for host, m in enumerate(step.operands if len(step.operands) == 2 else ()):
        view, other = steps[m].operation, masked.patterns[1 - host]
        if not isinstance(view, Arrange):
            continue
        along = list(zip(view.order, masked.patterns[host], strict=True))
        new = {label for axis, label in along if axis is None}
        hosted = list(zip(masked.conditions, masked.hosts, strict=True))
        told = {label for each, at in hosted if at == host for label, size in enumerate(each.steps) if size}
        if not new or not new <= set(other) or not told <= set(masked.out):
            continue
        own = tuple(label for _, label in sorted((axis, label) for axis, label in along if axis is not None))
        both = (own, steps[m].operands[0]), (other, step.operands[1 - host])
        for (left, one), (right, two) in permutations(both):
            product = Contract(left, right, masked.out)
            if masked.out == (*product.batch, *product.left_only, *product.right_only):
                place = int(right is other)
                hosted = [(each, place if at == 1 - host else 2) for each, at in hosted]
                return replace(step, operation=_within((left, right), masked.out, hosted), operands=(one, two))
    return step


def _kept(steps: Sequence[Step], step: Step) -> Step | None:
    """What is kept of a product or sum that nothing else reads, computed there alone."""
    if not isinstance(step.operation, Mask) or not _spare_work(step.operation.conditions):
        return None
    below = steps[step.operands[0]]
    found = _patterns(steps, below)
    if found is None or not any(found[0]):
        return None
    patterns, out = found
    inner = below.operation
    hosted = list(zip(inner.conditions, inner.hosts, strict=True)) if isinstance(inner, MaskedContract) else []
    count = 1 + max(label for pattern in (*patterns, out) for label in pattern)
    hosted += [(along_labels(condition, out, count), len(patterns)) for condition in step.operation.conditions]
    return replace(step, operation=_within(patterns, out, hosted), operands=below.operands)


def _spare_work(conditions: Sequence[IndexCondition]) -> bool:
    """Whether they fail at many positions; beside i ≠ j alone the rest is done in two parts for a diagonal."""
    return any(condition.test != "!= 0" for condition in conditions)


def _within(patterns: tuple[Pattern, ...], out: Pattern, hosted: Hosted) -> MaskedContract:
    """Conditions that several hosts have are told once for each."""
    pairs = list(dict.fromkeys(hosted))
    return MaskedContract(patterns, out, tuple(condition for condition, _ in pairs), tuple(host for _, host in pairs))


def along_labels(condition: IndexCondition, pattern: Pattern, count: int) -> IndexCondition:
    """A condition on the axes of an array as one on labels."""
    steps = [0] * count
    for label, step in zip(pattern, condition.steps, strict=True):
        steps[label] += step
    return replace(condition, steps=tuple(steps))


def _support(
    steps: Sequence[Step], support: Sequence[tuple[IndexCondition, ...]], step: Step
) -> tuple[IndexCondition, ...]:
    """Conditions on the axes of a step beside which it is zero."""
    match step.operation:
        case Mask():
            return kept_where(step)
        case MaskedContract(out=out, conditions=conditions):
            whole = [c for c in conditions if all(label in out for label, size in enumerate(c.steps) if size)]
            return tuple(dict.fromkeys(replace(c, steps=tuple(c.steps[label] for label in out)) for c in whole))
        case ConjugateElements() | Scale():
            return support[step.operands[0]]
        case Arrange(order=order):
            inner = support[step.operands[0]]
            return tuple(replace(c, steps=tuple(0 if axis is None else c.steps[axis] for axis in order)) for c in inner)
        case Combine(patterns=patterns):
            rank = len(step.axes)
            addends = [
                [along_labels(c, pattern, rank) for c in support[m] or on_diagonal(steps[m])]
                for m, pattern in zip(step.operands, patterns, strict=True)
            ]
            return in_either(addends)
    return ()


def kept_where(step: Step) -> tuple[IndexCondition, ...]:
    """The conditions of a mask, beside which no product is taken with it: what stands there may be infinite."""
    return step.operation.conditions if isinstance(step.operation, Mask) else ()


def on_diagonal(step: Step) -> tuple[IndexCondition, ...]:
    """The conditions that a step lies along the diagonal of axes."""
    if not isinstance(step.operation, DiagonalEmbed):
        return ()
    along = step.operation.along
    pairs = [(along.index(axis), n) for n, axis in enumerate(along) if along.index(axis) < n]
    forms = [tuple((n == first) - (n == second) for n in range(len(along))) for first, second in pairs]
    return tuple(IndexCondition(form, Linear(), "== 0", Linear()) for form in forms)


def in_either(addends: Sequence[Sequence[IndexCondition]]) -> tuple[IndexCondition, ...]:
    """The conditions that hold just where those of one addend or another do; none where that is no list of them."""
    common = [c for c in addends[0] if all(c in addend for addend in addends)]
    rest = [[c for c in addend if c not in common] for addend in addends]
    if not all(rest):
        return tuple(common) if all(addends) else ()
    joined = rest[0][0] if all(len(own) == 1 for own in rest) else None
    for (other,) in rest[1:] if joined else ():
        joined = joined and _either(joined, other)
    return (*common, joined) if joined else ()


def _either(one: IndexCondition, other: IndexCondition) -> IndexCondition | None:
    """The bound that holds just where one or the other does: i > j or i = j, say; None where there is none."""
    if one == other:
        return one
    if one.test == "== 0":
        one, other = other, one
    if one.test != ">= 0" or other.test not in (">= 0", "== 0"):
        return None
    if other.test == "== 0" and other.steps != one.steps:
        other = replace(other, steps=tuple(-step for step in other.steps), start=Linear() - other.start)
    apart = other.start - one.start  # other's form less one's
    if other.steps != one.steps or apart.symbols:
        return None
    if other.test == ">= 0":
        return other if apart.constant > 0 else one
    if apart.constant > 1:
        return None
    return one if apart.constant <= 0 else replace(one, start=other.start)
