"""Symmetric arguments read in the layout that a product takes without a copy.

    Σ_{p,q} J[p,q,r,s]·D[p,q]    with J[p,q,r,s] = J[r,s,p,q]    becomes    Σ_{p,q} J[r,s,p,q]·D[p,q]
    = J.reshape(N*N, N*N) @ D.reshape(N*N)      rows of J, as they lie in memory, times a vector

A symmetry that exchanges axes without sign or conjugate says which orders of the axes of an argument are the same
array. Taken is the one with which least is copied, and of those one with summed axes last: a row is then added up as it
is read. Where no symmetry helps, a product with a vector rather reads its matrix in place: its copy would take longer.
It is done as a stack of smaller matrices (see `stacks`) or, where that cannot be and the matrix is too large for the
caches, by einsum.

Invariant: the plan computes the same for arguments that have their symmetry, and copies no more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from combdiff.ir import Space, extent
from combdiff.planning.extents import elements
from combdiff.planning.operations.contraction import Contract, stackable
from combdiff.planning.operations.leaves import Parameter
from combdiff.planning.operations.operation import ITEM_BYTES, Step
from combdiff.planning.operations.words import Pattern
from combdiff.planning.plan import Plan
from combdiff.planning.views import exchanges

MOST = 64  # pairs of orders that are compared
LARGE = 1 << 23  # bytes that are not copied for a product with a vector


def in_best_layout(plan: Plan) -> Plan:
    """The plan with each product with symmetric arguments on the order of their axes that suits it best."""
    spaces = [(var.name, var.type) for var in plan.parameters if isinstance(var.type, Space)]
    equal = {name: _same(space, plan.orders.get(name)) for name, space in spaces}
    return replace(plan, steps=tuple(_suited(step, plan.steps, equal, plan.sizes) for step in plan.steps))


def _same(space: Space, order: Pattern | None) -> list[Pattern]:
    """The permutations of the axes of an array, in the order in which they come, that leave it as it is."""
    return [axes for axes, conj in exchanges(space, order or range(space.order))[1:] if not conj]


def _suited(step: Step, steps: Sequence[Step], equal: Mapping[str, list[Pattern]], sizes: Mapping[str, int]) -> Step:
    op = step.operation
    if not isinstance(op, Contract) or not op.summed or op.kernel == "einsum":
        return step
    operands = [steps[m] for m in step.operands]
    lefts, rights = (
        list(_equal(operand, pattern, equal)) for operand, pattern in zip(operands, (op.left, op.right), strict=True)
    )
    weights = [elements(operand.axes, sizes) for operand in operands]
    if 1 < len(lefts) * len(rights) <= MOST:
        choices = [replace(op, left=left, right=right) for left in lefts for right in rights]
        op = min(choices, key=lambda choice: _price(choice, weights))
    larger = [
        weight if len(pattern) == max(len(op.left), len(op.right)) else 0
        for pattern, weight in zip((op.left, op.right), weights, strict=True)
    ]
    copied = _price(op, larger)[0] * ITEM_BYTES[step.kind]
    return replace(step, operation=replace(op, in_place=_in_place(op, step, operands, copied, sizes)))


def _in_place(op: Contract, step: Step, operands: Sequence[Step], copied: int, sizes: Mapping[str, int]) -> str:
    """How a product reads its operands where they lie; empty where a product of matrices does, or may copy them."""
    if not copied or "matrix-vector" not in op.kernel:
        return ""
    axes = (*zip(op.left, operands[0].axes, strict=True), *zip(op.right, operands[1].axes, strict=True))
    extents = {label: extent(axis, dict(sizes)) for label, axis in axes}
    lie = all(one.kind is step.kind and (one.fresh or isinstance(one.operation, Parameter)) for one in operands)
    if lie and stackable(op, extents):
        return "stack"
    return "einsum" if copied > LARGE and op.kernel == "matrix-vector" else ""


def _equal(operand: Step, pattern: Pattern, equal: Mapping[str, list[Pattern]]) -> Iterator[Pattern]:
    """The orders of labels along an operand that read the same array, the given one first."""
    yield pattern
    if isinstance(operand.operation, Parameter):
        yield from (tuple(pattern[axis] for axis in axes) for axes in equal.get(operand.operation.name, ()))


def _price(op: Contract, weights: Sequence[int]) -> tuple[int, int]:
    """Elements of operands that must be copied, and elements of those that are read down columns."""
    groups = ((op.batch, op.left_only, op.summed), (op.batch, op.right_only, op.summed))
    copied = turned = 0
    for pattern, weight, (batch, kept, summed) in zip((op.left, op.right), weights, groups, strict=True):
        by_rows = pattern == (*batch, *kept, *summed)
        by_columns = pattern == (*batch, *summed, *kept)
        copied += 0 if by_rows or by_columns else weight
        turned += 0 if by_rows or len(pattern) < 3 else weight
    return copied, turned
