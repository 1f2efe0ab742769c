"""Masked exponentials: what a mask of −∞ leaves out is 0.

    exp([i ≥ j] s[i, j] − ∞ [i < j])  →  [i ≥ j] exp(s[i, j])

So a softmax over `np.where(mask, s, -np.inf)` and one over `np.where(mask, np.exp(s), 0)` are one program, with one
derivative; the mask becomes a bound of the sums where it can.

Invariant: the value is unchanged, at every index.
"""

from __future__ import annotations

from combdiff.ir import NOTHING, Add, Guard, Term, add, factors_of, function, mul, opposite


def exponential(argument: Term) -> Term:
    """exp of the argument, its masks in front."""
    terms = argument.terms if isinstance(argument, Add) else (argument,)
    masks = {term: mask for term in terms if (mask := _mask(term))}
    if not masks:
        return function("exp", argument)
    left_out, holding = zip(*masks.values(), strict=True)
    products = (factors_of(term) for term in terms if term not in masks)
    live = (factors for factors in products if set(left_out).isdisjoint(factors))
    rest = (mul(*(factor for factor in factors if factor not in holding)) for factors in live)
    return mul(*holding, function("exp", add(*rest)))


def _mask(term: Term) -> tuple[Term, Term] | None:
    """The condition under which a term of an exponent is −∞, and the one under which it is not."""
    factors = factors_of(term)
    if len(factors) != 2 or NOTHING not in factors:
        return None
    opposites = ((factor, opposite(factor)) for factor in factors if isinstance(factor, Guard))
    return next(((factor, holds) for factor, holds in opposites if holds is not None), None)
