"""Bounds of forms that congruences keep on a lattice: between two of its points a bound may be anywhere.

    [d ≡ 0 (mod 3)]:     d − 6j ≥ 1   is   d − 6j ≥ 3, its tightest, and   d − 6j ≥ 1, its loosest writing

Invariant: a bound holds at the same points of the lattice, however it is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from math import gcd

from combdiff.ir import Indicator, Term
from combdiff.polyhedra.affine import Linear, tighten
from combdiff.polyhedra.enclosures import Enclosed
from combdiff.polyhedra.linear_forms import linear, plain_congruence

Lattice = Sequence[tuple[Linear, int]]
"""Forms that are multiples, and of what."""


def lattice_of(factors: Iterable[Term]) -> Lattice:
    """What congruences among some factors say is a multiple, and of what."""
    plain = [plain_congruence(f) for f in factors if isinstance(f, Indicator) and f.modulus]
    return [(linear(f.form), f.modulus) for f in plain if isinstance(f, Indicator)]


def is_empty(lattice: Lattice) -> bool:
    """Whether two congruences contradict each other: d is not even and odd."""
    pairs = ((form, other, gcd(size, beside)) for (form, size), (other, beside) in combinations(lattice, 2))
    return any(_step(form, [(other, common)]) not in (None, (common, 0)) for form, other, common in pairs)


def tightest(bound: Linear, lattice: Lattice) -> Linear:
    """`d ≥ 0` as `d ≥ 1` where a condition says that d is odd: the same points."""
    bound = tighten(bound)
    step = _step(bound, lattice)
    return bound - step[1] if step else bound


def loosest(bound: Linear, lattice: Lattice) -> Linear:
    """`d ≥ 1` as `d ≥ 0` where a condition says that d is odd: the same points. No coefficient changes."""
    step = _step(bound, lattice)
    return bound + (step[0] - 1 - step[1]) if step else bound


def loosest_room(each: Enclosed, lattice: Lattice) -> int:
    """What an enclosed expression may be at most, by a bound as loose as can be: 4 where it is odd and at most 3."""
    form = linear(each.form)
    return int((loosest(form.scale(-1) + each.room, lattice) + form).constant)


def _step(form: Linear, lattice: Lattice) -> tuple[int, int] | None:
    """How far the values of a form lie apart, and the least of them that is not negative."""
    for known, modulus in lattice:
        for turned in (known, known.scale(-1)):
            apart = form - turned
            if all(c.denominator == 1 and not c % modulus for _, c in apart.coefficients):
                return modulus, int(apart.constant) % modulus
    return None
