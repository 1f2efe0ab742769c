"""Operations at indices that integer arrays hold: reading there, adding up there, comparing with them.

    x[a[i], b[i], e]        Take((At(1, (0,)), At(2, (0,)), 1)) of x, a and b: an array over (i, e), read at once
    result[idx[i]] += k[i]  Scatter of k and idx

Invariant: each index is one of its axis; programs are called only with arrays for which that was checked.
"""

from __future__ import annotations

from dataclasses import dataclass

from combdiff.polyhedra import Linear


@dataclass(frozen=True)
class At:
    """The indices that an operand holds, which runs along the axes `pattern` of the result; `first` is stored first."""

    operand: int
    pattern: tuple[int, ...]
    first: Linear
    wrap: bool


@dataclass(frozen=True)
class Take:
    """Elements of the first operand. For each of its axes `places` tells which axis of the result runs along it, or at
    which indices it is read."""

    places: tuple[At | int, ...]

    @property
    def read(self) -> tuple[At, ...]:
        """The indices at which axes are read."""
        return tuple(place for place in self.places if isinstance(place, At))

    @property
    def block(self) -> tuple[int, ...]:
        """The axes of the result that indices run along, in order."""
        return tuple(sorted({axis for place in self.read for axis in place.pattern}))


@dataclass(frozen=True)
class Scatter:
    """The sum of the elements of the first operand at each index that the second holds, whose axes come first in it.

    For several `axes` the index counts the places of all of them in a row.
    """

    first: Linear
    wrap: bool
    axes: int = 1


@dataclass(frozen=True)
class IndexEquals:
    """1 where `steps · t + start` is the index that the operand holds, along the axes `index`; 0 elsewhere."""

    steps: tuple[int, ...]
    start: Linear
    modulus: Linear
    index: tuple[int, ...]


@dataclass(frozen=True)
class Clip:
    """The integers of the operand, the nearest of `extent` ones from `first` on in place of all others."""

    first: Linear
    extent: Linear


@dataclass(frozen=True)
class Iota:
    """The integers `steps · t + start` over the axes."""

    steps: tuple[int, ...]
    start: Linear
