"""Convolutions and correlations: products with a sliding window that are matrix products by blocks.

    Σ_k x[b, i + k]·w[k]      windows of many i at once, times the banded matrix T[m, l] = w[m − l]
    Σ_{b,i} x[b, i + k]·v[b, i]     blocks of v times windows of x; then the sums along the diagonals of the product

A sliding window has each element of x as often as it is wide, so that multiplying the window itself moves that much
memory; by blocks each element is moved little more than once.

Invariant: a plan gives the same results with and without `correlated`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from combdiff.affine import Linear
from combdiff.lowering.plan import Plan, pruned
from combdiff.lowering.steps import Contract, Correlate, Pattern, Read, Step
from combdiff.lowering.views import Position, extent_form


def correlated(plan: Plan) -> Plan:
    """The plan with products of sliding windows done by blocks."""
    steps = [_correlation(plan, step) or step for step in plan.steps]
    return pruned(replace(plan, steps=tuple(steps)))


def _correlation(plan: Plan, step: Step) -> Step | None:
    """The step as a correlation, if one operand of a contraction is a sliding window; None for others."""
    if not isinstance(op := step.operation, Contract):
        return None
    left, right = step.operands
    return _one_sided(plan, step, (op.left, left), (op.right, right)) or _one_sided(
        plan, step, (op.right, right), (op.left, left)
    )


def _one_sided(plan: Plan, step: Step, window: tuple[Pattern, int], array: tuple[Pattern, int]) -> Step | None:
    """The step as a correlation whose window is the first of the operands, given by labels and step."""
    (labels, read), (other, operand) = window, array
    op = step.operation
    assert isinstance(op, Contract)
    found = ((lags, *slide) for slide in _slides(plan, read, labels) for lags in (True, False))
    fitting = (one for one in found if _fits(op, other, *one[2:], lags=one[0]))
    lags, axis, placed, short = next(fitting, (False, 0, (), -1))
    if not placed:
        return None
    order = tuple(other.index(label) for label in placed) if lags else tuple(placed.index(label) for label in op.out)
    view = plan.steps[read]
    assert isinstance(view.operation, Read)
    position = view.operation.positions[axis]
    number = labels.index(short)
    flipped = position.steps[number] < 0
    start = position.start - extent_form(view.axes[number]) + 1 if flipped else position.start
    return replace(step, operation=Correlate(axis, start, flipped, lags, order), operands=(view.operands[0], operand))


def _fits(op: Contract, other: Pattern, placed: Pattern, short: int, *, lags: bool) -> bool:
    """Whether the contraction sums over the window alone, or, for lags, over all else."""
    if lags:
        return op.out == (short,) and sorted(other) == sorted(placed)
    return other == (short,) and sorted(op.out) == sorted(placed)


def _slides(plan: Plan, read: int, window: Pattern) -> Iterator[tuple[int, Pattern, int]]:
    """The axis that a window slides along, the labels that the axes of the array keep, and the label in the window.

    Either of the two labels along that axis may be that in the window; the one shorter at the plan's sizes comes first.
    """
    view = plan.steps[read]
    if not isinstance(view.operation, Read):
        return
    sliding = [n for n, position in enumerate(view.operation.positions) if position.along() is None]
    if len(sliding) != 1 or len(set(window)) < len(window):
        return
    (axis,) = sliding
    position = view.operation.positions[axis]
    pair = _pair(position)
    if pair is None or len(view.operation.positions) + 1 != len(window):
        return
    for short in sorted(pair, key=lambda n: (_size(extent_form(view.axes[n]), plan), -n)):
        long = next(n for n in pair if n != short)
        kept = _kept(plan, view, axis, long)
        if kept is not None and position.steps[long] == 1 and len(set(kept)) == len(kept):
            yield axis, tuple(window[n] for n in kept), window[short]


def _kept(plan: Plan, view: Step, axis: int, long: int) -> list[int] | None:
    """The label along each axis of the array, `long` along the sliding one; None where another is not read whole."""
    assert isinstance(view.operation, Read)
    kept = []
    for n, (position, domain) in enumerate(
        zip(view.operation.positions, plan.steps[view.operands[0]].axes, strict=True)
    ):
        along = long if n == axis else position.along()
        if along is None or (n != axis and extent_form(view.axes[along]) != extent_form(domain)):
            return None
        kept.append(along)
    return kept


def _pair(position: Position) -> list[int] | None:
    """The two labels of `start + p ± q`."""
    used = [n for n, size in enumerate(position.steps) if size]
    plain = position.divisor == 1 and not position.wrap and len(used) == 2
    return used if plain and all(abs(position.steps[n]) == 1 for n in used) else None


def _size(form: Linear, plan: Plan) -> int:
    return int(form.evaluate(plan.sizes))
