"""Σ of products of matrices and vectors as matrix notation: a graph of indices that is reduced step by step.

    Σ_{i,j} x[i] A[i,j] y[j]      i: x ──A── j: y      →      i: x, A·y      →      xᵀ·A·y

Indices are the vertices, vectors stand at them, matrices are edges. An index that is summed over goes when at most
two edges meet in it: Σ_j A[i,j] u[j] = (A·u)[i], Σ_j A[i,j] u[j] B[j,k] = (A·diag(u)·B)[i,k]. Parallel edges are one,
the product element by element; an edge from an index to itself is a diagonal.

Invariant: each step keeps the value. A graph that no step reduces, where three matrices meet in an index, has no
matrix notation.
"""

from __future__ import annotations

from collections.abc import Iterable

from combdiff.ir import ONE, Number, Var, mul
from combdiff.printing.chains import (
    IDENTITY,
    ONES,
    Atom,
    Chain,
    as_atom,
    diagonal,
    diagonal_of,
    dot,
    elementwise,
    of_atom,
    outer,
    scaled,
    times,
    trace,
)

Edge = tuple[Var, Var, Chain]


class NoMatrixNotation(Exception):
    """What is written has no matrix notation here; caught where index notation can take its place."""


class Contraction:
    """Factors over indices, of which some are summed over and the others, at most two, are the axes of the result."""

    def __init__(self, summed: Iterable[Var], result: tuple[Var, ...]) -> None:
        self.summed = list(summed)
        self.result_indices = result
        self.vectors: dict[Var, list[Chain]] = {index: [] for index in (*self.summed, *result)}
        self.edges: list[Edge] = []
        self.number: Number = ONE
        self.scalars: list[tuple[Atom, int]] = []
        self.products: list[Chain] = []

    def scale(self, number: Number) -> None:
        """Multiply by a number."""
        found = mul(self.number, number)
        assert isinstance(found, Number)
        self.number = found

    def place(self, value: Chain, indices: tuple[Var, ...], exponent: int = 1) -> None:
        """Multiply by a chain over some of the indices; only a scalar may have an exponent."""
        if not indices and (exponent != 1 or not value.factors):
            self._place_scalar(value, exponent)
            return
        self.scale(value.number)
        self.scalars += value.scalars
        if not indices:
            self.products.append(value.bare)
        elif len(indices) == 1:
            self.vectors[indices[0]].append(value.bare)
        else:
            self.edges.append((indices[0], indices[1], value.bare))

    def _place_scalar(self, value: Chain, exponent: int) -> None:
        if value.factors or (value.number is not ONE and exponent != 1):
            self.scalars.append((as_atom(value), exponent))
            return
        self.scale(value.number)
        self.scalars += [(atom, own * exponent) for atom, own in value.scalars]

    def reduced(self) -> Chain:
        """The whole as a chain over the axes of the result. Raises NoMatrixNotation where no step is left."""
        steps = (self._loop, self._close, self._attach, self._pair, self._parallel, self._join)
        while self.summed:
            if not any(step() for step in steps):
                raise NoMatrixNotation("more than two matrices meet in an index")
        self._loop()
        return self._result()

    # --- steps: each reduces something and says so, or finds nothing to do -----------------------------------------

    def _edges_at(self, index: Var) -> list[Edge]:
        return [edge for edge in self.edges if index in edge[:2]]

    def _loop(self) -> bool:
        """A[i,i] is a vector."""
        loops = [edge for edge in self.edges if edge[0] is edge[1]]
        for edge in loops:
            self.edges.remove(edge)
            alone = not self.vectors[edge[0]] and not self._edges_at(edge[0]) and edge[0] in self.summed
            if alone:
                self.summed.remove(edge[0])
                self.place(trace(edge[2]), ())
            else:
                self.place(diagonal_of(edge[2]), (edge[0],))
        return bool(loops)

    def _close(self) -> bool:
        """Σ_i u[i] v[i]"""
        index = next((i for i in self.summed if not self._edges_at(i)), None)
        if index is None:
            return False
        self.summed.remove(index)
        self.place(_inner(self.vectors[index]), ())
        return True

    def _attach(self) -> bool:
        """Σ_j A[i,j] u[j]"""
        index = next((i for i in self.summed if len(self._edges_at(i)) == 1), None)
        if index is None:
            return False
        (edge,) = self._edges_at(index)
        self._remove(index, edge)
        other, matrix = _towards(index, edge)
        self.place(times(matrix, self._vector(index)), (other,))
        return True

    def _pair(self) -> bool:
        """Σ_j A[i,j] B[j,i] where nothing else is at j: tr(A·B), diag(A·B) or (A ⊙ Bᵀ)·𝟏."""
        for index in self.summed:
            edges = self._edges_at(index)
            if len(edges) != 2 or self.vectors[index] or set(edges[0][:2]) != set(edges[1][:2]):
                continue
            self._remove(index, *edges)
            other, first = _towards(index, edges[0])
            _, second = _towards(index, edges[1])
            if other in self.summed and not self.vectors[other] and not self._edges_at(other):
                self.summed.remove(other)
                self.place(trace(first, second.transposed), ())
            elif first.plain and second.plain:
                self.edges.append((other, other, times(first, second.transposed)))
            else:
                self.place(times(elementwise([first, second]), of_atom(ONES)), (other,))
            return True
        return False

    def _parallel(self) -> bool:
        """A[i,j] B[i,j]"""
        for i, j, matrix in self.edges:
            alike = [edge for edge in self.edges if {i, j} == set(edge[:2])]
            if len(alike) > 1:
                for edge in alike:
                    self.edges.remove(edge)
                matrices = [matrix] + [m if a is i else m.transposed for a, _, m in alike[1:]]
                self.place(elementwise(matrices), (i, j))
                return True
        return False

    def _join(self) -> bool:
        """Σ_j A[i,j] u[j] B[j,k]"""
        index = next((i for i in self.summed if len(self._edges_at(i)) == 2), None)
        if index is None:
            return False
        first, second = self._edges_at(index)
        self._remove(index, first, second)
        middle = [diagonal(self._vector(index))] if self.vectors[index] else []
        one, left = _towards(index, first)
        other, right = _towards(index, second)
        self.place(times(left, *middle, right.transposed), (one, other))
        return True

    def _remove(self, index: Var, *edges: Edge) -> None:
        self.summed.remove(index)
        for edge in edges:
            self.edges.remove(edge)

    def _vector(self, index: Var) -> Chain:
        """What stands at an index."""
        return elementwise(self.vectors[index]) if self.vectors[index] else of_atom(ONES)

    # --- the end ---------------------------------------------------------------------------------------------------

    def _result(self) -> Chain:
        if not self.result_indices:
            *others, last = self.products or [of_atom(ONES)]
            if not self.products:
                return scaled(Chain(ONE, (), (), 0), self.number, self.scalars)
            return scaled(last, self.number, self._all_scalars(others))
        if len(self.result_indices) == 1:
            value = self._vector(self.result_indices[0])
        else:
            value = self._matrix(*self.result_indices)
        return scaled(value, self.number, self._all_scalars(self.products))

    def _all_scalars(self, products: list[Chain]) -> list[tuple[Atom, int]]:
        return [*self.scalars, *((as_atom(value), 1) for value in products)]

    def _matrix(self, row: Var, column: Var) -> Chain:
        """`u·vᵀ` without an edge, else the matrix with diagonal matrices on its sides."""
        while self._parallel():
            pass
        if not self.edges:
            return outer(self._vector(row), self._vector(column))
        ((first, _, matrix),) = self.edges
        matrix = matrix if first is row else matrix.transposed
        sides = [[diagonal(self._vector(index))] if self.vectors[index] else [] for index in (row, column)]
        if matrix.factors[0].atom is IDENTITY and self.vectors[row] and self.vectors[column]:
            return diagonal(elementwise([*self.vectors[row], *self.vectors[column]]))
        return times(*sides[0], matrix, *sides[1])


def _towards(index: Var, edge: Edge) -> tuple[Var, Chain]:
    """The other end of an edge, and its matrix with the index as its column."""
    first, second, matrix = edge
    return (first, matrix) if second is index else (second, matrix.transposed)


def _inner(vectors: list[Chain]) -> Chain:
    """Σ_i of the product of vectors at i: 𝟏ᵀ·u, uᵀ·v, ‖u‖², 𝟏ᵀ·u^∘3, uᵀ·diag(v)·u, (u ⊙ v)ᵀ·w."""
    if len(vectors) == 2:
        return dot(*vectors)
    if all(vector == vectors[0] for vector in vectors):
        return dot(of_atom(ONES), elementwise(vectors or [of_atom(ONES)]))
    for n, one in enumerate(vectors):
        twin = next((m for m in range(n + 1, len(vectors)) if one.conjugated == vectors[m]), None)
        if twin is not None:
            rest = [v for m, v in enumerate(vectors) if m not in (n, twin)]
            return times(one.transposed, diagonal(elementwise(rest)), vectors[twin])
    return dot(elementwise(vectors[:-1]), vectors[-1])
