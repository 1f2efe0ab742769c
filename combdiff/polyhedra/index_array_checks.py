"""Indices that integer arrays hold: `x[idx[i]]`, checked when the arrays are at hand.

    Σ_i x[idx[i] + 1]           idx = [0, 7], x over Range(5): x is read at 8, refused before anything is computed

What is held is any integer computed from integer parameters; it is evaluated at all of its indices at which its own
reads stay inside of their arrays. Conditions around an access do not say what an array holds, but where an index is
added: in [i + j < n]·x[idx[i] + j] nothing is read where the condition does not hold.

Invariant: each integer that a program takes for an index is checked, also in a derivative that no longer reads there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from combdiff.errors import ArgumentError, IndexingError, UnsupportedError
from combdiff.ir import (
    Add,
    Affine,
    Apply,
    Coordinate,
    Cyclic,
    Delta,
    Domain,
    Function,
    Lambda,
    Mul,
    Number,
    Primitive,
    Range,
    Space,
    Sum,
    Symmetric,
    Term,
    Tuple,
    Var,
    Whole,
    affine,
    describe,
    factors_of,
    indicator,
    is_index_by_form,
    lambda_,
    mul,
    show_index,
    size_form,
    substitute,
    subterms,
    type_of,
    whole_tensor,
)
from combdiff.polyhedra.bounds_checks import ends, extent_term, is_of_indices, sizes_named
from combdiff.polyhedra.linear_forms import projected
from combdiff.records import dataclass

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Lookup:
    """`tensor[…, value, …]` at one axis, with an integer computed from parameters; without a tensor where only an
    index of the result is compared with it."""

    tensor: str
    axis: int
    domain: Domain
    value: Term
    guards: tuple[Term, ...] = ()

    @cached_property
    def program(self) -> Lambda:
        """The value at all of its indices, and whether it is used there, as a program of the parameters it mentions."""
        free = sorted(self.value.free, key=lambda v: v.name)
        arrays = tuple(v for v in free if isinstance(v.type, Space))
        used = [g for g in self.guards if all(v in self.indices or isinstance(v.type, Whole) for v in g.free)]
        return Lambda(arrays, Tuple((lambda_(self.indices, self.value), lambda_(self.indices, mul(*used)))))

    @cached_property
    def indices(self) -> tuple[Var, ...]:
        """The indices it is read at, those of an array in the order of its axes."""
        arguments = self.value.arguments if isinstance(self.value, Apply) else ()
        free = [*(v for v in arguments if isinstance(v, Var)), *sorted(self.value.free, key=lambda v: v.name)]
        return tuple(dict.fromkeys(v for v in free if not isinstance(v.type, Space | Function | Whole)))

    @property
    def is_stored(self) -> bool:
        """Whether the values are an array as it is."""
        return isinstance(whole_tensor(self.value, self.indices), Var) and not self.guards

    def refuse_mask(self, dtype: np.dtype[Any]) -> None:
        """Raises ArgumentError where truth values are given for an array whose elements are indices as they are."""
        array = self.value.function if isinstance(self.value, Apply) else self.value
        if isinstance(array, Var) and dtype.kind == "b":
            place = f"axis {self.axis} of {self.tensor}" if self.tensor else "a tensor"
            raise ArgumentError(
                f"{array.name} holds indices of {place}, but what was given for it has dtype {dtype}: "
                "whole numbers are expected, not a mask",
                hint=f"give np.flatnonzero({array.name}), the indices where it is True, "
                f"or {array.name}.astype(int) if 0 and 1 are meant",
            )

    def check(self, values: Array, sizes: Mapping[str, int], used: Array | int = 1) -> None:
        """Raises IndexingError if one of the values is no index of the axis, where it is used."""
        if isinstance(self.domain, Cyclic):
            return
        first, last = ends(self.domain, sizes)
        wrong = ((values < first) | (values > last)) & (used != 0)
        if wrong.any():
            place = tuple(int(n) for n in np.argwhere(wrong)[0])
            known = "".join(f" for {name} = {sizes[name]}" for name in sorted(sizes_named(self.domain)))
            raise IndexingError(
                f"{f'axis {self.axis} of {self.tensor} is read at' if self.tensor else 'an index is'} "
                f"{self._at(place, values[place])}, but {'it has' if self.tensor else 'there are'} the indices "
                f"{first} … {last}{known}",
                hint=f"{self._wanted()} from {first} to {last}; negative ones do not count from the end",
            )

    def _wanted(self) -> str:
        if not self.program.parameters:
            return "read it at indices"
        return f"give {self._names()} {'indices' if self.is_stored else 'so that it is'}"

    def _names(self) -> str:
        return " and ".join(parameter.name for parameter in self.program.parameters)

    def _at(self, place: tuple[int, ...], value: object) -> str:
        where = dict(zip((show_index(v) for v in self.indices), map(str, place), strict=True))
        if self.is_stored:
            return f"{self._names()}[{', '.join(where.values())}] = {value}" if where else f"{self._names()} = {value}"
        at = ", ".join(f"{name} = {position}" for name, position in where.items())
        return f"{_shown(self.value)} = {value}{f' (for {at})' if at else ''}"


def _shown(term: Term) -> str:
    """An integer as the user wrote it, more or less."""
    match term:
        case Number():
            return str(term.real)
        case Var() | Affine():
            return show_index(term)
        case Coordinate():
            return show_index(term.form)
        case Apply(Lambda() as tensor):
            return _shown(substitute(tensor.body, dict(zip(tensor.parameters, term.arguments, strict=True))))
        case Apply():
            return f"{describe(term.function)}[{', '.join(map(_shown, term.arguments))}]"
        case Add():
            return " + ".join(map(_shown, term.terms)).replace("+ -1*", "- ").replace("+ -", "- ")
        case Mul():
            parts = [
                f"({_shown(f)})" if isinstance(f, Add) else _shown(f) for f in term.factors if not isinstance(f, Delta)
            ]
            text = "*".join(parts)
            for index, value in (f.lookup for f in term.factors if isinstance(f, Delta) and f.lookup):
                text = text.replace(f"[{_shown(index)}]", f"[{_shown(value)}]")
            return text
        case Sum():
            return _shown(term.body)
        case Primitive():
            return f"{term.name}({', '.join(map(_shown, term.arguments))})"
    return type(term).__name__.lower()


def lookups(program: Lambda) -> tuple[Lookup, ...]:
    """The reads of a program at integers that its parameters hold; what others are computed from comes first.

    Raises UnsupportedError for an index computed from what is no parameter.
    """
    found: dict[Lookup, int] = {}
    for node, condition, guards in _conditions(program):
        assert condition.lookup
        assert condition.domain
        index, value = condition.lookup
        guards = (*(guards if _counts(value) else ()), *_inside(value))
        outside = [v for v in value.free if isinstance(v.type, Space) and v not in program.parameters]
        if outside:
            raise UnsupportedError(
                f"an index is computed from {outside[0].name}, which is no parameter",
                hint="pass the indices as a parameter, idx: cd.Space(…, dtype=int)",
            )
        places = [*_places(index, node, condition.domain)] or [("", 0)]
        size = sum(1 for _ in subterms(value))
        found |= {Lookup(tensor, axis, condition.domain, value, guards): size for tensor, axis in places}
    told = {one.value for one in found if one.tensor}
    kept = [one for one in found if one.tensor or one.value not in told]
    return tuple(sorted(kept, key=lambda one: (found[one], repr(one))))


def _conditions(program: Term) -> Iterator[tuple[Term, Delta, tuple[Term, ...]]]:
    """The δ's that look an index up, each with the product it stands in and the conditions around that."""
    for node, guards in _visited(program):
        yield from ((node, condition, guards) for condition in _looked_up(node))


def _looked_up(node: Term) -> list[Delta]:
    """The δ's of a product that look an index up which may be none of its axis."""
    deltas = (f for f in factors_of(node) if isinstance(f, Delta))
    return [f for f in deltas if f.lookup and f.domain and not is_index_by_form(f)]


def _visited(program: Term) -> Iterator[tuple[Term, tuple[Term, ...]]]:
    """Every part that looks indices up with the conditions on its indices, its own and those around it.

    Of conditions on other indices, too, is kept what they say of its own. Those on none of them say nothing of what is
    inside: so a tensor that is read in several places is visited once, whatever stands around them.
    """
    looking: set[Term] = set()
    for node in subterms(program):  # children first
        if _looked_up(node) or not looking.isdisjoint(node.children):
            looking.add(node)
    todo: list[tuple[Term, tuple[Term, ...]]] = [(program, ())] if program in looking else []
    seen = set(todo)
    while todo:
        node, guards = todo.pop()
        looked_up = _looked_up(node)
        factors = factors_of(node)
        own = [f for f in factors if is_of_indices(f) and f not in looked_up]
        guards = tuple(dict.fromkeys((*guards, *own)))
        yield node, guards
        inside = ((child, _inside_of(child, guards)) for child in node.children if child in looking)
        new = [pair for pair in inside if pair not in seen]
        seen.update(new)
        todo += new


def _inside_of(part: Term, guards: Sequence[Term]) -> tuple[Term, ...]:
    """What conditions say of the indices that a part mentions."""
    known = [g for g in guards if all(v in part.free or isinstance(v.type, Whole) for v in g.free)]
    if any(g not in known and not g.free.isdisjoint(part.free) for g in guards):
        known += projected(guards, part.free)
    return tuple(dict.fromkeys(known))


def _counts(value: Term) -> bool:
    """Whether an index itself is part of a value."""
    return any(isinstance(node, Coordinate) for node in subterms(value))


def _inside(value: Term) -> Iterator[Term]:
    """The conditions that the reads in a value stay inside of their arrays."""
    for access in subterms(value):
        space = type_of(access.function) if isinstance(access, Apply) else None
        if isinstance(access, Apply) and isinstance(space, Space):
            for index, axis in zip(access.arguments, space.axes, strict=True):
                if isinstance(axis, Range | Symmetric) and not (isinstance(index, Var) and index.type == axis):
                    first = size_form(axis.bound) if isinstance(axis, Symmetric) else affine([])
                    yield indicator(affine([(index, 1), (first, 1)]))
                    yield indicator(affine([(extent_term(axis), 1), (first, -1), (index, -1)], -1))


def _places(index: Term, product: Term, domain: Domain) -> Iterator[tuple[str, int]]:
    """The axes that an index is for in a product: those it reads that have its domain.

    In Σ_{k<2} δ(k, idx[i]) ([k < 1] y[k] + …) it is for none: y may have one element, where idx[i] may be 1.
    """
    for access in subterms(product):
        space = type_of(access.function) if isinstance(access, Apply) else None
        if isinstance(access, Apply) and isinstance(space, Space):
            for n, (argument, axis) in enumerate(zip(access.arguments, space.axes, strict=True)):
                if argument is index and axis == domain:
                    yield describe(access.function), n
