"""The coefficients of δ's, and what is added to δ's, each bound to a name.

    t̄[d] = δ(d, 0)·r·(1 − t[0]) − δ(d, 0)·r·t[0]        becomes   c = r·(1 − t[0]) − r·t[0]  and  t̄[d] = δ(d, 0)·c
    X̄[d,e] = 2 δ(d, e) − Σ_k A[e,k] X[k,d]              becomes   c[d,e] = −Σ_k A[e,k] X[k,d]  and  2 δ(d, e) + c[d,e]

A value that holds a δ is put where it is used, for a Σ there to take the δ. Its coefficient would go along: twice where
the value is used twice, and after n steps of a loop 2ⁿ times. Bound it is computed once, however often the δ is taken.

Invariant: the value is unchanged; what is bound reads inside its tensors at every index, since the conditions that the
δ's and conditions beside it put on sizes go with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from combdiff.ir import (
    Delta,
    Guard,
    Lambda,
    Names,
    Space,
    Term,
    Var,
    add,
    element,
    factors_of,
    free_indices,
    is_complex,
    lambda_,
    mul,
    total,
    type_of,
)
from combdiff.polyhedra import doubtful_accesses
from combdiff.simplification.egraph.extraction import as_real_as, order_key, symbols
from combdiff.simplification.normal_form.contraction import normalise
from combdiff.simplification.normal_form.expansion import addends, offers_delta

MOST_REPEATED = 10  # symbols up to which a coefficient is repeated rather than bound


class Coefficients:
    """Binds the coefficients of δ's in values of one program; `bound` are the bindings made, in order."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.bound: list[tuple[Var, Term]] = []

    def apart(self, value: Term, name: Var) -> Term:
        """The value with the long coefficients of its δ's, and its long terms without δ, bound to names like that."""
        body = value.body if isinstance(value, Lambda) else value
        if symbols(body) <= MOST_REPEATED or not offers_delta(body):
            return value
        before = len(self.bound)
        products: dict[tuple[Term, ...], list[Term]] = {}
        for factors in addends(body, self.names):
            found = [factor for factor in factors if isinstance(factor, Guard) or offers_delta(factor)]
            guards = tuple(sorted(found, key=order_key))  # a function of a δ may be there twice: its square
            products.setdefault(guards, []).append(mul(*(factor for factor in factors if factor not in guards)))
        if not is_complex(body) and any(is_complex(guard) for guards in products for guard in guards):
            return value
        coefficients = {guards: as_real_as(body, add(*rest)) for guards, rest in products.items()}
        new = add(*(self._product(guards, c, name) for guards, c in coefficients.items()))
        return (
            value if len(self.bound) == before else lambda_(value.parameters if isinstance(value, Lambda) else (), new)
        )

    def _product(self, guards: Sequence[Term], coefficient: Term, name: Var) -> Term:
        if (not guards or any(map(offers_delta, guards))) and symbols(coefficient) > MOST_REPEATED:
            coefficient = self._named(coefficient, guards, name)
        return mul(*guards, coefficient)

    def _named(self, coefficient: Term, guards: Sequence[Term], name: Var) -> Term:
        """An access to a coefficient that is bound; the coefficient itself where it may be read under guards alone."""
        value = mul(*self._sized(guards), coefficient)
        indices = free_indices(value)
        value = lambda_(indices, value)
        if doubtful_accesses(value):
            return coefficient
        space = type_of(value)
        assert isinstance(space, Space)
        var = self.names.fresh(Var(name.name, space))
        self.bound.append((var, value))
        return element(var, indices)

    def _sized(self, guards: Sequence[Term]) -> Iterator[Term]:
        """What guards say of sizes: [n ≥ 1] where δ(d, 0) holds for some d."""
        for guard in guards:
            if isinstance(guard, Delta) and (indices := free_indices(guard)):
                yield from (f for f in factors_of(normalise(total(indices, guard), self.names)) if isinstance(f, Guard))
