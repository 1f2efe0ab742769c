"""Tensors whose elements have formulas of their own, each with a line of its own.

    s[t + 1,i] = δ(i, 0) (s[t,0] - r[t]) + δ(i, 1) (s[t,1] + r[t])
    is written    s[t + 1,0] = s[t,0] - r[t]    s[t + 1,1] = s[t,1] + r[t]

That is what `np.stack([x - r, y + r])` gives. The elements along an axis are all written, 0 where nothing adds to one.

Invariant: the lines of a tensor stand together, their numbers in order, and no line mentions the index they are at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from combdiff.ir import ZERO, Delta, Lambda, Range, Term, Var, affine, affine_parts, is_index, substitute, subterms
from combdiff.printing.recurrences import AtStep, Definitions
from combdiff.simplification import symbols

MOST_COMPONENTS = 9  # lines of a tensor


def by_components(definitions: Iterable[tuple[Var, Term]]) -> Definitions:
    """The definitions, those of tensors whose elements along an axis have formulas of their own as so many."""
    return [(var, line) for var, value in definitions for line in _lines(value)]


def _lines(value: Term) -> Iterator[Term]:
    match value:
        case Lambda(parameters=own, body=body):
            lines = list(_components(AtStep(own, own, body, len(own)), MOST_COMPONENTS))
            yield from lines if len(lines) > 1 else [value]
        case AtStep():
            yield from _components(value, MOST_COMPONENTS)
        case _:
            yield value


def _components(value: AtStep, most: int) -> Iterator[AtStep]:
    """The elements along the first axis whose index is only compared with numbers; the tensor where there is none."""
    for index in (v for v in value.place[len(value.place) - value.own :] if isinstance(v, Var)):
        if isinstance(index.type, Range) and isinstance(size := index.type.size, int) and 1 < size <= most:
            lines = [_at(value, index, k) for k in range(size)] if _is_compared(index, value.body) else []
            if 2 * sum(line.body is ZERO for line in lines) > size:
                continue
            if lines and sum(symbols(line.body) for line in lines) <= symbols(value.body):
                for line in lines:
                    yield from _components(line, most // size)
                return
    yield value


def _at(value: AtStep, index: Var, number: int) -> AtStep:
    at = {index: affine([], number)}
    place = tuple(substitute(each, at) for each in value.place)
    return replace(
        value, indices=tuple(v for v in value.indices if v is not index), place=place, body=substitute(value.body, at)
    )


def _is_compared(index: Var, body: Term) -> bool:
    """Whether an index occurs in a term, only in δ's with numbers, and with two of them or more."""
    numbers = set()
    for node in subterms(body):
        if index not in node.children:
            continue
        if not isinstance(node, Delta):
            return False
        other = node.right if node.left is index else node.left
        if not is_index(other) or affine_parts(other)[0]:
            return False
        numbers.add(affine_parts(other)[1])
    return len(numbers) > 1
