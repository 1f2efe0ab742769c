"""Fingerprints: a program's value at one random point, before and after it was simplified.

    Σ_{i,j} (δ(d, i) x[j] + δ(d, j) x[i]) A[i,j]  at d = 1, x = (.7, 1.2), …   =   2 Σ_i A[d,i] x[i]  there

With COMBDIFF_CHECK_RESULTS=1 every result is compared on arrival with what it was made of, by the reference
interpreter at sizes of 3 and random tensors with their symmetries, at two elements. Without it nothing is done.
Where rounding decides a value (X (XᵀAX)⁻¹ Xᵀ of a matrix X that is almost singular), another point is taken.

Invariant: what is compared is not changed; a difference is an error, and what cannot be evaluated in a moment (long
programs, named maps, integrals, undefined points) is let pass.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import hypot, isfinite
from typing import Any

import numpy as np

from combdiff.errors import CombdiffError, RuleError
from combdiff.ir import (
    Action,
    Cyclic,
    Lambda,
    Names,
    Range,
    Real,
    Space,
    Sum,
    Symmetric,
    Term,
    Tuple,
    Var,
    Whole,
    affine,
    apply,
    composed,
    evaluate,
    extent,
    image_under,
    items_of,
    lambda_,
    let,
    mean_of,
    names_in,
    split,
    subterms,
    type_of,
)
from combdiff.simplification.egraph.extraction import index_variables

SWITCH = "COMBDIFF_CHECK_RESULTS"
SIZE = 3  # of every named size: of two numbers all correlations are ±1, so that their slopes vanish
MOST_WORK = 30_000  # nodes that are evaluated for one element
CLOSE = 1e-6  # relative to 1, or to the values where they are larger
POINTS = 4  # at most: one at which rounding decides nothing is found almost always by the second
NUDGES = 4  # points a few units in the last place away, at which a value is another if rounding decides it


def checked(before: Term, after: Term) -> Term:
    """The simplified body of a program, which is compared with what it was before if the switch is on.

    Raises RuleError where the two differ in value.
    """
    if before is not after and os.environ.get(SWITCH, "0") not in ("", "0"):
        sides = (before, after), (after, before)
        found = _difference(lambda *point: zip(*(_fingerprints(*each, *point) for each in sides), strict=False))
        if found is not None:
            one, other = found
            raise RuleError(
                f"a simplified program has the value {other:.9g} at a random point where it had {one:.9g}",
                hint="a law is false: cd.testing.check_rules() tries those of a file; simplify=False applies none",
            )
    return after


def seeming_zero(sums: Sequence[Sum], definitions: dict[Var, Term]) -> Iterator[Sum]:
    """Those of some Σ's over definitions that are 0 at a random point while their terms are not.

    Each definition is computed once for all of them, after those that it reads. One that has no value or takes long is
    not among those found.
    """
    if not sums:
        return
    needed = _needed(sums, definitions)
    sizes = _sizes(*sums, *needed.values())
    scope = _scope(let(needed.items(), Tuple(tuple(map(over_its_indices, sums)))).free, sizes)
    if scope is None:
        return
    left = _computed(needed, scope, sizes, MOST_WORK * len(sums))
    for sum_ in sums:
        if _is_zero(_at_the_point(sum_, left, scope, sizes)):
            yield sum_


def missing_symmetry(value: Term, space: Space) -> Action | None:
    """The first generator of the symmetries of a Space under which a tensor changes at a random point, if one is seen.

    None also for a tensor that has no value there or takes long.
    """
    sizes = _sizes(value)
    plain = Var("T", Space(*space.axes, dtype=complex))
    indices = Names(plain).indices(space.axes)

    def pairs(action: Action, point: int, nudge: int) -> Iterator[tuple[Any, Any]]:
        scope = _scope(value.free, sizes, point, nudge)
        found = None if scope is None else _values(value, scope, sizes, MOST_WORK)
        if found is None or not np.isfinite(found).all():
            yield None, None
        else:
            yield found, evaluate(lambda_(indices, image_under(plain, indices, action)), {plain: found}, sizes)

    for action in space.generators:
        if _difference(partial(pairs, action)) is not None:
            return action
    return None


def _difference(pairs: Callable[[int, int], Iterable[tuple[Any, Any]]]) -> tuple[Any, Any] | None:
    """The first of some pairs of values that differ, at a point where both stay as they are in points beside it.

    `pairs` is given the number of a point and that of a point beside it, 0 for the point itself. What rounding decides
    at all points does not differ.
    """
    for point in range(POINTS):
        found = list(pairs(point, 0))
        differing = [n for n, pair in enumerate(found) if _far(*pair)]
        beside = [list(pairs(point, nudge)) for nudge in range(1, NUDGES + 1)] if differing else []
        for n in differing:
            if not any(_far(*both) for each in beside for both in zip(found[n], each[n], strict=True)):
                return found[n]
        if not differing:
            break
    return None


def _far(one: Any, other: Any) -> bool:
    """Whether two values are not close; None, where there is none, is close to all."""
    if one is None or other is None:
        return False
    one, other = np.asarray(one), np.asarray(other)
    scale = max(np.abs(each).max(initial=1.0) for each in (one, other))
    return bool(np.abs(one - other).max(initial=0.0) > CLOSE * scale)


_Elements = Iterator[tuple[complex | None, complex | None]]


def _is_zero(elements: _Elements) -> bool:
    """Whether values are 0 beside their magnitudes, of which one is not; the first that is not 0 ends it."""
    some = False
    for value, size in elements:
        if value is not None and size is not None:
            if abs(value) > CLOSE * abs(size):
                return False
            some = some or size != 0
    return some


def _computed(
    definitions: dict[Var, Term], scope: dict[Var, Any], sizes: dict[str, int], most_work: float
) -> dict[Var, Term]:
    """Puts values of definitions into a scope, and gives the definitions that have none at all of their indices.

    One after the other: read from the last, a hundred of them would be as many levels deep.
    """
    left: dict[Var, Term] = {}
    for var, value in definitions.items():
        whole = let(_needed([value], left).items(), value)
        most_work -= _work(whole)
        found = None if most_work < 0 else _values(whole, scope, sizes, MOST_WORK)
        if found is None:
            left[var] = value
        else:
            scope[var] = found
    return left


def _at_the_point(sum_: Sum, left: dict[Var, Term], scope: Mapping[Var, Any], sizes: dict[str, int]) -> _Elements:
    """The values of a Σ at the first and at the last of each index, with the sums of the magnitudes of its terms."""
    free = _indices_of(sum_)
    terms = let(_needed([sum_], left).items(), Lambda(sum_.indices, sum_.body))
    for last in (False, True):
        ends = dict(zip(free, _ends(free, sizes, last), strict=True))
        values = _values(terms, {**scope, **ends}, sizes, MOST_WORK) if None not in ends.values() else None
        if values is not None:
            yield _number(values), _number(np.abs(values))
        if not free:
            break


def _needed(terms: Iterable[Term], definitions: dict[Var, Term]) -> dict[Var, Term]:
    """The definitions that terms are made of, in their order."""
    names = {var for term in terms for var in term.free}
    for var, value in reversed(definitions.items()):
        if var in names:
            names |= value.free
    return {var: value for var, value in definitions.items() if var in names}


def over_its_indices(term: Term) -> Term:
    """A number with free indices as a tensor over them; the number of a scan's step is a symbol, which has no axis."""
    return lambda_(_indices_of(term), term)


def _indices_of(term: Term) -> list[Var]:
    return sorted(index_variables(term), key=lambda var: var.name)


def _fingerprints(body: Term, beside: Term, point: int, nudge: int) -> Iterator[complex | None]:
    """Values of elements of the results of a body, None where there is none; random tensors are the same beside."""
    sizes = _sizes(body, beside)
    scope = _scope(body.free | beside.free, sizes, point, nudge)
    bindings, result = split(body)
    if scope is None:
        return
    for item in items_of(result):
        for last in (False, True):
            element = _element(item, sizes, last)
            yield _value(let(bindings, element), scope, sizes) if element is not None else None


def _sizes(*terms: Term) -> dict[str, int]:
    """A number for each named size in some terms."""
    return dict.fromkeys(sorted({name for term in terms for name in _size_names(term)}), SIZE)


def _scope(names: Iterable[Var], sizes: dict[str, int], point: int = 0, nudge: int = 0) -> dict[Var, Any] | None:
    """Random arrays for free tensors, None where one is no tensor or one over the real line.

    Another point has other arrays; a nudge adds a few units in the last place to those of a point.
    """
    free = sorted({v for v in names if not isinstance(v.type, Whole)}, key=lambda v: (v.name, repr(v.type)))
    if not all(isinstance(v.type, Space) and not any(isinstance(a, Real) for a in v.type.axes) for v in free):
        return None
    rng = np.random.default_rng([len(free), point] if point else len(free))
    return {var: _random(var, rng, sizes, 1 + nudge * 2.0**-50) for var in free}


def _size_names(term: Term) -> Iterator[str]:
    """The names of sizes in a term: n and m of `n + m`, which is no name."""
    for node in subterms(term):
        for var in (*node.bound, *((node,) if isinstance(node, Var) else ())):
            if isinstance(var.type, Whole):
                yield var.name
            axes = var.type.axes if isinstance(var.type, Space) else (var.type,)
            for axis in axes:
                yield from _names_of(axis)


def _names_of(domain: object) -> frozenset[str]:
    return names_in(domain.bound if isinstance(domain, Symmetric) else getattr(domain, "size", None))


def _random(var: Var, rng: np.random.Generator, sizes: dict[str, int], scale: float) -> Any:
    """Positive numbers in an array with the symmetries of its Space."""
    space = var.type
    assert isinstance(space, Space)
    shape = [extent(axis, sizes) for axis in space.axes]
    array: Any = rng.integers(0, SIZE, shape) if space.dtype is int else scale * (0.5 + rng.random(shape))
    if space.dtype is complex:
        array = array + 1j * rng.random(shape)
    if len(space.group) == 1:
        return array
    plain = Var(var.name, Space(*space.axes, dtype=space.dtype))
    indices = Names(plain).indices(space.axes)
    mean = mean_of([image_under(plain, indices, action) for action in space.group])
    return evaluate(lambda_(indices, mean), {plain: array}, sizes)


def _element(item: Term, sizes: dict[str, int], last: bool) -> Term | None:
    """An element of a result: the first, or the last along every second axis; None where it has none."""
    space = type_of(item)
    if not isinstance(item, Lambda) and isinstance(space, Space) and space.order:  # a tensor by its name
        indices = Names(item).indices(space.axes)
        item = lambda_(indices, apply(item, indices))
    if not isinstance(item, Lambda):
        return item
    ends = _ends(item.parameters, sizes, last)
    return apply(item, [affine([], end) for end in ends if end is not None]) if None not in ends else None


def _ends(indices: Sequence[Var], sizes: dict[str, int], last: bool) -> list[int | None]:
    """The first of each index, or the last of every second."""
    return [_end(index, sizes, last and n % 2 == 0) for n, index in enumerate(indices)]


def _end(index: Var, sizes: dict[str, int], last: bool) -> int | None:
    """The first number of an index, or its last, that of a Symmetric axis in the middle; None where it has none."""
    domain = index.type
    if not isinstance(domain, Range | Cyclic | Symmetric):
        return None
    size = extent(domain, sizes)
    if not size:
        return None
    return size - 1 if last and not isinstance(domain, Symmetric) else 0


def _value(term: Term, scope: Mapping[Var, Any], sizes: dict[str, int]) -> complex | None:
    found = _values(term, scope, sizes, MOST_WORK)
    if found is None:
        return None
    return _number(found)


def _number(found: Any) -> complex | None:
    """A value, of a tensor the sum of its elements; None where its magnitude is not finite."""
    value = complex(np.asarray(found).sum())
    return value if isfinite(hypot(value.real, value.imag)) else None  # abs() of NaN may raise OverflowError


def _values(term: Term, scope: Mapping[Var, Any], sizes: dict[str, int], most_work: float) -> Any:
    """The value of a term, None where it has none or takes more than that work."""
    if _work(term) > most_work:
        return None
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return evaluate(term, scope, sizes)
    except (CombdiffError, ArithmeticError, ValueError, RecursionError):  # definitions may be a hundred layers deep
        return None


@composed
def _work(term: Term) -> float:
    """How many nodes are evaluated, those under a Σ and in a tensor for each of its indices."""
    inside = 1.0 + sum(_work(child) for child in term.children)
    for var in term.bound if isinstance(term, Sum | Lambda) else ():
        domain = var.type
        if not isinstance(domain, Range | Cyclic | Symmetric):
            return float("inf")
        inside *= extent(domain, dict.fromkeys(_names_of(domain), SIZE))
    return inside
