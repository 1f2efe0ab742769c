"""Shares of a sum by a name: p[i] = t[i] / Σ_j t[j], where a program is made of them.

    s = Σ_j t[j] in t[d] (q[d] − (Σ_i q[i] t[i]) / s) / s   →   p[i] = t[i] / Σ_j t[j] in p[d] (q[d] − Σ_i q[i] p[i])

A softmax has derivatives that are short in its own values, which the chain rule tears into numerators and sums.

Invariant: the value is unchanged; every share is read where its numerator and the sum's inverse were multiplied.
"""

from __future__ import annotations

from collections.abc import Iterator

from combdiff.ir import (
    Apply,
    Lambda,
    Mul,
    Names,
    Number,
    Rewriter,
    Space,
    Sum,
    Term,
    Var,
    apply,
    dtype_of,
    factors_of,
    function,
    items_of,
    joined,
    lambda_,
    let,
    mul,
    put_back,
    split,
    substitute,
    total,
    whole_power,
)
from combdiff.simplification.egraph.extraction import index_variables
from combdiff.simplification.normal_form.quotients import with_divisors_in_front


def with_named_shares(body: Term) -> Iterator[Term]:
    """The let program with the shares of each definition that is a Σ over one index as a definition."""
    bindings, result = split(body)
    names = Names(body)
    for number, (var, value) in enumerate(bindings):
        outer, summed = (value.parameters, value.body) if isinstance(value, Lambda) else ((), value)
        if not isinstance(summed, Sum) or len(summed.indices) != 1:
            continue
        shares = _Shares(var, outer, summed, names)
        later = [(other, shares.run(term)) for other, term in bindings[number + 1 :]]
        items = [shares.run(item) for item in items_of(result)]
        if not shares.found:
            continue
        is_read = any(var in term.free for term in (*(term for _, term in later), *items))
        share = shares.definition if is_read else put_back(shares.definition, {var: value})
        kept = bindings[: number + is_read]
        yield let([*kept, (shares.share, share), *later], joined(result, items))


class _Shares(Rewriter):
    """Reads f(i) / s[…] as p[…, i], where s[…] is Σ_i f(i)."""

    def __init__(self, sums: Var, outer: tuple[Var, ...], summed: Sum, names: Names) -> None:
        super().__init__()
        self.sums, self.outer, self.summed = sums, outer, summed
        own = (*outer, *summed.indices)
        space = Space(*(index.type for index in own), dtype=dtype_of(summed))  # type: ignore[arg-type]
        self.share = names.fresh(Var("p", space))
        new = names.indices(space.axes)
        share = mul(summed.body, function("power", apply(sums, outer) if outer else sums, Number(-1)))
        self.definition = lambda_(new, substitute(share, dict(zip(own, new, strict=True))))
        self.found = False

    def node(self, term: Term) -> Term:
        """The term with its products of addends and inverse sums as shares."""
        new = self.inside(term)
        if not isinstance(new, Mul):
            return new
        found = self._joined(mul(*(part for factor in new.factors for part in with_divisors_in_front(factor))))
        return found if self.share in found.free else new

    def _joined(self, product: Term) -> Term:
        """A product in which no addend is left beside an inverse of the sum, nor in a Σ beside one."""
        for divisor in factors_of(product):
            base, exponent = whole_power(divisor)
            head = base.function if isinstance(base, Apply) else base
            if head is not self.sums or exponent >= 0:
                continue
            rest = [factor for factor in factors_of(product) if factor is not divisor]
            at = base.arguments if isinstance(base, Apply) else ()
            for place, factor in enumerate(rest):
                found, count = self._share(factor, at) or self._in_sum(factor, base) or (factor, 0)
                if 0 < count <= -exponent:
                    self.found = True
                    left = function("power", base, Number(exponent + count))
                    return self._joined(mul(*rest[:place], found, *rest[place + 1 :], left))
        return product

    def _share(self, factor: Term, at: tuple[Term, ...]) -> tuple[Term, int] | None:
        """A power of an addend of s[at] as that of a share, and how often s divides it."""
        part, count = whole_power(factor)
        (index,) = self.summed.indices
        outer = dict(zip(self.outer, at, strict=True))
        for i in index_variables(part):
            if i.type == index.type and substitute(self.summed.body, {**outer, index: i}) is part:
                return function("power", apply(self.share, (*at, i)), Number(count)), count
        return None

    def _in_sum(self, factor: Term, base: Term) -> tuple[Term, int] | None:
        """A Σ with the inverse of a sum put into it, where that makes a share there."""
        if not isinstance(factor, Sum) or not base.free.isdisjoint(factor.indices):
            return None
        whole = mul(factor.body, function("power", base, Number(-1)))
        inside = self._joined(whole)
        return (total(factor.indices, inside), 1) if inside is not whole else None
