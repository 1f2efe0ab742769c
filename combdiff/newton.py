"""Linear systems through the structure of their matrix: blocks, Kronecker factors, low rank beside δ's.

    H[i,j,k,l] = core[j,l] δ[i,k]                  one k×k system with n right-hand sides, not one of size n·k
    H[i,j,k,l] = core1[i,k] core2[j,l]             a system for each factor
    H[i,j] = core1[i] δ[i,j] + Σ_r core2[i,r] core2[j,r]     Woodbury: the δ part, then an r×r system

Everything is a contraction of the cores; the whole matrix is formed only where no structure helps.

Invariant: a solution is returned only if the matrix that was solved with is far from singular.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import numpy as np

from combdiff.compression import Part, Structure
from combdiff.errors import SingularError

Array = np.ndarray[Any, Any]
Labels = tuple[int, ...]
Operand = tuple[Array, Labels]


@dataclass(frozen=True)
class Operator:
    """A square matrix H[row axes, column axes] given by a structure, its cores and the extents of the row axes."""

    structure: Structure
    cores: tuple[Array, ...]
    shape: tuple[int, ...]

    @property
    def order(self) -> int:
        """The number of row axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of rows."""
        return prod(self.shape)

    # --- as a matrix

    def dense(self) -> Array:
        """The matrix, size × size."""
        total = np.zeros((*self.shape, *self.shape), np.result_type(*self.cores))
        for part in self.structure.parts:
            units = [(np.eye(self.shape[a % self.order]), (a, b)) for a, b in part.pairs]
            total += self._filled([*self._operands(part), *units], tuple(range(2 * self.order)))
        return total.reshape(self.size, self.size)

    def matvec(self, vector: Array) -> Array:
        """H·vector for a vector shaped like the row axes."""
        total = np.zeros(self.shape, np.result_type(*self.cores, vector))
        for part in self.structure.parts:
            tied = {b: a for a, b in part.pairs if b == a + self.order}
            units = [(np.eye(self.shape[a % self.order]), (a, b)) for a, b in part.pairs if b not in tied]
            labels = tuple(tied.get(a + self.order, a + self.order) for a in range(self.order))
            total += self._filled([*self._operands(part), *units, (vector, labels)], tuple(range(self.order)))
        return total

    def _operands(self, part: Part) -> list[Operand]:
        return [(self.cores[core], labels) for core, labels in part.cores]

    def _pairs(self, part: Part) -> tuple[int, ...]:
        """The row axes that δ's tie to the same axis of the column."""
        return tuple(a for a, b in part.pairs if b == a + self.order)

    def _filled(self, operands: list[Operand], out: Labels) -> Array:
        """The contraction of operands to axes, of which some may occur in none of them."""
        present = {label for _, labels in operands for label in labels}
        ones = [(np.ones(self.shape[a % self.order]), (a,)) for a in out if a not in present]
        return _einsum([*operands, *ones], out)

    # --- systems

    def solve(self, rhs: Array) -> Array:
        """The solution of H·x = rhs, shaped like the row axes; raises SingularError."""
        columns = rhs.reshape(*self.shape, 1)
        return self._solver()(columns)[..., 0]

    def _solver(self) -> Callable[[Array], Array]:
        """What solves for right-hand sides with one more axis, last."""
        parts = self.structure.parts
        if not parts:
            raise SingularError("the matrix of the system is zero")
        if not all(self._simple(part) for part in parts):
            return self._by_matrix
        if len(parts) == 1:
            return lambda columns: self._by_factors(parts[0], columns)
        if blocks := self.blocks():
            return partial(self._by_blocks, *blocks)
        return self._by_woodbury if self._low_rank() else self._by_matrix

    def _simple(self, part: Part) -> bool:
        """Whether all conditions of a part are δ's between an axis and its own column axis."""
        return not part.conditions and len(self._pairs(part)) == len(part.pairs)

    def _by_matrix(self, columns: Array) -> Array:
        return solved(self.dense(), columns.reshape(self.size, -1)).reshape(columns.shape)

    def _by_factors(self, part: Part, columns: Array) -> Array:
        """One part: its unconnected groups of axes one after the other."""
        scale: Any = 1
        covered = set(self._pairs(part)) | {a for a in range(self.order) if self.shape[a] == 1}
        for axes, operands in self._groups(part):
            covered |= axes
            if axes:
                columns = self._solve_group(operands, sorted(axes), self._pairs(part), columns)
            else:
                scale = scale * _einsum(operands, ())
        if scale == 0 or covered != set(range(self.order)):
            raise SingularError("the Newton system is singular: its matrix is zero or constant along an axis")
        return columns / scale if self._scalars(part) else columns

    def _scalars(self, part: Part) -> bool:
        return any(not self._axes(labels) for _, labels in part.cores)

    def _axes(self, labels: Labels) -> set[int]:
        return {label % self.order for label in labels if label < 2 * self.order}

    def _groups(self, part: Part) -> list[tuple[set[int], list[Operand]]]:
        """The cores grouped by the axes and summed labels that connect them, with the row axes of each group."""
        groups: list[tuple[set[int], list[Operand]]] = []
        for array, labels in self._operands(part):
            mine = {label % self.order if label < 2 * self.order else label for label in labels}
            members = [(array, labels)]
            for other in [group for group in groups if group[0] & mine]:
                groups.remove(other)
                mine, members = mine | other[0], other[1] + members
            groups.append((mine, members))
        return [({label for label in mine if label < self.order}, members) for mine, members in groups]

    def _by_blocks(self, batch: Sequence[int], rows: Sequence[int], columns: Array) -> Array:
        """Parts with δ's in common: one system for each value of the axes of these, or one for all."""
        matrix = self.stack(batch, rows)
        rest = [a for a in range(columns.ndim) if a not in (*batch, *rows)]
        return self.along([*batch, *rows, *rest], columns, matrix.shape[:-1], partial(solved, matrix))

    def _matrix_labels(self, group: Sequence[int], paired: Sequence[int]) -> Labels:
        """The labels of a batch of matrices over the axes of a group: batches, rows, columns."""
        rows = [a for a in group if a not in paired]
        return (*(a for a in group if a in paired), *rows, *(a + self.order for a in rows))

    def _solve_group(
        self, operands: list[Operand], group: Sequence[int], paired: Sequence[int], columns: Array
    ) -> Array:
        """Solve along the axes of a group with the matrix that the operands make; axes that δ's tie are batches."""
        batch = [a for a in group if a in paired]
        rows = [a for a in group if a not in paired]
        order = [*batch, *rows, *(a for a in range(columns.ndim) if a not in group)]
        lengths, count = [self.shape[a] for a in batch], prod(self.shape[a] for a in rows)
        matrix = self._filled(operands, self._matrix_labels(group, paired)).reshape(*lengths, count, count)
        return self.along(order, columns, (*lengths, count), partial(solved, matrix))

    def along(self, order: Sequence[int], columns: Array, lengths: Labels, solve: Callable[[Array], Array]) -> Array:
        """Solve for columns with their axes in an order: those of a stack of vectors (`lengths`), then the others."""
        moved = columns.transpose(order)
        solution = solve(moved.reshape(*lengths, -1)).reshape(moved.shape)
        return solution.transpose(np.argsort(order))

    def blocks(self, *others: Operator) -> tuple[list[int], list[int]] | None:
        """The axes that number the blocks on the diagonal, and those of a block; None where δ's have none in common.

        The δ's are those of all parts, of the others, too. An axis along which all blocks are the same is in neither.
        """
        parts = [part for operator in (self, *others) for part in operator.structure.parts]
        if not all(self._simple(part) for part in parts):
            return None
        tied = set(range(self.order)).intersection(*(self._pairs(part) for part in parts))
        used = {a for part in parts for _, labels in part.cores for a in self._axes(labels)}
        return (sorted(tied & used), sorted(set(range(self.order)) - tied)) if tied else None

    def stack(self, batch: Sequence[int], rows: Sequence[int]) -> Array:
        """The blocks as a stack of matrices, zeros where there are no parts."""
        out = (*batch, *rows, *(a + self.order for a in rows))
        total = np.zeros([self.shape[a % self.order] for a in out], np.result_type(*self.cores))
        for part in self.structure.parts:
            units = [(np.eye(self.shape[a]), (a, a + self.order)) for a in self._pairs(part) if a in rows]
            total += self._filled([*self._operands(part), *units], out)
        count = prod(self.shape[a] for a in rows)
        return total.reshape(*total.shape[: len(batch)], count, count)

    # --- low rank beside δ's

    def _low_rank(self) -> list[tuple[Array, Array]] | None:
        """The parts after the first as U·Vᵀ, where these together have fewer columns than rows; None otherwise."""
        first, *rest = self.structure.parts
        if len([p for p in self.structure.parts if p.pairs == first.pairs]) > 1:
            return None
        found = [self._outer(part) for part in rest]
        pairs = [pair for pair in found if pair is not None]
        narrow = sum(left.shape[1] for left, _ in pairs) < self.size
        return pairs if narrow and len(pairs) == len(found) else None

    def _outer(self, part: Part) -> tuple[Array, Array] | None:
        """A part without δ's as the product of a matrix of its rows and one of its columns."""
        rows, columns = range(self.order), range(self.order, 2 * self.order)
        left = [(a, labels) for a, labels in self._operands(part) if set(labels) & set(rows)]
        right = [(a, labels) for a, labels in self._operands(part) if not set(labels) & set(rows)]
        if part.pairs or any(set(labels) & set(columns) for _, labels in left):
            return None
        inside = {label for _, labels in right for label in labels}
        ranks = tuple(sorted({label for _, labels in left for label in labels if label in inside}))
        found = [
            self._filled(operands, (*axes, *ranks)).reshape(self.size, -1)
            for operands, axes in ((left, rows), (right, columns))
        ]
        return found[0], found[1]

    def _by_woodbury(self, columns: Array) -> Array:
        """(D + U·Vᵀ)⁻¹ = D⁻¹ − D⁻¹·U·(1 + Vᵀ·D⁻¹·U)⁻¹·Vᵀ·D⁻¹."""
        pairs = self._low_rank() or []
        left, right = (np.concatenate([pair[n] for pair in pairs], axis=1) for n in range(2))
        together = np.concatenate([columns.reshape(self.size, -1), left], axis=1)
        try:
            found = self._by_factors(self.structure.parts[0], together.reshape(*self.shape, -1))
        except SingularError:  # of the part with the δ's alone
            return self._by_matrix(columns)
        found = found.reshape(self.size, -1)
        plain, through = found[:, : -left.shape[1]], found[:, -left.shape[1] :]
        small = np.eye(left.shape[1]) + right.T @ through
        result: Array = plain - through @ solved(small, right.T @ plain)
        return result.reshape(columns.shape)


@dataclass(frozen=True)
class Pair:
    """The pair (∂²f/∂z∂z̄, ∂²f/∂z∂z) = (P, Q) of a complex variable: P Hermitian, Q symmetric.

    The gradient 2 ∂f/∂z̄ changes by 2 (P̄·dz + Q̄·dz̄).
    """

    direct: Operator
    twin: Operator

    def solve(self, rhs: Array) -> Array | None:
        """The dz for a change of the gradient, by the structure; None where that does not help."""
        if not self.twin.structure.parts:
            return self.direct.solve(rhs.conj() / 2).conj()
        found = self.direct.blocks(self.twin)
        if found is None:
            return None
        batch, rows = found
        P, Q = (operator.stack(batch, rows).conj() for operator in (self.direct, self.twin))
        matrix, count = _real_pair(P + Q, P - Q), P.shape[-1]

        def solve(right: Array) -> Array:
            solution = solved(matrix, np.concatenate([right.real, right.imag], axis=-2))
            return solution[..., :count, :] + 1j * solution[..., count:, :]

        rest = [a for a in range(rhs.ndim + 1) if a not in (*batch, *rows)]
        return self.direct.along([*batch, *rows, *rest], rhs[..., None], P.shape[:-1], solve)[..., 0]


def _einsum(operands: Sequence[Operand], out: Labels) -> Array:
    """The contraction of labelled arrays."""
    if len(operands) == 1 and len(operands[0][1]) == len(out):
        array, labels = operands[0]
        return np.asarray(array).transpose([labels.index(label) for label in out])
    known = {label: n for n, label in enumerate(dict.fromkeys(x for _, labels in operands for x in labels))}
    arguments = [part for array, labels in operands for part in (array, [known[x] for x in labels])]
    return np.asarray(np.einsum(*arguments, [known[x] for x in out], optimize="greedy"))


def solved(matrix: Array, right: Array) -> Array:
    """matrix⁻¹·right for one matrix or a batch of them; raises SingularError, also where it is nearly so.

    One more right-hand side, with entries that follow no pattern, tells the norm of the inverse.
    """
    size = matrix.shape[-1]
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


def realified(
    table: Sequence[Sequence[Any]], right: Sequence[Array], is_complex: Sequence[bool]
) -> tuple[Array, Array, Callable[[Array], list[Array]]]:
    """The real system of dense blocks, its right-hand side, and what makes arrays of its solution.

    `table[r][c]` is ∂²f/∂x_r∂x_c, or the pair (∂²f/∂z∂z̄, ∂²f/∂z∂z) if one of the two is complex. A complex variable is
    its real and its imaginary part; the change of its gradient 2 ∂f/∂z̄ is 2 (P·dz + conj(Q)·dz̄), P and Q transposed.
    """
    rows = []
    for r, row_complex in enumerate(is_complex):
        blocks = [_real_block(table[c][r], right[r].size, row_complex, column) for c, column in enumerate(is_complex)]
        rows.append(np.concatenate(blocks, axis=1))
    parts = [
        np.concatenate([b.real.ravel(), b.imag.ravel()]) if c else b.ravel()
        for b, c in zip(right, is_complex, strict=True)
    ]

    def restore(solution: Array) -> list[Array]:
        found, start = [], 0
        for array, row_complex in zip(right, is_complex, strict=True):
            piece = solution[start : start + array.size * (1 + row_complex)]
            start += len(piece)
            value = piece[: array.size] + 1j * piece[array.size :] if row_complex else piece
            found.append(value.reshape(array.shape))
        return found

    return np.concatenate(rows), np.concatenate(parts), restore


def _real_block(block: Any, rows: int, row_complex: bool, column_complex: bool) -> Array:
    """How the gradient by the row variable changes with the column variable; the block has the column's axes first."""
    pair = block if isinstance(block, tuple) else (block, block)
    direct, twin = (np.asarray(part).reshape(-1, rows).T for part in pair)
    if not row_complex and not column_complex:
        return direct
    if not row_complex:
        return 2 * np.concatenate([direct.real, -direct.imag], axis=1)
    if not column_complex:
        return 2 * np.concatenate([direct.real, direct.imag])
    return _real_pair(direct + twin.conj(), direct - twin.conj())


def _real_pair(plus: Array, minus: Array) -> Array:
    """How real and imaginary parts of a gradient change with those of a variable: 2 (P·dz + Q·dz̄), of P + Q, P − Q."""
    return 2 * np.block([[plus.real, -minus.imag], [plus.imag, minus.real]])


def _singular(size: int, condition: float) -> SingularError:
    return SingularError(
        f"the Newton system is singular: its {size} × {size} matrix has a condition number of about {condition:.0e}",
        hint="add a multiple of the squared arguments to the objective (damping), or solve in the least-squares sense",
    )
