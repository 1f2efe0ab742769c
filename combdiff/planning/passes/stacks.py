"""Sums of arrays that are 0 but at one position of an axis, each at its own, as the stack of them.

    where(arange(2) == 0, u[:, None], 0) + where(arange(2) == 1, v[:, None], 0)      becomes      stack([u, v], 1)

Derivatives by columns `c[:, 0]`, `c[:, 1]` are such sums, and rows of a matrix that is put together from numbers. An
array that is kept at each position of an axis once is itself. What one position of a stack is read for is the array
there, and a stack that is read with its axes in another order is made so.

Invariant: each element is the sum of the same addends, less those that are 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from combdiff.ir import Domain, Number
from combdiff.planning.extents import extent_form
from combdiff.planning.operations.elementwise import Combine, Scale
from combdiff.planning.operations.leaves import Fill
from combdiff.planning.operations.masks import IndexCondition, Mask
from combdiff.planning.operations.operation import Step
from combdiff.planning.operations.positions import Position
from combdiff.planning.operations.reads import Arrange, Read
from combdiff.planning.operations.stacks import SideBySide
from combdiff.planning.operations.words import UNIT, Pattern, SizeFactor
from combdiff.planning.plan import NewPlan, Plan, step_by_step
from combdiff.polyhedra import Linear, as_linear
from combdiff.records import dataclass

MOST_POSITIONS = 32  # of an axis that arrays are put side by side along


@dataclass(frozen=True)
class _Addend:
    """`factor` times an array, by the labels along its axes, at the positions of some labels alone, 0 elsewhere."""

    array: int
    pattern: Pattern
    places: tuple[tuple[int, int], ...]
    factor: SizeFactor

    def place(self, label: int) -> int | None:
        """The position of a label at which the addend is not 0; None where it is no single one."""
        return dict(self.places).get(label)

    def anywhere(self, label: int) -> _Addend:
        """The addend without its place along a label."""
        return replace(self, places=tuple(each for each in self.places if each[0] != label))


def stacked(plan: Plan) -> Plan:
    """The plan with sums of arrays at positions of an axis as stacks."""

    def rewrite(new: NewPlan, step: Step) -> int:
        if isinstance(step.operation, Combine) and len(step.axes) > 1:
            addends = [_addend(new, new.number[m], pattern, factor) for m, pattern, factor in _operands(step)]
            if (label := _axis(addends, step.axes)) is not None:
                return _Stacking(new, step.kind).along(label, addends, step.axes)
        return _read(new, new.moved(step)) if isinstance(step.operation, Read) else new.add(new.moved(step))

    return _as_read(step_by_step(plan, rewrite))


def _read(new: NewPlan, step: Step) -> int:
    """What a step reads; of one position of a stack what stands there."""
    array = new.steps[step.operands[0]]
    assert isinstance(step.operation, Read)
    places = list(step.operation.positions)
    if isinstance(array.operation, SideBySide):
        place = places.pop(array.operation.axis)
        plain = place.divisor == 1 and not place.wrap and not any(place.steps) and not place.start.symbols
        if plain and [each.along() for each in places] == list(range(len(step.axes))):
            for part in array.operands[int(place.start.constant) :][:1]:
                if place.start.constant >= 0 and (new.steps[part].axes, new.steps[part].kind) == (step.axes, step.kind):
                    return part
    return new.add(step)


# --- orders of axes --------------------------------------------------------------------------------------------------


def _as_read(plan: Plan) -> Plan:
    """The plan with stacks made in the order of axes in which they are read, where that is one."""
    orders = _orders(plan)

    def rewrite(new: NewPlan, old: Step) -> int:
        def read(m: int, wanted: tuple[int, ...]) -> int:
            if wanted == orders[m]:
                return new.number[m]
            axes = tuple(plan.steps[m].axes[axis] for axis in wanted)
            return new.add(Step(Arrange(wanted), (new.number[m],), axes, plan.steps[m].kind))

        order, operation = orders[len(new.number)], old.operation
        step = replace(new.moved(old), axes=tuple(old.axes[axis] for axis in order))
        match operation:
            case Arrange():
                if (wanted := _of_view(operation, order)) is not None:
                    return read(old.operands[0], wanted)
                return new.add(replace(step, operation=Arrange(tuple(operation.order[axis] for axis in order))))
            case SideBySide(axis=axis):
                operation, order = SideBySide(order.index(axis)), _within(order, axis)
            case Mask(conditions=conditions):
                turned = (replace(each, steps=tuple(each.steps[axis] for axis in order)) for each in conditions)
                operation = Mask(tuple(turned))
            case Scale():
                pass
            case _:
                return new.add(step)
        return new.add(replace(step, operation=operation, operands=tuple(read(m, order) for m in old.operands)))

    return step_by_step(plan, rewrite)


def _orders(plan: Plan) -> list[tuple[int, ...]]:
    """The order of the axes in which each step is made: for stacks, and what these are of, that in which it is read."""
    own = [tuple(range(len(step.axes))) for step in plan.steps]
    wanted = {n: own[n] for n in plan.results}
    for n in reversed(range(len(plan.steps))):
        step, order = plan.steps[n], wanted.setdefault(n, own[n])
        inside: tuple[int, ...] | None = None
        match step.operation:
            case Arrange() as view if order != own[n] or isinstance(plan.steps[step.operands[0]].operation, SideBySide):
                inside = _of_view(view, order)
            case SideBySide(axis=axis):
                inside = _within(order, axis)
            case Mask() | Scale():
                inside = order
            case Arrange():
                pass
            case _:
                wanted[n] = own[n]
        for m in step.operands:
            order = own[m] if inside is None else inside
            wanted[m] = order if wanted.get(m, order) == order else own[m]
    return [wanted[n] for n in range(len(plan.steps))]


def _of_view(view: Arrange, order: tuple[int, ...]) -> tuple[int, ...] | None:
    """The order in which an operand is read where axes of a view are wanted in another; None where some are new."""
    found = tuple(axis for axis in (view.order[n] for n in order) if axis is not None)
    return found if len(found) == len(order) else None


def _within(order: tuple[int, ...], axis: int) -> tuple[int, ...]:
    """The order of axes without one of them."""
    return tuple(n - (n > axis) for n in order if n != axis)


# --- sums ------------------------------------------------------------------------------------------------------------


def _operands(step: Step) -> list[tuple[int, Pattern, SizeFactor]]:
    assert isinstance(step.operation, Combine)
    return list(zip(step.operands, step.operation.patterns, step.operation.factors, strict=True))


def _addend(new: NewPlan, n: int, pattern: Pattern, factor: SizeFactor) -> _Addend:
    """An operand of a sum: of one that is masked to single positions, what is masked, without the axes it repeats."""
    step, plain = new.steps[n], _Addend(n, pattern, (), factor)
    if not isinstance(step.operation, Mask) or len(set(pattern)) < len(pattern):
        return plain
    places: dict[int, int] = {}
    for condition in step.operation.conditions:
        if (found := _position(condition)) is None or pattern[found[0]] in places:
            return plain
        places[pattern[found[0]]] = found[1]
    array = step.operands[0]
    under = new.steps[array]
    if isinstance(under.operation, Arrange) and all(
        order is not None or label in places for order, label in zip(under.operation.order, pattern, strict=True)
    ):
        kept = [axis for axis in under.operation.order if axis is not None]
        inner = [label for axis, label in zip(under.operation.order, pattern, strict=True) if axis is not None]
        array, pattern = under.operands[0], tuple(inner[kept.index(axis)] for axis in range(len(kept)))
    return _Addend(array, pattern, tuple(sorted(places.items())), factor)


def _position(condition: IndexCondition) -> tuple[int, int] | None:
    """The axis that a condition fixes, and the position at which."""
    along = [axis for axis, size in enumerate(condition.steps) if size]
    if condition.test != "== 0" or condition.start.symbols or len(along) != 1:
        return None
    position = -condition.start.constant / condition.steps[along[0]]
    return (along[0], int(position)) if position == int(position) and position >= 0 else None


def _axis(addends: Sequence[_Addend], axes: Sequence[Domain]) -> int | None:
    """The label along which addends are put side by side: few positions, most of which have one."""
    found: dict[int, int] = {}
    for label, axis in enumerate(axes):
        extent = extent_form(axis)
        positions = {each.place(label) for each in addends} - {None}
        many = int(extent.constant)
        if not extent.symbols and 1 < many <= MOST_POSITIONS and len(positions) > 1 and 2 * len(positions) >= many:
            found[label] = len([each for each in addends if each.place(label) is not None])
    return max(found, key=lambda label: (found[label], label), default=None)


class _Stacking:
    """Sums of one element type as new steps of a plan."""

    def __init__(self, new: NewPlan, kind: type) -> None:
        self.new, self.kind = new, kind

    def of(self, addends: Sequence[_Addend], axes: tuple[Domain, ...]) -> int:
        """The sum of some addends."""
        label = _axis(addends, axes) if len(axes) > 1 else None
        return self._combined(addends, axes) if label is None else self.along(label, addends, axes)

    def along(self, label: int, addends: Sequence[_Addend], axes: tuple[Domain, ...]) -> int:
        """The sum as a stack along a label, beside what has no place there."""
        addends = _everywhere(addends, label, int(extent_form(axes[label]).constant))
        placed = [each for each in addends if each.place(label) is not None]
        rest = [each for each in addends if each.place(label) is None]
        if not placed:
            return self.of(rest, axes)
        inside = axes[:label] + axes[label + 1 :]
        parts = []
        for position in range(int(extent_form(axes[label]).constant)):
            here = [self._without(each, label, position) for each in placed if each.place(label) == position]
            parts.append(self.of(here, inside) if here else self._zeros(inside))
        stack = self.new.add(Step(SideBySide(label), tuple(parts), axes, self.kind))
        whole = _Addend(stack, tuple(range(len(axes))), (), UNIT)
        return self.of([whole, *rest], axes) if rest else stack

    def _without(self, addend: _Addend, label: int, position: int) -> _Addend:
        """An addend at its position along a label, which those behind it move up for."""
        array, pattern = addend.array, addend.pattern
        if label in pattern:
            array, pattern = self._read(array, pattern.index(label), position), tuple(n for n in pattern if n != label)
        places = tuple((n - (n > label), place) for n, place in addend.anywhere(label).places)
        return _Addend(array, tuple(n - (n > label) for n in pattern), places, addend.factor)

    def _read(self, array: int, axis: int, position: int) -> int:
        """An array at a position of one of its axes."""
        step = self.new.steps[array]
        many = len(step.axes) - 1
        places = [Position(tuple(int(n == k) for k in range(many)), Linear()) for n in range(many)]
        places.insert(axis, Position((0,) * many, as_linear(position)))
        axes = step.axes[:axis] + step.axes[axis + 1 :]
        return _read(self.new, Step(Read(tuple(places)), (array,), axes, step.kind))

    def _zeros(self, axes: tuple[Domain, ...]) -> int:
        return self._repeated(self.new.shared(Step(Fill(Number(0)), (), (), self.kind)), (), axes)

    def _repeated(self, array: int, pattern: Pattern, axes: tuple[Domain, ...]) -> int:
        """An array with all axes of a sum, in their order."""
        if pattern == tuple(range(len(axes))):
            return array
        order = tuple(pattern.index(label) if label in pattern else None for label in range(len(axes)))
        return self.new.add(Step(Arrange(order), (array,), axes, self.new.steps[array].kind))

    def _combined(self, addends: Sequence[_Addend], axes: tuple[Domain, ...]) -> int:
        """The sum as one operation on arrays, masked where they have places."""
        own = tuple(range(len(axes)))
        arrays, patterns = [], []
        for each in addends:
            array, pattern = each.array, each.pattern
            if each.places:
                array, pattern = self._masked(each, axes), own
            arrays.append(array)
            patterns.append(pattern)
        factors = tuple(each.factor for each in addends)
        if factors == (UNIT,):
            return self._repeated(arrays[0], patterns[0], axes)
        if {label for pattern in patterns for label in pattern} != set(own):
            arrays[0], patterns[0] = self._repeated(arrays[0], patterns[0], axes), own
        return self.new.add(Step(Combine(factors, tuple(patterns)), tuple(arrays), axes, self.kind))

    def _masked(self, addend: _Addend, axes: tuple[Domain, ...]) -> int:
        conditions = tuple(
            IndexCondition(tuple(int(n == label) for n in range(len(axes))), as_linear(-place), "== 0", Linear())
            for label, place in addend.places
        )
        array = self._repeated(addend.array, addend.pattern, axes)
        return self.new.add(Step(Mask(conditions), (array,), axes, self.new.steps[array].kind))


def _everywhere(addends: Sequence[_Addend], label: int, many: int) -> list[_Addend]:
    """The addends, one in place of those that are the same array at each position of a label."""
    found = Counter(each.anywhere(label) for each in addends if each.place(label) is not None)
    places: dict[_Addend, set[int | None]] = {}
    for each in addends:
        places.setdefault(each.anywhere(label), set()).add(each.place(label))
    whole = {each for each, count in found.items() if count == many and places[each] == set(range(many))}
    kept = [each for each in addends if each.anywhere(label) not in whole or each.place(label) in (0, None)]
    return [each.anywhere(label) if each.anywhere(label) in whole else each for each in kept]
