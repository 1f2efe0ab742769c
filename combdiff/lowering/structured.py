"""Products with structure: δ's written along a diagonal, and Xᵀ·diag(s)·X at half the multiplications.

    eye[:, :, None, None] * C         zeros with C written where the first two axes coincide
    X.T @ (X * s[:, None])            Yᵀ·Y with Y = √s·X: of one array with itself, which BLAS knows to be symmetric

A product with an array of zeros and ones reads and writes as many elements as the result has, most of them 0. Where s
has both signs the rows of the two signs are two products, with as many rows together; many rows are taken block by
block, so that no weighted copy of all of X is held. (Laue, Mitterreiter and Giesen, section 3: unit tensors need never
be stored.)

Invariant: a plan gives the same results with and without `structured`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from combdiff.affine import Linear
from combdiff.lowering.plan import GRAM_BLOCK, Plan, pruned
from combdiff.lowering.steps import Contract, Gram, Pattern, Scale, Select, Spread, Step
from combdiff.lowering.views import Mask


def structured(plan: Plan) -> Plan:
    """The plan with unit tensors written along diagonals, numbers multiplied before, and weighted Gram matrices."""
    uses = Counter(m for step in plan.steps for m in step.operands) + Counter(plan.results)
    steps: list[Step] = []
    for step in plan.steps:
        step = _gram(steps, step) or _spread(steps, step) or step
        below = step.operands[0] if isinstance(step.operation, Scale) else None
        if below is not None and isinstance(spread := steps[below].operation, Spread) and uses[below] == 1:
            inner = steps[steps[below].operands[0]]
            steps[below] = replace(step, operands=steps[below].operands, axes=inner.axes)
            step = replace(step, operation=spread, operands=(below,))
        steps.append(step)
    return pruned(replace(plan, steps=tuple(steps)))


def _spread(steps: list[Step], step: Step) -> Step | None:
    """A product with a δ, or a selection by one, as an array written along the diagonal; None for others."""
    match step.operation:
        case Contract(left=left, right=right, out=out, kernel="multiply" | "outer"):
            choices = ((left, right, 0), (right, left, 1))
            order = out
        case Select(patterns=(mask, value)):
            choices = ((mask, value, 0),)  # type: ignore[assignment]
            order = tuple(range(len(step.axes)))
        case _:
            return None
    for delta, other, position in choices:
        operands = (step.operands[position], step.operands[1 - position])
        if _is_unit(steps[operands[0]]) and not set(delta) <= set(other):
            kept, gone = delta if delta[1] not in other else delta[::-1]
            along = tuple(kept if label == gone else label for label in order)
            inside = other if kept in other else (kept, *other)
            return replace(step, operation=Spread(_numbered(along, inside)), operands=operands[1:])
    return None


def _is_unit(step: Step) -> bool:
    mask = step.operation
    unit = isinstance(mask, Mask) and mask.test == "== 0" and mask.start == Linear() and sorted(mask.steps) == [-1, 1]
    return unit and step.axes[0] == step.axes[1]


def _numbered(along: Pattern, inside: Pattern) -> Pattern:
    """For each axis of the result the axis of the array along it; an axis that the array lacks comes first."""
    return tuple(inside.index(label) for label in along)


def _gram(steps: list[Step], step: Step) -> Step | None:
    """Σ_i X[i,a]·s[i]·X[i,d] of real numbers as one operation; None for others."""
    op = step.operation
    if not isinstance(op, Contract) or op.kernel != "matrix-matrix" or step.kind is not float or len(op.out) != 2:
        return None
    left, right = step.operands
    for array, other, own, theirs in ((left, right, op.left, op.right), (right, left, op.right, op.left)):
        inner = steps[other].operation
        if len(own) == 2 and len(op.summed) == 1 and isinstance(inner, Contract) and inner.kernel == "multiply":
            axis = own.index(op.summed[0])
            for first, second in ((0, 1), (1, 0)):
                matrix, weight = steps[other].operands[first], steps[other].operands[second]
                patterns = ((inner.left, inner.right)[first], (inner.left, inner.right)[second])
                place = inner.out[theirs.index(op.summed[0])]
                if matrix == array and patterns[1] == (place,) and patterns[0][axis] == place:
                    return replace(step, operation=Gram(axis), operands=(array, weight))
    return None


_SPREAD = '''\
def _spread(array, along, shape):
    """Zeros of a shape, with the array where the axes that go along one of its axes coincide."""
    result = np.zeros(shape, array.dtype)
    np.einsum(result, along, list(range(max(along) + 1)))[...] = array
    return result
'''

_GRAM = '''\
def _gram(array, weights):
    """arrayᵀ·diag(weights)·array as products of an array with itself, which take half the multiplications.

    Many rows are taken in blocks, so that little more than the result is held; SciPy's syrk adds to it in place.
    """
    size, result, syrk = array.shape[1], None, None
    step = max(1, BLOCK // max(1, size))
    if len(array) > step:
        try:
            from scipy.linalg.blas import dsyrk, ssyrk
            syrk = {"d": dsyrk, "f": ssyrk}.get(np.result_type(array, weights).char)
        except ImportError:
            pass
    for start in range(0, max(1, len(array)), step):
        part = weights[start : start + step]
        root = array[start : start + step] * np.sqrt(np.abs(part))[:, None]
        negative = part < 0
        signed = [(1, root)] if not negative.any() else [(1, root[~negative]), (-1, root[negative])]
        for sign, rows in signed:
            if syrk:
                result = np.zeros((size, size), rows.dtype, order="F") if result is None else result
                result = syrk(sign, rows.T, beta=1, c=result, lower=1, overwrite_c=1)
            elif result is None:
                result = rows.T @ rows
            elif sign > 0:
                result += rows.T @ rows
            else:
                result -= rows.T @ rows
        del root, signed, rows
    for start in range(0, size if syrk else 0, 64):
        stop = start + 64
        corner = np.tril(result[start:stop, start:stop], -1)
        result[start:stop, start:stop] = np.tril(result[start:stop, start:stop]) + corner.T
        result[start:stop, stop:] = result[stop:, start:stop].T
    return result.T
'''.replace("BLOCK", str(GRAM_BLOCK))

STRUCTURED = {"_spread": _SPREAD, "_gram": _GRAM}
