"""The values of a let program: those of its bindings, and the items of its result.

    let t = Σ_i x[i] in (t, (d ↦ x[d], 2))      values_of: Σ_i x[i], t, d ↦ x[d], 2

Invariant: `joined(result, items_of(result))` is the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from combdiff.ir.inlining import split
from combdiff.ir.terms import Term, Tuple


def items_of(result: Term) -> tuple[Term, ...]:
    """The tensors and numbers of a result, those of tuples within tuples too."""
    return tuple(part for item in result.items for part in items_of(item)) if isinstance(result, Tuple) else (result,)


def joined(result: Term, items: Iterable[Term]) -> Term:
    """The items as a result of the same kind: the tuples within tuples that they came from, or the only one."""
    return _rebuilt(result, iter(items))


def _rebuilt(result: Term, items: Iterator[Term]) -> Term:
    return Tuple(tuple(_rebuilt(item, items) for item in result.items)) if isinstance(result, Tuple) else next(items)


def values_of(body: Term) -> Iterator[Term]:
    """The values of a let program and the items of its result, tuples within tuples."""
    bindings, result = split(body)
    yield from (value for _, value in bindings)
    yield from items_of(result)
