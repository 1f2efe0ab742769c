"""Index expressions as positions in arrays, and index conditions as masks.

An index that reads an axis becomes a `Position`: with t the zero-based positions along the labels,

    stored position = (steps · t + start) / divisor,   wrapped on a Cyclic axis, reading 0 outside any other

    x[i + k − 1]                  x: Range("N"), labels (i, k)
    = Position(steps=(1, 1), start=−1)

Invariant: sizes stay symbolic (`affine.Linear` forms in size names), so positions hold for arrays of every size.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import lcm

from combdiff.ir import Cyclic, Delta, Domain, IndexGuard, Space, Term, Unequal, Var, Whole, affine, affine_parts
from combdiff.planning.extents import extent_form, first_form
from combdiff.planning.operations.masks import IndexCondition
from combdiff.planning.operations.positions import Position
from combdiff.planning.operations.words import Pattern
from combdiff.polyhedra import Linear, as_linear

Exchange = tuple[Pattern, bool]  # axes in an order in which an array is the same, or the conjugate of what it was


def index_labels(indices: Iterable[Term]) -> tuple[Var, ...]:
    """The index variables of index expressions, in order of first occurrence."""
    found = (var for index in indices for var, _ in affine_parts(index)[0] if not isinstance(var.type, Whole))
    return tuple(dict.fromkeys(found))


def domain_of(label: Var) -> Domain:
    """The domain of an index variable."""
    assert not isinstance(label.type, Whole), label
    return label.type  # type: ignore[return-value]


def exchanges(space: Space, order: Sequence[int]) -> tuple[Exchange, ...]:
    """What the symmetries of a space exchange in its arrays, whose axes come in that order; nothing comes first."""
    actions = [action for action in space.group if action.sign == 1 and not any(action.negated)]
    places = {axis: n for n, axis in enumerate(order)}
    return tuple(
        (tuple(places[action.axes[axis]] for axis in order), action.conjugate and space.dtype is complex)
        for action in actions
    )


def position(index: Term, labels: Sequence[Var], axis: Domain) -> Position:
    """Where `index` reads an axis with that domain, in terms of zero-based positions along the labels."""
    steps, start, divisor = _form(index, labels, first_form(axis))
    return Position(steps, start, divisor, isinstance(axis, Cyclic))


def _form(index: Term, labels: Sequence[Var], origin: Linear) -> tuple[tuple[int, ...], Linear, int]:
    """Integer steps and start with their common divisor, of the index expression less `origin`."""
    parts, offset = affine_parts(index)
    steps: dict[Var, int | Fraction] = {}
    start = as_linear(offset) - origin
    for var, coefficient in parts:
        if isinstance(var.type, Whole):
            start += Linear(((var.name, coefficient),))
        else:
            steps[var] = coefficient
            start += first_form(domain_of(var)).scale(coefficient)
    numbers = [*steps.values(), start.constant, *(value for _, value in start.coefficients)]
    divisor = lcm(*(Fraction(number).denominator for number in numbers))
    return tuple(int(steps.get(label, 0) * divisor) for label in labels), start.scale(divisor), divisor


def modulus(condition: Delta) -> Cyclic | None:
    """The cycle on which a δ compares, if it does."""
    return condition.domain if isinstance(condition.domain, Cyclic) else None


def mask_of_form(form: Term) -> tuple[tuple[Var, ...], tuple[int, ...], Linear, int]:
    """The labels of an index expression, its steps along them and its start, from zero-based positions.

    Of one with fractions those of the least multiple that is whole; the last is what it is multiplied by.
    """
    labels = index_labels([form])
    return labels, *_form(form, labels, Linear())


def mask(condition: IndexGuard) -> tuple[tuple[Var, ...], IndexCondition]:
    """The labels and the mask of a condition."""
    labels = index_labels(condition.children)
    if isinstance(condition, Delta):
        form, tests = affine([(condition.left, 1), (condition.right, -1)]), ("== 0", "divisible")
        cycle = modulus(condition)
        divisible_by = extent_form(cycle) if cycle else Linear()
    elif isinstance(condition, Unequal):
        form, tests = condition.form, ("!= 0", "indivisible")
        divisible_by = extent_form(condition.cycle) if condition.cycle else Linear()
    else:
        form, tests = condition.form, (">= 0", "divisible")
        divisible_by = as_linear(condition.modulus)
    steps, start, divisor = _form(form, labels, Linear())
    test = tests[divisible_by != Linear()]
    return labels, IndexCondition(steps, start, test, divisible_by.scale(divisor))


def is_renaming(var: Var, value: Term) -> bool:
    """Whether the value is another index with the same domain."""
    return isinstance(value, Var) and value.type == var.type
