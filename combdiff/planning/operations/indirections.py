"""Operations at indices that integer arrays hold: reading there, adding up there, comparing with them.

    x[a[i], b[i], e]        Take((At(1, (0,)), At(2, (0,)), 1)) of x, a and b: an array over (i, e), read at once
    result[idx[i]] += k[i]  Scatter of k and idx

Invariant: each index is one of its axis; programs are called only with arrays for which that was checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from combdiff.dialects import parenthesised, tuple_text
from combdiff.ir import Domain
from combdiff.planning.operations.operation import BUFFER, ITEM_BYTES, IndexArray, Occurrence, Operation, Step
from combdiff.planning.operations.words import Pattern, Words
from combdiff.polyhedra import Linear
from combdiff.records import dataclass


@dataclass(frozen=True)
class At:
    """The indices that an operand holds, which runs along the axes `pattern` of the result; `first` is stored first."""

    operand: int
    pattern: tuple[int, ...]
    first: Linear
    wrap: bool


@dataclass(frozen=True)
class Take(Operation):
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

    def flops(self, at: Occurrence) -> int:
        """One for each element that is read."""
        return at.elements

    def workspace(self, at: Occurrence) -> int:
        """Indices in place on a cycle, or counted from another first one; some of several that are laid out."""
        counted = (at.given[place.operand] for place in self.read if place.wrap or place.first != Linear())
        laid = min(BUFFER, at.elements) * (not set(self.block).isdisjoint(self.places) or len(self.read) > 1)
        return (sum(counted) + laid) * ITEM_BYTES[int]

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """Indexing by arrays, or a helper where the library has none of several."""
        return _take(words, self, operands, step)


@dataclass(frozen=True)
class Scatter(Operation):
    """The sum of the elements of the first operand at each index that the second holds, whose axes come first in it.

    For several `axes` the index counts the places of all of them in a row.
    """

    first: Linear
    wrap: bool
    axes: int = 1

    def flops(self, at: Occurrence) -> int:
        """An addition for each element."""
        return at.given[0]

    def workspace(self, at: Occurrence) -> int:
        """What is laid out in a row of parts of arrays, and indices counted on a cycle or from another first one."""
        laid, indices = (0 if whole else many for whole, many in zip(at.whole, at.given, strict=True))
        counted = self.wrap or self.first != Linear()
        return laid * at.item + (indices + counted * at.given[1]) * ITEM_BYTES[int]

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """A helper."""
        return _scatter(words, self, operands, step)


@dataclass(frozen=True)
class IndexEquals(IndexArray):
    """1 where `steps · t + start` is the index that the operand holds, along the axes `index`; 0 elsewhere."""

    steps: tuple[int, ...]
    start: Linear
    modulus: Linear
    index: tuple[int, ...]

    @property
    def takes_type(self) -> bool:
        """It does."""
        return True

    def workspace(self, at: Occurrence) -> int:
        """Truth values, and before them what is compared where it has terms or a modulus."""
        terms = sum(map(bool, self.steps)) > 1 or self.modulus != Linear()
        return at.elements * max(1, 2 * terms * ITEM_BYTES[int] - at.item)

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """A comparison."""
        return _index_equals(words, self, operands[0], step)


@dataclass(frozen=True)
class Clip(IndexArray):
    """The integers of the operand, the nearest of `extent` ones from `first` on in place of all others."""

    first: Linear
    extent: Linear

    def workspace(self, at: Occurrence) -> int:
        """What a look at indices that are computed holds beside them, before the call."""
        return at.elements * ITEM_BYTES[int]

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """The library's own."""
        bounds = words.form(self.first), words.form(self.first + self.extent - 1)
        return f"{words.dialect.np}.clip({operands[0]}, {', '.join(bounds)})"


@dataclass(frozen=True)
class Iota(IndexArray):
    """The integers `steps · t + start` over the axes."""

    steps: tuple[int, ...]
    start: Linear

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """A sum of ranges."""
        return words.grid(self.steps, self.start, step.axes, full=True)


def _stored(words: Words, index: str, op: At | Scatter, domain: Domain) -> str:
    """Where an index is stored."""
    if op.wrap:
        return f"{index} % {parenthesised(words.extent(domain))}"
    return index if op.first == Linear() else f"{index} - ({words.form(op.first)})"


def _take(words: Words, op: Take, operands: Sequence[str], step: Step) -> str:
    axes = words.axes[step.operands[0]]
    indices = [_stored(words, operands[each.operand], each, axis) for each, axis in _read(op, axes)]
    if not words.dialect.indexes:
        along = tuple_text(["None" if isinstance(place, At) else str(place) for place in op.places])
        patterns = [tuple_text(map(str, each.pattern)) for each in op.read]
        return f"_take({operands[0]}, {along}, {tuple_text(indices)}, {tuple_text(patterns)}, {len(step.axes)})"
    block, items, held = op.block, [], iter(indices)
    for axis, place in zip(axes, op.places, strict=True):
        if isinstance(place, At):
            items.append(_in_block(words, next(held), place.pattern, block))
        elif place in block:
            items.append(_in_block(words, words.dialect.arange(words.extent(axis)), (place,), block))
        else:
            items.append(":")
    while items[-1] == ":":
        items.pop()
    return f"{operands[0]}[{', '.join(items)}]"


def _read(op: Take, axes: Sequence[Domain]) -> Iterator[tuple[At, Domain]]:
    return ((place, axis) for place, axis in zip(op.places, axes, strict=True) if isinstance(place, At))


def _in_block(words: Words, index: str, pattern: Pattern, block: Pattern) -> str:
    """An array of indices among others."""
    text = index if index.isidentifier() or pattern == block else f"({index})"
    return words.placed(text, tuple(map(block.index, pattern)), len(block))


def _scatter(words: Words, op: Scatter, operands: Sequence[str], step: Step) -> str:
    extents = [words.extent(axis) for axis in step.axes]
    index = _stored(words, operands[1], op, step.axes[0])
    size = extents[0] if op.axes == 1 else " * ".join(map(parenthesised, extents[: op.axes]))
    text = f"_scatter({operands[0]}, {index}, {size})"
    return text if op.axes == 1 else f"{text}.reshape({', '.join(extents)})"


def _index_equals(words: Words, op: IndexEquals, index: str, step: Step) -> str:
    rank = len(step.axes)
    form = words.grid(op.steps, op.start, step.axes)
    value = words.placed(index, op.index, rank)
    test = f"({form} - {value}) % ({words.form(op.modulus)}) == 0" if op.modulus != Linear() else f"{form} == {value}"
    cast = words.dialect.cast if rank else words.dialect.scalar
    return cast(f"({test})" if rank else test, words.dtype(int))
