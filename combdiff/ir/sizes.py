"""Sizes of axes: whole numbers, names, and whole-number combinations of names.

    "n"    "n - 1"    "2*n + m"        size_of_parts({"n": 1}, -1) = "n - 1"

A combination is written one way, so that equal ones are equal strings.

Invariant: `size_of_parts(*size_parts(size))` is the size.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from combdiff.errors import SpaceError, shown

Size = int | str

_TERM = re.compile(r"\s*([+-])\s*(?:(?:(\d+)\s*\*\s*)?([^\W\d]\w*)|(\d+))\s*")


@lru_cache(maxsize=1024)
def size_parts(size: Size) -> tuple[dict[str, int], int]:
    """The names with their coefficients, and the number added. Raises SpaceError for a text that is no such sum."""
    if isinstance(size, int):
        return {}, size
    names: dict[str, int] = {}
    offset, place, text = 0, 0, size if size.lstrip().startswith(("-", "+")) else f"+{size}"
    while place < len(text):
        found = _TERM.match(text, place)
        if found is None:
            raise SpaceError(
                f"the size {shown(size)} is no whole-number sum of names", hint='write for example "n - 1"'
            )
        sign, factor, name, number = found.groups()
        value = (-1 if sign == "-" else 1) * int(factor or number or 1)
        if name is None:
            offset += value
        else:
            names[name] = names.get(name, 0) + value
        place = found.end()
    return {name: value for name, value in sorted(names.items()) if value}, offset


def size_of_parts(names: Mapping[str, int], offset: int) -> Size:
    """The size that is that sum."""
    kept = sorted((name, value) for name, value in names.items() if value)
    if not kept:
        return offset
    terms = [(value < 0, name if abs(value) == 1 else f"{abs(value)}*{name}") for name, value in kept]
    terms += [(offset < 0, str(abs(offset)))] * bool(offset)
    terms.sort(key=lambda term: term[0])  # one that is added comes first
    text = "".join(f" {'-' if minus else '+'} {term}" for minus, term in terms)
    return text.removeprefix(" + ") if text.startswith(" + ") else text.lstrip()


def canonical(size: Size) -> Size:
    """The size as it is written here."""
    return size if isinstance(size, int) or size.isidentifier() else size_of_parts(*size_parts(size))


def names_in(size: object) -> frozenset[str]:
    """The names in a size."""
    return frozenset(size_parts(size)[0]) if isinstance(size, str) else frozenset()


def size_value(size: Size, sizes: Mapping[str, int]) -> int:
    """The number that a size is; 0 where fewer than no elements are left."""
    if isinstance(size, int):
        return size
    if size in sizes:
        return sizes[size]
    names, offset = size_parts(size)
    return max(0, offset + sum(value * sizes[name] for name, value in names.items()))


def size_sum(*addends: tuple[Size, int]) -> Size:
    """Σ factor · size."""
    names: dict[str, int] = {}
    total = 0
    for size, factor in addends:
        parts, offset = size_parts(size)
        total += factor * offset
        for name, value in parts.items():
            names[name] = names.get(name, 0) + factor * value
    return size_of_parts(names, total)


def is_at_most(one: Size, other: Size) -> bool:
    """Whether a size is at most another, whatever numbers from 0 on their names stand for."""
    names, offset = size_parts(size_sum((other, 1), (one, -1)))
    return all(part >= 0 for part in (*names.values(), offset))


def resized(size: Size, known: Mapping[str, Size]) -> Size:
    """The size with some of its names replaced by sizes."""
    names, offset = size_parts(size)
    return size_sum((offset, 1), *((known.get(name, name), value) for name, value in names.items()))


def half_of(size: Size) -> Size | None:
    """size // 2, None where it is no size: that of n is not known, that of 2*n + 1 is n."""
    names, offset = size_parts(size)
    if any(factor % 2 for factor in names.values()):
        return None
    return size_of_parts({name: factor // 2 for name, factor in names.items()}, offset // 2)
