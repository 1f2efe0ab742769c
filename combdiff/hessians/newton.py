"""Linear systems through the structure of their matrix: blocks, Kronecker factors, low rank beside δ's.

    H[i,j,k,l] = core[j,l] δ[i,k]                  one k×k system with n right-hand sides, not one of size n·k
    H[i,j,k,l] = core1[i,k] core2[j,l]             a system for each factor
    H[i,j] = core1[i] δ[i,j] + Σ_r core2[i,r] core2[j,r]     Woodbury: the δ part, then an r×r system

Everything is a contraction of the cores. Arrays of columns have one more axis, last, that numbers the columns.

Invariant: a solution is returned only if the matrices that were solved with are far from singular, and Woodbury's only
if it satisfies the system.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any

import numpy as np

from combdiff.errors import SingularError
from combdiff.hessians.compression import CoreProduct, Structure
from combdiff.hessians.real_systems import Array, real_pair, solved
from combdiff.records import dataclass

Labels = tuple[int, ...]
Operand = tuple[Array, Labels]
Solver = Callable[[Array], Array]
COLUMN = -1  # the label of the axis that numbers columns
ACCURATE = 1e-10  # what a solution by elimination may miss of its right-hand side,
ROUNDING = 1e-13  # and of the matrix times the solution


class PivotError(SingularError):
    """What was to be eliminated first has no inverse, or too large a one; the whole matrix may have one."""


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

    def matvec(self, vector: Array) -> Array:
        """H·vector for a vector shaped like the row axes."""
        return self.product(vector[..., None])[..., 0]

    def product(self, columns: Array) -> Array:
        """H·columns."""
        total = np.zeros(columns.shape, np.result_type(*self.cores, columns))
        for part in self.structure.parts:
            total += self._times(part, columns)
        return total

    def _times(self, part: CoreProduct, columns: Array) -> Array:
        tied = {b: a for a, b in part.pairs if b == a + self.order}
        units = [(np.eye(self.shape[a % self.order]), (a, b)) for a, b in part.pairs if b not in tied]
        labels = tuple(tied.get(a + self.order, a + self.order) for a in range(self.order))
        operands = [*self._operands(part), *units, (columns, (*labels, COLUMN))]
        return self._filled(operands, (*range(self.order), COLUMN))

    def _operands(self, part: CoreProduct) -> list[Operand]:
        return [(self.cores[core], labels) for core, labels in part.cores]

    def _pairs(self, part: CoreProduct) -> tuple[int, ...]:
        """The row axes that δ's tie to the same axis of the column."""
        return tuple(a for a, b in part.pairs if b == a + self.order)

    def _filled(self, operands: list[Operand], out: Labels) -> Array:
        return filled(operands, out, self.shape * 2)

    # --- systems

    def solver(self) -> Solver | None:
        """What solves for columns by the structure, None where that does not help."""
        parts = self.structure.parts
        if not parts:
            raise SingularError("the Newton system is singular: its matrix is zero, whatever the arguments are")
        if not all(self._simple(part) for part in parts):
            return None
        if len(parts) == 1:
            several = len(self._groups(parts[0])) > 1 or self._pairs(parts[0])
            return partial(self._by_factors, parts[0]) if several else None
        if blocks := self.blocks():
            return partial(self._by_blocks, *blocks)
        outer = [part for part in parts if not part.pairs]
        base = replace(self, structure=replace(self.structure, parts=tuple(p for p in parts if p.pairs)))
        if not outer or not base.structure.parts:
            return None
        low, inner = self._low_rank(outer), base.solver()
        return None if low is None or inner is None else partial(self._by_woodbury, inner, *low)

    def _simple(self, part: CoreProduct) -> bool:
        """Whether all conditions of a part are δ's between an axis and its own column axis."""
        return not part.conditions and len(self._pairs(part)) == len(part.pairs)

    def _by_factors(self, part: CoreProduct, columns: Array) -> Array:
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

    def _scalars(self, part: CoreProduct) -> bool:
        return any(not self._axes(labels) for _, labels in part.cores)

    def _axes(self, labels: Labels) -> set[int]:
        return {label % self.order for label in labels if label < 2 * self.order}

    def _groups(self, part: CoreProduct) -> list[tuple[set[int], list[Operand]]]:
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

    def along(self, order: Sequence[int], columns: Array, lengths: Labels, solve: Solver) -> Array:
        """Solve for columns with their axes in an order: those of a stack of vectors (`lengths`), then the others."""
        moved = columns.transpose(order)
        count = prod(moved.shape) // max(prod(lengths), 1)
        solution = solve(moved.reshape(*lengths, count)).reshape(moved.shape)
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

    def _low_rank(self, parts: Sequence[CoreProduct]) -> tuple[Array, Array] | None:
        """Parts as U·Vᵀ, where these have fewer columns than rows; None otherwise."""
        found = [self._outer(part) for part in parts]
        pairs = [pair for pair in found if pair is not None]
        if len(pairs) < len(parts) or sum(left.shape[1] for left, _ in pairs) >= self.size:
            return None
        left, right = (np.concatenate([pair[n] for pair in pairs], axis=1) for n in range(2))
        return left, right

    def _outer(self, part: CoreProduct) -> tuple[Array, Array] | None:
        """A part without δ's as the product of a matrix of its rows and one of its columns."""
        rows, columns = range(self.order), range(self.order, 2 * self.order)
        left = [(a, labels) for a, labels in self._operands(part) if set(labels) & set(rows)]
        right = [(a, labels) for a, labels in self._operands(part) if not set(labels) & set(rows)]
        if any(set(labels) & set(columns) for _, labels in left):
            return None
        inside = {label for _, labels in right for label in labels}
        ranks = tuple(sorted({label for _, labels in left for label in labels if label in inside}))
        found = [self._filled(operands, (*axes, *ranks)) for operands, axes in ((left, rows), (right, columns))]
        count = prod(found[0].shape[self.order :])
        return found[0].reshape(self.size, count), found[1].reshape(self.size, count)

    def _by_woodbury(self, inner: Solver, left: Array, right: Array, columns: Array) -> Array:
        """(D + U·Vᵀ)⁻¹ = D⁻¹ − D⁻¹·U·(1 + Vᵀ·D⁻¹·U)⁻¹·Vᵀ·D⁻¹, where `inner` solves with D."""
        try:
            through = inner(left.reshape(*self.shape, left.shape[1])).reshape(left.shape)
        except SingularError as error:
            raise PivotError(error.message) from None
        small = np.eye(left.shape[1]) + right.T @ through

        def once(columns: Array) -> Array:
            plain = inner(columns).reshape(self.size, columns.shape[-1])
            found: Array = plain - through @ solved(small, right.T @ plain)
            return found.reshape(columns.shape)

        return refined(once, self.product, columns)


def refined(solve: Solver, product: Solver, columns: Array) -> Array:
    """A solution improved by solving for what it misses; PivotError where it still misses more than rounding explains.

    Elimination without pivoting loses digits where what is eliminated first is small beside the rest.
    """
    rows = columns.shape[:-1]
    probe = np.cos(np.arange(1.0, prod(rows) + 1) ** 2).reshape((*rows, 1))
    length = _size(product(probe)) / max(_size(probe), 1.0)  # about that of the matrix
    solution = solve(columns)
    for again in (True, False):
        missed = columns - product(solution)
        if _size(missed) <= ACCURATE * _size(columns) + ROUNDING * length * _size(solution):
            return solution
        if again:
            solution = solution + solve(missed)
    raise PivotError("what was eliminated first is too small beside the rest")


def _size(array: Array) -> float:
    return float(np.linalg.norm(array))


@dataclass(frozen=True)
class Pair:
    """The pair (∂²f/∂z∂z̄, ∂²f/∂z∂z) = (P, Q) of a complex variable: P Hermitian, Q symmetric.

    The gradient 2 ∂f/∂z̄ changes by 2 (P̄·dz + Q̄·dz̄). They are `mixed` and `pure` second derivatives.
    """

    mixed: Operator
    pure: Operator

    def product(self, columns: Array) -> Array:
        """The changes of the gradient."""
        return 2 * (self.mixed.product(columns.conj()) + self.pure.product(columns)).conj()

    def solver(self) -> Solver | None:
        """What solves for changes of the gradient by the structure; None where that does not help."""
        if not self.pure.structure.parts:
            solve = self.mixed.solver()
            return None if solve is None else lambda columns: solve(columns.conj() / 2).conj()
        found = self.mixed.blocks(self.pure)
        return None if found is None else partial(self._by_blocks, *found)

    def _by_blocks(self, batch: Sequence[int], rows: Sequence[int], columns: Array) -> Array:
        P, Q = (operator.stack(batch, rows).conj() for operator in (self.mixed, self.pure))
        matrix, count = real_pair(P + Q, P - Q), P.shape[-1]

        def solve(right: Array) -> Array:
            solution = solved(matrix, np.concatenate([right.real, right.imag], axis=-2))
            return solution[..., :count, :] + 1j * solution[..., count:, :]

        rest = [a for a in range(columns.ndim) if a not in (*batch, *rows)]
        return self.mixed.along([*batch, *rows, *rest], columns, P.shape[:-1], solve)


def expanded(structure: Structure, cores: Sequence[Array], extents: Labels) -> Array:
    """The array that a structure without conditions describes, its axes of these extents."""
    total = np.zeros(extents, np.result_type(*cores))
    for part in structure.parts:
        units = [(np.eye(extents[a]), (a, b)) for a, b in part.pairs]
        operands = [(cores[core], labels) for core, labels in part.cores]
        total += filled([*operands, *units], tuple(range(len(extents))), extents)
    return total


def filled(operands: list[Operand], out: Labels, extents: Labels) -> Array:
    """The contraction of operands to axes, of which some may occur in none of them."""
    present = {label for _, labels in operands for label in labels}
    ones = [(np.ones(extents[a]), (a,)) for a in out if a not in present]
    return _einsum([*operands, *ones], out)


def _einsum(operands: Sequence[Operand], out: Labels) -> Array:
    """The contraction of labelled arrays."""
    if len(operands) == 1 and len(operands[0][1]) == len(out):
        array, labels = operands[0]
        return np.asarray(array).transpose([labels.index(label) for label in out])
    known = {label: n for n, label in enumerate(dict.fromkeys(x for _, labels in operands for x in labels))}
    arguments = [part for array, labels in operands for part in (array, [known[x] for x in labels])]
    return np.asarray(np.einsum(*arguments, [known[x] for x in out], optimize="greedy"))
