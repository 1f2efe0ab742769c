"""Masked exponentials: what a mask of −∞ leaves out is 0.

    exp([i ≥ j] s[i, j] − ∞ [i < j])  →  [i ≥ j] exp(s[i, j])

So a softmax over `np.where(mask, s, -np.inf)` and one over `np.where(mask, np.exp(s), 0)` are one program, with one
derivative; the mask becomes a bound of the sums where it can.

Invariant: the value is unchanged, at every index.
"""

from __future__ import annotations

from collections.abc import Iterator

from combdiff.ir import Add, Guard, Number, Term, add, factors_of, function, mul, opposite

NOTHING = Number(float("-inf"))  # the logarithm of 0


def exponential(argument: Term) -> Term:
    """exp of the argument, its masks in front."""
    terms = argument.terms if isinstance(argument, Add) else (argument,)
    left_out = {term: guard for term in terms for guard in _left_out(term)}
    holding = [condition for guard in left_out.values() if (condition := opposite(guard)) is not None]
    if not holding:
        return function("exp", argument)
    products = (factors_of(term) for term in terms if term not in left_out)
    live = (factors for factors in products if not any(guard in factors for guard in left_out.values()))
    rest = (mul(*(factor for factor in factors if factor not in holding)) for factors in live)
    return mul(*holding, function("exp", add(*rest)))


def _left_out(term: Term) -> Iterator[Guard]:
    """The condition under which a term of an exponent is −∞."""
    factors = factors_of(term)
    if len(factors) == 2 and NOTHING in factors:
        yield from (factor for factor in factors if isinstance(factor, Guard) and opposite(factor) is not None)
