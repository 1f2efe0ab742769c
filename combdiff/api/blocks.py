"""What Hessians give: cores with their structure, and blocks by the names of variables.

    H = hessian(f, ("U", "V"))(…)        rows of arrays, as nested tuples
    H["U", "V"] is H[0][1]

Invariant: a block is found by the names of its row and its column, in this order.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from combdiff.api.programs import Program
from combdiff.errors import DifferentiationError
from combdiff.hessians import Structure


class Compressed(NamedTuple):
    """The cores of a derivative as a Program, and how they make it up: one `Structure`, or one for each block.

    Call it as the Program itself: it gives the array of the core, or a tuple of them.
    """

    core: Program
    structure: Structure | tuple[Structure, ...]

    def __call__(self, /, *arguments: Any, **named: Any) -> Any:
        """The arrays of the cores."""
        return self.core(*arguments, **named)

    def __str__(self) -> str:
        found = self.structure if isinstance(self.structure, tuple) else (self.structure,)
        return "\n".join([*map(str, found), str(self.core)])


class Blocks(tuple[Any, ...]):
    """Rows of blocks, as nested tuples; `blocks["U", "V"]` is the block of two names."""

    names: tuple[str, ...]

    def __new__(cls, rows: Iterable[Any], names: tuple[str, ...]) -> Blocks:
        """The rows with the names that index them."""
        made = super().__new__(cls, rows)
        made.names = names
        return made

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, tuple):
            row, column = (position(self.names, name) for name in pair_of_names(key))
            return tuple.__getitem__(self, row)[column]
        return tuple.__getitem__(self, key)


def pair_of_names(key: object) -> tuple[str, str]:
    """The names of a row and a column; raises DifferentiationError for any other key."""
    if isinstance(key, tuple) and len(key) == 2 and all(isinstance(name, str) for name in key):
        return key
    raise DifferentiationError(f"a block is named by two names, not by {key!r}", hint='write H["U", "V"]')


def position(names: tuple[str, ...], name: str) -> int:
    """The number of a name; raises DifferentiationError where it is unknown."""
    if name not in names:
        raise DifferentiationError(f"there is no block by {name!r}", hint=f"the names are {', '.join(names)}")
    return names.index(name)
