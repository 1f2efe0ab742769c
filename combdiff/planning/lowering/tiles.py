"""An index that is c times another one and a remainder: computed over the two of them, and joined in one axis.

    t[j] = Σ_e [0 ≤ j − 2 e ≤ 1]·x[e]·y[j]      u[e, w] = x[e]·y[2 e + w],  t = u.reshape(2 n)     e < n, j < 2 n
    t[j] = Σ_r [(j − r) mod 2 = 0]·x[(j − r)/2]    u[e, r] = x[e]
    t[j] = Σ_{e,f} [0 ≤ j − 6 e − 2 f ≤ 1]·x[e]·y[f]    u[e, w] = Σ_f [0 ≤ w − 2 f ≤ 1]·x[e]·y[f],  f < 3, w < 6

Each j has one e, so that there is no Σ: what repeats, pools and lays out anew by known factors is a view and a reshape,
where conditions between j and e would be met one by one. What the others say of the tile and the place alone is solved.

Invariant: the value is unchanged; j runs over all c·n numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
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
    bounds = [factor for factor in factors if isinstance(factor, Indicator)]
    for bound in bounds:
        parts, offset = affine_parts(bound.form)
        inner = [part for part in parts if part[0] in term.indices]
        outer = [part for part in parts if part not in inner]
        if offset or len(outer) != 1 or not inner:
            continue
        (whole, one), (index, step) = outer[0], min(inner, key=_step)
        if not isinstance(index.type, Range):
            continue
        if bound.modulus:  # Σ_r [(j - r) mod c = 0]
            if len(inner) > 1 or abs(one) != 1 or (one + step) % bound.modulus or index.type.size != bound.modulus:
                continue
            met, width, tile, place = [bound], bound.modulus, _tile(whole, bound.modulus, names), index
        else:  # Σ_e [0 ≤ j - c e < c], with what is in tiles within these subtracted, too
            within = _width(inner)
            upper = Indicator(affine([(bound.form, -1)], within - 1))
            if one != 1 or within < 2 or upper not in bounds or not isinstance(step, int):
                continue
            met, width, tile = [bound, upper] if len(inner) == 1 else [], -step, index
            place = names.fresh(Var("w", Range(width)))
        if tile is None or whole.type != Range(size_sum((tile.type.size, width))):  # type: ignore[union-attr]
            continue
        split = {whole: affine([(tile, width), (place, 1)])}
        rest = tuple(substitute(factor, split) for factor in factors if factor not in met)
        left = solve(SummedProduct(tuple(i for i in term.indices if i is not index), rest), names)
        return Tiling(total(left.indices, mul(*left.factors)), tile, place, whole)
    return None


def _step(part: tuple[Var, int | Fraction]) -> int | Fraction:
    return part[1]


def _width(tiles: Sequence[tuple[Var, int | Fraction]]) -> int | Fraction:
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
