"""Where an index counts modulo the size of its cycle, and where its value as a number matters.

    x[k + 1, i] with a Cyclic first axis      k counts modulo n: k + n reads the same element
    [k ≥ 2], y[k] with a Range axis           k is a number: the representative 0 … n − 1 is meant

The value of an index over Cyclic(n) is always the representative 0 … n − 1. An unreduced form such as k + 1 may stand
for such an index only where the index counts modulo n.

Invariant: `counts_modulo` is never true where putting k + n for k would change the value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from combdiff.ir.domains import Cyclic, Space
from combdiff.ir.indices import Affine, Coordinate, Delta, Indicator, Unequal, affine_parts
from combdiff.ir.terms import Add, Apply, Mul, Term, Var
from combdiff.ir.types import type_of


def counts_modulo(index: Var, term: Term) -> bool:
    """Whether a cyclic index occurs in a term only where indices count modulo the size of its cycle."""
    done: dict[Term, bool] = {}

    def holds(node: Term) -> bool:
        if index not in node.free:
            return True
        if node not in done:
            done[node] = _here(index, node) and all(holds(child) for child in _values(index, node))
        return done[node]

    return holds(term)


def _here(index: Var, node: Term) -> bool:
    """Whether the node itself asks for the index only modulo its cycle."""
    match node:
        case Indicator() | Var() | Affine():
            return False
        case Unequal():
            return node.domain == index.type
        case Delta():
            sides = node.lookup[:1] if node.lookup else node.children
            return node.domain == index.type or all(index not in side.free for side in sides)
        case Apply():
            space = type_of(node.function)
            axes = space.axes if isinstance(space, Space) else ()
            pairs = zip(node.arguments, axes, strict=False)
            return all(index not in a.free or axis == index.type for a, axis in pairs)
    return True


def _values(index: Var, node: Term) -> Iterable[Term]:
    """The children that are no index expressions (those are judged with the node)."""
    if isinstance(node, Delta) and node.lookup:
        _, value = node.lookup
        return _summands(value) if node.domain == index.type else (value,)
    if isinstance(node, Delta | Unequal):
        return ()
    if isinstance(node, Apply) and isinstance(type_of(node.function), Space):
        return (node.function,)
    return node.children


def _summands(value: Term) -> Iterator[Term]:
    """The parts of an integer but for indices added in it: they count modulo what the integer is compared modulo."""
    if isinstance(value, Add | Mul):
        for part in value.children:
            yield from _summands(part)
    elif not isinstance(value, Coordinate):
        yield value


def is_reduced(value: Term, cycle: Cyclic) -> bool:
    """Whether an index form is known to be the representative 0 … n − 1 on the cycle."""
    if isinstance(value, Var):
        return value.type == cycle
    parts, offset = affine_parts(value)
    if parts:
        return False
    return offset == 0 or (isinstance(cycle.size, int) and 0 <= offset < cycle.size)
