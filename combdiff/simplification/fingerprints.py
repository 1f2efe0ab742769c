"""Fingerprints: a program's value at one random point, before and after it was simplified.

    Σ_{i,j} (δ(d, i) x[j] + δ(d, j) x[i]) A[i,j]  at d = 1, x = (.7, 1.2), …   =   2 Σ_i A[d,i] x[i]  there

With COMBDIFF_CHECK_RESULTS=1 every result is compared on arrival with what it was made of, by the reference
interpreter at sizes of 2 and random tensors with their symmetries, at two elements. Without it nothing is done.

Invariant: what is compared is not changed; a difference is an error, and what cannot be evaluated in a moment (long
programs, named maps, integrals, undefined points) is let pass.
"""

from __future__ import annotations

import os
import warnings
from cmath import isfinite
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from combdiff.errors import CombdiffError, RuleError
from combdiff.ir import (
    Cyclic,
    Lambda,
    Names,
    Primitive,
    Range,
    Real,
    Space,
    Sum,
    Symmetric,
    Term,
    Var,
    Whole,
    affine,
    apply,
    evaluate,
    extent,
    image_under,
    is_domain,
    items_of,
    lambda_,
    let,
    mean_of,
    split,
    subterms,
)

SWITCH = "COMBDIFF_CHECK_RESULTS"
SIZE = 2  # of every named size
MOST_WORK = 30_000  # nodes that are evaluated for one element
LARGE = 1e-3  # what no rounding of a Σ of moderate terms leaves of 0
CLOSE = 1e-6  # relative to 1, or to the values where they are larger


def checked(before: Term, after: Term) -> Term:
    """The simplified body of a program, which is compared with what it was before if the switch is on.

    Raises RuleError where the two differ in value.
    """
    if os.environ.get(SWITCH, "0") not in ("", "0"):
        for one, other in zip(_fingerprints(before, after), _fingerprints(after, before), strict=False):
            if one is not None and other is not None and abs(one - other) > CLOSE * max(1.0, abs(one), abs(other)):
                raise RuleError(
                    f"a simplified program has the value {other:.9g} at a random point where it had {one:.9g}",
                    hint="a law is false: cd.testing.check_rules() tries those of a file; simplify=False applies none",
                )
    return after


def seems_zero(sum_: Sum, definitions: dict[Var, Term]) -> bool:
    """Whether a Σ over definitions is 0 at random points while its terms are not; no where it cannot be evaluated."""
    needed = _needed(sum_, definitions)
    terms = Sum(sum_.indices, Primitive("abs", (sum_.body,)))
    sizes, seen = _at_random(terms, needed), False
    for value in _at_random(sum_, needed):
        if value is not None and abs(value) > LARGE:  # most sums: the sizes of their terms need not be known
            return False
        size = next(sizes)
        if value is not None and size is not None:
            if abs(value) > CLOSE * abs(size):
                return False
            seen = seen or bool(size)
    return seen


def _needed(term: Term, definitions: dict[Var, Term]) -> list[tuple[Var, Term]]:
    """The definitions that a term is made of, in their order."""
    names = set(term.free)
    for var, value in reversed(definitions.items()):
        if var in names:
            names |= value.free
    return [(var, value) for var, value in definitions.items() if var in names]


def _at_random(term: Term, definitions: list[tuple[Var, Term]]) -> Iterator[complex | None]:
    """Values of a number over its indices at a random point: at the first of each, and at the last."""
    tensor = over_its_indices(term)
    return _fingerprints(let(definitions, tensor), tensor)


def over_its_indices(term: Term) -> Term:
    """A number with free indices as a tensor over them."""
    return lambda_(sorted((var for var in term.free if is_domain(var.type)), key=lambda var: var.name), term)


def _fingerprints(body: Term, beside: Term) -> Iterator[complex | None]:
    """Values of elements of the results of a body, None where there is none; random tensors are the same beside."""
    free = sorted(
        {v for v in body.free | beside.free if not isinstance(v.type, Whole)}, key=lambda v: (v.name, repr(v.type))
    )
    names = {size for term in (body, beside) for size in _size_names(term)}
    sizes = dict.fromkeys(sorted(names), SIZE)
    bindings, result = split(body)
    if not all(isinstance(v.type, Space) and not any(isinstance(a, Real) for a in v.type.axes) for v in free):
        return
    rng = np.random.default_rng(len(free))
    scope: Mapping[Var, Any] = {var: _random(var, rng, sizes) for var in free}
    for item in items_of(result):
        for last in (False, True):
            element = _element(item, sizes, last)
            yield _value(let(bindings, element), scope, sizes) if element is not None else None


def _size_names(term: Term) -> Iterator[str]:
    """The names of sizes in a term."""
    for node in subterms(term):
        for var in (*node.bound, *((node,) if isinstance(node, Var) else ())):
            if isinstance(var.type, Whole):
                yield var.name
            axes = var.type.axes if isinstance(var.type, Space) else (var.type,)
            for axis in axes:
                size = axis.bound if isinstance(axis, Symmetric) else getattr(axis, "size", None)
                if isinstance(size, str):
                    yield size


def _random(var: Var, rng: np.random.Generator, sizes: dict[str, int]) -> Any:
    """Positive numbers in an array with the symmetries of its Space."""
    space = var.type
    assert isinstance(space, Space)
    shape = [extent(axis, sizes) for axis in space.axes]
    array: Any = rng.integers(0, SIZE, shape) if space.dtype is int else 0.5 + rng.random(shape)
    if space.dtype is complex:
        array = array + 1j * rng.random(shape)
    if not space.symmetry:
        return array
    plain = Var(var.name, Space(*space.axes, dtype=space.dtype))
    indices = Names(plain).indices(space.axes)
    mean = mean_of([image_under(plain, indices, action) for action in space.group])
    return evaluate(lambda_(indices, mean), {plain: array}, sizes)


def _element(item: Term, sizes: dict[str, int], last: bool) -> Term | None:
    """An element of a result: the first, or the last along every second axis; None where it has none."""
    if not isinstance(item, Lambda):
        return item
    ends = []
    for n, parameter in enumerate(item.parameters):
        if not isinstance(parameter.type, Range | Cyclic | Symmetric):
            return None
        size = extent(parameter.type, sizes)
        ends.append(affine([], size - 1 if last and n % 2 == 0 and not isinstance(parameter.type, Symmetric) else 0))
        if not size:
            return None
    return apply(item, ends)


def _value(term: Term, scope: Mapping[Var, Any], sizes: dict[str, int]) -> complex | None:
    if _work(term, sizes) > MOST_WORK:
        return None
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = np.asarray(evaluate(term, scope, sizes))
    except (CombdiffError, ArithmeticError, ValueError):
        return None
    value = complex(found) if not found.ndim else complex(found.sum())
    return value if isfinite(value) else None


def _work(term: Term, sizes: dict[str, int]) -> float:
    """How many nodes are evaluated, those under a Σ and in a tensor for each of its indices."""
    done: dict[Term, float] = {}
    for node in subterms(term):  # children first
        inside = 1.0 + sum(done[child] for child in node.children)
        for var in node.bound if isinstance(node, Sum | Lambda) else ():
            domain = var.type
            if not isinstance(domain, Range | Cyclic | Symmetric):
                return float("inf")
            inside *= extent(domain, sizes)
        done[node] = inside
    return done[term]
