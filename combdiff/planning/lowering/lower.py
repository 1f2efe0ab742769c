"""From terms to the graph of array steps: scalar terms become arrays over their free indices.

    Σ_k A[i, k]·(Σ_j B[k, j]·x[j])   with i free
    = one network of A, B, x with labels (i, k), (k, j), (j): an array with the label i

Σ of a product is a tensor network, Σ of a sum is a sum of networks, everything else works element by element on
broadcast arrays. The δ's that a Σ can take have been solved before; other δ's and conditions become arrays of 0 and 1
over just their own labels, which *select* from factors that may be infinite or undefined where they are 0.

Invariant: each distinct subterm is lowered once; the labels of a value are among the free indices of its term.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np

from combdiff.errors import UnsupportedError
from combdiff.ir import (
    MATRIX_TABLE,
    ONE,
    TABLE,
    ZERO,
    Add,
    Apply,
    Conj,
    Coordinate,
    Cyclic,
    Delta,
    Function,
    Implicit,
    Indicator,
    Lambda,
    Largest,
    Let,
    Magnitude,
    Masked,
    Mul,
    Names,
    Number,
    Primitive,
    Pullback,
    Range,
    Relation,
    Rescaled,
    Row,
    Scan,
    Shift,
    Space,
    Sum,
    Term,
    Tuple,
    Unequal,
    Var,
    apply,
    conj,
    extent,
    is_mark,
    is_matrix_function,
    iteration_of,
    join,
    mul,
    number,
    substitute,
    subterms,
    total,
    type_of,
    with_part_outside,
)
from combdiff.planning.extents import extent_form
from combdiff.planning.lowering.choices import choose_inside, chosen, compared, extreme, extreme_at, extreme_ties
from combdiff.planning.lowering.cyclic_strides import unwind
from combdiff.planning.lowering.endings import ending
from combdiff.planning.lowering.fourier_sums import FourierSum, fourier_sum
from combdiff.planning.lowering.graph import Graph, LabelledStep
from combdiff.planning.lowering.guards import Read, placement, reads
from combdiff.planning.lowering.hoist_through_views import read_late
from combdiff.planning.lowering.intermediates import summed_intermediates
from combdiff.planning.lowering.iteration import step_program
from combdiff.planning.lowering.joining import product as joined
from combdiff.planning.lowering.lookups import counted, look_up, ramp, read_looked_up
from combdiff.planning.lowering.mask_elimination import apply_masks, kept
from combdiff.planning.lowering.near_one import exp_near_one, log_near_one, step_at_tie, summands
from combdiff.planning.lowering.products import Product
from combdiff.planning.lowering.running_exponentials import RunningExponentials, running_exponentials
from combdiff.planning.lowering.shifts import largest, magnitude, masked, rescaled, shift
from combdiff.planning.lowering.systems import captures, system
from combdiff.planning.lowering.tiles import tiling
from combdiff.planning.operations.calls import NamedCall, SolveEquation
from combdiff.planning.operations.elementwise import ElementwiseStep
from combdiff.planning.operations.iterations import Iteration, IterationResult
from combdiff.planning.operations.leaves import Fill, Parameter
from combdiff.planning.operations.matrices import MatrixFunctionStep
from combdiff.planning.operations.reads import JoinAxes
from combdiff.planning.operations.reads import Read as ReadStep
from combdiff.planning.operations.words import UNIT, SizeFactor
from combdiff.planning.views import domain_of, exchanges
from combdiff.simplification import on_diagonals

_TWO = Number(2)
EXTREMES = ("amax", "amin", "amax_ties", "amin_ties")
NESTED = 30  # sums in products in sums, from where on the inner ones are lowered first: each takes some ten frames


class Lowering:
    """Lowers the parts of one program into a graph."""

    def __init__(
        self, program: Lambda, graph: Graph, orders: Mapping[str, Sequence[int]], partial: frozenset[str] = frozenset()
    ) -> None:
        self.graph = graph
        self.orders = orders
        self.partial = partial
        self.names = Names(program)
        self.parameters = frozenset(program.parameters)
        self.uses = Counter(child for node in subterms(program) for child in node.children)
        self.opened = summed_intermediates(program)
        self.scope: dict[Var, Term] = {}
        self.hints: dict[int, str] = {}  # names for steps that hold bindings
        self._iterations: dict[Term, int] = {}
        self._factored: dict[Term, tuple[SizeFactor, LabelledStep]] = {}
        self._runs: dict[Term, RunningExponentials | None] = {}
        self._waves: dict[Term, FourierSum | None] = {}
        self._looked_into = set[Term]()  # how deeply these are nested is known
        self._tensors: dict[Term, tuple[LabelledStep, tuple[Var, ...]]] = {}

    # --- results and tensors

    def results(self, body: Term) -> Iterator[int]:
        """The steps of the results of a program, one per item of a Tuple, nested ones too."""
        while isinstance(body, Let):
            body = self._unlet(body)
        if isinstance(body, Tuple):
            for item in body.items:
                yield from self.results(item)
        else:
            yield self.dense(body)

    def dense(self, term: Term) -> int:
        """The step of a closed tensor or number, axes in order."""
        value, labels = self.tensor(term)
        outer = [label for label in value.labels if label not in labels]
        if outer:
            raise UnsupportedError(
                f"a named map is called for each index {outer[0].name}: that would be a loop over elements",
                hint="give the whole tensor to a map of tensors instead",
            )
        return self.graph.arrange(value, labels).step

    def tensor(self, term: Term) -> tuple[LabelledStep, tuple[Var, ...]]:
        """A tensor as an array, and the labels that stand for its axes in order."""
        if term not in self._tensors:
            self._tensors[term] = self._tensor(term)
        return self._tensors[term]

    def _tensor(self, term: Term) -> tuple[LabelledStep, tuple[Var, ...]]:
        match term:
            case Let():
                return self.tensor(self._unlet(term))
            case Lambda():
                value, inner = self.tensor(term.body)
                for label in term.parameters:
                    extent_form(domain_of(label))
                return value, (*term.parameters, *inner)
            case Var() if term in self.scope:
                return self.tensor(self.scope[term])
            case Var():
                return self._source(Parameter(term.name), (), term.name, term.type)
            case Apply() if self._is_call(term):
                return self._call(term)
            case Pullback():
                return self._pullback(term)
            case Implicit():
                return self._solution(term)
            case Scan():
                return self._scan(term)
            case Primitive() if is_matrix_function(term):
                return self._matrix_function(term)
            case _:
                return self.value(term), ()

    def _matrix_function(self, term: Primitive) -> tuple[LabelledStep, tuple[Var, ...]]:
        """A stack of matrices has the indices around it first, then the axes of the tensor itself."""
        if term.name in EXTREMES:
            return self._extreme(term)
        array, own = self.tensor(term.arguments[0])
        outer = tuple(label for label in array.labels if label not in own)
        operand = self.graph.arrange(array, (*outer, *own))
        row = MATRIX_TABLE[term.name]
        stack = own[: -row.order]
        axes = (*stack, *map(self.names.fresh, row.of_result(own)[len(stack) :]))
        space = type_of(term)
        assert isinstance(space, Space)
        return self.graph.labelled(MatrixFunctionStep(term.name), (operand,), (*outer, *axes), space.dtype), axes

    def _extreme(self, term: Primitive) -> tuple[LabelledStep, tuple[Var, ...]]:
        """The largest or smallest elements of matrices, or how many of each are."""
        array, own = self.tensor(term.arguments[0])
        name, _, ties = term.name.partition("_")
        value = extreme_ties(self.graph, array, own[-2:], name) if ties else extreme(self.graph, array, own[-2:], name)
        return value, own[:-2]

    def _marked(self, term: Apply, sign: str) -> LabelledStep:
        """Whether an element is the largest or smallest, or is not."""
        assert isinstance(term.function, Primitive)
        array, own = self.tensor(term.function.arguments[0])
        places = dict(zip(own, term.arguments, strict=True))
        return extreme_at(self.graph, array, own[-2:], term.function.name.removesuffix("_marks"), places, sign)

    def _source(
        self, operation: Parameter | NamedCall, operands: tuple[int, ...], name: str, type_: object
    ) -> tuple[LabelledStep, tuple[Var, ...]]:
        """A value with axes that no index of the program names."""
        assert isinstance(type_, Space), type_
        for axis in type_.axes:
            extent_form(axis)
        order = self.orders.get(name) if isinstance(operation, Parameter) else None
        order = order or range(type_.order)
        step = self.graph.emit(operation, operands, [type_.axes[axis] for axis in order], type_.dtype)
        self.graph.unsafe[step] |= isinstance(operation, Parameter) and name in self.partial
        self.graph.exchanges[step] = exchanges(type_, order)
        labels = tuple(Var(f"#{name}.{step}.{n}", axis) for n, axis in enumerate(type_.axes))
        return LabelledStep(step, tuple(labels[axis] for axis in order)), labels

    def _unlet(self, term: Let) -> Term:
        """Bring the bindings into scope, lowering each, and give the body."""
        renaming: dict[Var, Term] = {}
        for var, value in term.bindings:
            value = substitute(value, renaming)
            if var in self.parameters or self.scope.get(var, value) is not value:
                renaming[var] = var = self.names.fresh(var)
            self.scope[var] = value
            array, labels = self.tensor(var)
            if array.labels == labels and not array.conj:
                self.hints.setdefault(array.step, var.name)
        return substitute(term.body, renaming)

    # --- named maps

    def _is_call(self, term: Apply) -> bool:
        return isinstance(type_of(term.function), Function)

    def _named(self, function: Term) -> Var:
        if isinstance(function, Var) and function in self.parameters:
            return function
        raise UnsupportedError("only a map that is a parameter of the program can be called")

    def _call(self, term: Apply) -> tuple[LabelledStep, tuple[Var, ...]]:
        if isinstance(term.function, Lambda):
            return self.tensor(apply(term.function, term.arguments))
        function = self._named(term.function)
        operands = tuple(self.dense(argument) for argument in term.arguments)
        assert isinstance(function.type, Function)
        return self._source(NamedCall(function.name), operands, function.name, function.type.result)

    def _pullback(self, term: Pullback) -> tuple[LabelledStep, tuple[Var, ...]]:
        function = self._named(term.function)
        operands = tuple(self.dense(argument) for argument in (*term.arguments, term.cotangent))
        assert isinstance(function.type, Function)
        space = function.type.arguments[term.position]
        return self._source(NamedCall(function.name, term.position), operands, function.name, space)

    def _solution(self, term: Implicit) -> tuple[LabelledStep, tuple[Var, ...]]:
        """A linear system may have a right side for each of several indices."""
        taken = [var for var in captures(term) if isinstance(var.type, Space)]
        tensors = [self.dense(var) for var in taken]
        value, inner = self.tensor(term.given)
        outer = tuple(label for label in value.labels if label not in inner) if term.kind == "solve" else ()
        given = self.graph.arrange(value, (*outer, *inner)).step if outer else self.dense(term.given)
        axes = (*map(domain_of, outer), *term.space.axes)
        operation = SolveEquation(term.kind, system(term), self._partial(taken, tensors))
        step = self.graph.emit(operation, (given, *tensors), axes, term.space.dtype)
        own = tuple(Var(f"#{term.unknown.name}.{step}.{n}", axis) for n, axis in enumerate(term.space.axes))
        return LabelledStep(step, (*outer, *own)), own

    def _scan(self, term: Scan) -> tuple[LabelledStep, tuple[Var, ...]]:
        """A result of an iteration, which is done once for all of its results."""
        whole = iteration_of(term)
        if whole not in self._iterations:
            found = step_program(term, self.names)
            tensors = [var for var in found.captures if isinstance(var.type, Space)]
            operands = tuple(self.dense(each) for each in (*term.starts, *found.stacks, *tensors))
            states, stacks = len(term.starts), len(found.stacks)
            taken = [p for p in found.system.parameters if isinstance(p.type, Space)]
            partial = self._partial(taken, operands)
            program = self._as_given(found.system, taken[states:], operands[states:])
            ends = None if term.reverse else ending(program, states, stacks)
            operation = Iteration(program, term.steps, states, stacks, term.reverse, partial, ends)
            self._iterations[whole] = self.graph.emit(operation, operands, (), float)
        space = type_of(term)
        assert isinstance(space, Space)
        result = IterationResult(term.kind, term.component)
        step = self.graph.emit(result, (self._iterations[whole],), space.axes, space.dtype)
        labels = tuple(Var(f"#{term.index.name}.{step}.{n}", axis) for n, axis in enumerate(space.axes))
        return LabelledStep(step, labels), labels

    def _as_given(self, program: Lambda, parameters: Sequence[Var], operands: Sequence[int]) -> Lambda:
        """A program whose parameters of complex type are real where real numbers are given for them."""
        real = {
            var: Var(var.name, Space(*var.type.axes))
            for var, n in zip(parameters, operands, strict=True)
            if isinstance(var.type, Space) and var.type.dtype is complex and self.graph.steps[n].kind is not complex
        }
        return Lambda(tuple(real.get(p, p) for p in program.parameters), substitute(program.body, real))

    def _partial(self, parameters: Sequence[Var], operands: Sequence[int]) -> frozenset[str]:
        """The names of those parameters for which something is given that may be infinite or no number somewhere."""
        return frozenset(p.name for p, n in zip(parameters, operands, strict=True) if self.graph.unsafe[n])

    # --- scalars

    def value(self, term: Term) -> LabelledStep:
        """A scalar term as an array over its free indices."""
        factor, value = self.factored(term)
        return self.graph.scale(value, factor)

    def factored(self, term: Term) -> tuple[SizeFactor, LabelledStep]:
        """A scalar term as a number times an array."""
        if term not in self._factored:
            for inner in self._deep_sums(term):
                self._factored[inner] = self._scalar(inner)
            self._factored[term] = self._scalar(term)
        return self._factored[term]

    def _deep_sums(self, term: Term) -> list[Term]:
        """The sums in products in sums of a term that are nested beyond what Python's stack is for, innermost first."""
        found, layer = list[Term](), [term]
        depth = 0
        while layer and isinstance(term, Add | Mul) and (depth or term not in self._looked_into):
            inside = dict.fromkeys(part for node in layer if isinstance(node, Add | Mul) for part in node.children)
            layer = [part for part in inside if part not in self._factored]
            self._looked_into.update(layer)
            found += [part for part in layer if isinstance(part, Add)]
            depth += 1
        return list(dict.fromkeys(reversed(found))) if depth > NESTED else []

    def _scalar(self, term: Term) -> tuple[SizeFactor, LabelledStep]:
        match term:
            case Number():
                return UNIT, self.graph.constant(term)
            case Let():
                return self.factored(self._unlet(term))
            case Mul() | Sum() | Delta() | Indicator() | Unequal():
                return self._sum_of_products(term)
            case Conj():
                factor, value = self.factored(term.body)
                return factor.conjugate(), self.graph.conjugate(value)
            case Add():
                return UNIT, self._added(term)
            case Coordinate(dtype=dtype):
                return UNIT, ramp(self.graph, term.form) if dtype is int else counted(self.graph, term.form)
            case Masked():
                return UNIT, masked(term, self.graph, self.value)
            case Largest():
                return UNIT, largest(term, self.graph, self.value)
            case Shift():
                return UNIT, shift(term, self.graph, self.value)
            case Magnitude():
                return UNIT, magnitude(term, self.graph, self.value)
            case Rescaled():
                return UNIT, rescaled(term, self.graph, self.value)
            case Relation(name=sign, arguments=(Apply() as mark, _)) if is_mark(mark.function):
                return UNIT, self._marked(mark, sign)
            case Relation():
                return UNIT, compared(term, self.graph, self.value)
            case Primitive() if not is_matrix_function(term):
                return UNIT, self._primitive(term)
            case Apply() if not self._is_call(term):
                return UNIT, self._access(term)
        return UNIT, self.tensor(term)[0]

    def _access(self, term: Apply) -> LabelledStep:
        value, parameters = self.tensor(term.function)
        index = dict(zip(parameters, term.arguments, strict=True))
        return self.graph.read(value, [index.get(label, label) for label in value.labels])

    def _added(self, term: Add) -> LabelledStep:
        if found := exp_near_one(term, self.graph, self.value):
            sign, power, rest = found
            parts = [(SizeFactor(Number(sign)), power), *([] if rest is ZERO else [self.factored(rest)])]
            return power if len(parts) == 1 and sign > 0 else self.graph.combine(parts)
        return self.graph.combine([self.factored(part) for part in term.terms])

    def _primitive(self, term: Primitive) -> LabelledStep:
        if near := log_near_one(term, self.graph, self.value) or step_at_tie(term, self.value):
            return near
        row = TABLE.get(term.name)
        if row is None:
            raise UnsupportedError(f"there is no array operation for {term.name}")
        if row.definition is not None:
            return self.value(row.definition(*term.arguments))
        values = [self.value(argument) for argument in term.arguments]
        operations = [self.graph.steps[value.step].operation for value in values]
        numbers = [operation.number for operation in operations if isinstance(operation, Fill)]
        if len(numbers) == len(values):  # a Python number: it must not widen float32 arrays
            return self.graph.constant(number(_evaluated(row, numbers)))
        if term.name in ("real", "imag") and self.graph.kind(*values) is not complex:  # as it has turned out by now
            return values[0] if term.name == "real" else self.graph.constant(ZERO)
        kind = join(self.graph.kind(*values), float)
        kind = float if row.real_valued else kind
        zero_beyond = all(self._is_element(a) for a, value in zip(term.arguments, values, strict=True) if value.labels)
        if not zero_beyond:
            zero_beyond = _evaluated(row, [o.number if isinstance(o, Fill) else ZERO for o in operations]) == 0
        found = read_late(self.graph, term.name, values, kind, zero_beyond=zero_beyond)
        return found or self.graph.broadcast(lambda patterns: ElementwiseStep(term.name, patterns), values, kind)

    def _is_element(self, term: Term) -> bool:
        """Whether a term is an element of an array, to which conditions around it lead.

        What is read beyond the axes of a view, or beside a condition within the term, is 0, and that counts.
        """
        return isinstance(term, Apply) and not isinstance(
            self.graph.steps[self.tensor(term.function)[0].step].operation, ReadStep
        )

    # --- sums of products

    def _sum_of_products(self, term: Term) -> tuple[SizeFactor, LabelledStep]:
        if isinstance(term, Sum) and isinstance(term.body, Add) and len(parts := summands(term.body)) > 1:
            return UNIT, self.graph.combine([self.factored(total(term.indices, part)) for part in parts])
        if isinstance(term, Sum) and (part := with_part_outside(term)):
            return UNIT, self.value(part)
        if whole := self._tiled(term) or self._placed(term) or self._transformed(term) or self._running(term):
            return whole
        product = Product()
        self._collect(term, product, conj=False, taken={var.name for var in term.free}, top=True)
        if product.factor.number is ZERO:
            return UNIT, self.graph.constant(ZERO)
        unwind(self.graph, product, self.names)
        read_looked_up(self.graph, product, self.value)
        if not isfinite(abs(product.factor.number.value())):  # what guards chooses from it: ∞·0 is no number
            labels = tuple(dict.fromkeys(label for value in product.operands for label in value.labels))
            product.operands.append(self.graph.arrange(self.graph.constant(product.factor.number), labels))
            product.reads.append(())
            product.factor = SizeFactor(ONE, product.factor.extents)
        tests = choose_inside(self.graph, product)
        apply_masks(self.graph, product, self.names)
        deposit = look_up(self.graph, product, self.value)
        held = deposit.labels if deposit else set()
        present = {label for value in product.operands for label in value.labels}
        absent = (domain_of(index) for index in product.summed if index not in present | held)
        factor = product.factor.times(SizeFactor(extents=tuple(domain for domain in absent if domain != Range(1))))
        found = self.graph.constant(ONE)
        if product.operands:
            found = joined(self.graph, product.operands, present - (set(product.summed) - held))
        if deposit:
            factor, found = deposit.of(self.graph, factor, found, product.summed)
        found = chosen(self.graph, found, tests)
        if any(isinstance(mask, Delta) for mask in product.masks):  # which spreads fewer numbers over more
            factor, found = UNIT, self.graph.scale(found, factor)
        return factor, kept(self.graph, found, product.masks)

    def _tiled(self, term: Term) -> tuple[SizeFactor, LabelledStep] | None:
        """A Σ in which each value of a free index has one value of a summed one, over tiles that make up that index."""
        found = tiling(term, self.names)
        if found is None:
            return None
        factor, value = self.factored(found.term)
        pair = (found.tile, found.place)
        others = tuple(label for label in value.labels if label not in pair)
        whole = self.graph.arrange(value, (*others, *pair))
        return factor, self.graph.labelled(JoinAxes(), (whole,), (*others, found.whole), self.graph.kind(whole))

    def _placed(self, term: Term) -> tuple[SizeFactor, LabelledStep] | None:
        """A product that is 0 but for every n-th value of an index, computed there and read with zeros between."""
        found = placement(term, self.names)
        if found is None:
            return None
        factor, value = self.factored(found.term)
        if found.index not in value.labels:
            return None
        return factor, self.graph.read(value, [found.position if x is found.index else x for x in value.labels])

    def _running(self, term: Term) -> tuple[SizeFactor, LabelledStep] | None:
        """A Σ of exponentials up to each position, as the element of a tensor beside what is left of the product."""
        found = self._run(term)
        if found is None:
            return None
        extent_form(domain_of(found.index))
        value = found.lowered(self.graph, self.value)
        return self.factored(total(found.indices, mul(found.rest, apply(self._held(value), value.labels))))

    def _transformed(self, term: Term) -> tuple[SizeFactor, LabelledStep] | None:
        """A Σ of waves, as the element of a Fourier transform beside what is left of the product."""
        found = self._wave_sum(term)
        if found is None:
            return None
        value = found.lowered(self.graph, self.value, self.names)
        return self.factored(total(found.indices, mul(found.rest, apply(self._held(value), value.labels))))

    def _held(self, value: LabelledStep) -> Var:
        """A variable of the tensor whose elements a value has at its labels."""
        axes = tuple(map(domain_of, value.labels))
        var = self.names.fresh(Var("s", Space(*axes, dtype=self.graph.kind(value))))
        self._tensors[var] = value, value.labels
        return var

    def _wave_sum(self, term: Term) -> FourierSum | None:
        """A Σ as a Fourier transform; libraries have none of no numbers."""
        if term not in self._waves:
            self._waves[term] = found = fourier_sum(term, self._open)
            if found and not all(extent(domain, self.graph.sizes) for domain in found.domains):
                self._waves[term] = None
        return self._waves[term]

    def _run(self, term: Term) -> RunningExponentials | None:
        """A Σ as a running sum of exponentials."""
        if term not in self._runs:
            self._runs[term] = running_exponentials(term, self._open)
        return self._runs[term]

    def _open(self, term: Term) -> Term:
        """What an element is of that is part of the products that it is in."""
        if isinstance(term, Apply) and isinstance(term.function, Var) and term.function in self.opened:
            return apply(self.scope[term.function], term.arguments)
        if isinstance(term, Conj) and (inner := self._open(term.body)) is not term.body:
            return conj(inner)
        return term

    def _reads(self, term: Term) -> tuple[Read, ...]:
        """The reads of an access outside of which it is 0: not those of axes along which its tensor is constant."""
        step = self.graph.steps[self.factored(term)[1].step]
        if isinstance(term, Primitive) and isinstance(step.operation, ReadStep):  # of elements that are read late
            term = next((one for one in term.arguments if reads(one)), term)
        if not reads(term):
            return ()
        assert isinstance(term, Apply)
        value, parameters = self.tensor(term.function)
        return reads(term, [label in value.labels for label in parameters])

    def _collect(self, term: Term, product: Product, *, conj: bool, taken: set[str], top: bool = False) -> None:
        """Take a product apart; sums and products inside it join it, unless they are used elsewhere too.

        A sum over an index of a name that is taken stays apart: conditions tell indices by their names alone.
        """
        joins = top or self.uses[term] <= 1
        match term:
            case Number():
                product.times(SizeFactor(term).conjugate().number if conj else term)
            case Delta() | Indicator() | Unequal():
                product.add_condition(term)
            case Mul() if joins:
                for part in on_diagonals(term.factors):
                    self._collect(part, product, conj=conj, taken=taken)
            case Sum() if not top and self._is_apart(term):
                self._operand(term, product, conj)
            case Sum() if top or (joins and _apart(term.indices, taken) and not isinstance(term.body, Add)):
                for index in term.indices:
                    extent_form(domain_of(index))
                product.summed += term.indices
                taken.update(index.name for index in term.indices)
                self._collect(term.body, product, conj=conj, taken=taken, top=top)
            case Conj() if joins:
                self._collect(term.body, product, conj=not conj, taken=taken)
            case Primitive(name="power", arguments=(base, exponent)) if exponent is _TWO:
                for _ in range(2):
                    self._operand(base, product, conj)
            case Apply(function=Lambda()) if joins and self.uses[term.function] <= 1 and _may_inline(term):
                self._collect(apply(term.function, term.arguments), product, conj=conj, taken=taken)
            case Apply(function=Var() as var) if var in self.opened:
                part = self._open(term)
                self._collect(part, product, conj=conj, taken=taken, top=isinstance(part, Mul))
            case _:
                self._operand(term, product, conj)

    def _is_apart(self, term: Sum) -> bool:
        """Whether a Σ is computed otherwise than as part of a network."""
        own = tiling(term, self.names) or self._wave_sum(term) or self._run(term)
        return bool(own or with_part_outside(term))

    def _operand(self, term: Term, product: Product, conj: bool) -> None:
        factor, value = self.factored(term)
        product.factor = product.factor.times(factor.conjugate() if conj else factor)
        operation = self.graph.steps[value.step].operation
        if isinstance(operation, Fill):
            constant = SizeFactor(operation.number)
            product.factor = product.factor.times(constant.conjugate() if conj else constant)
        else:
            product.operands.append(self.graph.conjugate(value) if conj else value)
            product.reads.append(self._reads(term))


def _apart(indices: Sequence[Var], taken: set[str]) -> bool:
    return taken.isdisjoint(index.name for index in indices)


def _may_inline(term: Apply) -> bool:
    """Whether arguments may stand for the parameters: on a cycle only as they are, as a parameter there is reduced."""
    assert isinstance(term.function, Lambda)
    pairs = zip(term.function.parameters, term.arguments, strict=True)
    return all(not isinstance(p.type, Cyclic) or (isinstance(a, Var) and a.type == p.type) for p, a in pairs)


def _evaluated(row: Row, numbers: Sequence[Number]) -> Any:
    """A function of numbers, as a Python number; NaN, without a warning, where it is not defined."""
    with np.errstate(all="ignore"):
        return np.asarray(row.numerical()(*(value.value() for value in numbers), *row.fixed)).item()
