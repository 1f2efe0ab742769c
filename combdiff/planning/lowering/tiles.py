"""An index that is c times another one and a remainder: computed over the two of them, and joined in one axis.

    t[j] = Σ_e [0 ≤ j − 2 e ≤ 1]·x[e]·y[j]      u[e, w] = x[e]·y[2 e + w],  t = u.reshape(2 n)     e < n, j < 2 n
    t[j] = Σ_r [(j − r) mod 2 = 0]·x[(j − r)/2]    u[e, r] = x[e]
    t[j] = Σ_{e,f} [0 ≤ j − 6 e − 2 f ≤ 1]·x[e]·y[f]    u[e, w] = Σ_f [0 ≤ w − 2 f ≤ 1]·x[e]·y[f],  f < 3, w < 6

Each j has one e, so that there is no Σ: what repeats, pools and lays out anew by known factors is a view and a reshape,
where conditions between j and e would be met one by one. What the others say of the tile and the place alone is solved.

Invariant: the value is unchanged; j runs over all c·n numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import chain, pairwise
from typing import NamedTuple

from combdiff.ir import (
    Indicator,
    Names,
    Range,
    Sum,
    SummedProduct,
    Term,
    Var,
    affine,
    affine_parts,
    factors_of,
    mul,
    size_of_parts,
    size_parts,
    size_sum,
    substitute,
    total,
)
from combdiff.polyhedra import enclosed
from combdiff.simplification import solve


class Tiling(NamedTuple):
    """A term over a tile and a place in it, which together stand for the index `whole`."""

    term: Term
    tile: Var
    place: Var
    whole: Var


def tiling(term: Term, names: Names) -> Tiling | None:
    """A Σ in which each value of a free index has one value of a summed one; None for others."""
    if not isinstance(term, Sum):
        return None
    factors = factors_of(term.body)
    for whole, tile, place, width, met in chain(
        _by_remainders(term, factors, names), _by_windows(term, factors, names)
    ):
        if whole.type != Range(size_sum((tile.type.size, width))):  # type: ignore[union-attr]
            continue
        split = {whole: affine([(tile, width), (place, 1)])}
        rest = tuple(substitute(factor, split) for factor in factors if factor not in met)
        left = solve(SummedProduct(tuple(i for i in term.indices if i not in (tile, place)), rest), names)
        return Tiling(total(left.indices, mul(*left.factors)), tile, place, whole)
    return None


_Part = tuple[Var, int | Fraction]  # of an index expression: an index, and how often it counts


class _Split(NamedTuple):
    """An index as a tile and a place in a tile of some width, and the conditions that say so and are met then."""

    whole: Var
    tile: Var
    place: Var
    width: int
    met: Sequence[Term]


def _by_remainders(term: Sum, factors: Sequence[Term], names: Names) -> Iterator[_Split]:
    """Σ_r [(j - r) mod c = 0]."""
    for bound in factors:
        if isinstance(bound, Indicator) and bound.modulus and (found := _one_outside(term, bound.form)):
            (whole, one), inner = found
            index, step = inner[0]
            if len(inner) > 1 or abs(one) != 1 or (one + step) % bound.modulus or index.type != Range(bound.modulus):
                continue
            if tile := _tile(whole, bound.modulus, names):
                yield _Split(whole, tile, index, bound.modulus, [bound])


def _by_windows(term: Sum, factors: Sequence[Term], names: Names) -> Iterator[_Split]:
    """Σ_e [0 ≤ j - c e < c], with what is in tiles within these subtracted, too."""
    for form, room, conditions in enclosed(factors):
        if found := _one_outside(term, form):
            (whole, one), inner = found
            tile, step = min(inner, key=_step)
            if one == 1 and isinstance(tile.type, Range) and room > 0 and _width(inner) == room + 1:
                place = names.fresh(Var("w", Range(width := -int(step))))
                yield _Split(whole, tile, place, width, conditions if len(inner) == 1 else [])


def _one_outside(term: Sum, form: Term) -> tuple[_Part, Sequence[_Part]] | None:
    """The one part of an index expression that is not summed over, and those that are."""
    parts, offset = affine_parts(form)
    inner = [part for part in parts if part[0] in term.indices]
    outer = [part for part in parts if part not in inner]
    return (outer[0], inner) if not offset and len(outer) == 1 and inner else None


def _step(part: _Part) -> int | Fraction:
    return part[1]


def _width(tiles: Sequence[_Part]) -> int | Fraction:
    """How wide the smallest tiles are, where some make up the next larger ones each; 0 where they do not."""
    inner, *larger = sorted(tiles, key=_step, reverse=True)
    width = end = -inner[1]
    for (below, _), (_, step) in pairwise((inner, *larger)):
        size = below.type.size if isinstance(below.type, Range) else None
        end = end * size if isinstance(size, int) else 0
        if -step != end:
            return 0
    return width


def _tile(whole: Var, width: int, names: Names) -> Var | None:
    """An index of tiles so wide that make up another; None where the other is no multiple of them."""
    if not isinstance(whole.type, Range):
        return None
    parts, offset = size_parts(whole.type.size)
    if offset % width or any(factor % width for factor in parts.values()):
        return None
    return names.fresh(Var("q", Range(size_of_parts({name: n // width for name, n in parts.items()}, offset // width))))
