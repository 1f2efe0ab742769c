"""The graph of array steps: equal computations are one step, whatever their indices were called.

    D[p, q] = Σ_i conj(C[p, i])·C[q, i]   and   Σ_j C[r, j]·conj(C[s, j])
    are one contraction, read as D[p, q] and as D[s, r]

A `LabelledStep` is a step with a label on each axis and perhaps a conjugation still to be done. Conjugations travel
outwards: conj(a)·conj(b) is conj(a·b), and of conj(a)·b the smaller operand is conjugated, so that the same
contraction is found from either side. Symmetries are used in the same way: a step knows in which orders of its axes,
conjugated or not, it is the same array. An argument has the symmetries that were declared, and a contraction those that
exchange what it is made of: D above is its own adjoint, as C takes the place of conj(C).

Invariant: steps only refer to earlier steps, and no two steps are the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, product
from math import prod

from combdiff.ir import OPPOSITES, Domain, Number, Term, Var, extent, join
from combdiff.planning.extents import extent_form
from combdiff.planning.networks import Network, PathFinder, Tree
from combdiff.planning.operations.contraction import Contract
from combdiff.planning.operations.elementwise import Combine, ConjugateElements, ElementwiseStep, Scale
from combdiff.planning.operations.leaves import Fill
from combdiff.planning.operations.loops import Choice
from combdiff.planning.operations.operation import Operation, Step
from combdiff.planning.operations.positions import Position
from combdiff.planning.operations.reads import Arrange, Read
from combdiff.planning.operations.reductions import Reduce, Rescale
from combdiff.planning.operations.words import UNIT, Pattern, SizeFactor
from combdiff.planning.search import trees
from combdiff.planning.views import Exchange, domain_of, index_labels, position
from combdiff.records import dataclass

_Form = tuple[tuple[int, ...], Contract, bool, tuple[Var, ...]]  # operands, operation, whether conjugated, labels
MOST = 1024  # pairs of readings of two operands that are compared
# Functions that give a number for every number, without overflow: whatever a masked-out element holds is harmless.
TOTAL = frozenset(
    {
        *("sin", "cos", "tanh", "arctan", "abs", "sign", "real", "imag", "relu", "step", "heaviside"),
        *("maximum", "minimum", "logaddexp", *OPPOSITES),
        *("erf", "erfc", "expit", "log_expit", "ndtr", "j0", "j1", "i0e", "i1e"),
    }
)


@dataclass(frozen=True)
class LabelledStep:
    """The result of a step with labelled axes; `conj` says that its conjugate is meant."""

    step: int
    labels: tuple[Var, ...]
    conj: bool = False


class Graph:
    """Steps so far; `sizes` are the sizes at which contraction orders are chosen."""

    def __init__(self, sizes: Mapping[str, int], find_paths: PathFinder) -> None:
        self.sizes = dict(sizes)
        self.find_paths = find_paths
        self.steps: list[Step] = []
        self.exchanges: list[tuple[Exchange, ...]] = []  # of each step
        self.unsafe: list[bool] = []  # may be infinite or nan at finite arguments
        self.networks: list[tuple[frozenset[int], ...]] = []  # per network, the contractions of each alternative
        self._contracted: dict[tuple[object, ...], tuple[int, Pattern, bool]] = {}  # by the form that was asked for
        self._known: dict[tuple[Operation, tuple[int, ...], tuple[Domain, ...]], int] = {}

    # --- single steps

    def emit(self, operation: Operation, operands: tuple[int, ...], axes: Iterable[Domain], kind: type) -> int:
        """The number of the step, a new one if there is none that is equal."""
        axes = tuple(axes)
        key = (operation, operands, axes)
        if key not in self._known:
            self._known[key] = len(self.steps)
            self.steps.append(Step(operation, operands, axes, kind))
            self.exchanges.append(((tuple(range(len(axes))), False),))
            if operation == ConjugateElements():
                self.exchanges[-1] = self.exchanges[operands[0]]
            partial = isinstance(operation, Rescale) or (
                isinstance(operation, ElementwiseStep) and operation.name not in TOTAL
            )
            total = isinstance(operation, ElementwiseStep) and operation.name in (*OPPOSITES, "truth", "counted")
            self.unsafe.append(not total and (partial or any(self.unsafe[n] for n in operands)))
        return self._known[key]

    def kind(self, *values: LabelledStep) -> type:
        """The element type that holds them all."""
        return join(*(self.steps[value.step].kind for value in values))

    def size(self, value: LabelledStep) -> int:
        """The number of elements, at the sizes of the graph."""
        return prod(extent(axis, self.sizes) for axis in self.steps[value.step].axes)

    def labelled(
        self, operation: Operation, operands: tuple[LabelledStep, ...], labels: Sequence[Var], kind: type
    ) -> LabelledStep:
        """The step as a value; conjugations of the operands are the caller's to have done."""
        steps = tuple(value.step for value in operands)
        return LabelledStep(self.emit(operation, steps, map(domain_of, labels), kind), tuple(labels))

    def constant(self, value: Number) -> LabelledStep:
        """A number, which is in no array."""
        kind = complex if value.imag else int if isinstance(value.real, int) else float
        return self.labelled(Fill(value), (), (), kind)

    def conjugate(self, value: LabelledStep) -> LabelledStep:
        """The conjugate, to be done when needed; that of a number is another."""
        if self.kind(value) is not complex:
            return value
        operation = self.steps[value.step].operation
        if isinstance(operation, Fill):
            return self.constant(Number(operation.number.real, -operation.number.imag))
        flipped = replace(value, conj=not value.conj)
        return next((one for one in self._readings(flipped) if not one.conj), flipped)

    def plain(self, value: LabelledStep) -> LabelledStep:
        """The same with the conjugation done."""
        return self.labelled(ConjugateElements(), (value,), value.labels, complex) if value.conj else value

    def read(self, value: LabelledStep, indices: Sequence[Term], around: Collection[int] = ()) -> LabelledStep:
        """Elements of the value at index expressions, one per axis: relabelled where they are bare, else a view.

        Those of the axes `around` which it is read count modulo their sizes.
        """
        labels = index_labels(indices)
        axes = self.steps[value.step].axes
        positions = tuple(position(index, labels, axis) for index, axis in zip(indices, axes, strict=True))
        positions = tuple(replace(p, wrap=p.wrap or n in around) for n, p in enumerate(positions))
        bare = len(labels) == len(indices) and all(
            index is label and p.along() is not None and _same_extent(domain_of(label), axis)
            for index, label, p, axis in zip(indices, labels, positions, axes, strict=True)
        )
        if bare:
            return replace(value, labels=labels)
        source, below = value.step, self.steps[value.step]
        if isinstance(below.operation, Read) and (
            joined := _composed(below, positions, list(map(domain_of, labels)), self.steps[below.operands[0]])
        ):
            positions, source = joined, below.operands[0]
        result = self.labelled(Read(positions), (LabelledStep(source, ()),), labels, self.kind(value))
        return replace(result, conj=value.conj)

    def relabel(self, value: LabelledStep, var: Var, index: Term, *, around: bool = False) -> LabelledStep:
        """The value with an index expression in place of a label, perhaps modulo the size of its axis, `around` it."""
        if var not in value.labels:
            return value
        indices = [index if label is var else label for label in value.labels]
        return self.read(value, indices, [value.labels.index(var)] if around else [])

    def scale(self, value: LabelledStep, factor: SizeFactor) -> LabelledStep:
        """factor·value."""
        if factor == UNIT:
            return value
        if value.conj:
            return self.conjugate(self.scale(replace(value, conj=False), factor.conjugate()))
        kind = complex if factor.number.imag else self.kind(value)
        kind = kind if isinstance(factor.number.real, int) else join(kind, float)
        return self.labelled(Scale(factor), (value,), value.labels, kind)

    def reduce(self, value: LabelledStep, kept: Iterable[Var]) -> LabelledStep:
        """The sum over all labels but those kept."""
        keep = set(kept)
        summed = tuple(n for n, label in enumerate(value.labels) if label not in keep)
        if not summed:
            return value
        labels = [label for label in value.labels if label in keep]
        result = self.labelled(Reduce(summed), (value,), labels, self.kind(value))
        return replace(result, conj=value.conj)

    def arrange(self, value: LabelledStep, labels: Sequence[Var]) -> LabelledStep:
        """The value, conjugated if need be, with axes in that order; labels it lacks become broadcast axes."""
        value = self._in_order(self.plain(value), labels)
        order = tuple(value.labels.index(label) if label in value.labels else None for label in labels)
        if order == tuple(range(len(value.labels))):
            return value
        return self.labelled(Arrange(order), (value,), labels, self.kind(value))

    def _in_order(self, value: LabelledStep, labels: Sequence[Var]) -> LabelledStep:
        """The value by the symmetry that has its labels most in that order."""
        readings = (one for one in self._readings(value) if one.conj is value.conj)
        return min(readings, key=lambda one: [labels.index(x) if x in labels else len(labels) for x in one.labels])

    def broadcast(
        self,
        make: Callable[[tuple[Pattern, ...]], Operation],
        values: Iterable[LabelledStep],
        kind: type,
        order: Sequence[int] = (),
    ) -> LabelledStep:
        """An element-by-element operation on values, over all of their labels.

        Those of the largest values come first, in the order in which most of these have them.

        It takes the values in another `order` where one is given, which labels do not follow.
        """
        operands = tuple(self.plain(value) for value in values)
        orders = Counter(value.labels for value in operands)
        largest = max(orders, key=lambda order: (len(order), orders[order]))
        labels = tuple(dict.fromkeys([*largest, *(x for value in operands for x in value.labels)]))
        operands = tuple(self._in_order(operands[n], labels) for n in order or range(len(operands)))
        patterns = tuple(tuple(labels.index(x) for x in value.labels) for value in operands)
        return self.labelled(make(patterns), operands, labels, kind)

    def combine(self, parts: Sequence[tuple[SizeFactor, LabelledStep]]) -> LabelledStep:
        """Σ factor·value."""
        if all(value.conj for _, value in parts):
            turned = [(factor.conjugate(), self.conjugate(value)) for factor, value in parts]
            return self.conjugate(self.combine(turned))
        factors = tuple(factor for factor, _ in parts)
        kinds = [complex if f.number.imag else int if isinstance(f.number.real, int) else float for f in factors]
        kind = join(self.kind(*(value for _, value in parts)), *kinds)
        first = next((n for n, factor in enumerate(factors) if not factor.is_negative), 0)
        order = sorted(range(len(parts)), key=lambda n: n != first)  # t - b, which may be written over t, not -b + t
        factors = tuple(factors[n] for n in order)
        return self.broadcast(lambda patterns: Combine(factors, patterns), [value for _, value in parts], kind, order)

    # --- contractions

    def product(self, values: Sequence[LabelledStep], kept: Iterable[Var]) -> LabelledStep:
        """Σ of the product of one or more values over all labels but those kept, in the best order found."""
        labels = tuple(dict.fromkeys(label for value in values for label in value.labels))
        number = {label: n for n, label in enumerate(labels)}
        network = Network(
            tuple(frozenset(number[label] for label in value.labels) for value in values),
            frozenset(number[label] for label in kept if label in number),
            {n: extent(domain_of(label), self.sizes) for n, label in enumerate(labels)},
        )
        found: list[LabelledStep] = []
        contractions: list[frozenset[int]] = []
        for tree in trees(network, self.find_paths):
            used: set[int] = set()
            value = _Tree(self, network, values, labels, used)(tree)[0]
            if value not in found:
                found.append(value)
                contractions.append(frozenset(used))
        self.networks.append(tuple(contractions))
        return self.choice(found)

    def choice(self, values: Sequence[LabelledStep]) -> LabelledStep:
        """Any one of equal values, the first if nothing speaks for another."""
        first = values[0]
        aligned = [self.arrange(replace(v, conj=v.conj != first.conj), first.labels) for v in values]
        steps = tuple(dict.fromkeys(value.step for value in aligned))
        if len(steps) == 1:
            return first
        step = self.emit(Choice(), steps, self.steps[first.step].axes, self.kind(first))
        return LabelledStep(step, first.labels, first.conj)

    def contract(self, a: LabelledStep, b: LabelledStep, kept: frozenset[Var]) -> LabelledStep:
        """Σ a·b over the labels not kept, each of which is in both.

        A sum of transposes of one array is multiplied by a vector term by term, (A + Aᵀ)·x as A·x + Aᵀ·x: to read an
        array twice takes a quarter of the time of making a sum as large, and A·x may be there.
        """
        for array, vector in ((a, b), (b, a)):
            if set(vector.labels) < set(array.labels) and not kept.issuperset(vector.labels):
                factor, terms = self._transposes(array)
                if terms:
                    return self.scale(self.combine([(UNIT, self.contract(one, vector, kept)) for one in terms]), factor)
        *asked, labels = _form(a, b, kept, a.conj)
        key = (*asked, b.conj)
        if key not in self._contracted:
            found = self._contract(a, b, kept)
            self._contracted[key] = found.step, tuple(labels.index(label) for label in found.labels), found.conj
        step, order, conj = self._contracted[key]
        return LabelledStep(step, tuple(labels[n] for n in order), conj)

    def _contract(self, a: LabelledStep, b: LabelledStep, kept: frozenset[Var]) -> LabelledStep:
        forms = list(self._forms(a, b, kept))
        if not forms:
            return self._half_conjugated(a, b, kept)
        steps, operation, conj, labels = min(forms, key=lambda form: _order(*form[:3]))
        emitted = len(self.steps)
        step = self.emit(operation, steps, map(domain_of, labels), self.kind(a, b))
        if step == emitted:
            equal = (form for form in forms if form[:2] == (steps, operation))
            found = ((tuple(labels.index(x) for x in other), flag is not conj) for _, _, flag, other in equal)
            self.exchanges[step] = tuple(dict.fromkeys(found))
        return LabelledStep(step, labels, conj)

    def _forms(self, a: LabelledStep, b: LabelledStep, kept: frozenset[Var]) -> Iterator[_Form]:
        """The contraction in each of the ways that the symmetries of the operands allow, the given one first.

        None has an operand whose conjugate is yet to be made: both are read as they are, or the whole is conjugated.
        """
        for left, right in islice(product(self._readings(a), self._readings(b)), MOST):
            for one, other in ((left, right), *self._exchanged(left, right)):
                flags = {value.conj for value in (one, other) if self.kind(value) is complex}
                if len(flags) < 2:
                    yield _form(one, other, kept, any(flags))
                    yield _form(other, one, kept, any(flags))

    def _transposes(self, value: LabelledStep) -> tuple[SizeFactor, list[LabelledStep]]:
        """A value as a factor times a sum of readings of one array; no terms if it is none."""
        step, found = self.steps[value.step], list[LabelledStep]()
        if not isinstance(step.operation, Combine) or len(set(step.operation.factors)) > 1 or len(step.operands) < 2:
            return UNIT, []
        for n, pattern in zip(step.operands, step.operation.patterns, strict=True):
            below = self.steps[n]
            turned = below.operation == ConjugateElements()
            labels = tuple(value.labels[axis] for axis in pattern)
            found.append(LabelledStep(below.operands[0] if turned else n, labels, turned is not value.conj))
        one = len({term.step for term in found}) == 1 and all(len(term.labels) == len(value.labels) for term in found)
        factor = step.operation.factors[0]
        return (factor.conjugate() if value.conj else factor, found) if one else (UNIT, [])

    def _readings(self, value: LabelledStep) -> Iterator[LabelledStep]:
        """The same value by each symmetry of its step."""
        for axes, conj in self.exchanges[value.step]:
            yield LabelledStep(value.step, tuple(value.labels[axis] for axis in axes), value.conj is not conj)

    def _exchanged(self, a: LabelledStep, b: LabelledStep) -> Iterator[tuple[LabelledStep, LabelledStep]]:
        """Of two steps that are each other's conjugate, each read as the conjugate of the other."""
        if self._conjugates(a.step, b.step) or self._conjugates(b.step, a.step):
            yield LabelledStep(b.step, a.labels, not a.conj), LabelledStep(a.step, b.labels, not b.conj)

    def _conjugates(self, step: int, other: int) -> bool:
        return self.steps[step].operation == ConjugateElements() and self.steps[step].operands == (other,)

    def _half_conjugated(self, a: LabelledStep, b: LabelledStep, kept: frozenset[Var]) -> LabelledStep:
        """The contraction of which one operand is to be conjugated: done is the conjugate of the smaller one."""
        if min((a, b), key=lambda value: (self.size(value), value.step)).conj:
            return self.contract(self.plain(a), self.plain(b), kept)
        return self.conjugate(self.contract(self.plain(self.conjugate(a)), self.plain(self.conjugate(b)), kept))


@dataclass
class _Tree:
    """Builds the steps of contraction trees and notes those used."""

    graph: Graph
    network: Network
    values: Sequence[LabelledStep]
    labels: tuple[Var, ...]
    used: set[int]

    def __call__(self, tree: Tree) -> tuple[LabelledStep, int]:
        """The value of a tree and the set of its operands."""
        if isinstance(tree, int):
            return self.graph.reduce(self.values[tree], self._kept(1 << tree)), 1 << tree
        (a, left), (b, right) = self(tree[0]), self(tree[1])
        value = self.graph.contract(a, b, self._kept(left | right))
        step = self.graph.steps[value.step]
        self.used.update(step.operands if isinstance(step.operation, Combine) else (value.step,))
        return value, left | right

    def _kept(self, subset: int) -> frozenset[Var]:
        return frozenset(self.labels[n] for n in self.network.kept_labels(subset))


def _same_extent(a: Domain, b: Domain) -> bool:
    return extent_form(a) == extent_form(b)


def _composed(
    view: Step, outer: Sequence[Position], axes: Sequence[Domain], source: Step
) -> tuple[Position, ...] | None:
    """The positions at which a view of a view, with those axes, reads the source; None where what it leaves is not 0.

    Each axis of the first view is read as a whole, or is one of the source, too.
    """
    assert isinstance(view.operation, Read)
    inner = view.operation.positions
    for label, (place, axis) in enumerate(zip(outer, view.axes, strict=True)):
        along = place.along()
        whole = along is not None and _same_extent(axes[along], axis)
        ends = (p for p, a in zip(inner, source.axes, strict=True) if p.along() == label and _same_extent(a, axis))
        if place.divisor > 1 or not (whole or any(p.wrap == place.wrap for p in ends)):
            return None
    found = []
    for each in inner:
        pairs = list(zip(each.steps, outer, strict=True))
        steps = tuple(sum(along * place.steps[n] for along, place in pairs) for n in range(len(axes)))
        start = sum((place.start.scale(along) for along, place in pairs), each.start)
        found.append(replace(each, steps=steps, start=start))
    return tuple(found)


def _form(a: LabelledStep, b: LabelledStep, kept: frozenset[Var], conj: bool) -> _Form:
    """The contraction of a with b in that order: labels numbered as they occur, the natural order of the result."""
    labels = list(dict.fromkeys((*a.labels, *b.labels)))
    number = {label: n for n, label in enumerate(labels)}
    shared = [x for x in a.labels if x in b.labels]
    if all(x in kept for x in shared):  # no sum: keep the axes of the larger operand in place
        out = list(dict.fromkeys((*b.labels, *a.labels) if len(b.labels) > len(a.labels) else labels))
    else:
        out = [x for x in shared if x in kept]
        out += [x for x in labels if x not in shared]
    left, right, result = (tuple(number[x] for x in group) for group in (a.labels, b.labels, out))
    return (a.step, b.step), Contract(left, right, result), conj, tuple(out)


def _order(steps: tuple[int, ...], form: Contract, conj: bool) -> tuple[object, ...]:
    """Of equal contractions the least stands for all: one that sums over the last axes of its operands, if one does."""
    summed = tuple(tuple(label not in form.out for label in pattern) for pattern in (form.left, form.right))
    return steps, summed, form.left, form.right, form.out, conj
