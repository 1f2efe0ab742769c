"""Indices held in integer arrays: reading at them, and adding up at them.

    Σ_j δ(j, idx[i])·x[j]       Take: x[idx], of several axes at once: x[a, b]
    Σ_i δ(d, idx[i])·k[i]       Scatter: result[idx[i]] += k[i]
    Σ_i δ(d, a[i])·δ(e, b[i])·k[i]     one Scatter at a[i]·n + b[i], for n indices e
    Σ_i δ(e, idx[d, i])·k[d, i]        one Scatter at d·n + idx[d, i]: a row for each d
    δ(d, idx[i]) else           Hit: an array of 0 and 1

Invariant: an index out of its axis is refused before a program runs, so that each of them is found exactly once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from combdiff.ir import Cyclic, Delta, Number, Range, Symmetric, Term, Var, is_index_by_form, reduced_index
from combdiff.planning.extents import extent_form, first_form
from combdiff.planning.lowering.graph import Graph, LabelledStep
from combdiff.planning.lowering.joining import product as joined
from combdiff.planning.lowering.products import Product
from combdiff.planning.operations.elementwise import ElementwiseStep
from combdiff.planning.operations.indirections import At, Clip, IndexEquals, Iota, Scatter, Take
from combdiff.planning.operations.reads import Read
from combdiff.planning.operations.words import UNIT, SizeFactor
from combdiff.planning.views import domain_of, mask_of_form
from combdiff.records import dataclass


def take(graph: Graph, value: LabelledStep, indices: Mapping[Var, LabelledStep]) -> LabelledStep:
    """The value with the indices held in arrays in place of its labels, all of its axes read at once.

    Libraries differ in where they put axes beside a number as an index, so that numbers are put in place one by one.
    """
    for var in (var for var, index in indices.items() if not index.labels and var in value.labels):
        value = _taken(graph, value, {var: indices[var]})
    arrays = {var: index for var, index in indices.items() if index.labels and var in value.labels}
    return _taken(graph, value, arrays) if arrays else value


def _taken(graph: Graph, value: LabelledStep, indices: Mapping[Var, LabelledStep]) -> LabelledStep:
    block = tuple(dict.fromkeys(label for index in indices.values() for label in index.labels))
    arrays = [n for n, label in enumerate(value.labels) if label in indices or label in block]
    kept = [label for label in value.labels if label not in indices and label not in block]
    together = arrays[-1] - arrays[0] < len(arrays)
    at = arrays[0] if together else 0
    labels = (*kept[:at], *block, *kept[at:])
    places: list[At | int] = []
    for label in value.labels:
        if label in indices:
            domain, pattern = domain_of(label), tuple(labels.index(x) for x in indices[label].labels)
            number = 1 + list(indices).index(label)
            places.append(At(number, pattern, first_form(domain), isinstance(domain, Cyclic)))
        else:
            places.append(labels.index(label))
    plain = replace(value, conj=False)
    taken = graph.labelled(Take(tuple(places)), (plain, *indices.values()), labels, graph.kind(value))
    return replace(taken, conj=value.conj)


def ramp(graph: Graph, form: Term) -> LabelledStep:
    """An index expression as an array of integers; one with fractions is whole where it counts, else rounded."""
    labels, steps, start, multiple = mask_of_form(form)
    whole = graph.labelled(Iota(steps, start), (), labels, int)
    if multiple == 1:
        return whole
    divided = [whole, graph.constant(Number(multiple))]
    return graph.broadcast(lambda patterns: ElementwiseStep("floor_divide", patterns), divided, int)


def counted(graph: Graph, form: Term) -> LabelledStep:
    """An index expression as an array of real numbers."""
    return graph.broadcast(lambda patterns: ElementwiseStep("counted", patterns), [ramp(graph, form)], float)


def scatter(
    graph: Graph, factor: SizeFactor, value: LabelledStep, places: Sequence[Var], index: LabelledStep
) -> tuple[SizeFactor, LabelledStep]:
    """factor·value added up at the indices held in an array, whose labels are summed over, as a number times an array.

    Where the value is smaller than the result, it is multiplied by the number before.
    """
    result = _scattered(graph, value, places, index)
    if graph.size(value) >= graph.size(result):
        return factor, result
    return UNIT, _scattered(graph, graph.scale(value, factor), places, index)


def _scattered(graph: Graph, value: LabelledStep, places: Sequence[Var], index: LabelledStep) -> LabelledStep:
    rest = [label for label in value.labels if label not in index.labels]
    arranged = graph.arrange(value, (*index.labels, *rest))
    domain = domain_of(places[0])
    operation = Scatter(first_form(domain), isinstance(domain, Cyclic), len(places))
    return graph.labelled(operation, (arranged, index), (*places, *rest), graph.kind(arranged))


def _in_a_row(graph: Graph, places: Sequence[Var], indices: Sequence[LabelledStep]) -> LabelledStep:
    """The place of several indices among all of them: `a·n + b` for the indices a and b, of n places each."""
    index = indices[0]
    for var, other in zip(places[1:], indices[1:], strict=True):
        index = graph.combine([(SizeFactor(extents=(domain_of(var),)), index), (UNIT, other)])
    return index


def hit(graph: Graph, condition: Delta, form: Term, index: LabelledStep) -> LabelledStep:
    """1 where an index expression is the index held in an array: of d/2 = idx[i] where d = 2 idx[i]."""
    labels, steps, start, multiple = mask_of_form(form)
    index = graph.combine([(SizeFactor(Number(multiple)), index)]) if multiple != 1 else index
    out = list(dict.fromkeys((*labels, *index.labels)))
    along = dict(zip(labels, steps, strict=True))
    domain = condition.domain
    modulus = extent_form(domain).scale(multiple) if isinstance(domain, Cyclic) else start.scale(0)
    operation = IndexEquals(
        tuple(along.get(x, 0) for x in out), start, modulus, tuple(out.index(x) for x in index.labels)
    )
    return graph.labelled(operation, (index,), out, int)


def _only_here(var: Var, condition: Delta, others: Sequence[Term]) -> bool:
    """Whether no other condition asks for an index, nor the array for itself, as in δ(i, idx[i])."""
    assert condition.lookup
    _, value = condition.lookup
    return var not in value.free and all(other is condition or var not in other.free for other in others)


@dataclass(frozen=True)
class PendingScatter:
    """What is to be done once the operands of a product are contracted: add up at `index`, and multiply by `beside`.

    `places` are the indices of the result that `index` counts. No operand `beside` shares a summed label with it.
    """

    places: tuple[Var, ...]
    index: LabelledStep
    beside: tuple[LabelledStep, ...]

    @property
    def labels(self) -> set[Var]:
        """The labels of the index and of what stands beside."""
        return {label for value in (self.index, *self.beside) for label in value.labels}

    def of(
        self, graph: Graph, factor: SizeFactor, value: LabelledStep, summed: Sequence[Var]
    ) -> tuple[SizeFactor, LabelledStep]:
        """factor·value added up at the index and multiplied by what stands beside, as a number times an array."""
        factor, found = scatter(graph, factor, value, self.places, self.index)
        if not self.beside:
            return factor, found
        kept = {*found.labels, *self.labels}.difference(summed)
        return factor, joined(graph, [found, *self.beside], kept)


def read_looked_up(graph: Graph, product: Product, value_of: Callable[[Term], LabelledStep]) -> None:
    """Read operands at the indices that arrays hold, where nothing else is asked of the index that stands for them.

    An operand that is read along the indices of a condition can then be kept where it holds: l[place[i, j]] for j ≤ i.
    """
    _read_around(graph, product)
    while taken := _looked_up(graph, product, value_of):  # one that is read leaves the index of another to itself
        product.operands = [take(graph, value, taken) for value in product.operands]
        product.reads = [tuple(read for read in known if read[0].free.isdisjoint(taken)) for known in product.reads]


def _read_around(graph: Graph, product: Product) -> None:
    """Read operands at the summed indices that are index expressions modulo the sizes of their axes: rolled views."""
    while places := [one for one in product.lookups if _is_place(one, product)]:
        for condition in places:
            found = reduced_index(condition)
            assert found
            index, form, _ = found
            product.operands = [graph.relabel(value, index, form, around=True) for value in product.operands]
            product.reads = [tuple(read for read in known if index not in read[0].free) for known in product.reads]
            product.summed.remove(index)
            product.lookups.remove(condition)


def _is_place(condition: Delta, product: Product) -> bool:
    """Whether all that is asked of a summed index is the place around an axis that it is."""
    found = reduced_index(condition)
    return found is not None and found[0] in product.summed and _is_bare(found[0], condition, product)


def _looked_up(graph: Graph, product: Product, value_of: Callable[[Term], LabelledStep]) -> dict[Var, LabelledStep]:
    """The summed indices that arrays hold, taken out of the product with their conditions, each with its array."""
    taken: dict[Var, LabelledStep] = {}
    for condition in dict.fromkeys(product.lookups):
        assert condition.lookup
        form, value = condition.lookup
        if isinstance(form, Var) and form in product.summed and _is_bare(form, condition, product):
            index = _kept_inside(graph, value_of(value), condition)
            taken = {var: take(graph, before, {form: index}) for var, before in taken.items()}  # idx[k], k looked up
            taken[form] = index
            product.summed.remove(form)
            product.lookups = [one for one in product.lookups if one is not condition]
    return taken


def _is_bare(form: Var, condition: Delta, product: Product) -> bool:
    """Whether a looked-up index is one of the axis itself, of which no other condition asks anything."""
    return form.type == condition.domain and _only_here(form, condition, [*product.masks, *product.lookups])


def look_up(graph: Graph, product: Product, value_of: Callable[[Term], LabelledStep]) -> PendingScatter | None:
    """Read operands at the indices that arrays hold; what is left to be added up there.

    Masks that the product still has are on labels that are not summed, and are put upon the result.
    """
    read_looked_up(graph, product, value_of)
    places: dict[Var, LabelledStep] = {}
    for condition in dict.fromkeys(product.lookups):
        assert condition.lookup
        form, value = condition.lookup
        index = _kept_inside(graph, value_of(value), condition)
        bare = isinstance(form, Var) and form.type == condition.domain
        bare = bare and _only_here(form, condition, product.lookups)  # type: ignore[arg-type]
        if (
            bare
            and isinstance(form, Var)
            and _adds_up(index, product)
            and _joins((form, *_rows(index, product)), places)
        ):
            places[form] = index
        else:
            product.operands.append(hit(graph, condition, form, index))
    return _pending_scatter(graph, product, places)


def _adds_up(index: LabelledStep, product: Product) -> bool:
    """Whether an index varies along labels that are summed: else one number marks one place."""
    return not set(index.labels).isdisjoint(product.summed)


def _rows(index: LabelledStep, product: Product) -> list[Var]:
    """The labels of an index that are not summed: for each value of these there is a row of the result."""
    return [label for label in index.labels if label not in product.summed]


def _pending_scatter(graph: Graph, product: Product, places: Mapping[Var, LabelledStep]) -> PendingScatter | None:
    """What is to be added up at the places. Their operands are read there, or multiply the result:

    Σ_i δ(a, idx[i])·A[a, i]·y[a]  is  y[a]·Σ_i δ(a, idx[i])·A[idx[i], i].
    """
    if not places:
        return None
    rows = {label: ramp(graph, label) for index in places.values() for label in _rows(index, product)}
    placed = dict(sorted({**places, **rows}.items(), key=lambda pair: pair[0].name))  # d, e as in results
    index = _in_a_row(graph, tuple(placed), tuple(placed.values()))
    reached = _connected(index.labels, product)
    beside = [value for value in product.operands if reached.isdisjoint(value.labels)]
    inner = [value for value in product.operands if not reached.isdisjoint(value.labels)]
    product.operands = [take(graph, value, places) for value in inner]
    return PendingScatter(tuple(placed), index, tuple(beside))


def _connected(labels: Iterable[Var], product: Product) -> set[Var]:
    """The summed labels that operands connect with some."""
    reached, before = set(labels), 0
    while len(reached) > before:
        before = len(reached)
        near = [value.labels for value in product.operands if not reached.isdisjoint(value.labels)]
        reached.update(label for found in near for label in found if label in product.summed)
    return reached


def _kept_inside(graph: Graph, index: LabelledStep, condition: Delta) -> LabelledStep:
    """Indices that may be none where nothing is read with them, since a condition does not hold, made any that exist.

    So may be those that count an index, and those computed from reads at index expressions, which find 0 outside.
    """
    domain = condition.domain
    if (
        is_index_by_form(condition)
        or not _may_be_outside(graph, index.step)
        or not isinstance(domain, Range | Symmetric)
    ):
        return index
    return graph.labelled(Clip(first_form(domain), extent_form(domain)), (index,), index.labels, int)


def _may_be_outside(graph: Graph, step: int) -> bool:
    """Whether an index comes from a count of indices or a read at index expressions."""
    return isinstance(graph.steps[step].operation, Iota | Read) or any(
        _may_be_outside(graph, operand) for operand in graph.steps[step].operands
    )


def _joins(own: Sequence[Var], places: Iterable[Var]) -> bool:
    """Whether an index, and the rows that it has, can be counted in a row with those found so far."""
    several = (*own, *places)
    return len(several) == 1 or all(isinstance(var.type, Range) for var in several)
