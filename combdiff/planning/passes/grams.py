"""Products of an array with itself, at half the multiplications: X†·diag(s)·X for real s, X†·X of complex X.

    X.T @ (X * s[:, None])            Yᵀ·Y with Y = √s·X: of one array with itself, a rank-k update (syrk)
    X.conj().T @ X                    Hermitian: one triangle by herk, or tile by tile, and the other mirrored

Where s has both signs the rows of the two signs are two products, with as many rows together. Rows are taken block by
block and added to the result in place, so that no weighted copy of all of X is held. NumPy itself calls syrk for a real
array times its own transpose; SciPy's BLAS has the updates in place, and herk.

Invariant: a plan gives the same results with a Gram step as with the product that it stands for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from combdiff.ir import extent
from combdiff.planning.operations.contraction import Contract
from combdiff.planning.operations.elementwise import ConjugateElements, Scale
from combdiff.planning.operations.matrices import Gram
from combdiff.planning.operations.operation import Step
from combdiff.records import dataclass

LEAST = 64  # rows and columns from which half a product of complex arrays is worth more than one call of BLAS


@dataclass(frozen=True)
class _Weighted:
    """A matrix, perhaps conjugated, times a real weight along one of its axes; `axes` says which axis is which."""

    matrix: int
    axes: tuple[int, ...]
    conj: bool = False
    weight: int | None = None
    along: int | None = None


def gram(steps: Sequence[Step], step: Step, sizes: Mapping[str, int]) -> Step | None:
    """A product of matrices as a Gram matrix, or the conjugate or a multiple of one as another; None for others."""
    match step.operation:
        case Contract(kernel="matrix-matrix", out=(_, _), summed=(label,)) as op:
            return _product(steps, step, op, label, sizes)
        case ConjugateElements() if isinstance(inner := steps[step.operands[0]].operation, Gram):
            operation = replace(inner, flipped=not inner.flipped)
            return replace(step, operation=operation, operands=steps[step.operands[0]].operands)
    return None


def _product(steps: Sequence[Step], step: Step, op: Contract, label: int, sizes: Mapping[str, int]) -> Step | None:
    left, right = (_weighted(steps, m) for m in step.operands)
    axis = left.axes[op.left.index(label)]
    weights = [(side.weight, side.along) for side in (left, right) if side.weight is not None]
    same = left.matrix == right.matrix and right.axes[op.right.index(label)] == axis
    if not same or any(along != axis for _, along in weights) or len(weights) > 1:
        return None
    if step.kind is complex:
        few = min(extent(domain, dict(sizes)) for domain in step.axes) < LEAST
        fits = left.conj != right.conj and not few
    else:  # NumPy sees by itself that an array is multiplied by its own transpose
        fits = step.kind is float and bool(weights)
    if not fits:
        return None
    plain = op.left if right.conj else op.right
    flipped = step.kind is complex and op.out[0] in plain
    operands = (left.matrix, *(weight for weight, _ in weights if weight is not None))
    return replace(step, operation=Gram(axis, flipped), operands=operands)


def _weighted(steps: Sequence[Step], m: int) -> _Weighted:
    """A step as a matrix times a weight; as it is, where it is none."""
    step = steps[m]
    match step.operation:
        case ConjugateElements():
            inner = _weighted(steps, step.operands[0])
            return replace(inner, conj=not inner.conj)
        case Contract(left=left, right=right, out=(_, _) as out, kernel="multiply"):
            sides = ((step.operands[0], left), (step.operands[1], right))
            for (matrix, own), (weight, along) in (sides, sides[::-1]):
                if len(own) == 2 and len(along) == 1 and steps[weight].kind is not complex:
                    inner = _weighted(steps, matrix)
                    axes = tuple(inner.axes[own.index(label)] for label in out)
                    if inner.weight is None:
                        return replace(inner, axes=axes, weight=weight, along=inner.axes[own.index(along[0])])
    return _Weighted(m, tuple(range(len(step.axes))))


def scaled_weight(steps: Sequence[Step], step: Step) -> tuple[Step, Step] | None:
    """A multiple of a Gram matrix: its weight multiplied, and the Gram matrix to be made of that; None for others."""
    below = steps[step.operands[0]]
    if not isinstance(step.operation, Scale) or not isinstance(below.operation, Gram) or len(below.operands) < 2:
        return None
    factor = step.operation.factor
    if factor.number.imag:
        return None
    weight = steps[below.operands[1]]
    return replace(step, operands=below.operands[1:], axes=weight.axes, kind=_real(step.kind)), below


def _real(kind: type) -> type:
    return float if kind is complex else kind
