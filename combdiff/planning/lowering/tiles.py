"""An index that is c times another one and a remainder: computed over the two of them, and joined in one axis.

    t[j] = Σ_e [0 ≤ j − 2 e ≤ 1]·x[e]·y[j]      u[e, w] = x[e]·y[2 e + w],  t = u.reshape(2 n)     e < n, j < 2 n

Each j has one e, so that there is no Σ: what repeats, pools and lays out anew by known factors is a view and a reshape,
where conditions between j and e would be met one by one.

Invariant: the value is unchanged; j runs over all c·n numbers.
"""

from __future__ import annotations

from typing import NamedTuple

from combdiff.ir import (
    Indicator,
    Names,
    Range,
    Sum,
    Term,
    Var,
    affine,
    affine_parts,
    factors_of,
    mul,
    substitute,
    total,
)


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
    bounds = [factor for factor in factors if isinstance(factor, Indicator) and not factor.modulus]
    for lower in bounds:
        parts, offset = affine_parts(lower.form)
        if offset or len(parts) != 2:
            continue
        (whole, one), (tile, step) = sorted(parts, key=lambda part: part[0] in term.indices)
        upper = Indicator(affine([(lower.form, -1)], -step - 1))
        if one != 1 or step > -2 or tile not in term.indices or whole in term.indices or upper not in bounds:
            continue
        if not isinstance(tile.type, Range) or not isinstance(tile.type.size, int) or not isinstance(step, int):
            continue
        if whole.type != Range(-step * tile.type.size):
            continue
        place = names.fresh(Var("w", Range(-step)))
        split = {whole: affine([(tile, -step), (place, 1)])}
        rest = mul(*(substitute(factor, split) for factor in factors if factor not in (lower, upper)))
        return Tiling(total((i for i in term.indices if i is not tile), rest), tile, place, whole)
    return None
