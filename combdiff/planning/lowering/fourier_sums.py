"""Sums of waves that are discrete Fourier transforms, of which no matrix of waves is made.

    Σ_j x[j] exp(−2π i j k / n)                         element k of the transform of x
    Σ_{j,k} h[k] x[j] exp(2π i k (m − j) / n)           element m of the inverse transform of h times the transform of x

One index after another is summed over by a transform: one with whose waves nothing else is mixed, and which stands in
waves with one other index, where there is one. What counts beyond the points counts modulo their number.

Invariant: the value is unchanged; other sums of waves stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import pi

from combdiff.ir import (
    MINUS_ONE,
    Add,
    Domain,
    Names,
    Number,
    Range,
    Size,
    Sum,
    Symmetric,
    Term,
    Var,
    Wave,
    affine,
    affine_parts,
    coordinate,
    counts_within,
    free_indices,
    function,
    is_at_most,
    mul,
    number_of_values,
    power,
    size_form,
    size_of_axis,
    total,
    transform_along,
    waves_of,
)
from combdiff.planning.lowering.graph import Graph, LabelledStep
from combdiff.planning.lowering.running_exponentials import Lower, Read, factors_read
from combdiff.planning.operations.transforms import FourierTransform
from combdiff.planning.views import domain_of, index_labels
from combdiff.records import dataclass


@dataclass(frozen=True)
class FourierSum:
    """Σ over `index` of weight · exp(sign · 2π i index · position / points), beside `rest`, summed over `indices`."""

    index: Var
    points: Size
    sign: int
    position: Term
    weight: Term
    rest: Term
    indices: tuple[Var, ...]

    @property
    def domains(self) -> tuple[Domain, ...]:
        """Those of the axes of what is transformed, and of the result."""
        indices = dict.fromkeys((self.index, *free_indices(self.weight)))
        return (Range(self.points), *map(domain_of, indices))

    def lowered(self, graph: Graph, value: Lower, names: Names) -> LabelledStep:
        """The transforms of the weights, read at the position.

        Of conjugates it is the conjugate of the opposite one, so that those of real numbers are of one sign.
        """
        weight = value(self.weight)
        if self.index not in weight.labels:
            weight = graph.arrange(weight, (*weight.labels, self.index))
        axis, frequency = weight.labels.index(self.index), names.fresh(Var("k", Range(self.points)))
        turned = weight.conj or (self.sign > 0 and graph.kind(weight) is not complex)
        labels = [frequency if label is self.index else label for label in weight.labels]
        operation = FourierTransform((axis,), -self.sign if turned else self.sign)
        found = replace(graph.labelled(operation, (weight,), labels, complex), conj=turned)
        inside = isinstance(self.position, Var) and counts_within(self.position, self.points)
        indices = [self.position if label is frequency else label for label in labels]
        return graph.read(found, indices, () if inside else (axis,))


def fourier_sum(term: Term, read: Read) -> FourierSum | None:
    """A Σ as a transform; None where it is none. `read` opens elements of bindings."""
    if not isinstance(term, Sum) or isinstance(term.body, Add):
        return None
    parts = [waves_of(factor) for factor in factors_read(term.body, read)]
    waves = [wave for found, _ in parts for wave in found]
    if not waves:
        return None
    others = [left for _, left in parts]
    found = [one for index in term.indices if (one := _along(index, term.indices, waves, others))]
    return min(found, key=_width, default=None)


def _width(found: FourierSum) -> tuple[int, int]:
    """How many indices the element has that is read, and how many the numbers have that are transformed."""
    return len(index_labels([found.position])), len(free_indices(found.weight))


def _along(index: Var, indices: Sequence[Var], waves: Sequence[Wave], others: Sequence[Term]) -> FourierSum | None:
    """The transform along one index."""
    transform = transform_along(index, waves)
    many = number_of_values(index)
    if transform is None or many is None or not is_at_most(many, transform.points):  # of fewer there are zeros behind
        return None
    position = transform.position
    labels = index_labels([position])
    weights = [*(factor for factor in others if index in factor.free), *(wave.term for wave in transform.alone)]
    rest = [*(factor for factor in others if index not in factor.free), *(wave.term for wave in transform.beside)]
    if isinstance(index.type, Symmetric):  # the first of its numbers stands at −B
        first = mul(coordinate(size_form(index.type.bound)), power(size_of_axis(Range(transform.points)), MINUS_ONE))
        rest.append(function("exp", mul(Number(0, -2 * pi), first, coordinate(position))))
    told = frozenset(labels).union(*(part.free for part in rest))
    private = [one for one in indices if one is not index and one not in told]
    weight = total(private, mul(*weights))
    if not labels or not weight.free.isdisjoint(labels):
        return None
    sign = 1 if dict(affine_parts(position)[0])[labels[0]] > 0 else -1
    left = tuple(one for one in indices if one is not index and one not in private)
    return FourierSum(index, transform.points, sign, affine([(position, sign)]), weight, mul(*rest), left)
