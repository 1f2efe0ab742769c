"""Tensors read back whose elements have lines of their own.

    s[t + 1,0] = s[t,0] - r[t]    s[t + 1,1] = s[t,1] + r[t]
    is read as    s[t + 1,i] = δ(i, 0) (s[t,0] - r[t]) + δ(i, 1) (s[t,1] + r[t])

Invariant: such lines stand together, and their numbers are 0, 1, … in order along each axis.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product

from combdiff.printing import Doc, Literal, Name, Ranging, Subscripted
from combdiff.records import dataclass
from combdiff.text.recurrences import Definition, MisreadError, defined

Arguments = tuple[Doc, ...]


@dataclass(frozen=True, eq=False)
class Component(Ranging):
    """The index that stands for numbers on the left of several lines."""


@dataclass(frozen=True, eq=False)
class Elements(Doc):
    """What several lines give: their numbers along some axes, what stands on the left of each, and on its right."""

    numbers: tuple[tuple[int, ...], ...]
    lefts: tuple[Subscripted, ...]
    rights: tuple[Doc, ...]

    def lines(self, indices: Callable[[Arguments], Arguments], axes: Sequence[int]) -> Iterator[tuple[Arguments, Doc]]:
        """The indices of each line but those of the axes, and its value; `indices` takes them from a left side."""
        for left, right in zip(self.lefts, self.rights, strict=True):
            yield tuple(a for n, a in enumerate(indices(left.arguments)) if n not in axes), right


def joined(definitions: Sequence[Definition], hold: Callable[[Doc, Doc], None]) -> list[Definition]:
    """The definitions, lines that give a tensor's elements as one; `hold` notes what a new document stands for."""
    found: list[Definition] = []
    for group in _groups(definitions):
        lefts = [left for left, _ in group if isinstance(left, Subscripted)]
        if len(lefts) < len(group) or len(group) == 1:
            found += group
            continue
        axes, numbers = _numbers(lefts)
        sizes = [1 + number for number in numbers[-1]]
        ranges = {axis: Component(Name("i"), "<", Literal(size)) for axis, size in zip(axes, sizes, strict=True)}
        arguments = tuple(ranges.get(n, each) for n, each in enumerate(lefts[0].arguments))
        left = Subscripted(lefts[0].map, arguments, lefts[0].round)
        right = Elements(tuple(numbers), tuple(lefts), tuple(right for _, right in group))
        hold(left, lefts[0])
        hold(right, group[0][1])
        found.append((left, right))
    return found


def _groups(definitions: Sequence[Definition]) -> Iterator[list[Definition]]:
    """Lines that follow each other, of one name, with numbers at the same places, and these in ascending order."""
    group: list[Definition] = []
    for each in definitions:
        if group and not _follows(group[-1][0], each[0]):
            yield group
            group = []
        group.append(each)
    if group:
        yield group


def _follows(one: Doc, other: Doc) -> bool:
    if not defined(one) or defined(one) != defined(other):
        return False
    before, after = _places(one), _places(other)
    return before.keys() == after.keys() and tuple(before.values()) < tuple(after.values())


def _places(left: Doc) -> dict[int, int]:
    """The axes at which a left side has whole numbers, and these."""
    arguments = left.arguments if isinstance(left, Subscripted) else ()
    numbers = {n: each.real for n, each in enumerate(arguments) if isinstance(each, Literal) and not each.imag}
    return {n: number for n, number in numbers.items() if isinstance(number, int)}


def _numbers(lefts: Sequence[Subscripted]) -> tuple[list[int], list[tuple[int, ...]]]:
    """The axes along which the numbers of lines differ, and these. Raises MisreadError where some are left out."""
    places, name = [_places(left) for left in lefts], defined(lefts[0])
    axes = [n for n in places[0] if len({each[n] for each in places}) > 1]
    numbers = [tuple(each[n] for n in axes) for each in places]
    if len({len(left.arguments) for left in lefts}) > 1:
        raise MisreadError(name, f"the lines of {name} have different numbers of indices")
    if numbers != list(product(*(range(1 + number) for number in numbers[-1]))):
        given = ", ".join(f"{name}[{','.join(map(str, each))}]" for each in numbers)
        raise MisreadError(name, f"{given} are given; lines of elements begin at 0 and leave out none")
    return axes, numbers
