"""Indices held in integer arrays: reading at them, and adding up at them.

    Σ_j δ(j, idx[i])·x[j]       Take: x[idx]
    Σ_i δ(d, idx[i])·k[i]       Scatter: result[idx[i]] += k[i]
    Σ_i δ(d, a[i])·δ(e, b[i])·k[i]     one Scatter at a[i]·n + b[i], for n indices e
    δ(d, idx[i]) else           Hit: an array of 0 and 1

Invariant: an index out of its axis is refused before a program runs, so that each of them is found exactly once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from combdiff.domains import Cyclic, Range
from combdiff.indexing import Delta
from combdiff.lowering.graph import Graph, Value
from combdiff.lowering.products import Product
from combdiff.lowering.steps import UNIT, Factor, Hit, Scatter, Take
from combdiff.lowering.views import domain_of, extent_form, first_form, mask_of_form
from combdiff.terms import Term, Var


def take(graph: Graph, value: Value, var: Var, index: Value) -> Value:
    """The value with the indices held in an array in place of a label."""
    axis = value.labels.index(var)
    rest = [label for label in value.labels if label is not var]
    shared = not set(rest).isdisjoint(index.labels)
    labels = (
        list(dict.fromkeys((*rest, *index.labels)))
        if shared
        else [*value.labels[:axis], *index.labels, *value.labels[axis + 1 :]]
    )
    left = tuple(None if label is var else labels.index(label) for label in value.labels)
    domain = domain_of(var)
    operation = Take(
        axis, first_form(domain), isinstance(domain, Cyclic), left, tuple(labels.index(x) for x in index.labels)
    )
    plain = replace(value, conj=False)
    return replace(graph.labelled(operation, (plain, index), labels, graph.kind(value)), conj=value.conj)


def scatter(graph: Graph, value: Value, places: Sequence[Var], index: Value) -> Value:
    """The elements of a value added up at the indices held in an array, whose labels are summed over."""
    rest = [label for label in value.labels if label not in index.labels]
    arranged = graph.arrange(value, (*index.labels, *rest))
    domain = domain_of(places[0])
    operation = Scatter(first_form(domain), isinstance(domain, Cyclic), len(places))
    return graph.labelled(operation, (arranged, index), (*places, *rest), graph.kind(arranged))


def _in_a_row(graph: Graph, places: Sequence[Var], indices: Sequence[Value]) -> Value:
    """The place of several indices among all of them: `a·n + b` for the indices a and b, of n places each."""
    index = indices[0]
    for var, other in zip(places[1:], indices[1:], strict=True):
        index = graph.combine([(Factor(extents=(domain_of(var),)), index), (UNIT, other)])
    return index


def hit(graph: Graph, condition: Delta, form: Term, index: Value) -> Value:
    """1 where an index expression is the index held in an array."""
    labels, steps, start = mask_of_form(form)
    out = list(dict.fromkeys((*labels, *index.labels)))
    along = dict(zip(labels, steps, strict=True))
    domain = condition.domain
    modulus = extent_form(domain) if isinstance(domain, Cyclic) else start.scale(0)
    operation = Hit(tuple(along.get(x, 0) for x in out), start, modulus, tuple(out.index(x) for x in index.labels))
    return graph.labelled(operation, (index,), out, int)


def _only_here(var: Var, condition: Delta, others: Sequence[Term]) -> bool:
    """Whether no other condition asks for an index."""
    return all(other is condition or var not in other.free for other in others)


def look_up(graph: Graph, product: Product, value_of: Callable[[Term], Value]) -> tuple[tuple[Var, ...], Value] | None:
    """Read operands at the indices that arrays hold; the indices and array at which the product is to be added up."""
    places: list[Var] = []
    indices: list[Value] = []
    for condition in product.lookups:
        assert condition.lookup
        form, value = condition.lookup
        index, others = value_of(value), [*product.masks, *product.lookups]
        bare = isinstance(form, Var) and form.type == condition.domain and _only_here(form, condition, others)
        if bare and isinstance(form, Var) and form in product.summed:
            product.operands = [take(graph, x, form, index) if form in x.labels else x for x in product.operands]
            product.summed.remove(form)
        elif bare and isinstance(form, Var) and set(index.labels) <= set(product.summed) and _joins(form, places):
            places.append(form)
            indices.append(index)
        else:
            product.operands.append(hit(graph, condition, form, index))
    return (tuple(places), _in_a_row(graph, places, indices)) if places else None


def _joins(place: Var, places: Sequence[Var]) -> bool:
    """Whether an index can be counted in a row with those found so far."""
    return not places or all(isinstance(var.type, Range) for var in (place, *places))
