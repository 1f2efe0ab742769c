"""Coupled variables by elimination: those of which the own block has structure first, then the rest.

    ⎡ A  Bᵀ ⎤ ⎡ x ⎤   ⎡ a ⎤        S = C − B·A⁻¹·Bᵀ,   S·y = b − B·A⁻¹·a,   x = A⁻¹·(a − Bᵀ·y)
    ⎣ B  C  ⎦ ⎣ y ⎦ = ⎣ b ⎦

    ‖T − U·Vᵀ‖² by U (1000 × 5) and V (20 × 5):     before: one system of 5100 rows
                                                    after: a 5×5 matrix for the rows of U, then 100 rows for V

A is solved by its δ's and cores (`newton`); the Schur complement S, of what is left, is a dense matrix. Variables that
are not coupled with each other are eliminated together, as in an arrow. Complex variables are pairs of real ones.

Invariant: a solution satisfies the whole system to rounding errors; where it does not, PivotError is raised.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import prod

import numpy as np

from combdiff.errors import SingularError
from combdiff.hessians.compression import Structure
from combdiff.hessians.newton import Operator, Pair, PivotError, Solver, expanded, refined
from combdiff.hessians.real_systems import Array, apart, packed, real_block, solved, unpacked
from combdiff.planning import refuse_beyond
from combdiff.records import dataclass

NUMBER = 8  # bytes
Block = tuple[Structure, ...]  # one, or the pair of zz̄ and zz


@dataclass(frozen=True)
class Coupled:
    """The symmetric system of several variables: their shapes, which are complex, and the blocks on and above the
    diagonal, by structure, over common cores."""

    shapes: tuple[tuple[int, ...], ...]
    is_complex: tuple[bool, ...]
    blocks: Mapping[tuple[int, int], Block]
    cores: tuple[Array, ...]

    def solve(self, right: Sequence[Array]) -> list[Array] | None:
        """The solution for arrays of columns; None where no variable can be eliminated by its structure.

        Raises SingularError, PivotError where a system of all variables together may still have a solution, and
        MemoryLimitError where the Schur complement does not fit.
        """
        if len(self.shapes) == 1:
            solver = self.diagonal(0).solver()
            return None if solver is None else [solver(right[0])]
        if any(part.conditions for block in self.blocks.values() for each in block for part in each.parts):
            return None
        first = self._solvers()
        return _BlockElimination(self, first).solve(right) if first else None

    def _solvers(self) -> dict[int, Solver]:
        """What solves the diagonal blocks of variables to eliminate: large ones first, none coupled with another."""
        found: dict[int, Solver] = {}
        for n in sorted(range(len(self.shapes)), key=lambda n: -self.size(n)):
            free = not any(each.parts for m in found for each in self.blocks[min(n, m), max(n, m)])
            zero = not any(each.parts for each in self.blocks[n, n])
            if free and not zero and (solver := self.diagonal(n).solver()) is not None:
                found[n] = self.real(n, solver)
        return found

    def size(self, n: int) -> int:
        """How many real numbers a variable is."""
        return prod(self.shapes[n]) * (1 + self.is_complex[n])

    def diagonal(self, n: int) -> Operator | Pair:
        """The block of a variable by itself."""
        operators = [Operator(each, self.cores, self.shapes[n]) for each in self.blocks[n, n]]
        return Pair(*operators) if len(operators) > 1 else operators[0]

    def real(self, n: int, solve: Solver) -> Solver:
        """A map of arrays of columns of a variable as one of real columns."""
        return lambda columns: packed(solve(unpacked(columns, self.shapes[n], self.is_complex[n])), self.is_complex[n])

    def dense(self, r: int, c: int) -> Array:
        """How the gradient by one variable changes with another, a real matrix."""
        first, last = min(r, c), max(r, c)
        extents = (*self.shapes[first], *self.shapes[last])
        parts = tuple(expanded(each, self.cores, extents) for each in self.blocks[first, last])
        sizes = prod(self.shapes[first]), prod(self.shapes[last])
        found = real_block(parts, sizes, self.is_complex[last], self.is_complex[first])
        return found if r == last else found.T


class _BlockElimination:
    """The elimination of some variables, by what solves for each, and the system of the others."""

    def __init__(self, system: Coupled, first: Mapping[int, Solver]) -> None:
        self.system, self.first = system, first
        self.rest = [n for n in range(len(system.shapes)) if n not in first]
        self._check_memory()
        ends = np.cumsum([0, *map(system.size, range(len(system.shapes)))])
        self.rows = [slice(start, stop) for start, stop in pairwise(ends)]
        self.borders = {e: np.concatenate([system.dense(r, e) for r in self.rest]) for e in first}
        self.corner = np.block([[system.dense(r, c) for c in self.rest] for r in self.rest])

    def _check_memory(self) -> None:
        left = sum(map(self.system.size, self.rest))
        needed = NUMBER * left * (2 * left + 2 * sum(map(self.system.size, self.first)))
        refuse_beyond(needed, "solving by elimination", "solve for some of the variables at a time")

    def solve(self, right: Sequence[Array]) -> list[Array]:
        """The solution for arrays of columns."""
        system = self.system
        columns = np.concatenate([packed(a, twice) for a, twice in zip(right, system.is_complex, strict=True)])
        try:
            through = {e: solver(np.ascontiguousarray(self.borders[e].T)) for e, solver in self.first.items()}
        except SingularError as error:
            raise PivotError(error.message) from None
        complement = self.corner - sum(self.borders[e] @ through[e] for e in self.first)

        def once(columns: Array) -> Array:
            inner = {e: solver(columns[self.rows[e]]) for e, solver in self.first.items()}
            left = np.concatenate([columns[self.rows[r]] for r in self.rest])
            outer = solved(complement, left - sum(self.borders[e] @ inner[e] for e in self.first))
            found = np.empty(columns.shape, outer.dtype)
            self._put(found, outer)
            for e in self.first:
                found[self.rows[e]] = inner[e] - through[e] @ outer
            return found

        return list(apart(refined(once, self.product, columns), system.shapes, system.is_complex))

    def product(self, columns: Array) -> Array:
        """The matrix of the whole system times real columns."""
        left = np.concatenate([columns[self.rows[r]] for r in self.rest])
        found = np.empty(columns.shape)
        self._put(found, self.corner @ left + sum(self.borders[e] @ columns[self.rows[e]] for e in self.first))
        for e in self.first:
            own = self.system.real(e, self.system.diagonal(e).product)
            found[self.rows[e]] = own(columns[self.rows[e]]) + self.borders[e].T @ left
        return found

    def _put(self, found: Array, left: Array) -> None:
        """Write the rows of the variables that are left to their places among all."""
        start = 0
        for r in self.rest:
            size = self.system.size(r)
            found[self.rows[r]] = left[start : start + size]
            start += size
