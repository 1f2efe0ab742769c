"""Exact sets of integers: which indices an access reaches, and whether any leaves its tensor.

In: index forms with their ranges. Out: solutions, bounds and verdicts in closed form.

    { k : 0 ≤ d − k < n, 0 ≤ k < 5 }   =   max(0, d − n + 1) ≤ k ≤ min(4, d)

In the order in which data meets them: `diophantine` (the Smith normal form and all integer solutions), `affine`
(linear forms in named integers, Fourier–Motzkin elimination), `linear_forms` (index expressions as such), `enclosures`
(of these between numbers), `lattices` (of those that congruences allow), `bounds_checks` (accesses that may leave their
tensor), `index_array_checks` (indices that integer arrays hold).

Invariant: all arithmetic is exact; where rationals decide instead of integers, the answer errs on the safe side.
"""

from combdiff.polyhedra.affine import (
    NEVER,
    Bound,
    Bounds,
    Linear,
    as_linear,
    contradictory,
    eliminate,
    implied,
    integer_points,
    prune,
    tighten,
)
from combdiff.polyhedra.bounds_checks import Access, check, doubtful_accesses
from combdiff.polyhedra.diophantine import hermite, smith
from combdiff.polyhedra.enclosures import Enclosed, enclosed
from combdiff.polyhedra.index_array_checks import Lookup, lookups
from combdiff.polyhedra.lattices import Lattice, is_empty, lattice_of, loosest, loosest_room, tightest
from combdiff.polyhedra.linear_forms import (
    in_domain,
    is_inside,
    linear,
    plain_congruence,
    premises_of,
    projected,
    symbol,
    term_of,
)

__all__ = [
    "NEVER",
    "Access",
    "Bound",
    "Bounds",
    "Enclosed",
    "Lattice",
    "Linear",
    "Lookup",
    "as_linear",
    "check",
    "contradictory",
    "doubtful_accesses",
    "eliminate",
    "enclosed",
    "hermite",
    "implied",
    "in_domain",
    "integer_points",
    "is_empty",
    "is_inside",
    "lattice_of",
    "linear",
    "lookups",
    "loosest",
    "loosest_room",
    "plain_congruence",
    "premises_of",
    "projected",
    "prune",
    "smith",
    "symbol",
    "term_of",
    "tighten",
    "tightest",
]
