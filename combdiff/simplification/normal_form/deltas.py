"""Networks with many δ's, thinned before saturation.

    Σ_{i,j,k,…} δ(i, d)·δ(j, e)·δ(k, f)·…·t[i, j, k, …]   →   at most MOST_DELTAS of the δ's left to the laws

The law "δ meets Σ" takes one δ at a time, in any order, so that k of them make 2^k sums in the e-graph. The
cotangent of a tensor of order k has k: those beyond the first few are put in place here, by the same law.

Invariant: the value of the term is unchanged.
"""

from __future__ import annotations

from combdiff.ir import Delta, Mul, Sum, Term, Var, mul, substitute, total

MOST_DELTAS = 2  # of one Σ that the laws are left with


def thin(term: Term) -> Term:
    """The term with no more than MOST_DELTAS δ's that meet the Σ around them; each Σ binds names of its own."""
    children = tuple(thin(child) for child in term.children)
    term = term if children == term.children else term.with_children(children)
    while isinstance(term, Sum) and (meeting := _meeting(term))[MOST_DELTAS:]:
        one, index, value = meeting[-1]
        assert isinstance(term.body, Mul)
        rest = mul(*(factor for factor in term.body.factors if factor is not one))
        term = total((i for i in term.indices if i is not index), substitute(rest, {index: value}))
    return term


def _meeting(term: Sum) -> list[tuple[Delta, Var, Var]]:
    """The δ's between bare indices of one domain, one of them summed here: (δ, that index, the other)."""
    factors = term.body.factors if isinstance(term.body, Mul) else ()
    found: list[tuple[Delta, Var, Var]] = []
    for factor in factors:
        match factor:
            case Delta(Var() as left, Var() as right, domain) if left.type == right.type == domain:
                pairs = [(i, j) for i, j in ((left, right), (right, left)) if i in term.indices]
                found += [(factor, *pair) for pair in pairs[:1]]
    return found
