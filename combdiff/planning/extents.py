"""How many indices a domain has, in numbers and in forms of the sizes, and which one is stored first.

    Range("n"): n, from 0        Symmetric("B"): 2·B + 1, from −B

Invariant: a form at the sizes is the number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod

from combdiff.errors import UnsupportedError
from combdiff.ir import Domain, Real, Symmetric, extent
from combdiff.polyhedra import Linear, as_linear


def extent_form(domain: Domain) -> Linear:
    """The number of indices of a domain. Raises UnsupportedError for the real line."""
    if isinstance(domain, Real):
        raise UnsupportedError(
            "nothing over the real line can be evaluated with arrays",
            hint="declare the axis with a size, or look at the program as a formula only",
        )
    if isinstance(domain, Symmetric):
        return as_linear(domain.bound).scale(2) + 1
    return as_linear(domain.size)


def first_form(domain: Domain) -> Linear:
    """The index stored first."""
    return as_linear(domain.bound).scale(-1) if isinstance(domain, Symmetric) else Linear()


def shape(axes: Iterable[Domain], sizes: Mapping[str, int]) -> tuple[int, ...]:
    """The shape of an array over the axes."""
    known = dict(sizes)
    return tuple(extent(axis, known) for axis in axes)


def elements(axes: Iterable[Domain], sizes: Mapping[str, int]) -> int:
    """The number of elements of an array over the axes."""
    return prod(shape(axes, sizes))


def at_most(limit: int, forms: Iterable[Linear], sizes: Mapping[str, int]) -> bool:
    """Whether a product of lengths is known at the sizes, and no more than a limit."""
    lengths = list(forms)
    known = all(sizes.keys() >= set(form.symbols) for form in lengths)
    return known and prod(int(form.evaluate(sizes)) for form in lengths) <= limit


def at_least(limit: int, forms: Iterable[Linear], sizes: Mapping[str, int]) -> bool:
    """Whether a product of lengths is known at the sizes, and no less than a limit."""
    lengths = list(forms)
    known = all(sizes.keys() >= set(form.symbols) for form in lengths)
    return known and prod(int(form.evaluate(sizes)) for form in lengths) >= limit


def never_negative(form: Linear) -> bool:
    """Whether a form of sizes is a natural number for all of them."""
    return form.constant >= 0 and all(factor >= 0 for _, factor in form.coefficients)
