"""Products of an array with a vector, read where it lies: matrix by matrix along its last two axes.

    Σ_{q,s} J[p,q,r,s]·D[q,s]   =   Σ_q (Σ_s J[p,q,r,s]·D[q,s])
    = (J @ D[:, None, :, None])[..., 0].sum(1)               where J.transpose(0, 2, 1, 3).reshape(…) would copy J

The array is a stack of matrices, as they lie in memory, each times its part of the vector; summed labels that run along
the stack are added up at the end, in an array smaller than the first by one axis.

Invariant: no copy of the array with more axes is made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from combdiff.planning.operations import Contract, Pattern

LEAST = 128  # elements of a matrix from which a call for each costs less than a copy of all


@dataclass(frozen=True)
class Stack:
    """A product as a stack: which operand is the array, the labels of both, and whether columns are summed."""

    matrix: int
    array: Pattern
    vector: Pattern
    by_columns: bool

    @property
    def labels(self) -> Pattern:
        """The labels of the product before the sum along the stack."""
        return (*self.array[:-2], self.array[-2] if self.by_columns else self.array[-1])

    @property
    def places(self) -> Pattern:
        """The axis that each label of the vector stands at, beside the axes of the array."""
        last = self.array[-1] if self.by_columns else self.array[-2]
        axis = len(self.array) - (2 if self.by_columns else 1)
        return tuple(axis if label == last else self.array.index(label) for label in self.vector)


def stack_of(op: Contract) -> Stack | None:
    """The product as a stack of matrices times vectors; None where the vector has not just one of the last two axes."""
    matrix = int(len(op.right) > len(op.left))
    array, vector = (op.right, op.left) if matrix else (op.left, op.right)
    if len(array) < 3 or len(set(array)) < len(array) or not set(vector) < set(array):
        return None
    shared = [label in vector for label in array[-2:]]
    summed = [label in op.summed for label in array[-2:]]
    return Stack(matrix, array, vector, summed[1]) if shared == summed and sum(summed) == 1 else None


def stackable(op: Contract, extents: Mapping[int, int]) -> bool:
    """Whether a product with a vector is worth doing matrix by matrix."""
    stack = stack_of(op)
    return stack is not None and extents[stack.array[-1]] * extents[stack.array[-2]] >= LEAST


def stack_elements(stack: Stack, extents: Mapping[int, int]) -> int:
    """The elements of the product before the sum along the stack."""
    return prod(extents[label] for label in stack.labels)


def stack_text(stack: Stack, op: Contract, array: str, vector: str) -> tuple[str, Sequence[int]]:
    """The expression, with the vector's axes placed, and the order that takes the axes of its value to `op.out`."""
    text = f"({array} @ {vector})[..., 0]" if stack.by_columns else f"({vector} @ {array})[..., 0, :]"
    added = [axis for axis, label in enumerate(stack.labels) if label not in op.out]
    if added:
        text += f".sum({added[0] if len(added) == 1 else tuple(added)})"
    left = [label for label in stack.labels if label in op.out]
    return text, [left.index(label) for label in op.out]
