"""Products of a part of an array, read from the product of the whole array where that is made, too.

    u = A @ B[:, 0];  C = A @ B          becomes          C = A @ B;  u = C[:, 0]

Derivatives use the components of what is turned one by one, and all of them at once.

Invariant: each step has the value it had; one product takes the place of several.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import permutations

from combdiff.ir import Domain
from combdiff.planning.extents import extent_form, never_negative
from combdiff.planning.operations.contraction import Contract
from combdiff.planning.operations.operation import Step
from combdiff.planning.operations.positions import Position
from combdiff.planning.operations.reads import Read
from combdiff.planning.operations.words import Pattern
from combdiff.planning.plan import Plan, reading, rewritten
from combdiff.polyhedra import Linear
from combdiff.records import dataclass

NOWHERE = -1  # the label of an axis that is read at one place


@dataclass(frozen=True)
class _Along:
    """How a product reads an axis of an array: from a start along a label over a domain, or at one place."""

    start: Linear
    label: int = NOWHERE
    domain: Domain | None = None


@dataclass(frozen=True)
class _ReadProduct:
    """A product of an array, read axis by axis, and another operand, whose labels are `beside`."""

    step: int
    array: int
    axes: tuple[_Along, ...]
    other: int
    beside: Pattern
    out: Pattern


def with_parts_read(plan: Plan) -> Plan:
    """The plan without products of parts of arrays that are multiplied as a whole."""
    groups: dict[tuple[int, int, type], list[_ReadProduct]] = defaultdict(list)
    for n, step in enumerate(plan.steps):
        for product in _products(plan, n):
            groups[product.array, product.other, step.kind].append(product)
    reads: dict[int, Step] = {}
    for part, whole in (pair for found in groups.values() for pair in permutations(found, 2)):
        if part.step not in reads and (places := _places(part, whole)):
            step = plan.steps[part.step]
            reads[part.step] = Step(Read(places), (whole.step,), step.axes, step.kind)
    return _with_reads(plan, reads) if reads else plan


def _with_reads(plan: Plan, reads: Mapping[int, Step]) -> Plan:
    """The plan with reads in place of some steps, each after what it reads."""
    steps: list[Step] = []
    number: dict[int, int] = {}

    def place(n: int) -> None:
        if n not in number:
            step = reads.get(n, plan.steps[n])
            for m in step.operands:
                place(m)
            steps.append(reading(step, number))
            number[n] = len(steps) - 1

    for n in range(len(plan.steps)):
        place(n)
    return rewritten(plan, steps, number)


def _products(plan: Plan, n: int) -> Iterator[_ReadProduct]:
    """A product with each of its operands as the array that is read."""
    step = plan.steps[n]
    if not isinstance(op := step.operation, Contract):
        return
    for side, pattern in enumerate((op.left, op.right)):
        array, other, beside = step.operands[side], step.operands[1 - side], (op.right, op.left)[side]
        below = plan.steps[array]
        axes = [_Along(Linear(), *each) for each in zip(pattern, below.axes, strict=True)]
        if isinstance(below.operation, Read):
            array, places = below.operands[0], below.operation.positions
            axes = [read for place in places for read in _through(place, axes)]
            if len(axes) < len(places):
                continue
        if sorted(axis.label for axis in axes if axis.label != NOWHERE) == sorted(set(pattern)):
            yield _ReadProduct(n, array, tuple(axes), other, beside, op.out)


def _through(place: Position, axes: Sequence[_Along]) -> Iterator[_Along]:
    """How an axis is read through a read of it, whose own axes are read in some way; nothing where that is no slice."""
    if place.divisor == 1 and not place.wrap and sorted(place.steps)[: len(axes) - 1] == [0] * (len(axes) - 1):
        if 1 in place.steps:
            yield replace(axes[place.steps.index(1)], start=place.start)
        elif not any(place.steps):
            yield _Along(place.start)


def _places(part: _ReadProduct, whole: _ReadProduct) -> tuple[Position, ...]:
    """Where the whole product is read for the part, if it is one: along its labels, and at places of some of them."""
    pairs = list(zip(part.axes, whole.axes, strict=True))
    fixed = {there: here.start - there.start for here, there in pairs if here.label == NOWHERE != there.label}
    own = {there.label: here.label for here, there in pairs if there not in fixed}
    own |= dict(zip(whole.beside, part.beside, strict=False))
    at = {there.label: place for there, place in fixed.items()}
    alike = (
        all(there in fixed or here == replace(there, label=own[there.label]) for here, there in pairs)
        and tuple(map(own.get, whole.beside)) == part.beside
        and sorted(own.get(label, NOWHERE) for label in whole.out if label not in at) == sorted(part.out)
        and at.keys() <= set(whole.out) - own.keys()
    )
    if not alike or not at or not all(_is_inside(place, there) for there, place in fixed.items()):
        return ()
    return tuple(
        Position(tuple(int(label not in at and own[label] == mine) for mine in part.out), at.get(label, Linear()))
        for label in whole.out
    )


def _is_inside(place: Linear, axis: _Along) -> bool:
    """Whether a place is one of a label, whatever the sizes."""
    assert axis.domain is not None
    return never_negative(place) and never_negative(extent_form(axis.domain) - 1 - place)
