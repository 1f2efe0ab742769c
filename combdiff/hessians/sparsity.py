"""Where a derivative may differ from 0, as its structure says before there is any data.

    H[i,j,k,l] = core[j,l] δ[i,k]            # before: the structure
    H[i,j,k,l] = 0 unless i = k              # after

Invariant: outside the pattern every element is 0, whatever the arguments are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from combdiff.hessians.compression import CoreProduct, Structure
from combdiff.ir import Real, Symmetric, extent, first_index, names_in
from combdiff.pictures import Picture, block_matrix, blocks
from combdiff.records import dataclass

DRAWN = 5  # of a size that is not given, in a picture


@dataclass(frozen=True)
class Sparsity:
    """The pattern of a structure; print it, or ask for the array of it with `pattern`.

    The first `rows` of its axes are those of the row's variable.
    """

    structure: Structure
    rows: int

    def __repr__(self) -> str:
        return f"<Sparsity {self}>"

    def __str__(self) -> str:
        letters = self.structure.letters
        left = f"{self.structure.name}[{','.join(letters)}]"
        if not self.structure.parts:
            return f"{left} = 0"
        cases = list(dict.fromkeys(map(self._case, self.structure.parts)))
        if not all(cases):
            return f"{left} has no zeros that are known"
        widest = [case for case in cases if not any(set(other) < set(case) for other in cases)]
        return f"{left} = 0 unless {' or '.join(map(' and '.join, widest))}"

    def _case(self, part: CoreProduct) -> tuple[str, ...]:
        """What holds of the indices where a part may differ from 0."""
        letters = self.structure.letters
        return (
            *(f"{letters[a]} = {letters[b]}" for a, b in part.pairs),
            *(condition.claim for condition in part.conditions),
        )

    @property
    def dense(self) -> bool:
        """Whether no zeros are known."""
        return not all(self._case(part) for part in self.structure.parts)

    def picture(self, sizes: Mapping[str, int] | None = None, **more: int) -> Picture:
        """The pattern as an SVG of blocks, rows by columns; sizes that are not given count as 5."""
        return blocks(self.drawn({**(sizes or {}), **more}), self.rows, str(self))

    def drawn(self, sizes: Mapping[str, int]) -> np.ndarray[Any, Any]:
        """The pattern for a picture, in which sizes that are not given are 5."""
        axes = self.structure.axes
        written = [
            axis.bound if isinstance(axis, Symmetric) else axis.size for axis in axes if not isinstance(axis, Real)
        ]
        return self.pattern({name: DRAWN for size in written for name in names_in(size)} | dict(sizes))

    def _repr_svg_(self) -> str:
        return self.picture().svg

    def pattern(self, sizes: Mapping[str, int] | None = None, **more: int) -> np.ndarray[Any, Any]:
        """The array of truth values that says where an element may differ from 0, at named sizes."""
        known = {**(sizes or {}), **more}
        shape = tuple(extent(axis, known) for axis in self.structure.axes)
        found = np.zeros(shape, bool)
        grid = np.indices(shape, sparse=True)
        values = [first_index(axis, known) + along for axis, along in zip(self.structure.axes, grid, strict=True)]
        for part in self.structure.parts:
            allowed = np.ones(shape, bool)
            for a, b in part.pairs:
                allowed &= grid[a] == grid[b]
            for condition in part.conditions:
                allowed &= condition.holds(values, known)
            found |= allowed
        return found


@dataclass(frozen=True)
class BlockSparsity:
    """The patterns of blocks, or of the pair of a complex variable: a sequence of them that is drawn as one matrix.

    Each has a place: the names of its row and column, and which of the pair it is. What lies below the diagonal mirrors
    what lies above.
    """

    parts: tuple[Sparsity, ...]
    places: tuple[tuple[str, str, str], ...]

    def __len__(self) -> int:
        return len(self.parts)

    def __iter__(self) -> Iterator[Sparsity]:
        return iter(self.parts)

    def __getitem__(self, number: int) -> Sparsity:
        return self.parts[number]

    def __repr__(self) -> str:
        return f"<BlockSparsity {', '.join(map(str, self.parts))}>"

    def __str__(self) -> str:
        return "\n".join(map(str, self.parts))

    def picture(self, sizes: Mapping[str, int] | None = None, **more: int) -> Picture:
        """All blocks as an SVG, rows by columns; sizes that are not given count as 5."""
        known = {**(sizes or {}), **more}
        rows = list(dict.fromkeys(row for row, _, _ in self.places))
        columns = list(dict.fromkeys((column, kind) for _, column, kind in self.places))
        drawn = {place: (part.drawn(known), part.rows) for place, part in zip(self.places, self.parts, strict=True)}
        grid = [[drawn.get((row, *at)) or _transposed(*drawn[at[0], row, at[1]]) for at in columns] for row in rows]
        return block_matrix(grid, rows, [" ".join(filter(None, at)) for at in columns], str(self))

    def _repr_svg_(self) -> str:
        return self.picture().svg


def _transposed(pattern: np.ndarray[Any, Any], rows: int) -> tuple[np.ndarray[Any, Any], int]:
    """The pattern of a block with its rows and columns exchanged."""
    return np.moveaxis(pattern, range(rows), range(-rows, 0)), pattern.ndim - rows
