"""Sums over pairs of indices, of which those within one set cancel.

    Σ_{i,k≠i} [i ≤ 1] g[i,k]     →     Σ_{i,k} [i ≤ 1] [k ≥ 2] g[i,k]     where g[k,i] = −g[i,k]

A projector onto some eigenvectors has such a derivative, with 1/(λ_i − λ_k) in g: what is left divides by the gaps
between the chosen eigenvalues and the others alone, so that it is finite where chosen ones are equal. The terms that
are exchanged may be those of several uses of one definition, so the laws are asked whether what lies within the set
is 0.

Invariant: a condition is changed only where the laws find the difference to be 0.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from itertools import product

from combdiff.ir import (
    ONE,
    ZERO,
    Add,
    Apply,
    Conj,
    Indicator,
    Lambda,
    Mul,
    Primitive,
    Sum,
    Term,
    Unequal,
    Var,
    Whole,
    add,
    affine_parts,
    factors_of,
    mul,
    negate,
    opposite,
    put_back,
    split,
    substitute,
    subterms,
    total,
    values_of,
)
from combdiff.simplification.normal_form.expansion import conjugate
from combdiff.simplification.vanishing import with_replaced

_Conditions = tuple[Indicator, ...]
_Pairs = dict[Term, tuple[Term, Term]]  # products with a sum over pairs: what lies within the set, and all but that


def without_pairs_that_cancel(body: Term, settled: Callable[[Term], Term]) -> Term:
    """A let program whose sums over pairs leave out the pairs within a set, where `settled` finds that these cancel."""
    bindings, result = split(body)
    for var, value in [*bindings, (None, result)]:
        for index, pairs in _pairs(value):
            around = [each for each in _sums_over(value, index) if pairs.keys() <= {*subterms(each)}]
            if around or var is None:
                sums: list[Term] = [*around[:1]]
                linear = bool(around) and _is_linear(around[0], pairs)
            else:  # the index is a parameter of the definition
                sums = [each for use in values_of(body) if var in use.free for each in _reading(use, var)]
                linear = ONE not in sums and _is_linear(value, pairs) and all(_is_linear(each, {var}) for each in sums)
            if linear and all(settled(_within(each, var, value, pairs)) is ZERO for each in sums):
                found = with_replaced(body, {node: beyond for node, (_, beyond) in pairs.items()})
                return without_pairs_that_cancel(found, settled)
    return body


def _within(sum_: Term, var: Var | None, value: Term, pairs: _Pairs) -> Term:
    """What the pairs within the set add to a Σ over them, or over a definition that has them, as terms."""

    def of(parts: Mapping[Term, Term]) -> list[Term]:
        written = {var: with_replaced(value, parts)} if var is not None else {}
        return _distributed(put_back(with_replaced(sum_, parts), written))

    inside = of({node: within for node, (within, _) in pairs.items()})
    return add(*inside, *map(negate, of(dict.fromkeys(pairs, ZERO))))


def _is_linear(term: Term, parts: Container[Term]) -> bool:
    """Whether a term is a sum of multiples of parts, or of elements of them, and of terms without them."""
    if term in parts or (isinstance(term, Apply) and term.function in parts):
        return True
    holding = [each for each in term.children if any(node in parts for node in subterms(each))]
    if (isinstance(term, Mul) and len(holding) > 1) or not isinstance(term, Add | Mul | Sum | Conj | Lambda):
        return not holding
    return all(_is_linear(each, parts) for each in holding)


def _pairs(value: Term) -> Iterator[tuple[Var, _Pairs]]:
    """The products with sums over indices that differ from one index, by that index and what conditions hold of it."""
    found: dict[tuple[Var, _Conditions], _Pairs] = {}
    for node in subterms(value):
        if isinstance(node, Mul):
            for place in (node, *(each for each in node.factors if isinstance(each, Sum))):
                for one, other, unequal in _differing(place):
                    for chosen, part, rest in _by_conditions(node, other):
                        held = [substitute(each, {other: one}) for each in chosen]
                        inside, *beyond = (
                            _guarded(part, place, unequal, new) for new in (mul(unequal, *held), *_unmet(held))
                        )
                        found.setdefault((other, chosen), {})[node] = inside, add(rest, *beyond)
    for (other, _), pairs in found.items():
        yield other, pairs


def _guarded(product: Term, place: Term, unequal: Term, new: Term) -> Term:
    """A product with another condition on the pairs, in it or in the sum that is one of its factors."""
    if isinstance(place, Sum):
        return _with_factor(product, place, total(place.indices, _with_factor(place.body, unequal, new)))
    return _with_factor(product, unequal, new)


def _with_factor(product: Term, factor: Term, new: Term) -> Term:
    return mul(*(new if each is factor else each for each in factors_of(product)))


def _by_conditions(product: Mul, index: Var) -> Iterator[tuple[_Conditions, Term, Term]]:
    """The inequalities of an index in a product, or in terms of a factor, with the part that has them and the rest."""
    common = _conditions(product, index)
    if common:
        yield common, product, ZERO
        return
    for factor in product.factors:
        by_conditions: dict[_Conditions, list[Term]] = {}
        for term in factor.terms if isinstance(factor, Add) else ():
            by_conditions.setdefault(_conditions(term, index), []).append(term)
        for conditions, terms in by_conditions.items():
            if conditions:
                others = [each for key, some in by_conditions.items() if key != conditions for each in some]
                part, rest = (_with_factor(product, factor, add(*some)) for some in (terms, others))
                yield conditions, part, rest


def _conditions(product: Term, index: Var) -> _Conditions:
    """The inequalities of one index and of sizes among the factors of a product."""
    found = [each for each in factors_of(product) if isinstance(each, Indicator) and not each.modulus]
    return tuple(each for each in found if _indices_of(each) == [index])


def _indices_of(condition: Indicator) -> list[Var]:
    return [var for var, _ in affine_parts(condition.form)[0] if not isinstance(var.type, Whole)]


def _unmet(conditions: Iterable[Term]) -> Iterator[Term]:
    """Products of conditions of which one holds where some do not all hold: by the first that does not."""
    met: list[Term] = []
    for each in conditions:
        yield mul(*met, opposite(each) or ZERO)
        met.append(each)


def _differing(term: Term) -> Iterator[tuple[Var, Var, Unequal]]:
    """Indices k ≠ i of a product, beside 1 over a difference that changes its sign where they are exchanged."""
    factors = factors_of(term.body if isinstance(term, Sum) else term)
    bases = [each.arguments[0] for each in factors if isinstance(each, Primitive) and each.name == "power"]
    for factor in factors:
        parts, offset = affine_parts(factor.form) if isinstance(factor, Unequal) else ((), 0)
        if isinstance(factor, Unequal) and not offset and sorted(c for _, c in parts) == [-1, 1]:
            indices = [var for var, _ in parts]
            for one, other in (indices, indices[::-1]):
                swapped = [(base, substitute(base, {one: other, other: one})) for base in bases]
                if any({*_terms(new)} == {*map(negate, _terms(base))} for base, new in swapped):
                    yield one, other, factor


def _terms(term: Term) -> tuple[Term, ...]:
    return term.terms if isinstance(term, Add) else (term,)


def _sums_over(value: Term, index: Var) -> Iterator[Sum]:
    """The sums over an index, the inner ones first."""
    return (each for each in subterms(value) if isinstance(each, Sum) and index in each.indices)


def _reading(value: Term, var: Var) -> list[Term]:
    """The sums that read a definition and have no such sum in them; 1 where it is read outside of sums."""
    if value is var:
        return [ONE]
    found = [each for child in value.children if var in child.free for each in _reading(child, var)]
    return [value] if isinstance(value, Sum) and ONE in found else found


def _distributed(term: Term) -> list[Term]:
    """The terms of a sum of products without sums in them."""
    match term:
        case Add():
            return [each for part in term.terms for each in _distributed(part)]
        case Mul():
            return [mul(*each) for each in product(*map(_distributed, term.factors))]
        case Sum():
            return [total(term.indices, each) for each in _distributed(term.body)]
        case Conj():
            return [conjugate(each) for each in _distributed(term.body)]
    return [term]
