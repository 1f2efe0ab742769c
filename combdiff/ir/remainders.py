"""An index reduced modulo the size of its axis: an integer that is looked up, as those that arrays hold.

    x[(i − 1) mod n]    =    Σ_k δ(k, (i − 1) mod n) x[k]        (i − 1) mod n is a number that is made of an index

Invariant: what is 0 … n − 1 already is never reduced modulo n.
"""

from __future__ import annotations

from collections.abc import Sequence

from combdiff.ir.domains import Cyclic, Range, Space, Whole
from combdiff.ir.indices import Delta, affine, affine_parts, as_integer, delta, index_form, size_form
from combdiff.ir.primitives import function
from combdiff.ir.products import factors_of
from combdiff.ir.sizes import Size, is_at_most, size_of_parts
from combdiff.ir.substitution import substitute, subterms
from combdiff.ir.terms import Apply, Mul, Primitive, Sum, Term, Var
from combdiff.ir.types import type_of

PLACES = ("argsort", "argmax", "argmin")  # functions of the last axis whose values are indices of it


def remainder_parts(value: Term) -> tuple[Term, Size] | None:
    """`(form, n)` where a number is `form mod n` of an index expression and a size; None for others."""
    return _divided_parts(value) if isinstance(value, Primitive) and value.name == "remainder" else None


def is_divided_index(value: Term) -> bool:
    """Whether a number is `form mod n`, or ⌊form/n⌋, of an index expression and a size."""
    divides = isinstance(value, Primitive) and value.name in ("remainder", "floor_divide")
    return divides and _divided_parts(value) is not None


def _divided_parts(value: Term) -> tuple[Term, Size] | None:
    form, modulus = (index_form(argument, around=True) for argument in value.children)
    if form is None or modulus is None:
        return None
    parts, offset = affine_parts(modulus)
    if not all(isinstance(var.type, Whole) for var, _ in parts):
        return None
    return form, size_of_parts({var.name: int(factor) for var, factor in parts}, int(offset))


def equal_modulo(index: Var, form: Term, size: Size) -> Term:
    """δ(index, form mod size), or the plain δ(index, form) where the form is known to be 0 … size − 1."""
    assert isinstance(index.type, Range | Cyclic), index
    found, form = index_left(form, size), within_a_turn(form, size)
    return Delta(index, remainder(form, size), index.type) if found is None else delta(index, found, index.type)


def number_left(form: Term, size: Size) -> Term:
    """The number `form mod size`."""
    found = index_left(form, size)
    return remainder(within_a_turn(form, size), size) if found is None else as_integer(found)


def index_left(form: Term, size: Size) -> Term | None:
    """`form mod size` as an index form, where that is a number or an index of an axis of at most so many elements."""
    form = within_a_turn(form, size)
    parts, offset = affine_parts(form)
    is_number = not parts and (isinstance(size, int) or not offset)
    return form if is_number or (isinstance(form, Var) and counts_within(form, size)) else None


def within_a_turn(form: Term, size: Size) -> Term:
    """An index form without whole turns of so many elements: i − 1 for i + 5 and for 6k + i − 1, 5 for 6k − 1, of 6."""
    parts, offset = affine_parts(form)
    if isinstance(size, int) and size:
        middle = (size - 1) // 2
        left = [(v, turned) for v, c in parts if (turned := (c + middle) % size - middle)]
        middle = middle if left else 0  # a number is 0 … size − 1
        return affine(left, (offset + middle) % size - middle)
    turns = dict(parts).get(Var(str(size), Whole()), 0)
    return affine([(form, 1), (size_form(size), -turns)]) if turns else form


def read_within_a_turn(access: Apply) -> Term:
    """An element of a tensor, whose indices on cycles are without whole turns: x[i − 1] for x[i + 5], of 6."""
    space = type_of(access.function)
    axes = space.axes if isinstance(space, Space) else ()
    at = [
        within_a_turn(place, axis.size) if isinstance(axis, Cyclic) and not isinstance(place, Var) else place
        for place, axis in zip(access.arguments, axes, strict=False)
    ]
    return access if not axes or tuple(at) == access.arguments else Apply(access.function, tuple(at))


def remainder(form: Term, size: Size) -> Term:
    """The number `form mod size`."""
    return function("remainder", as_integer(form), as_integer(size_form(size)))


def counts(index: Var, size: Size) -> bool:
    """Whether the values of an index are 0 … size − 1."""
    return isinstance(index.type, Range | Cyclic) and index.type.size == size


def counts_within(index: Var, size: Size) -> bool:
    """Whether the values of an index are some of 0 … size − 1."""
    return isinstance(index.type, Range | Cyclic) and is_at_most(index.type.size, size)


def reduced_index(condition: Delta) -> tuple[Var, Term, Size] | None:
    """`(k, form, n)` where a δ says that an index of an axis of n elements is `form mod n`; None for others."""
    index, value = condition.lookup or (None, None)
    if not isinstance(index, Var) or value is None or (found := remainder_parts(value)) is None:
        return None
    return (index, *found) if counts(index, found[1]) and index.type == condition.domain else None


def is_index_by_form(condition: Delta) -> bool:
    """Whether what a δ looks up is an index of its axis by what computes it: form mod n, a place in a sorted row."""
    value = condition.lookup[1] if condition.lookup else None
    ordering = value.function if isinstance(value, Apply) else value
    if not isinstance(ordering, Primitive) or ordering.name not in PLACES:
        return reduced_index(condition) is not None
    row = type_of(ordering.arguments[0])
    return isinstance(row, Space) and row.axes[-1] == condition.domain


def places_around(term: Sum) -> dict[Term, tuple[Var, Term, Size]]:
    """The δ's in a Σ that say of an index of it which place around its axis it is, with that, as `reduced_index`."""
    deltas = [factor for factor in factors_of(term.body) if isinstance(factor, Delta)]
    return {factor: found for factor in deltas if (found := reduced_index(factor)) and found[0] in term.indices}


def from_the_end(index: Var) -> Term:
    """n − 1 − i of an axis of n elements."""
    return affine([(size_form(index.type.size), 1), (index, -1)], -1)  # type: ignore[union-attr]


def read_forwards(factors: Sequence[Term], place: int) -> list[Term]:
    """Factors under Σ_k, of which one says that k is `form mod n`, with k for n − 1 − k where more is read at that.

    δ(k, (i − 1) mod n) x[n − 1 − k] is δ(k, −i mod n) x[k]
    """
    condition, forwards = factors[place], list(factors)
    found = reduced_index(condition) if isinstance(condition, Delta) else None
    if found is None or not isinstance(found[0].type, Range):  # on a cycle −1 − k is as good as n − 1 − k
        return forwards
    index, form, size = found
    back = from_the_end(index)
    reads = [a for f in factors for node in subterms(f) if isinstance(node, Apply) for a in node.arguments]
    if reads.count(back) > reads.count(index):
        forwards = [substitute(factor, {index: back}) for factor in factors]
        forwards[place] = equal_modulo(index, substitute(back, {index: form}), size)
    return forwards


def read_around(term: Term) -> Term | None:
    """The element that a Σ reads around an axis, at the index that stands for the place; None for other terms.

    x[k] of Σ_k δ(k, (i − 1) mod n) x[k]
    """
    if not isinstance(term, Sum) or len(term.indices) != 1 or not isinstance(term.body, Mul):
        return None
    one, other, *more = term.body.factors
    if isinstance(other, Delta):
        one, other = other, one
    found = reduced_index(one) if isinstance(one, Delta) and not more else None
    is_read = isinstance(other, Apply) and isinstance(other.function, Var)
    return other if found and found[0] in term.indices and is_read else None
