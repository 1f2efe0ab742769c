"""The order of the axes of arrays that are made element by element, as the products that read them want it.

    far = x[:, None, :] − mu          (n, k, d)        then for each k a product of (n, d) and (d, d)
    far = x.T − mu[:, :, None]        (k, d, n)        the same, and each k's matrix lies in one piece

Which of its axes comes first is free for an array of sums, products and functions of elements. Those that are made from
one another have one order, so that all of them are read as they lie; it is the one with which products of matrices copy
least, and long axes are last, as NumPy does one of them at a time. A product of matrices may be the transposed one of
the transposed matrices: A·B or (Bᵀ·Aᵀ)ᵀ.

Invariant: results keep their axes; an array in another order that something else reads is viewed in the old one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import permutations
from math import inf

from combdiff.planning.operations.contraction import Contract
from combdiff.planning.operations.elementwise import Combine, ConjugateElements, ElementwiseStep, Scale
from combdiff.planning.operations.masks import MaskedContract
from combdiff.planning.operations.operation import Step
from combdiff.planning.operations.reads import Arrange
from combdiff.planning.operations.reductions import Reduce, ReduceExtreme
from combdiff.planning.operations.words import Pattern
from combdiff.planning.plan import NewPlan, Plan, patterns_of, rewritten, step_by_step, with_patterns
from combdiff.records import dataclass

START = 16  # elements that are done in the time in which NumPy begins an inner loop
COPY = 2  # elements that are done in the time in which one is copied to another order
MOST_AXES = 3  # of arrays of which all orders are looked at


@dataclass
class _AxisGroup:
    """Steps that are made from one another element by element: the label along each axis of each."""

    members: dict[int, Pattern] = field(default_factory=dict)

    def join(self, other: _AxisGroup, names: Mapping[int, int]) -> None:
        """Take the steps of another, whose labels have other names there."""
        self.members |= {n: tuple(names[label] for label in labels) for n, labels in other.members.items()}


def in_good_order(plan: Plan) -> Plan:
    """The plan with an order of axes for each group of steps that are made element by element."""
    plan = _through_views(plan)
    orders: dict[int, Pattern] = {}
    for group in _groups(plan):
        prices = {order: _price(plan, group, order) for order in _candidates(plan, group)}
        best = min(prices, key=lambda order: prices[order])
        if prices[best] < inf:  # else no order is one in which all of its products of matrices can be made
            orders |= {n: tuple(map(labels.index, best)) for n, labels in group.members.items()}
    orders = {n: order for n, order in orders.items() if order != tuple(range(len(order)))}
    return _reordered(plan, orders) if orders else plan


def _through_views(plan: Plan) -> Plan:
    """The plan in which what reads axes by their labels does so where they lie, and no product is transposed alone."""

    def rewrite(new: NewPlan, old: Step) -> int:
        step, patterns = new.moved(old), patterns_of(old)
        if isinstance(old.operation, Arrange) and plan.is_read_once(old.operands[0]):
            below = step.operands[0]
            turned = _turned(new.steps[below])
            if turned and _turned_order(new.steps[below], turned) == old.operation.order:
                new.steps[below] = turned
                return below
        operands = list(step.operands)
        for place, pattern in enumerate(patterns):
            view = new.steps[operands[place]]
            if isinstance(view.operation, Arrange) and None not in view.operation.order:
                operands[place] = view.operands[0]
                patterns[place] = tuple(pattern[view.operation.order.index(axis)] for axis in range(len(pattern)))
        return new.add(replace(with_patterns(step, patterns) if patterns else step, operands=tuple(operands)))

    return step_by_step(plan, rewrite)


# --- groups ----------------------------------------------------------------------------------------------------------


def _groups(plan: Plan) -> list[_AxisGroup]:
    of: dict[int, _AxisGroup] = {}
    for n, step in enumerate(plan.steps):
        own = tuple(range(len(step.axes)))
        if len(own) < 2 or not _is_free(plan, of, n):
            continue
        group = of[n] = _AxisGroup({n: own})
        for m, pattern in aligned(step):
            if m not in of or len(set(pattern)) < len(own):
                continue
            other, names = of[m], dict(zip(of[m].members[m], (group.members[n][axis] for axis in pattern), strict=True))
            if other is not group:
                group.join(other, names)
                of |= dict.fromkeys(other.members, group)
    return list({id(group): group for group in of.values()}.values())


def _is_free(plan: Plan, of: Mapping[int, _AxisGroup], n: int) -> bool:
    """Whether the axes of a step may come in any order."""
    step = plan.steps[n]
    match step.operation:
        case Scale() | ConjugateElements():
            return step.operands[0] in of
        case Combine() | ElementwiseStep():
            return step.fresh
        case Contract(in_place="") if step.operation.kernel in ("multiply", "outer", "einsum"):
            return True
    return _turned(step) is not None


def _turned(step: Step) -> Step | None:
    """A product of two matrices, or of stacks of them, as the transposed one of the transposed; None for others."""
    product = _product_of(step)
    if product is None or product.in_place or product.kernel not in ("matrix-matrix", "batched matrix-matrix"):
        return None
    if product.out != (*product.batch, *product.left_only, *product.right_only):
        return None
    out = (*product.batch, *product.right_only, *product.left_only)
    step = replace(step, operands=step.operands[::-1], axes=tuple(step.axes[product.out.index(n)] for n in out))
    match step.operation:
        case MaskedContract(patterns=(left, right), hosts=hosts) as masked:
            swapped = tuple((1, 0, 2)[host] for host in hosts)
            return replace(step, operation=replace(masked, patterns=(right, left), out=out, hosts=swapped))
    return replace(step, operation=Contract(product.right, product.left, out))


def _product_of(step: Step) -> Contract | None:
    """The product of two operands that a step is, conditions beside."""
    match step.operation:
        case MaskedContract(patterns=(left, right), out=out):
            return Contract(left, right, out)
        case Contract() as product:
            return product
    return None


def _turned_order(step: Step, turned: Step) -> Pattern:
    """The axes of a product of matrices along those of the transposed one."""
    old, new = _product_of(step), _product_of(turned)
    assert old is not None
    assert new is not None
    return tuple(map(old.out.index, new.out))


def aligned(step: Step) -> Iterator[tuple[int, Pattern]]:
    """The operands that a step reads element by element, and the axis of it along each of theirs."""
    match step.operation:
        case Scale() | ConjugateElements():
            yield step.operands[0], tuple(range(len(step.axes)))
        case Combine(patterns=patterns) | ElementwiseStep(patterns=patterns):
            yield from zip(step.operands, patterns, strict=True)
        case Contract(out=out) as product if not product.summed:
            for m, pattern in zip(step.operands, (product.left, product.right), strict=True):
                yield m, tuple(map(out.index, pattern))


# --- what an order costs ---------------------------------------------------------------------------------------------


def _candidates(plan: Plan, group: _AxisGroup) -> list[Pattern]:
    """Orders of the labels of a group, that of its first step before others."""
    first = next(iter(group.members.values()))
    if len(first) <= MOST_AXES:
        return list(dict.fromkeys((first, *permutations(first))))
    found = [first]
    for n, labels in group.members.items():
        if turned := _turned(plan.steps[n]):
            found.append(tuple(labels[axis] for axis in _turned_order(plan.steps[n], turned)))
        for product, pattern in _products(plan, n):
            if product.kernel == "einsum":
                continue
            names = dict(zip(pattern, labels, strict=True))
            found += [tuple(map(names.__getitem__, order)) for order in _in_place(product, pattern)]
    return list(dict.fromkeys(found))


def _products(plan: Plan, n: int) -> Iterator[tuple[Contract, Pattern]]:
    """The products with sums that read a step, and the labels along its axes there."""
    for reader, place in plan.readers[n]:
        step = plan.steps[reader]
        product = _product_of(step)
        if product is None or product.in_place or not (product.summed or isinstance(step.operation, MaskedContract)):
            continue
        for pattern in patterns_of(step)[place : place + 1]:  # of arrays of positions there is none
            if len(set(pattern)) == len(pattern):
                yield product, pattern


def _in_place(product: Contract, pattern: Pattern) -> tuple[Pattern, Pattern]:
    """The orders in which an operand with these labels is a stack of matrices, by rows or by columns."""
    kept = tuple(n for n in product.out if n in pattern and n not in product.batch)
    return (*product.batch, *kept, *product.summed), (*product.batch, *product.summed, *kept)


def _price(plan: Plan, group: _AxisGroup, order: Pattern) -> float:
    return sum(_price_of(plan, n, labels, order) for n, labels in group.members.items())


def _price_of(plan: Plan, n: int, labels: Pattern, order: Pattern) -> float:
    step, many = plan.steps[n], plan.elements(n)
    axes = tuple(map(labels.index, order))
    moved = axes != tuple(range(len(axes)))
    price = 0.0
    for m, pattern in aligned(step):
        whole = len(pattern) == len(axes)
        if not whole and pattern:
            price += many * START / max(1, plan.shape(n)[axes[-1]]) / len(step.operands)
        elif whole and pattern != axes and not _follows(plan, m):
            price += many
    for product, pattern in _products(plan, n):
        if product.kernel == "einsum":
            price += many * START / max(1, plan.shape(n)[axes[-1]])
        elif tuple(pattern[axis] for axis in axes) not in _in_place(product, pattern):
            price += COPY * many
    if moved and (turned := _turned(step)) and axes != _turned_order(step, turned):
        return inf
    return price + COPY * many * (moved and (n in plan.results or _is_read_otherwise(plan, n, axes)))


def _follows(plan: Plan, m: int) -> bool:
    """Whether an operand may come in any order, too."""
    operation = plan.steps[m].operation
    plain = isinstance(operation, Combine | ElementwiseStep | Scale | ConjugateElements)
    return plain or (isinstance(operation, Contract) and operation.kernel in ("multiply", "outer", "einsum"))


def _is_read_otherwise(plan: Plan, n: int, axes: Pattern) -> bool:
    """Whether a step is read where only the old order will do."""
    return not all(_reads_in(plan.steps[reader], axes) for reader, _ in plan.readers[n])


def _reads_in(step: Step, axes: Pattern) -> bool:
    """Whether a step can read an operand whose axes come in another order."""
    match step.operation:
        case Contract(in_place=place):
            return not place
        case MaskedContract() | Combine() | ElementwiseStep() | Scale() | ConjugateElements():
            return True
        case Reduce(summed=summed) | ReduceExtreme(summed=summed):
            left = [axis for axis in axes if axis not in summed]
            return left == sorted(left)
        case Arrange(order=order):
            return None not in order
    return False


# --- rewriting -------------------------------------------------------------------------------------------------------


def _reordered(plan: Plan, orders: Mapping[int, Pattern]) -> Plan:
    steps: list[Step] = []
    number: dict[int, int] = {}  # of each old step the one with its axes in the new order
    viewed: dict[int, int] = {}  # and the one with them in the old order

    def in_old_order(m: int) -> int:
        if m not in viewed:
            order, old = orders[m], plan.steps[m]
            back = tuple(map(order.index, range(len(order))))
            viewed[m] = len(steps)
            steps.append(replace(old, operation=Arrange(back), operands=(number[m],)))
        return viewed[m]

    for n, old in enumerate(plan.steps):
        step = _read_in(old, [orders.get(m) for m in old.operands])
        if step is None:
            kept = tuple(in_old_order(m) if m in orders else number[m] for m in old.operands)
            step = _made_in(replace(old, operands=kept), orders.get(n))
        else:
            step = _made_in(replace(step, operands=tuple(map(number.__getitem__, old.operands))), orders.get(n))
        if step.operation == Arrange(tuple(range(len(step.axes)))):
            number[n] = step.operands[0]
        else:
            number[n] = len(steps)
            steps.append(step)
    last = {n: in_old_order(n) if n in orders else number[n] for n in plan.results}
    return rewritten(plan, steps, {**number, **last})


def _read_in(step: Step, orders: Sequence[Pattern | None]) -> Step | None:
    """A step on operands of which some come in other orders; None where it cannot read one of them."""
    if not all(order is None or _reads_in(step, order) for order in orders):
        return None
    patterns = patterns_of(step)
    if patterns:
        found = [
            tuple(pattern[axis] for axis in order) if order else pattern
            for pattern, order in zip(patterns, orders, strict=True)
        ]
        return with_patterns(step, found)
    match step.operation:
        case Reduce() | ReduceExtreme() as reduction if orders[0]:
            axes = tuple(sorted(map(orders[0].index, reduction.summed)))
            return replace(step, operation=replace(reduction, summed=axes))
        case Arrange(order=order) if orders[0]:
            return replace(step, operation=Arrange(tuple(map(orders[0].index, order))))
    return step


def _made_in(step: Step, order: Pattern | None) -> Step:
    """A step with its own axes in another order."""
    if order is None:
        return step
    if turned := _turned(step):
        return turned
    step = replace(step, axes=tuple(step.axes[axis] for axis in order))
    match step.operation:
        case Combine(patterns=patterns) | ElementwiseStep(patterns=patterns):
            return with_patterns(step, [tuple(map(order.index, pattern)) for pattern in patterns])
        case Contract(out=out) as product:
            return replace(step, operation=replace(product, out=tuple(out[axis] for axis in order)))
    return step
