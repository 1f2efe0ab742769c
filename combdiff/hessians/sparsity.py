"""Where a derivative may differ from 0, as its structure says before there is any data.

    H[i,j,k,l] = core[j,l] δ[i,k]            # before: the structure
    H[i,j,k,l] = 0 unless i = k              # after

Invariant: outside the pattern every element is 0, whatever the arguments are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from combdiff.hessians.compression import CoreProduct, Structure
from combdiff.ir import Cyclic, Range, extent, first_index
from combdiff.pictures import Picture, blocks
from combdiff.records import dataclass


@dataclass(frozen=True)
class Sparsity:
    """The pattern of a structure; print it, or ask for the array of it with `pattern`."""

    structure: Structure

    def __str__(self) -> str:
        letters = self.structure.letters
        left = f"{self.structure.name}[{','.join(letters)}]"
        if not self.structure.parts:
            return f"{left} = 0"
        cases = [self._case(part) for part in self.structure.parts]
        if not all(cases):
            return f"{left} has no zeros that are known"
        return f"{left} = 0 unless {' or '.join(dict.fromkeys(cases))}"

    def _case(self, part: CoreProduct) -> str:
        letters = self.structure.letters
        conditions = [f"{letters[a]} = {letters[b]}" for a, b in part.pairs]
        return " and ".join([*conditions, *(condition.text for condition in part.conditions)])

    @property
    def dense(self) -> bool:
        """Whether no zeros are known."""
        return not all(self._case(part) for part in self.structure.parts)

    def picture(self, sizes: Mapping[str, int] | None = None, **more: int) -> Picture:
        """The pattern as an SVG of blocks, rows by columns; sizes that are not given count as 5."""
        named = {axis.size for axis in self.structure.axes if isinstance(axis, Range | Cyclic)}
        known = {name: 5 for name in named if isinstance(name, str)} | {**(sizes or {}), **more}
        return blocks(self.pattern(known), len(self.structure.axes) // 2, str(self))

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
