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
from fractions import Fraction
from math import lcm, pi

from combdiff.ir import (
    ONE,
    Add,
    Coordinate,
    Cyclic,
    Names,
    Range,
    Size,
    Sum,
    Term,
    Var,
    Wave,
    affine,
    affine_parts,
    free_indices,
    mul,
    size_of_parts,
    total,
    waves_of,
)
from combdiff.planning.extents import never_negative
from combdiff.planning.lowering.graph import Graph, LabelledStep
from combdiff.planning.lowering.running_exponentials import Lower, Read, factors_read
from combdiff.planning.operations.transforms import FourierTransform
from combdiff.planning.views import index_labels
from combdiff.polyhedra import as_linear
from combdiff.records import dataclass

NEAR = 1e-15  # relative to a number of turns: as far from a fraction as rounding makes it
MOST_MORE = 2  # times as many points as numbers


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

    def lowered(self, graph: Graph, value: Lower, names: Names) -> tuple[LabelledStep, Var]:
        """The transforms of the weights, and the label that stands in the index's place.

        Of conjugates it is the conjugate of the opposite one, so that those of real numbers are of one sign.
        """
        weight = value(self.weight)
        if self.index not in weight.labels:
            weight = graph.arrange(weight, (*weight.labels, self.index))
        axis, frequency = weight.labels.index(self.index), names.fresh(Var("k", Cyclic(self.points)))
        turned = weight.conj or (self.sign > 0 and graph.kind(weight) is not complex)
        labels = [frequency if label is self.index else label for label in weight.labels]
        operation = FourierTransform((axis,), -self.sign if turned else self.sign)
        return replace(graph.labelled(operation, (weight,), labels, complex), conj=turned), frequency


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


def is_wave(term: Term) -> bool:
    """Whether a term is a product of waves."""
    waves, left = waves_of(term)
    return bool(waves) and left is ONE


def _along(index: Var, indices: Sequence[Var], waves: Sequence[Wave], others: Sequence[Term]) -> FourierSum | None:
    """The transform along one index."""
    turns, beside = list[_Turns](), list[Wave]()
    for wave in waves:
        split = _split(index, wave)
        if split is None:
            return None
        turns += split[0]
        beside += split[1]
    points, position = _position(index, turns) or (0, affine([]))
    labels = index_labels([position])
    weights = [factor for factor in others if index in factor.free]
    rest = [*(factor for factor in others if index not in factor.free), *(wave.term for wave in beside)]
    told = frozenset(labels).union(*(part.free for part in rest))
    private = [one for one in indices if one is not index and one not in told]
    weight = total(private, mul(*weights))
    if not labels or not weight.free.isdisjoint(labels):
        return None
    sign = 1 if dict(affine_parts(position)[0])[labels[0]] > 0 else -1
    left = tuple(one for one in indices if one is not index and one not in private)
    return FourierSum(index, points, sign, affine([(position, sign)]), weight, mul(*rest), left)


@dataclass(frozen=True)
class _Turns:
    """exp(2π i · number · form / points), for each step of an index."""

    number: float
    form: Term
    points: Term


def _split(index: Var, wave: Wave) -> tuple[list[_Turns], list[Wave]] | None:
    """A wave as what it turns by for each step of an index, and waves without it; None where it has its square."""
    one, other = (wave.one, wave.other) if index in wave.one.free else (wave.other, wave.one)
    if index in other.free:
        return None
    step = dict(affine_parts(one)[0]).get(index, 0)
    rest = affine([(one, 1), (index, -step)])
    turns = [_Turns(float(step) * wave.radians / (2 * pi), other, wave.points)] if step else []
    return turns, [] if rest is affine([]) else [Wave(wave.radians, rest, other, wave.points)]


def _position(index: Var, turns: Sequence[_Turns]) -> tuple[Size, Term] | None:
    """The number of points of a transform, and the element of it that the turns ask for; None where it is none."""
    below = list(dict.fromkeys(turn.points for turn in turns))
    if len(below) != 1 or not isinstance(index.type, Range | Cyclic):
        return None
    (points,), many = below, index.type.size
    if isinstance(points, Coordinate):
        size = _size(points.form)
        numbers = [_fraction(turn.number, 1) for turn in turns]
    elif isinstance(many, int) and many:
        numbers = [_fraction(turn.number, MOST_MORE * many) for turn in turns]
        least = lcm(*(number.denominator for number in numbers))
        size = least * -(-many // least)
        numbers = [number * size for number in numbers]
    else:
        return None
    position = affine((turn.form, number) for turn, number in zip(turns, numbers, strict=True))
    parts, offset = affine_parts(position)
    whole = all(Fraction(number).denominator == 1 for number in (offset, *(factor for _, factor in parts)))
    return (size, position) if whole and _may_have(size, many) else None


def _may_have(points: Size, many: Size) -> bool:
    """Whether a transform at so many points may be one of so many numbers: of zeros behind them, if not too many."""
    if isinstance(points, int) and isinstance(many, int):
        return many <= points <= MOST_MORE * many
    return never_negative(as_linear(points) - as_linear(many))


def _fraction(number: float, most: int) -> Fraction:
    """The fraction with a denominator up to `most` that a number is, or half of a turn more where it is none."""
    found = Fraction(number).limit_denominator(most)
    return found if abs(found - Fraction(number)) <= NEAR * abs(number) else found + Fraction(1, 2 * most)


def _size(form: Term) -> Size:
    """The size that an index expression of sizes is."""
    names, offset = affine_parts(form)
    return size_of_parts({var.name: int(factor) for var, factor in names}, int(offset))
