"""Sums that vanish by what their names stand for.

    z̄[i,j] = p[i,j] (Σ_k y[i,k]) / Σ_k p[i,k] − y[i,j]   in   … Σ_j z̄[i,j] …     →     … 0 …
    t[i] = x[i] − (Σ_j x[j])/n,  z̄[i] = g[i]/r − c t[i]   in   … Σ_i z̄[i] …     →     … Σ_i g[i]/r …
    t[i,j] = X[i,j] − (Σ_k X[k,j])/n   in   Σ_{i,j,k,l} t[i,j] A[j,k] t[l,k] B[l]     →     0

The laws see a definition by its name alone, where it is used. What a softmax or a variance does not depend on (a number
that is added to all of its arguments) has such a Σ for its derivative. A Σ that is not 0 shows it at a random point
(see `fingerprints`), so that the laws are asked of the few others alone, multiplied out with the definitions written
out. Where one factor alone has an index, its own Σ is asked about, once for all products that it stands in.

Invariant: a Σ is left out only where the laws find it to be 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from combdiff.ir import (
    ZERO,
    Add,
    Apply,
    Lambda,
    Names,
    Replacing,
    Sum,
    Term,
    Var,
    add,
    factors_beside,
    factors_of,
    items_of,
    joined,
    let,
    mul,
    put_back,
    split,
    subterms,
    total,
    values_of,
)
from combdiff.simplification.egraph.extraction import symbols
from combdiff.simplification.fingerprints import over_its_indices, seeming_zero
from combdiff.simplification.normal_form.expansion import multiplied_out
from combdiff.simplification.normal_form.lengths import is_negative

MOST_SHORT = 8  # symbols of a definition that is written out beside the sums that read it: Σ_j p[i,j]
MOST_STEPS = 2  # from definition to definition, that are written out: of a network all layers below would be


def without_vanishing_sums(body: Term, settled: Callable[[Term], Term]) -> Term:
    """A let program with 0 for every Σ over definitions that `settled` finds to be 0 where they are written out."""
    definitions = dict(split(body)[0])
    centred = _Centred(definitions, settled)
    nodes = _sums_in(body)
    added = {node: _by_terms(node, definitions) for node in nodes}
    every = dict.fromkeys(each for node in nodes for each in (node, *added[node]))
    zeros = {node for node in every if centred.makes_zero(node)}
    leading = _leading_to_sums(definitions)
    sums = {node: _read(node.body, leading) for node in every if node not in zeros}
    cancelling = [node for node, read in sums.items() if read or any(isinstance(f, Add) for f in factors_of(node.body))]
    for node in seeming_zero(cancelling, definitions):
        written = put_back(node, _opened(sums[node], definitions))
        written = multiplied_out(written, Names(written))
        if elements(settled(over_its_indices(written))) is ZERO:
            zeros.add(node)
    replacement: dict[Term, Term] = dict.fromkeys(zeros, ZERO)
    for node in nodes:
        left = [each for each in added[node] if each not in zeros]
        if node not in zeros and len(left) == 1 < len(added[node]):
            replacement[node] = left[0]
    return with_replaced(body, replacement) if replacement else body


def _sums_in(body: Term) -> dict[Sum, None]:
    """The Σ's in the values of a let program, each once, in their order."""
    return dict.fromkeys(node for value in values_of(body) for node in subterms(value) if isinstance(node, Sum))


class _Centred:
    """Which sums are 0 whatever stands beside them, as those of what is left of data after their mean."""

    def __init__(self, definitions: Mapping[Var, Term], settled: Callable[[Term], Term]) -> None:
        self.definitions = definitions
        self.settled = settled
        self.known: dict[tuple[Term, Term | int], bool] = {}

    def makes_zero(self, node: Sum) -> bool:
        """Whether a Σ goes along an axis along which the one factor that has it is 0 in the mean."""
        return any(self.vanishes(node.body, index) for index in node.indices)

    def vanishes(self, term: Term, index: Var) -> bool:
        """Whether the sum of a product over an index is 0 as that of its one factor with the index is."""
        reading = [factor for factor in factors_of(term) if index in factor.free]
        if len(reading) != 1:
            return False
        (factor,) = reading
        if isinstance(factor, Sum):
            return index not in factor.indices and self.vanishes(factor.body, index)
        if isinstance(factor, Add):
            return all(self.vanishes(part, index) for part in factor.terms) or self._cancels(factor, index)
        if not isinstance(factor, Apply) or not isinstance(factor.function, Var):
            return False
        axes = [n for n, argument in enumerate(factor.arguments) if index in argument.free]
        return len(axes) == 1 and factor.arguments[axes[0]] is index and self._along(factor.function, axes[0], index)

    def _along(self, var: Var, axis: int, index: Var) -> bool:
        """Whether a definition is 0 in the mean along an axis, which an index goes along."""
        value = self.definitions.get(var)
        if not isinstance(value, Lambda) or axis >= len(value.parameters) or value.parameters[axis].type != index.type:
            return False
        if (var, axis) not in self.known:
            self.known[var, axis] = self.vanishes(value.body, value.parameters[axis])
        return self.known[var, axis]

    def _cancels(self, difference: Add, index: Var) -> bool:
        """Whether the sums of the terms of a difference cancel."""
        if len({is_negative(term) for term in difference.terms}) == 1:
            return False
        if (difference, index) not in self.known:
            sums = add(*(total((index,), term) for term in difference.terms))
            self.known[difference, index] = elements(self.settled(over_its_indices(sums))) is ZERO
        return self.known[difference, index]


def _by_terms(node: Sum, definitions: Mapping[Var, Term]) -> tuple[Sum, ...]:
    """A Σ over a definition that is a sum, as Σ's over its terms."""
    reads = [factor.function for factor in factors_of(node.body) if isinstance(factor, Apply)]
    sums = [var for var in reads if isinstance(var, Var) and isinstance(_inner(definitions.get(var)), Add)]
    written = put_back(node, {sums[0]: definitions[sums[0]]}) if len(sums) == 1 else node
    assert isinstance(written, Sum)
    sums_read = (factor for factor in factors_of(written.body) if isinstance(factor, Add))
    whole = next(sums_read, None) if written is not node else None
    if whole is None:
        return ()
    others = factors_beside(whole, written.body)
    each = [total(written.indices, mul(*others, term)) for term in whole.terms]
    found = tuple(sum_ for sum_ in each if isinstance(sum_, Sum))
    return found if len(found) == len(each) else ()


def _inner(value: Term | None) -> Term | None:
    return value.body if isinstance(value, Lambda) else None


def _opened(leading: frozenset[Var], definitions: Mapping[Var, Term]) -> dict[Var, Term]:
    """The values of definitions, with short ones that they read written out in them, too."""
    read = {var for each in leading for var in definitions[each].free}
    found: dict[Var, Term] = {}
    for var, value in definitions.items():
        if var in leading or (var in read and symbols(value) <= MOST_SHORT):
            found[var] = put_back(value, found)
    return found


def _leading_to_sums(definitions: Mapping[Var, Term]) -> dict[Var, frozenset[Var]]:
    """For each definition with a sum among its factors, or with factors that have: itself and the next on the way."""
    products: dict[Var, tuple[Term, ...]] = {}
    for var, value in definitions.items():
        if isinstance(value, Lambda):
            added = [term for each in factors_of(value.body) if isinstance(each, Add) for term in each.terms]
            products[var] = (value.body, *added)
    found: dict[Var, frozenset[Var]] = {}
    for _ in range(MOST_STEPS):
        inside = {var: frozenset().union(*(_read(each, found) for each in parts)) for var, parts in products.items()}
        found = {var: read | {var} for var, read in inside.items() if read or len(products[var]) > 1}
    return found


def _read(product: Term, leading: Mapping[Var, frozenset[Var]]) -> frozenset[Var]:
    """The definitions that lead from the factors of a product to sums."""
    found: frozenset[Var] = frozenset()
    for factor in factors_of(product):
        if isinstance(factor, Sum):
            found |= _read(factor.body, leading)
        elif isinstance(factor, Apply) and isinstance(factor.function, Var):
            found |= leading.get(factor.function, frozenset())
    return found


def elements(body: Term) -> Term:
    """The elements of a program's result that is one tensor."""
    tensor = split(body)[1]
    return tensor.body if isinstance(tensor, Lambda) else tensor


def with_replaced(body: Term, replacement: Mapping[Term, Term]) -> Term:
    """A let program with other terms in place of some."""
    run = Replacing(replacement).run
    bindings, result = split(body)
    return let([(var, run(value)) for var, value in bindings], joined(result, map(run, items_of(result))))
