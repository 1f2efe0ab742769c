"""Sums of many terms as sums of two, each written over the one before.

    12·p − 8·q − 8·r + t      becomes      a = 12·p,  b = q + r,  b = 8·b,  a = a − b,  a = a + t

Terms with the same factor, up to its sign, are added before they are multiplied.

Invariant: the last step is the sum, with its axes and element type.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from combdiff.ir import join
from combdiff.planning.operations.elementwise import Combine, Scale
from combdiff.planning.operations.operation import Step
from combdiff.planning.operations.words import NEGATIVE, UNIT, Pattern, SizeFactor
from combdiff.records import dataclass


@dataclass(frozen=True)
class _Summand:
    """A step along some axes of the sum, of an element type; to be added or subtracted."""

    step: int
    pattern: Pattern
    kind: type
    negative: bool = False


def passes(step: Step) -> int:
    """How many operations on arrays a sum takes in pairs."""
    assert isinstance(step.operation, Combine)
    groups = _groups(step, [step.kind] * len(step.operands))
    scaled = sum(size != UNIT or all(term.negative for term in terms) for (size, _), terms in groups.items())
    return len(step.operands) - 1 + scaled


def in_pairs(step: Step, kinds: Sequence[type], first: int) -> list[tuple[Step, Pattern]]:
    """The steps of a sum of two terms or more of these element types, numbered from `first` on.

    With each go the axes of the sum that it runs along.
    """
    assert len(step.operands) > 1
    steps: list[tuple[Step, Pattern]] = []

    def emit(operation: Combine | Scale, terms: Sequence[_Summand], pattern: Pattern, kind: type) -> _Summand:
        axes = tuple(step.axes[axis] for axis in pattern)
        steps.append((Step(operation, tuple(term.step for term in terms), axes, kind), pattern))
        return _Summand(first + len(steps) - 1, pattern, kind)

    def scale(factor: SizeFactor, term: _Summand) -> _Summand:
        number = factor.number
        kind = complex if number.imag else int if isinstance(number.real, int) else float
        return emit(Scale(factor), [term], term.pattern, join(term.kind, kind))

    def add(left: _Summand, right: _Summand) -> _Summand:
        pattern = tuple(sorted({*left.pattern, *right.pattern}))
        places = tuple(tuple(map(pattern.index, term.pattern)) for term in (left, right))
        operation = Combine((UNIT, NEGATIVE if right.negative else UNIT), places)
        return emit(operation, [left, right], pattern, join(left.kind, right.kind))

    totals = []
    for (size, _), terms in _groups(step, kinds).items():
        negative = terms[0].negative
        total = replace(terms[0], negative=False)
        for term in terms[1:]:
            total = add(total, replace(term, negative=term.negative is not negative))
        totals.append(replace(total if size == UNIT else scale(size, total), negative=negative))
    total, *others = sorted(totals, key=lambda term: term.negative)
    total = scale(NEGATIVE, total) if total.negative else total
    for term in others:
        total = add(total, term)
    return steps


def _groups(step: Step, kinds: Sequence[type]) -> dict[tuple[SizeFactor, Pattern], list[_Summand]]:
    """The terms of each size of factor and set of axes, those added first."""
    assert isinstance(step.operation, Combine)
    groups: dict[tuple[SizeFactor, Pattern], list[_Summand]] = {}
    operation = step.operation
    for m, pattern, factor, kind in zip(step.operands, operation.patterns, operation.factors, kinds, strict=True):
        negative = factor.is_negative
        size = factor.times(NEGATIVE) if negative else factor
        groups.setdefault((size, pattern), []).append(_Summand(m, pattern, kind, negative))
    return {key: sorted(terms, key=lambda term: term.negative) for key, terms in groups.items()}
