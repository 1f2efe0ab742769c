"""Index expressions that two conditions keep between 0 and a number.

    [d − 3j ≥ 0] [3j − d + 2 ≥ 0]     is     0 ≤ d − 3j ≤ 2, and 0 ≤ 3j − d + 2 ≤ 2

Invariant: each is found either way around.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from combdiff.ir import Indicator, Term, affine_parts, denominator


class Enclosed(NamedTuple):
    """`0 ≤ form ≤ room`, by two conditions."""

    form: Term
    room: int
    conditions: tuple[Indicator, Indicator]


def enclosed(factors: Iterable[Term]) -> Iterator[Enclosed]:
    """What factors enclose two by two, of index expressions with whole coefficients."""
    bounds = [f for f in factors if isinstance(f, Indicator) and not f.modulus and denominator(f.form) == 1]
    for bound in bounds if len(bounds) > 1 else ():
        parts, offset = affine_parts(bound.form)
        opposite = {var: -coefficient for var, coefficient in parts}
        for other in bounds:
            others, room = affine_parts(other.form)
            if opposite == dict(others) and offset + room >= 0:
                yield Enclosed(bound.form, int(offset + room), (bound, other))
