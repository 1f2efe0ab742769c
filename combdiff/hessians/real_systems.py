"""Real systems of linear equations: arrays as columns of numbers, and solutions with a check of the matrix.

    (z, x) of shapes (n, 2), (m, 2)     Re z, Im z and x one below the other, 2n + m rows and 2 columns

The gradient of a complex variable is 2 ∂f/∂z̄; with the pair (P, Q) = (∂²f/∂z∂z̄, ∂²f/∂z∂z) it changes by
2 (P̄·dz + Q̄·dz̄), which is a real symmetric matrix for the real and imaginary parts.

Invariant: a solution is returned only if the matrix that was solved with is far from singular.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

from combdiff.errors import SingularError

Array = np.ndarray[Any, Any]


def packed(array: Array, is_complex: bool) -> Array:
    """An array whose last axis numbers columns as a real matrix: for complex ones real parts above imaginary ones."""
    flat = array.reshape(prod(array.shape[:-1]), array.shape[-1])
    return np.concatenate([flat.real, flat.imag]) if is_complex else np.real(flat)


def unpacked(columns: Array, shape: Sequence[int], is_complex: bool) -> Array:
    """The array of a shape, then columns, that `packed` gives as these columns."""
    half = len(columns) // 2
    flat = columns[:half] + 1j * columns[half:] if is_complex else columns
    return flat.reshape((*shape, columns.shape[-1]))


def apart(columns: Array, shapes: Sequence[Sequence[int]], is_complex: Sequence[bool]) -> Iterator[Array]:
    """The arrays of several variables, one below the other in the columns."""
    start = 0
    for shape, twice in zip(shapes, is_complex, strict=True):
        stop = start + prod(shape) * (1 + twice)
        yield unpacked(columns[start:stop], shape, twice)
        start = stop


def assembled(table: Sequence[Sequence[Any]], sizes: Sequence[int], is_complex: Sequence[bool]) -> Array:
    """The real matrix of dense blocks; `table[c][r]` is ∂²f/∂c∂r, or a pair as for `real_block`."""
    among = range(len(sizes))
    blocks = [
        [real_block(table[c][r], (sizes[c], sizes[r]), is_complex[r], is_complex[c]) for c in among] for r in among
    ]
    return np.block(blocks)


def real_block(
    block: Array | tuple[Array, ...], sizes: tuple[int, int], row_complex: bool, column_complex: bool
) -> Array:
    """How the gradient by the row variable changes with the column variable, as a real matrix.

    It is made of the block ∂²f/∂c∂r, or the pair (∂²f/∂c∂r̄, ∂²f/∂c∂r) where one of them is complex, the axes of the
    column variable c first; `sizes` are the numbers of elements of c and of r.
    """
    parts = block if isinstance(block, tuple) else (block,)
    mixed, pure = (np.asarray(part).reshape(sizes).T for part in (parts[0], parts[-1]))
    if not row_complex and not column_complex:
        return np.real(mixed)
    if not row_complex:
        return 2 * np.concatenate([mixed.real, -mixed.imag], axis=1)
    if not column_complex:
        return 2 * np.concatenate([mixed.real, mixed.imag])
    return real_pair(mixed + pure.conj(), mixed - pure.conj())


def real_pair(plus: Array, minus: Array) -> Array:
    """How real and imaginary parts of a gradient change with those of a variable: 2 (P·dz + Q·dz̄), of P + Q, P − Q."""
    return 2 * np.block([[plus.real, -minus.imag], [plus.imag, minus.real]])


def solved(matrix: Array, right: Array) -> Array:
    """matrix⁻¹·right for one matrix or a batch of them; raises SingularError, also where it is nearly so.

    One more right-hand side, with entries that follow no pattern, tells the norm of the inverse.
    """
    matrix = np.asarray(matrix, np.result_type(matrix, np.float32))  # that of Σ idx[i] x[i]² is of whole numbers
    size = matrix.shape[-1]
    if not size:
        return np.zeros((*matrix.shape[:-2], *right.shape[-2:]), np.result_type(matrix, right))
    probe = np.broadcast_to(np.cos(np.arange(1, size + 1) ** 2.0)[:, None], (*matrix.shape[:-1], 1))
    right = np.broadcast_to(right, (*matrix.shape[:-2], *right.shape[-2:]))
    try:
        solution = np.linalg.solve(matrix, np.concatenate([right, probe], axis=-1))
    except np.linalg.LinAlgError:
        raise _singular(size, float("inf")) from None
    grown = np.linalg.norm(solution[..., -1], axis=-1) / np.sqrt(size)
    condition = grown * np.linalg.norm(matrix, axis=(-2, -1))
    worst = float(np.max(condition, initial=0.0))
    if not worst < 0.1 / np.finfo(matrix.dtype).eps:
        raise _singular(size, worst)
    return solution[..., :-1]


def _singular(size: int, condition: float) -> SingularError:
    return SingularError(
        f"the Newton system is singular: its {size} × {size} matrix has a condition number of about {condition:.0e}",
        hint="add a multiple of the squared arguments to the objective (damping), or solve in the least-squares sense",
    )
