"""From the documents of a print to a program: `read(str(f))` has the value of f.

    Sheet(((x,),), (), Σ_i x[i]²)   with x: Space("n")   →   x ↦ Σ_i power(x[i], 2)

A document is a `Denotation`: the domains of its axes, known or not yet, and its elements at given indices, made when
all domains are known. An index takes the domain of an axis that it indexes bare, or the one written with it (`i<n`).

Invariant: each index has one domain, told by the text and the Spaces; where they do not tell it, or contradict each
other, a TextError names the place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from difflib import get_close_matches
from fractions import Fraction
from functools import cached_property, reduce
from itertools import pairwise, permutations, product
from math import inf, nan, pi
from typing import Any

from combdiff.ir import (
    AFTER,
    BEFORE,
    LAST,
    MATRIX_TABLE,
    MINUS_ONE,
    ONE,
    OPPOSITES,
    TABLE,
    Add,
    Apply,
    Coordinate,
    Cyclic,
    Domain,
    Implicit,
    Lambda,
    Mul,
    Number,
    Primitive,
    Pullback,
    Range,
    Real,
    Scan,
    Size,
    Space,
    Sum,
    Symmetric,
    Term,
    Tuple,
    Var,
    Whole,
    add,
    affine,
    apply,
    as_integer,
    canonical_names,
    conj,
    delta,
    denominator,
    divide,
    dtype_of,
    exact,
    exchanged,
    fresh,
    function,
    index_form,
    indicator,
    lambda_,
    let,
    mul,
    negate,
    power,
    power_of,
    relation,
    show_axis,
    size_parts,
    size_sum,
    substitute,
    subterms,
    total,
    type_of,
    unequal,
    used,
)
from combdiff.ir import Function as Map
from combdiff.printing import (
    FOLDS,
    SHOWN_AS,
    Arrow,
    BigFold,
    BigSum,
    Bound,
    Comparison,
    Derivative,
    Division,
    Doc,
    ElementPower,
    ElementProduct,
    FunctionCall,
    Iverson,
    Juxtaposition,
    Literal,
    Marked,
    MatrixProduct,
    Modulo,
    Name,
    Norm,
    Projected,
    Ranging,
    ResultRow,
    Rounded,
    Signed,
    Subscripted,
    Superscript,
    size_names,
)
from combdiff.records import dataclass
from combdiff.text.components import Component, Elements, joined
from combdiff.text.denotations import (
    BoundIndex,
    Cell,
    DefinedTensor,
    Denotation,
    Element,
    NamedTensor,
    Scope,
    Symbol,
    at_point,
    number_of,
    tensor_of,
)
from combdiff.text.formulas import Formula
from combdiff.text.index_forms import (
    Linear,
    Sides,
    at_bounds,
    between,
    combined,
    compared_indices,
    coordinate_of,
    greatest,
    index_alone,
    limit,
    names_of,
    sizes_of,
    term_of,
    variable_of,
)
from combdiff.text.places import Span, TextError
from combdiff.text.recurrences import BoundTensors, MisreadError, Recurrence, blocks, defined

FUNCTIONS = {shown: name for name, shown in SHOWN_AS.items()}
SCANNED = "write last(scan((t, x) ↦ (…,), a), 0): an index and states, what they are after a step, how they begin"
DELTAS = ("δ", "delta")
FOLDED = {shown: name for name, shown in FOLDS.items()}
OF_MATRICES = ("tr", "diag", "sum", "norm1", "norm2", "vector", "matrix")  # in matrix notation alone
SOLUTIONS = {"solve": "a right side", "root": "the start of its search", "argmin": "the start of its search"}
OF_SCANS = (LAST, BEFORE, AFTER)
CALLED = {*DELTAS, *OF_MATRICES, *TABLE, *MATRIX_TABLE, "conj", *SOLUTIONS, *OF_SCANS}  # with round brackets
_SIZE = 'a size is known from the Spaces: cd.read(text, {"x": cd.Space("n")})'
_CONSTANTS = {"inf": inf, "nan": nan, "π": pi}  # names that no tensor has
_ELEMENT = re.compile(r"[\w)\]'ᵀ†]\[")  # index notation reads elements; in matrix notation brackets hold comparisons
SIZES = "nmkpqrs"
RELATIONS = {
    "<": ("less", False),
    "≤": ("less_equal", False),
    "=": ("equal", False),
    ">": ("less", True),
    "≥": ("less_equal", True),
    "≠": ("not_equal", False),
}
"""Comparisons of numbers as relations, some with their sides exchanged."""
STRICT = {"≥": "<", "≤": ">"}  # what is a comparison's opposite where both stand in a text
BY_TENSOR = "by each element divides ./, by a matrix * inv(A)"
TO_TENSOR = "a transpose is A' or Aᵀ; to the power of each element is .^"
MOST_POWERS = 64  # of a matrix, which is written out as a product


@dataclass(frozen=True)
class Printed:
    """The program that a print shows; `inner` names the last parameters where the result is a function of them."""

    term: Lambda
    inner: tuple[str, ...]


def _is_field(tensor: NamedTensor) -> bool:
    """Whether the places at which a tensor has values are real numbers: f(t), where others are read at A[i]."""
    return any(isinstance(cell.domain, Real) for cell in tensor.cells or ())


# --- declarations in front -----------------------------------------------------------------------------------------


# --- what names stand for ------------------------------------------------------------------------------------------


@dataclass
class PrintReader:
    """The documents of one sheet, read to a program: the domains found, the names taken and what is still guessed."""

    source: Formula
    spaces: dict[str, Space | Map]
    scalars: frozenset[str] = frozenset()  # small letters that are no vectors
    parameters: dict[str, NamedTensor | Map] = field(default_factory=dict)
    inner: tuple[str, ...] = ()
    taken: set[str] = field(default_factory=set)
    guesses: list[tuple[Cell, Cell]] = field(default_factory=list)
    limits: list[tuple[BoundIndex, Sides, Sides, list[Cell]]] = field(default_factory=list)
    """Of an index that a Σ limits its least and greatest values, and what it runs over if it is never negative."""
    shown_sizes: dict[str, str] = field(default_factory=dict)  # of those that parameters have the names of
    unwritten: list[Cell] = field(default_factory=list)  # of the axes of 𝟏 and 𝐈
    iterations: list[Recurrence] = field(default_factory=list)
    states: dict[str, NamedTensor] = field(default_factory=dict)
    read_sizes: set[str] = field(default_factory=set)  # names of sizes that ranges have told so far: n of k<n
    ends: list[tuple[Cell, Size]] = field(default_factory=list)
    """Of the steps of a state the numbers at which it is read: the largest may be that of all steps."""

    # --- the whole program -----------------------------------------------------------------------------------------

    def program(self) -> Printed:
        """The program of the sheet."""
        sheet = self.source.sheet
        sizes = {s for space in self.spaces.values() for s in sizes_of(space)}
        scope: dict[str, Symbol] = {size: Whole() for size in sorted(sizes)}
        self.taken |= sizes
        groups, result = self._groups(sheet.groups, sheet.result, bool(sheet.definitions))
        for group in groups:
            for doc in group:
                if not isinstance(doc, Name):
                    raise self.source.error("a parameter is a name", doc, "write (x, y) ↦ … and give their Spaces")
                scope[doc.name] = self.parameter(doc.name)
        self.taken |= {*self.spaces, *self.parameters}
        if not groups:
            for name in self.spaces:
                scope[name] = self.parameter(name)
        self._name_hidden_sizes(sizes, scope)
        self.inner = tuple(doc.name for group in groups[1:] for doc in group if isinstance(doc, Name))
        definitions = self._definitions(scope)
        values = [self.value(item, scope) for item in result.items] if isinstance(result, ResultRow) else None
        one = None if values is not None else self.value(result, scope)
        self.settle()
        variables = tuple(self.variable(name, symbol) for name, symbol in self.parameters.items())
        while True:
            bound = self._bound(definitions)
            widened = [iteration.widened() for iteration in self.iterations]
            if not any(widened):
                break
        body = bound.put(self.term(one) if one else Tuple(tuple(self.items(result, values))))
        return Printed(Lambda(variables, let(used(bound.bindings, body), body)), self.inner)

    def _name_hidden_sizes(self, sizes: set[str], scope: dict[str, Symbol]) -> None:
        """Know sizes that are called like parameters by the names that they are shown with."""
        hidden = sizes & self.parameters.keys()
        taken = {*self.parameters, *sizes, *(defined(left) for left, _ in self.source.sheet.definitions)}
        for size in sorted(hidden):
            name = next(each for each in size_names(size) if each not in taken)
            taken.add(name)
            self.shown_sizes[name], scope[name] = size, Whole()

    def _definitions(self, scope: dict[str, Symbol]) -> list[DefinedTensor]:
        """All definitions as what they denote; the names that they define enter the scope."""
        try:
            definitions = joined(self.source.sheet.definitions, self._hold)
            self.iterations = [
                Recurrence(block)
                for block in blocks(definitions, {name for name, known in scope.items() if isinstance(known, Whole)})
            ]
        except MisreadError as problem:
            raise self._misread(problem) from None
        states = {name: iteration for iteration in self.iterations for name in iteration.block.names}
        found = []
        for n, (left, right) in enumerate(definitions):
            iteration = states.get(defined(left))
            if iteration is None:
                symbol, value = self.definition(left, right, scope)
            else:
                symbol, value = self._of_state(left, right, iteration, scope)
            ends = iteration is not None and n == iteration.block.last
            found.append(DefinedTensor(symbol, value, iteration, is_last=ends))
        return found

    def _misread(self, problem: MisreadError) -> TextError:
        lefts = [left for left, _ in self.source.sheet.definitions if defined(left) == problem.name]
        return self.source.error(
            str(problem), lefts[-1], "write x[0,i] = … and x[t + 1,i] = …, or x[T,i] = … and x[t,i] = … from the end"
        )

    def _of_state(
        self, left: Doc, right: Doc, iteration: Recurrence, scope: dict[str, Symbol]
    ) -> tuple[NamedTensor, Denotation]:
        """The boundary value or the step of a state: `x[0,i] = …`, `x[t + 1,i] = …`, `x[T,i] = …`, `x[t,i] = …`."""
        name, depth = defined(left), iteration.block.depth
        arguments = left.arguments if isinstance(left, Subscripted) else ()
        if len(arguments) <= depth:
            raise self._misread(MisreadError(name, f"{name} has two definitions that are not of one recurrence"))
        place, known = arguments[depth], scope.get(name) if name in self.states else None
        if known is None:
            value = self._defined(left, right, scope, lambda at: (*at[:depth], *at[depth + 1 :]))
            cell = self._boundary(place, iteration, scope)
            symbol = NamedTensor(name, (*value.cells[:depth], cell, *value.cells[depth:]), float)
            self.states[name] = scope[name] = symbol
            self.taken.add(name)
            return symbol, value
        assert isinstance(known, NamedTensor)
        at_step = (lambda each: each) if iteration.reverse else (lambda each: self._step_index(each, name))
        value = self._defined(left, right, scope, lambda at: (*at[:depth], at_step(at[depth]), *at[depth + 1 :]))
        if len(value.cells) != len(known.cells or ()):
            raise self._misread(MisreadError(name, f"{name} has {len(known.cells or ())} indices, and then others"))
        for one, other in zip(value.cells, known.cells or (), strict=True):
            self.join(one, other, left)
        return known, value

    def _boundary(self, place: Doc, iteration: Recurrence, scope: Scope) -> Cell:
        """The cell of the numbers of the steps, from where the boundary value of a state stands."""
        size = self._range_size(place, scope)
        if size is None or (isinstance(size, int) and size < 0):
            raise self.source.error("a boundary value stands at 0 or at the number of steps", place)
        iteration.reverse = size != 0
        others = [self.states[name] for name in iteration.block.names if name in self.states]
        cell = (others[0].cells or ())[iteration.block.depth] if others else Cell()
        if iteration.reverse:
            self.join(cell, Cell(Range(size)), place)
        return cell

    def _step_index(self, place: Doc, name: str) -> Doc:
        """The index t of a place `t + 1`; with its range in `t<n + 1`."""
        match place:
            case Signed(((False, Name() as index), (False, Literal(1, 0)))):
                return index
            case Ranging(Name() as index, "<", Signed((*sizes, (False, Literal(1, 0))))) if sizes:
                size = Signed(tuple(sizes)) if len(sizes) > 1 else sizes[0][1]
                return Ranging(index, "<", size)
        raise self._misread(MisreadError(name, f"a step gives what {name} is at the step after, t + 1"))

    def _bound(self, definitions: Sequence[DefinedTensor]) -> BoundTensors:
        """The definitions as terms, recurrences as scans."""
        bound = BoundTensors()
        for each in definitions:
            value = bound.put(self.term(each.value))
            if each.iteration is None:
                var = self.bound(each.symbol, value)
                if isinstance(var.type, Space) and var.type.dtype is int:
                    bound.inlined[var] = value  # an index is computed where it is used
                elif bound.opened:
                    bound.inside[var] = value
                else:
                    bound.bindings.append((var, value))
            else:
                each.symbol.dtype = each.iteration.dtypes.get(each.symbol.name, float)
                each.symbol.var = None
                var = self.tensor_var(each.symbol)
                try:
                    bound.take(each.iteration, var, value, self.fresh, ends=each.is_last)
                except MisreadError as problem:
                    raise self._misread(problem) from None
        return bound

    def items(self, row: Doc, values: Sequence[Denotation] | None) -> Iterable[Term]:
        """Several results, each of which may be several again."""
        assert values is not None
        return map(self.term, values)

    def _groups(
        self, groups: tuple[tuple[Doc, ...], ...], result: Doc, defined: bool
    ) -> tuple[tuple[tuple[Doc, ...], ...], Doc]:
        """The groups of parameters, and the result with the indices that it is a tensor of."""
        if defined or not groups:
            return groups, result
        kept = 0 if self._are_indices(groups[0]) else 1
        while kept < len(groups) and all(isinstance(doc, Name) and doc.name in self.spaces for doc in groups[kept]):
            kept += 1
        for group in reversed(groups[kept:]):
            inner = result
            result = Arrow(group, inner)
            self.source.spans[id(result)] = self.source.spans.get(id(group[0]), self.source.spans[id(inner)])
            self._held.append(result)
        return groups[:kept], result

    def _are_indices(self, group: tuple[Doc, ...]) -> bool:
        """Whether the first names before ↦ are indices of the result, as in matrix notation: others have Spaces."""
        named = {doc.name for doc in group if isinstance(doc, Name)}
        if len(named) < len(group):
            return True
        used = any(isinstance(doc, Name) and doc.name in self.spaces for doc in self.source.documents)
        return used and named.isdisjoint(self.spaces)

    _held: list[Doc] = field(default_factory=list)

    def _hold(self, new: Doc, old: Doc) -> None:
        """Keep a document that stands for one of the text, at its place."""
        self.source.spans[id(new)] = self.source.spans.get(id(old), Span(0, 0))
        self._held.append(new)

    def parameter(self, name: str) -> NamedTensor | Map:
        """A parameter by its Space, or one whose axes follow."""
        if name not in self.parameters:
            space = self.spaces.get(name)
            if isinstance(space, Map):
                self.parameters[name] = space
            else:
                cells = None if space is None else tuple(map(Cell, space.axes))
                self.parameters[name] = NamedTensor(name, cells, space.dtype if space else float, space)
        return self.parameters[name]

    def variable(self, name: str, symbol: NamedTensor | Map) -> Var:
        """The variable of a parameter."""
        if isinstance(symbol, Map):
            return Var(name, symbol)
        return self.tensor_var(symbol)

    def tensor_var(self, symbol: NamedTensor) -> Var:
        """The variable of a tensor, once its axes are known."""
        if symbol.var is None:
            space = symbol.space or Space(*(c.domain for c in symbol.cells or ()), dtype=symbol.dtype)  # type: ignore[arg-type]
            symbol.var = Var(symbol.name, space)
        return symbol.var

    def definition(self, left: Doc, right: Doc, scope: dict[str, Symbol]) -> tuple[NamedTensor, Denotation]:
        """`t = …` or `t[i] = …`."""
        arguments: tuple[Doc, ...] = ()
        if isinstance(left, Subscripted) and isinstance(left.map, Name):
            name, arguments = left.map.name, left.arguments
        elif isinstance(left, Name):
            name = left.name
        else:
            raise self.source.error("a definition has a name on its left", left, "write t = … or t[i,j] = …")
        if place := next((a for a in arguments if not isinstance(a, Name | Ranging)), None):
            raise self.source.error(
                f"a recurrence gives {name} a boundary value and a step",
                place,
                f"write {name}[0] = … and {name}[t + 1] = …, or t[i] = … for all i",
            )
        value = self._defined(left, right, scope, lambda at: at)
        self.taken.add(name)
        symbol = NamedTensor(name, value.cells, float)
        scope[name] = symbol
        return symbol, value

    def _defined(
        self, left: Doc, right: Doc, scope: Scope, indices: Callable[[tuple[Doc, ...]], tuple[Doc, ...]]
    ) -> Denotation:
        """The value of a definition as a tensor; `indices` takes those of its value from a left side."""
        arguments = indices(left.arguments if isinstance(left, Subscripted) else ())
        if not isinstance(right, Elements):
            return self.value(Arrow(arguments, right) if arguments else right, scope)
        axes = [n for n, each in enumerate(arguments) if isinstance(each, Component)]
        values = [self.value(Arrow(at, one) if at else one, scope) for at, one in right.lines(indices, axes)]
        rest = self.elementwise(left, add, values).cells
        sizes = [Cell(Range(1 + number)) for number in right.numbers[-1]]
        cells = list(rest)
        for axis, cell in zip(axes, sizes, strict=True):
            cells.insert(axis, cell)

        def element(at: tuple[Term, ...]) -> Term:
            own = tuple(each for n, each in enumerate(at) if n not in axes)
            numbered = zip(right.numbers, values, strict=True)
            return add(*(mul(*_at_numbers(at, axes, numbers), value.element(own)) for numbers, value in numbered))

        return Denotation(tuple(cells), element)

    def bound(self, symbol: NamedTensor, value: Term) -> Var:
        """The variable of a definition, its type that of the value."""
        space = type_of(value)
        assert isinstance(space, Space)
        symbol.var = Var(symbol.name, space)
        return symbol.var

    def settle(self) -> None:
        """Give every axis a domain: what is guessed where nothing else tells it, new sizes for parameters' axes."""
        for one, other in self.guesses:
            if one.domain is None or other.domain is None:
                one.join(other)
        outer: dict[BoundIndex, tuple[Sides, Sides]] = {}
        for index, lower, upper, likely in self.limits:  # those of an outer Σ first
            cell = index.cell
            negative = [greatest(combined([(-1, form)])) for form, _ in lower]
            if 0 in negative or None in negative:
                for other in likely:
                    if cell.domain is None or other.domain is None:
                        cell.join(other)
            pairs = product(at_bounds(lower, outer, -1), at_bounds(upper, outer, 1))
            outer[index] = lower, upper
            found = next((domain for one, other in pairs if (domain := between(one, other))), None)
            if cell.domain is None and found is not None:
                cell.join(Cell(found))
        self._settle_unwritten()
        self._settle_steps()
        names = iter([*(s for s in SIZES if s not in self.taken), *(f"n{k}" for k in range(2, 1000))])
        for symbol in self.parameters.values():
            for cell in (symbol.cells or ()) if isinstance(symbol, NamedTensor) else ():
                if cell.domain is None:
                    cell.join(Cell(Range(next(names))))

    def _settle_unwritten(self) -> None:
        """Give 𝟏 and 𝐈 that stand beside nothing the one size that parameters have, where they have one."""
        tensors = [symbol for symbol in self.parameters.values() if isinstance(symbol, NamedTensor)]
        domains = {cell.domain for tensor in tensors for cell in tensor.cells or ()}
        if len(domains) == 1 and None not in domains:
            for cell in self.unwritten:
                if cell.domain is None:
                    cell.join(Cell(*domains))

    def _settle_steps(self) -> None:
        """Give states whose number of steps nothing else tells the one at which they, or all others, are read."""
        for cell, size in sorted(self.ends, key=_latest_first):
            if cell.domain is None and size != 0:
                cell.join(Cell(Range(size)))
        steps = [(self.states[name].cells or ())[i.block.depth] for i in self.iterations for name in i.block.names]
        domains = {cell.domain for cell in steps} - {None}
        for cell in steps:
            if cell.domain is None and len(domains) == 1:
                cell.join(Cell(*domains))
            self.domain(cell, None, "the steps of a recurrence")

    # --- values ----------------------------------------------------------------------------------------------------

    def term(self, value: Denotation) -> Term:
        """The tensor or number that a value is."""
        if value.whole is not None:
            return value.whole()
        if not value.cells:
            return value.element(())
        indices = tuple(self.fresh(Var("i", self.domain(cell, None))) for cell in value.cells)
        return lambda_(indices, value.element(indices))

    def fresh(self, var: Var) -> Var:
        """A variable with a name of its own."""
        new = fresh(var, self.taken)
        self.taken.add(new.name)
        return new

    def domain(self, cell: Cell, doc: Doc | None, name: str = "an index") -> Domain:
        """The domain of a cell. Raises TextError where nothing tells it."""
        if cell.domain is None:
            raise self.source.error(
                f"nothing tells the range of {name}",
                doc or self.source.sheet.result,
                "write it: i<n, |b|≤B, k mod n or t∈ℝ, as in Σ_{i<n} and i<n ↦ …; or give the spaces of the tensors,"
                " as vector(1) and matrix(1) take theirs from what stands beside them",
            )
        return cell.domain

    def scalar(self, doc: Doc, scope: Scope, hint: str = "") -> Denotation:
        """A document that is a number; the hint says how to mend one that is not."""
        value = self.value(doc, scope)
        if value.cells:
            raise self.source.error(f"a number is expected here, not a tensor of order {len(value.cells)}", doc, hint)
        return value

    def value(self, doc: Doc, scope: Scope) -> Denotation:
        """Any document that is a number or a tensor."""
        match doc:
            case Name():
                return self._name(doc, scope)
            case Literal():
                return number_of(lambda: Number(exact(doc.real)))
            case Signed():
                return self._signed(doc, scope)
            case Juxtaposition():
                return self._product(doc, [self.value(factor, scope) for factor in doc.factors])
            case Division():
                parts_ = [self.value(doc.numerator, scope), self.scalar(doc.denominator, scope, BY_TENSOR)]
                return self.elementwise(doc, lambda a, b: mul(a, inverse(b)), parts_, scalars=True)
            case Superscript():
                return self._power(doc, scope)
            case MatrixProduct():
                factors = [self.value(factor, scope) for factor in doc.factors]
                return reduce(lambda one, other: self._matrix_product(doc, one, other), factors)
            case ElementProduct():
                return self._element_product(doc, [self.value(each, scope) for each in (*doc.above, *doc.below)])
            case ElementPower():
                sides = [self.value(doc.base, scope), self.value(doc.exponent, scope)]
                return self.elementwise(doc, power_of, sides, scalars=True)
            case Modulo():
                sides = [self.value(doc.form, scope), self.value(doc.modulus, scope)]
                return self.elementwise(doc, lambda *pair: function("remainder", *pair), sides, scalars=True)
            case Rounded(body, divisor, False):
                return self.elementwise(
                    doc, lambda one: function("floor_divide", one, Number(divisor)), [self.value(body, scope)]
                )
            case Norm():
                return self._norm(doc, self.value(doc.body, scope))
            case Marked(body, "*"):
                return self.elementwise(doc, conj, [self.value(body, scope)])
            case Marked():
                return self._marked(doc, self.value(doc.body, scope), doc.sign)
            case Derivative(body, "'"):
                return self._marked(doc, self.value(body, scope), "ᵀ")
            case FunctionCall():
                return self._function(doc, doc.name, doc.arguments, scope)
            case Subscripted():
                return self._access(doc, scope)
            case Derivative():
                raise self.source.error("a derivative is taken at arguments", doc, "write ∇R(u), s'(z) or ∂₁L(q, v)")
            case BigSum():
                return self._sum(doc, scope)
            case BigFold():
                return self._fold(doc, scope)
            case Projected():
                return self._average(doc, scope)
            case Iverson():
                return self.elementwise(doc, mul, [c for one in doc.conditions for c in self._conditions(one, scope)])
            case Arrow():
                return self._arrow(doc, scope)
            case ResultRow():
                items = [self.value(item, scope) for item in doc.items]
                return Denotation((), self._no_element(doc), lambda: Tuple(tuple(map(self.term, items))))
        raise self.source.error("this is not a number or a tensor", doc)

    def _no_element(self, doc: Doc) -> Element:
        def element(_: tuple[Term, ...]) -> Term:
            raise self.source.error("several results stand where one number is expected", doc)

        return element

    def _signed(self, doc: Signed, scope: Scope) -> Denotation:
        """A sum of tensors of one shape; numbers that stand there as such are added to every element."""
        parts = [(negative, self.value(part, scope)) for negative, part in doc.terms]
        rest = [part for (_, part), (_, value) in zip(doc.terms, parts, strict=True) if not value.cells]
        return self.elementwise(
            doc,
            lambda *terms: add(*(negate(t) if n else t for (n, _), t in zip(parts, terms, strict=True))),
            [part for _, part in parts],
            scalars=all(isinstance(part, Literal) for part in rest),
        )

    def elementwise(
        self, doc: Doc, make: Callable[..., Term], parts: Sequence[Denotation], *, scalars: bool = False
    ) -> Denotation:
        """A function of the elements; numbers beside tensors are the same for each where `scalars` allows them."""
        cells = max((part.cells for part in parts), key=len)
        for part in parts:
            if len(part.cells) != len(cells) and not (scalars and not part.cells):
                raise self.source.error(
                    f"tensors of order {len(cells)} and {len(part.cells)} stand side by side",
                    doc,
                    "only a number as in 1 + x is added to every element; write s * vector(1) + x for a scalar s",
                )
            for one, other in zip(part.cells, cells, strict=False):
                self.join(one, other, doc)
        rows = {part.row for part in parts if len(part.cells) == 1}
        if len(rows) > 1:
            raise self.source.error("a row and a column stand side by side", doc)
        element: Element = lambda at: make(*(part.element(at if part.cells else ()) for part in parts))  # noqa: E731
        return Denotation(cells, element, row=True in rows)

    def join(self, one: Cell, other: Cell, doc: Doc) -> None:
        """Two axes that have one domain."""
        if not one.join(other):
            axes = " and ".join(str(show_axis(cell.domain)) for cell in (one, other) if cell.domain)
            raise self.source.error(f"axes of unlike sizes meet here: {axes}", doc)

    # --- names and products ----------------------------------------------------------------------------------------

    def _name(self, doc: Name, scope: Scope) -> Denotation:
        symbol = scope.get(doc.name)
        match symbol:
            case BoundIndex():
                return number_of(lambda: coordinate_of(variable_of(symbol)))
            case Whole():
                size = self.shown_sizes.get(doc.name, doc.name)
                return number_of(lambda: Coordinate(Var(size, Whole()), int))
            case NamedTensor():
                return self.tensor(symbol, 0)
            case Map():
                raise self.source.error(f"{doc.name} is a map, which takes arguments", doc)
        if doc.name in ("i", "ⅈ"):
            return number_of(lambda: Number(0, 1))
        if doc.name == "𝟏":
            return Denotation((self._unwritten(),), lambda _: ONE)
        if doc.name in ("𝐈", "eye"):
            return Denotation((axis := self._unwritten(), axis), lambda at: delta(at[0], at[1]))
        if doc.name in _CONSTANTS:
            return number_of(lambda: Number(_CONSTANTS[doc.name]))
        if doc.name in self.read_sizes:
            return number_of(lambda: Coordinate(Var(doc.name, Whole()), int))
        if self.source.sheet.groups:
            raise self.source.error(f"{doc.name} is not declared", doc, f"name it before ↦, or bind it in a Σ; {_SIZE}")
        return self.tensor(self._found(doc.name), self._order(doc.name))

    def _unwritten(self) -> Cell:
        """The axis of 𝟏 or 𝐈, whose size is never written."""
        self.unwritten.append(cell := Cell())
        return cell

    def _order(self, name: str) -> int:
        """The order of a whole tensor that nothing declares: A a matrix, x a vector, α and t1 in index notation not."""
        if _ELEMENT.search(self.source.text) or not name[0].isascii() or name in self.scalars:
            return 0
        return 2 if name[0].isupper() else 1

    def _found(self, name: str) -> NamedTensor:
        """A parameter that no head names."""
        symbol = self.parameter(name)
        assert isinstance(symbol, NamedTensor)
        self.taken.add(name)
        return symbol

    def tensor(self, symbol: NamedTensor, order: int) -> Denotation:
        """A parameter or definition as a whole; `order` is that of one whose axes are not known yet."""
        if symbol.cells is None:
            symbol.cells = tuple(Cell() for _ in range(order))
        return Denotation(
            symbol.cells,
            lambda at: Apply(self.tensor_var(symbol), at) if at else self.tensor_var(symbol),
            None if self.states.get(symbol.name) is symbol else lambda: self.tensor_var(symbol),  # by its elements
        )

    def _product(self, doc: Doc, parts: Sequence[Denotation]) -> Denotation:
        """Numbers side by side, at most one tensor among them."""
        if sum(bool(part.cells) for part in parts) > 1:
            raise self.source.error(
                "two tensors stand side by side", doc, "write elements, A[i,j] x[j], or a matrix product, A·x"
            )
        return self.elementwise(doc, mul, parts, scalars=True)

    def _element_product(self, doc: ElementProduct, factors: Sequence[Denotation]) -> Denotation:
        """`x ⊙ y ⊘ z`: products and quotients element by element."""
        over = len(doc.above)
        return self.elementwise(doc, lambda *t: mul(*t[:over], *map(inverse, t[over:])), factors, scalars=True)

    def _matrix_product(self, doc: Doc, one: Denotation, two: Denotation) -> Denotation:
        """`A·x`, `xᵀ·y`, `x·yᵀ`; of numbers with anything, their product."""
        if not one.cells or not two.cells:
            return self.elementwise(doc, mul, [one, two], scalars=True)
        if len(one.cells) > 2 or len(two.cells) > 2:
            raise self.source.error("a matrix product is of vectors and matrices", doc, "write a Σ over indices")
        if len(one.cells) == 1 and not one.row:
            if len(two.cells) == 1 and two.row:
                return Denotation((*one.cells, *two.cells), lambda at: mul(one.element(at[:1]), two.element(at[1:])))
            raise self.source.error(
                "a column stands before a vector or matrix", doc, "write uᵀ·v or u·vᵀ, in ASCII u'*v"
            )
        if len(two.cells) == 1 and two.row:
            raise self.source.error("a row stands behind a matrix or row", doc, "write A·x, or x·yᵀ for a matrix")
        self.join(one.cells[-1], two.cells[0], doc)
        left = len(one.cells) - 1

        def element(at: tuple[Term, ...]) -> Term:
            k = self.fresh(Var("i", self.domain(one.cells[-1], doc)))
            return total([k], mul(one.element((*at[:left], k)), two.element((k, *at[left:]))))

        return Denotation((*one.cells[:-1], *two.cells[1:]), element, row=one.row and len(two.cells) == 2)

    def _marked(self, doc: Doc, body: Denotation, sign: str) -> Denotation:
        """A transpose, an adjoint, an inverse."""
        if sign[0] == "⁻":
            inverted = self._matrix_function(doc, "inv", body) if body.cells else self.elementwise(doc, inverse, [body])
            return inverted if sign == "⁻¹" else self._marked(doc, inverted, {"⁻ᵀ": "ᵀ", "⁻†": "†"}[sign])
        if len(body.cells) > 2:
            raise self.source.error("a transpose is of a vector or matrix", doc)
        conjugated = sign == "†"
        element: Element = lambda at: body.element(at[::-1])  # noqa: E731
        starred: Element = lambda at: conj(body.element(at[::-1]))  # noqa: E731
        return Denotation(
            body.cells[::-1], starred if conjugated else element, row=len(body.cells) == 1 and not body.row
        )

    def _norm(self, doc: Doc, body: Denotation, kind: str = "") -> Denotation:
        """The Euclidean norm of a vector, or Frobenius norm of a matrix."""
        kind = kind or (doc.kind if isinstance(doc, Norm) else "")
        if len(body.cells) != (2 if kind == "F" else 1):
            raise self.source.error("‖ ‖ is the norm of a vector, ‖ ‖_F of a matrix", doc)

        def square(_: tuple[Term, ...]) -> Term:
            at = tuple(self.fresh(Var("i", self.domain(cell, doc))) for cell in body.cells)
            return total(at, power_of(function("abs", body.element(at)), Number(2)))

        return Denotation((), lambda at: function("sqrt", square(at)), square=square)

    def _of_matrices(self, doc: Doc, name: str, body: Denotation) -> Denotation | None:
        """Functions that only matrix notation has: tr, diag, sum, norms, constant vectors and matrices."""
        if name == "norm1":
            size: Element = lambda at: function("abs", body.element(at))  # noqa: E731
            return self._of_matrices(doc, "sum", Denotation(body.cells, size))
        if name == "norm2":
            return self._norm(doc, body, "F" if len(body.cells) == 2 else "")
        if name == "diag" and len(body.cells) == 1:
            return Denotation(body.cells * 2, lambda at: mul(delta(at[0], at[1]), body.element(at[:1])))
        if name in ("tr", "diag") and len(body.cells) == 2:
            self.join(*body.cells, doc)
            diagonal = Denotation(body.cells[:1], lambda at: body.element(at * 2))
            return diagonal if name == "diag" else self._of_matrices(doc, "sum", diagonal)
        if name in ("vector", "matrix") and not body.cells:
            return Denotation(tuple(Cell() for _ in range(1 + (name == "matrix"))), lambda _: body.element(()))
        if name == "sum":

            def element(_: tuple[Term, ...]) -> Term:
                at = tuple(self.fresh(Var("i", self.domain(cell, doc))) for cell in body.cells)
                return total(at, body.element(at))

            return Denotation((), element)
        return None

    def _power(self, doc: Superscript, scope: Scope) -> Denotation:
        """A power of a number, or a whole power of a matrix: A² is A·A, A^-1 the inverse."""
        base, exponent = self.value(doc.base, scope), self.scalar(doc.exponent, scope, TO_TENSOR)
        if base.square and doc.exponent == Literal(2):
            return Denotation((), base.square)
        if not base.cells:
            return self.elementwise(doc, power_of, [base, exponent], scalars=True)
        number = exponent.element(())
        times = number.real if isinstance(number, Number) and not number.imag else None
        if len(base.cells) == 2 and times == -1:
            return self._matrix_function(doc, "inv", base)
        if len(base.cells) == 2 and isinstance(times, int) and 1 <= times <= MOST_POWERS:
            return reduce(lambda one, other: self._matrix_product(doc, one, other), [base] * times)
        raise self.source.error(
            f"^ is a power of a number, or a whole power of a square matrix up to {MOST_POWERS}",
            doc,
            "write .^ or ^∘ for the power of every element",
        )

    # --- accesses and calls ----------------------------------------------------------------------------------------

    def _access(self, doc: Subscripted, scope: Scope) -> Denotation:
        if not doc.round:
            return self.elements(doc, self._accessed(doc, scope), scope)
        match doc.map:
            case Derivative():
                return self._pullback(doc, doc.map, doc.arguments, number_of(lambda: ONE), scope)
            case Marked(Subscripted(Derivative() as derivative, arguments, True), "ᵀ"):
                return self._pullback(doc, derivative, arguments, self._cotangent(doc, scope), scope)
            case Marked(Name() as name, "ᵀ") if isinstance(map_ := scope.get(name.name), Map):
                adjoint = self._cotangent(doc, scope)
                cells = tuple(map(Cell, map_.arguments[0].axes))
                return tensor_of(cells, lambda: Pullback(Var(name.name, map_), 0, (), self.term(adjoint)))
            case Name() as name:
                return self._call(doc, name, scope)
        return self.elements(doc, self.value(doc.map, scope), scope)

    def _accessed(self, doc: Subscripted, scope: Scope) -> Denotation:
        if isinstance(doc.map, Name):
            symbol = scope.get(doc.map.name)
            if isinstance(symbol, NamedTensor):
                return self.tensor(symbol, len(doc.arguments))
            if symbol is None and not self.source.sheet.groups:
                return self.tensor(self._found(doc.map.name), len(doc.arguments))
        return self.value(doc.map, scope)

    def _cotangent(self, doc: Subscripted, scope: Scope) -> Denotation:
        if len(doc.arguments) != 1:
            raise self.source.error("an adjoint takes one argument", doc)
        return self.value(doc.arguments[0], scope)

    def _call(self, doc: Subscripted, name: Name, scope: Scope) -> Denotation:
        """A named map, a field, δ, or a function of the table."""
        symbol = scope.get(name.name)
        if isinstance(symbol, Map):
            given = self._given(doc, name.name, symbol.arguments, doc.arguments, scope)
            var = Var(name.name, symbol)
            return self._lifted(doc, symbol.arguments, symbol.result, given, lambda terms: Apply(var, terms))
        row = FUNCTIONS.get(name.name, name.name)
        if isinstance(symbol, NamedTensor) and (row not in CALLED or _is_field(symbol)):
            return self.elements(doc, self.tensor(symbol, len(doc.arguments)), scope)
        if row in DELTAS:
            return self._delta(doc, scope)
        return self._function(doc, row, doc.arguments, scope)

    def _given(
        self, doc: Doc, name: str, spaces: Sequence[Space], arguments: Sequence[Doc], scope: Scope
    ) -> list[Denotation]:
        if len(spaces) != len(arguments):
            raise self.source.error(f"{name} takes {len(spaces)} arguments, not {len(arguments)}", doc)
        return [self.value(argument, scope) for argument in arguments]

    def _lifted(
        self,
        doc: Doc,
        spaces: Sequence[Space],
        result: Space,
        given: Sequence[Denotation],
        make: Callable[[tuple[Term, ...]], Term],
    ) -> Denotation:
        """A map of arguments; at every point of arguments that are maps themselves: L(r, v) for t ↦ L(r(t), v(t))."""
        more = [len(value.cells) - space.order for value, space in zip(given, spaces, strict=True)]
        extra = max(more, default=0)
        points = given[more.index(extra)].cells[:extra] if extra > 0 else ()
        for value, space, lifted in zip(given, spaces, more, strict=True):
            if lifted not in (0, extra):
                raise self.source.error(f"an argument of order {space.order} is expected, not {len(value.cells)}", doc)
            for cell, other in zip(value.cells, (*points[:lifted], *map(Cell, space.axes)), strict=True):
                self.join(cell, other, doc)
        own = tuple(map(Cell, result.axes))
        if not extra:
            return tensor_of(own, lambda: make(tuple(map(self.term, given))))

        def element(at: tuple[Term, ...]) -> Term:
            terms = [at_point(v, s, at[:extra]) for v, s in zip(given, spaces, strict=True)]
            found = make(tuple(terms))
            return Apply(found, at[extra:]) if at[extra:] else found

        return Denotation((*points, *own), element)

    def _pullback(
        self, doc: Subscripted, derivative: Derivative, arguments: Sequence[Doc], cotangent: Denotation, scope: Scope
    ) -> Denotation:
        """`∇R(u)`, `∂₁L(q, v)`, `s'(z)`, `∂F(u)ᵀ(k)`."""
        assert isinstance(derivative.map, Name)
        map_ = scope.get(derivative.map.name)
        if not isinstance(map_, Map):
            raise self.source.error(f"{derivative.map.name} is not declared as a map", doc)
        position = max(derivative.position - 1, 0)
        given = [*self._given(doc, derivative.map.name, map_.arguments, arguments, scope), cotangent]
        if position >= len(map_.arguments):
            raise self.source.error(f"{derivative.map.name} has {len(map_.arguments)} arguments", doc)
        var = Var(derivative.map.name, map_)
        spaces, result = (*map_.arguments, map_.result if cotangent.cells else Space()), map_.arguments[position]
        return self._lifted(doc, spaces, result, given, lambda t: Pullback(var, position, t[:-1], t[-1]))

    def elements(self, doc: Subscripted, tensor: Denotation, scope: Scope) -> Denotation:
        """An element; an index computed from integer tensors is a sum over the axis with a δ."""
        if len(doc.arguments) != len(tensor.cells):
            raise self.source.error(
                f"a tensor of order {len(tensor.cells)} is read with {len(doc.arguments)} indices", doc
            )
        forms = [self.form(argument, scope) for argument in doc.arguments]
        self._read_at_end(doc, tensor, forms, scope)
        values: dict[int, Denotation] = {}
        steps = self._axis_of_steps(doc, tensor)
        for n, (argument, cell, form) in enumerate(zip(doc.arguments, tensor.cells, forms, strict=True)):
            bare = index_alone(form)
            if bare is not None and not bare.written:
                if n == steps:  # an index of its own may run over the steps and the boundary, or some of them
                    self.guesses.append((bare.cell, cell))
                else:
                    self.join(bare.cell, cell, argument)
            elif form is None:
                values[n] = self._index_value(argument, scope)
            elif isinstance(cell.domain, Real):
                for symbol in form[0]:
                    self.join(symbol.cell, cell, argument) if isinstance(symbol, BoundIndex) else None

        def element() -> Term:
            found = {n: self.fresh(Var("k", self.domain(tensor.cells[n], doc))) for n in values}
            held = {n: self._integer(doc.arguments[n], value.element(())) for n, value in values.items()}
            late = steps in held and _constant(held[steps]) > 0  # x[idx[i] + 1] is what step idx[i] ends with
            shifts = {n: int(late and n == steps) for n in held}
            places = {n: affine([(found[n], 1)], shift) for n, shift in shifts.items()}
            at = tuple(places[n] if form is None else term_of(form) for n, form in enumerate(forms))
            hits = [_hit(found[n], add(value, Number(-shifts[n]))) for n, value in held.items()]
            read_ = tensor.whole and tensor.whole()
            body = apply(read_, at) if read_ is not None else tensor.element(at)
            return total(found.values(), mul(*hits, body))

        return number_of(element)

    def _index_value(self, doc: Doc, scope: Scope) -> Denotation:
        """A number that is an index; a parameter without a Space whose elements are is one of integers."""
        value = self.scalar(doc, scope)
        name = doc.map if isinstance(doc, Subscripted) else doc
        symbol = self.parameters.get(name.name) if isinstance(name, Name) else None
        if isinstance(symbol, NamedTensor) and symbol.space is None:
            symbol.dtype = int
        return value

    def _integer(self, doc: Doc, value: Term) -> Term:
        """A value that stands where an index does."""
        if dtype_of(value) is complex:
            raise self.source.error("an index is an integer, not a complex number", doc, "i is bound by Σ_i or i ↦ …")
        if isinstance(value, Number) and not isinstance(value.real, int):
            raise self.source.error(f"an index is an integer, not {value.real}", doc)
        return value

    def _axis_of_steps(self, doc: Subscripted, tensor: Denotation) -> int | None:
        """The axis of the steps, where a state is read."""
        state = self.states.get(doc.map.name) if isinstance(doc.map, Name) else None
        if state is None or state.cells is not tensor.cells:
            return None
        return next(each.block.depth for each in self.iterations if state.name in each.block.names)

    def _read_at_end(self, doc: Subscripted, tensor: Denotation, forms: list[Linear | None], scope: Scope) -> None:
        """Where a state is read at a number of steps: it may be that of all steps, whose name may be new."""
        depth = self._axis_of_steps(doc, tensor)
        if depth is None:
            return
        size = self._range_size(doc.arguments[depth], scope)
        form = forms[depth]
        index = index_alone((form[0], 0)) if form is not None and form[1] == 1 else None
        if index is not None and index.cell.domain is None:
            self.guesses.append((index.cell, tensor.cells[depth]))  # x[t + 1], of no index with a range of its own
        if size is not None:
            self.ends.append((tensor.cells[depth], size))
            names, offset = size_parts(size)
            coefficients: dict[BoundIndex | str, int | Fraction] = {}
            coefficients.update(names)
            forms[depth] = (coefficients, offset)

    def _delta(self, doc: Subscripted, scope: Scope) -> Denotation:
        if len(doc.arguments) != 2:
            raise self.source.error("δ takes two indices", doc)
        one, two = (self.form(argument, scope) for argument in doc.arguments)
        bare = [index_alone(one), index_alone(two)]
        if bare[0] is not None and bare[1] is not None:
            self.guesses.append((bare[0].cell, bare[1].cell))
        indexed = (one is None) != (two is None)
        known = self._index_value if indexed else self.scalar
        sides = [
            known(argument, scope).element if form is None else lambda _, form=form: term_of(form)
            for argument, form in zip(doc.arguments, (one, two), strict=True)
        ]
        return number_of(lambda: _hit(sides[0](()), sides[1](())))

    def _function(self, doc: Doc, name: str, arguments: Sequence[Doc], scope: Scope) -> Denotation:
        """A primitive, element by element; a matrix function; the solution of an equation."""
        of_matrix = name in MATRIX_TABLE and len(arguments) == 1
        if name in SOLUTIONS and not (of_matrix and not isinstance(arguments[0], Arrow)):  # argmin(x) is a place in x
            return self._solve(doc, name, arguments, scope)
        if name in OF_SCANS:
            return self._scan(doc, name, arguments, scope)
        if name == "vector" and arguments == (Literal(Fraction(1)),):
            return Denotation((Cell(),), lambda _: ONE)
        if of_matrix:
            order = MATRIX_TABLE[name].order
            return self._matrix_function(doc, name, self._of_order(order, arguments[0], scope))
        given = [self.value(argument, scope) for argument in arguments]
        if name == "conj" and len(given) == 1:
            return self.elementwise(doc, conj, given)
        if len(given) == 1 and (found := self._of_matrices(doc, name, given[0])):
            return found
        row = TABLE.get(name)
        if name == "eye":
            raise self.source.error(
                "eye takes no arguments", doc, "write eye or 𝐈 alone: its size is that of what it multiplies"
            )
        if row is None:
            raise self.source.error(f"there is no function {name}", doc, _like(name))
        if row.arity != len(given):
            raise self.source.error(f"{name} takes {row.arity} arguments, not {len(given)}", doc)
        return self.elementwise(doc, lambda *terms: function(name, *terms), given, scalars=True)

    def _of_order(self, order: int, doc: Doc, scope: Scope) -> Denotation:
        """What a matrix function is of: a parameter of which nothing else tells the order is a matrix, or a vector."""
        symbol = scope.get(doc.name) if isinstance(doc, Name) else None
        return self.tensor(symbol, order) if isinstance(symbol, NamedTensor) else self.value(doc, scope)

    def _matrix_function(self, doc: Doc, name: str, matrix: Denotation) -> Denotation:
        row = MATRIX_TABLE[name]
        if len(matrix.cells) < row.order:
            raise self.source.error(f"{name} takes a {'vector' if row.by_rows else 'matrix'}", doc)
        if row.square:
            self.join(matrix.cells[-1], matrix.cells[-2], doc)
        return tensor_of(row.of_result(matrix.cells), lambda: Primitive(name, (self.term(matrix),)))

    def _solve(self, doc: Doc, kind: str, arguments: Sequence[Doc], scope: Scope) -> Denotation:
        """`solve(k ↦ …, b)`, `root(x ↦ …, a)`, `argmin(x ↦ …, a)`: the unknown has the axes of what is given."""
        map_ = arguments[0] if len(arguments) == 2 else None
        if not (isinstance(map_, Arrow) and len(map_.parameters) == 1 and isinstance(map_.parameters[0], Name)):
            raise self.source.error(
                f"{kind} takes a map and {SOLUTIONS[kind]}", doc, f"write {kind}(x ↦ …, a) with {SOLUTIONS[kind]} a"
            )
        given = self.value(arguments[1], scope)
        name = map_.parameters[0].name
        unknown = NamedTensor(name, given.cells, float)
        image = self.value(map_.body, {**scope, name: unknown})
        if len(image.cells) != (0 if kind == "argmin" else len(given.cells)):
            raise self.source.error(f"the map of {kind} gives a tensor of order {len(image.cells)}", map_)
        for one, other in zip(image.cells, given.cells, strict=False):
            self.join(one, other, doc)

        def solution() -> Term:
            start = self.term(given)
            space = type_of(start)
            assert isinstance(space, Space)
            dtype = complex if space.dtype is complex else float
            unknown.var = self.fresh(Var(name, Space(*space.axes, dtype=dtype)))
            return Implicit(kind, Lambda((unknown.var,), self.term(image)), start)

        return tensor_of(given.cells, solution)

    def _scan(self, doc: Doc, kind: str, arguments: Sequence[Doc], scope: Scope) -> Denotation:
        """`last(scan((t, x) ↦ (…,), a), 0)`: a result of an iteration inside an expression."""
        match arguments:
            case (scan, Literal(int() as place, 0)) if (called := _called(scan)) and called[0] in ("scan", "scan_back"):
                name, inside = called
            case _:
                raise self.source.error(f"{kind} takes a scan and which result of its steps", doc, SCANNED)
        match inside:
            case (Arrow((index_doc, *named), ResultRow() as row), *starts):
                names = [each.name for each in named if isinstance(each, Name)]
            case _:
                raise self.source.error("a scan takes its step and how its states begin", doc, SCANNED)
        if not len(named) == len(names) == len(starts) <= len(row.items):
            raise self.source.error(f"a scan of {len(named)} states begins with {len(starts)}", doc, SCANNED)
        if not 0 <= place < (len(starts) if kind != AFTER else len(row.items)):
            raise self.source.error(f"there is no result {place} of these steps", doc, SCANNED)
        index, given = self.index(index_doc, scope), [self.value(start, scope) for start in starts]
        states = [NamedTensor(each, start.cells, float) for each, start in zip(names, given, strict=True)]
        inner = {**scope, index.name: index, **{state.name: state for state in states}}
        steps = [self.value(item, inner) for item in row.items]
        for one, other in zip(steps, given, strict=False):
            if len(one.cells) != len(other.cells):
                raise self.source.error(
                    f"a state of order {len(other.cells)} has order {len(one.cells)} after a step", row
                )
            for cell, at_start in zip(one.cells, other.cells, strict=True):
                self.join(cell, at_start, doc)

        def iteration() -> Term:
            first = tuple(map(self.term, given))
            complex_ = {n for n, start in enumerate(first) if _is_complex(start)}
            while True:  # a state is complex where it begins so, or a step makes it so
                for n, (state, start) in enumerate(zip(states, first, strict=True)):
                    axes = _space_of(start).axes
                    state.var = self.fresh(Var(state.name, Space(*axes, dtype=complex if n in complex_ else float)))
                entered = self.enter([index])
                outputs = tuple(map(self.term, steps))
                found = {n for n, _ in enumerate(states) if _is_complex(outputs[n])} - complex_
                if not found:
                    step = Lambda((*entered, *(self.tensor_var(state) for state in states)), Tuple(outputs))
                    return Scan(step, first, kind, place, reverse=name == "scan_back")
                complex_ |= found

        stacked = () if kind == LAST else (index.cell,)
        return tensor_of((*stacked, *(given[place] if kind != AFTER else steps[place]).cells), iteration)

    # --- sums and abstractions -------------------------------------------------------------------------------------

    def index(self, doc: Doc, scope: Scope) -> BoundIndex:
        """An index that is bound here, with its domain where it is written."""
        if isinstance(doc, Name):
            return BoundIndex(doc.name, Cell(), doc)
        if not isinstance(doc, Ranging):
            raise self.source.error("an index that is bound is a name", doc, "write t[i,j] = … or (i, j) ↦ …")
        if doc.sign == "∈":
            return BoundIndex(doc.name.name, Cell(Real()), doc, written=True)
        size = self._range_size(doc.size, scope)
        if size is None or (isinstance(size, str) and doc.sign != "<" and not size.isidentifier()):
            raise self.source.error("the size of a range is a whole number, a name, or a sum of them", doc)
        kind: Any = {"<": Range, "≤": Symmetric, "mod": Cyclic}[doc.sign]
        return BoundIndex(doc.name.name, Cell(kind(size)), doc, written=True)

    def _range_size(self, doc: Doc, scope: Scope) -> Size | None:
        """A size: names that stand for nothing else are names of sizes."""
        names = {name: Whole() for name in names_of(doc) if not isinstance(scope.get(name), BoundIndex | NamedTensor)}
        form = self.form(doc, {**scope, **names})
        if form is None or not all(isinstance(symbol, str) for symbol in form[0]):
            return None
        if not all(isinstance(value, int) for value in (*form[0].values(), form[1])):
            return None
        self.read_sizes |= form[0].keys()  # type: ignore[arg-type]
        return size_sum((form[1], 1), *form[0].items())  # type: ignore[arg-type]

    def enter(self, indices: Iterable[BoundIndex]) -> tuple[Var, ...]:
        """New variables for indices, which stand for them in the terms made next."""
        entered = []
        for index in indices:
            index.var = self.fresh(Var(index.name, self.domain(index.cell, index.doc, index.name)))
            entered.append(index.var)
        return tuple(entered)

    def _sum(self, doc: BigSum, scope: Scope) -> Denotation:
        inner = dict(scope)
        indices: list[BoundIndex] = []
        conditions: list[Callable[[], Term]] = []
        for variable in doc.variables:
            indices.append(BoundIndex(variable.name, Cell(Real()), variable))
        for bound in doc.indices:
            indices.append(self.index(bound.name, inner))
        for index in indices:
            inner[index.name] = index
        for bound, index in zip(doc.indices, indices[len(doc.variables) :], strict=True):
            conditions += self._limits(bound, index, inner)
        body = self.scalar(doc.body, inner)

        def element() -> Term:
            entered = self.enter(indices)
            limits, inner = [condition() for condition in conditions], body.element(())
            if isinstance(inner, Sum):  # Σ_i [i ≤ n] Σ_j … is one sum
                return total((*entered, *inner.indices), mul(*limits, inner.body))
            return total(entered, mul(*limits, inner))

        return number_of(element)

    def _fold(self, doc: BigFold, scope: Scope) -> Denotation:
        """`max_j x[i,j]`: a function of the matrix of the numbers for one index, or for two."""
        ordered = [bound for bound in doc.indices if bound.lower is not None]
        others = [other for bound in doc.indices for other in bound.apart]
        if len(doc.indices) > (1 if ordered or others else 2) or len(others) > 1:
            raise self.source.error(f"{doc.sign} is over one index, or over two without bounds", doc)
        name = FOLDED.get((doc.sign, "running" if ordered else "others" if others else ""))
        if name is None:
            raise self.source.error(f"{doc.sign} is over all of a range", doc, f"write {doc.sign}_j x[j]")
        indices = [self.index(bound.name, scope) for bound in doc.indices]
        body = self.scalar(doc.body, {**scope, **{index.name: index for index in indices}})
        places = [self._known_form(other, scope) for other in others]
        for bound in ordered:
            if bound.lower != Literal(0) or bound.upper is None:
                raise self.source.error("a product up to an index begins at 0", doc, "write Π_{j=0}^{i} x[j]")
            places.append(self._known_form(bound.upper, scope))
        self.guesses += [(indices[0].cell, bare.cell) for place in places if (bare := index_alone(place)) is not None]

        def element() -> Term:
            entered = self.enter(indices)
            unit = () if len(entered) == 2 else (self.fresh(Var("f", Range(1))),)
            rows = (*unit, *entered) if ordered else (*entered, *unit)
            found: Term = Primitive(name, (Lambda(rows, body.element(())),))
            first = affine([], 0)
            at = [(first, term_of(place)) if ordered else (term_of(place), first) for place in places]
            return Apply(found, at[0]) if at else found

        return number_of(element)

    def _average(self, doc: Projected, scope: Scope) -> Denotation:
        """`Alt_{i,j} t`: the mean of t over the orders of its groups of indices, with signs and conjugates."""
        groups = [[self._exchanged(index, scope) for index in group] for group in doc.groups]
        for indices in zip(*groups, strict=True):
            self.guesses += pairwise(index.cell for index, _ in indices)
        body = self.scalar(doc.body, scope)
        sign, starred = (-1 if doc.name in ("Alt", "SkewHerm") else 1), doc.name.endswith("Herm")

        def element() -> Term:
            own = list(dict.fromkeys(index for group in groups for index, _ in group))
            averaged, bindings = self._bound_over(own, body)
            terms = []
            for order in permutations(range(len(groups))):
                odd = sum(a > b for n, a in enumerate(order) for b in order[n:]) % 2
                moved = [(groups[n], groups[to]) for n, to in enumerate(order)]
                places = [pair for one, other in moved for pair in zip(one, other, strict=True)]
                given = {
                    variable_of(index): affine([(variable_of(other), a * b)], 0) for (index, a), (other, b) in places
                }
                image = substitute(averaged, given)
                terms.append(mul(Number(sign if odd else 1), conj(image) if starred and odd else image))
            return let(bindings, mul(Number(Fraction(1, len(terms))), add(*terms)))

        return number_of(element)

    def _exchanged(self, doc: Doc, scope: Scope) -> tuple[BoundIndex, int]:
        """An index that an average exchanges, or its negative: the index and the sign."""
        form = self._known_form(doc, scope)
        for sign in (1, -1):
            if (index := index_alone(combined([(sign, form)]))) is not None:
                return index, sign
        raise self.source.error("an average exchanges indices and their negatives", doc, "write Sym_{i,-j} A[i,j]")

    def _bound_over(self, indices: Sequence[BoundIndex], body: Denotation) -> tuple[Term, list[tuple[Var, Term]]]:
        """A number as an element of a tensor of some indices, and the binding of that; none for what is read."""
        term = body.element(())
        if isinstance(term, Apply | Number | Var):
            return term, []
        given = tuple(map(variable_of, indices))
        own = tuple(self.fresh(var) for var in given)
        name = self.fresh(Var("t", Space(*(var.type for var in given), dtype=dtype_of(term))))  # type: ignore[arg-type]
        return Apply(name, given), [(name, Lambda(own, substitute(term, dict(zip(given, own, strict=True)))))]

    def _limits(self, bound: Bound, index: BoundIndex, scope: Scope) -> Iterable[Callable[[], Term]]:
        """The conditions that the bounds of an index state."""
        for other in bound.apart:
            form = self._known_form(other, scope)
            yield lambda form=form: unequal(affine([(variable_of(index), 1), (term_of(form), -1)]))  # type: ignore[misc]
        if bound.lower is None or bound.upper is None:
            return
        for doc, sign in ((bound.lower, 1), (bound.upper, -1)):
            for form, divisor in self._sides(doc, "max" if sign > 0 else "min", scope):
                yield lambda f=form, d=divisor, s=sign: limit(affine([(variable_of(index), s * d), (term_of(f), -s)]))  # type: ignore[misc]
        self._guess_range(bound, index, scope)

    def _sides(self, doc: Doc, fold: str, scope: Scope) -> Sides:
        """`max(a, ⌈b/2⌉)` as the forms and divisors that it is the greatest of."""
        if isinstance(doc, Subscripted) and isinstance(doc.map, Name) and doc.map.name == fold:
            return [side for argument in doc.arguments for side in self._sides(argument, fold, scope)]
        if isinstance(doc, Rounded):
            return [(self._known_form(doc.body, scope), doc.divisor)]
        return [(self._known_form(doc, scope), 1)]

    def _guess_range(self, bound: Bound, index: BoundIndex, scope: Scope) -> None:
        """A domain that holds the range of an index, where nothing else tells its domain: 0 … what bounds it above."""
        assert bound.lower is not None
        assert bound.upper is not None
        lower, upper = self._sides(bound.lower, "max", scope), self._sides(bound.upper, "min", scope)
        likely: list[Cell] = []
        self.limits.append((index, lower, upper, likely))
        for (coefficients, offset), divisor in upper:
            sizes = [s for s in coefficients if isinstance(s, str)]
            bare = index_alone((coefficients, offset))
            if divisor == 1 and bare is not None:
                likely.append(bare.cell)
            elif not coefficients and isinstance(offset, int) and offset >= 0:
                likely.append(Cell(Range(offset // divisor + 1)))
            elif divisor == 1 and len(sizes) == len(coefficients) == 1 and coefficients[sizes[0]] == 1 and offset == -1:
                likely.append(Cell(Range(sizes[0])))

    def _arrow(self, doc: Arrow, scope: Scope) -> Denotation:
        """A tensor or field by its elements."""
        indices = [self.index(parameter, scope) for parameter in doc.parameters]
        body = self.value(doc.body, {**scope, **{index.name: index for index in indices}})

        def whole() -> Term:
            entered = self.enter(indices)
            inner = self.term(body)
            if not body.cells or isinstance(inner, Lambda | Tuple):
                return lambda_(entered, inner)
            own = tuple(self.fresh(Var("i", self.domain(cell, doc))) for cell in body.cells)
            return lambda_((*entered, *own), apply(inner, own))  # a map's value for each index

        return tensor_of((*(index.cell for index in indices), *body.cells), whole)

    # --- indices ---------------------------------------------------------------------------------------------------

    def _known_form(self, doc: Doc, scope: Scope) -> Linear:
        form = self.form(doc, scope)
        if form is None:
            raise self.source.error("an index expression of indices and whole numbers is expected here", doc, _SIZE)
        return form

    def form(self, doc: Doc, scope: Scope) -> Linear | None:
        """An index expression; None for what holds anything but indices, sizes and numbers."""
        match doc:
            case Name():
                symbol = scope.get(doc.name)
                if isinstance(symbol, BoundIndex):
                    return {symbol: 1}, 0
                return ({self.shown_sizes.get(doc.name, doc.name): 1}, 0) if isinstance(symbol, Whole) else None
            case Literal(int() | Fraction() as value, 0):
                return {}, value
            case Literal(float() as value, 0) if value.is_integer():
                return {}, int(value)  # 1e3
            case Signed():
                parts = [(negative, self.form(part, scope)) for negative, part in doc.terms]
                known = [(-1 if negative else 1, part) for negative, part in parts if part is not None]
                return combined(known) if len(known) == len(parts) else None
            case Juxtaposition((one, two)) | MatrixProduct((one, two)):
                number, form = self.form(one, scope), self.form(two, scope)
                return None if number is None or form is None or number[0] else combined([(number[1], form)])
            case Division(above, Literal(int() as divisor, 0)) if divisor:
                form = self.form(above, scope)
                return None if form is None else combined([(Fraction(1, divisor), form)])
        return None

    def _conditions(self, doc: Comparison, scope: Scope) -> Iterator[Denotation]:
        """What is 1 where each comparison of a chain holds: of indices where both sides are, of values otherwise."""
        if doc.signs in (("=",), ("≠",)) and isinstance(remainder := doc.sides[0], Modulo):
            form, rest = (self.form(side, scope) for side in (remainder.form, doc.sides[1]))
            modulus = remainder.modulus
            number = modulus.real if isinstance(modulus, Literal) and isinstance(modulus.real, int) else 0
            size = self._range_size(modulus, scope) if doc.signs == ("≠",) and (number or rest == ({}, 0)) else None
            if form is not None and rest is not None and size:
                yield number_of(lambda: unequal(affine([(term_of(form), 1), (term_of(rest), -1)]), Cyclic(size)))
                return
            if form is None or rest is None or number < 1:
                yield self._comparison(doc, (remainder, doc.sides[1]), doc.signs[0], scope)
                return
            yield number_of(lambda: indicator(affine([(term_of(form), 1), (term_of(rest), -1)]), number))
            return
        for sides, sign in zip(pairwise(doc.sides), doc.signs, strict=True):
            yield self._comparison(doc, sides, sign, scope)

    def _comparison(self, doc: Comparison, sides: tuple[Doc, Doc], sign: str, scope: Scope) -> Denotation:
        """Two sides compared; `a ≥ b` beside `a < b` is what holds where that does not, also where one is no number."""
        one, two = (self.form(side, scope) for side in sides)
        if one is not None and two is not None and (one[0] or two[0]):
            return number_of(lambda: compared_indices(one, sign, two))
        if sign not in RELATIONS:
            raise self.source.error(f"numbers are not compared by {sign}", doc)
        name, mirrored = RELATIONS[sign]
        if sign in STRICT and (sides[0], STRICT[sign], sides[1]) in self.compared:
            strict, mirrored = RELATIONS[STRICT[sign]]
            name = OPPOSITES[strict]
        values = [self.value(side, scope) for side in (reversed(sides) if mirrored else sides)]
        return self.elementwise(doc, lambda *pair: _related(name, *pair), values, scalars=True)

    @cached_property
    def compared(self) -> set[tuple[Doc, str, Doc]]:
        """All comparisons of two sides in the text."""
        chains = [doc for doc in self.source.documents if isinstance(doc, Comparison)]
        return {each for doc in chains for each in zip(doc.sides, doc.signs, doc.sides[1:], strict=False)}


# --- terms ---------------------------------------------------------------------------------------------------------


def _like(name: str) -> str:
    """Which functions a name that none has may stand for."""
    known = {
        "trace": "tr(A)",
        "Tr": "tr(A)",
        "norm": "norm2(x) or norm1(x)",
        "ln": "log(x)",
        "lgamma": "gammaln(x)",
        "loggamma": "gammaln(x)",
        "cot": "1 / tan(x)",
        "sec": "1 / cos(x)",
        "csc": "1 / sin(x)",
        "ones": "vector(1) or matrix(1)",
        "identity": "eye",
        "transpose": "A' or Aᵀ",
        "inverse": "inv(A)",
    }
    near = known.get(name) or " or ".join(f"{found}(…)" for found in get_close_matches(name, sorted(CALLED), 2, 0.7))
    if near:
        return f"write {near}"
    loaded = f"cd.primitive({name!r}, rules=[…])"
    return f"a tensor's name stands alone, or as x[i]; a function of a rule file is loaded by {loaded}"


def _related(name: str, left: Term, right: Term) -> Term:
    """Two numbers compared; `x[k] = max_j x[j]` is the mark of one of the largest elements."""
    if name in ("equal", "not_equal") and isinstance(right, Primitive) and right.name in ("amax", "amin"):
        (matrix,) = right.arguments
        place = _place_in(matrix, left) if isinstance(matrix, Lambda) else None
        if place is not None:
            return relation(name, Apply(Primitive(f"{right.name}_marks", (matrix,)), place), ONE)
    return relation(name, left, right)


def _place_in(matrix: Lambda, element: Term) -> tuple[Term, ...] | None:
    """The indices at which a matrix has an element, found among those that are read in it; None where none are."""
    reads = [index for part in subterms(element) if isinstance(part, Apply) for index in part.arguments]
    first = affine([], 0)
    own = [v for v in matrix.parameters if v in matrix.body.free and v.type != Range(1)]
    tried = [list(dict.fromkeys(reads)) if v in own else [first] for v in matrix.parameters]
    wanted = canonical_names(element)
    for place in product(*tried):
        found = substitute(matrix.body, dict(zip(matrix.parameters, place, strict=True)))
        if canonical_names(found) == wanted:
            return place
    return None


def _latest_first(end: tuple[Cell, Size]) -> tuple[bool, int]:
    """The order of numbers of steps at which states are read: n, n - 1, and then 5, 4, …"""
    names, offset = size_parts(end[1])
    return not names, -offset


def _called(doc: Doc) -> tuple[str, tuple[Doc, ...]] | None:
    """A call of a function as its name and arguments."""
    match doc:
        case FunctionCall(name, arguments) | Subscripted(Name(name), arguments, True):
            return name, arguments
    return None


def _space_of(term: Term) -> Space:
    space = type_of(term)
    assert isinstance(space, Space)
    return space


def _is_complex(term: Term) -> bool:
    return _space_of(term).dtype is complex


def _at_numbers(at: tuple[Term, ...], axes: Sequence[int], numbers: Sequence[int]) -> list[Term]:
    """δ's of indices with the numbers of a line."""
    return [delta(at[axis], affine([], number)) for axis, number in zip(axes, numbers, strict=True)]


def inverse(term: Term) -> Term:
    """1 / term, as the powers that print as denominators."""
    if isinstance(term, Mul):
        return mul(*map(inverse, term.factors))
    if isinstance(term, Primitive) and term.name == "power" and isinstance(exponent := term.arguments[1], Number):
        return power(term.arguments[0], mul(MINUS_ONE, exponent))
    return divide(ONE, term)


def _hit(left: Term, right: Term) -> Term:
    """δ(left, right) of what is divided: x[⌊(i/2)/3⌋] is x[⌊i/6⌋], x[(i/2) mod 3] is 0 for an odd i, as x[i/2] is."""
    whole: dict[Term, Term] = {}
    guards: list[Term] = []
    for node in (*subterms(left), *subterms(right)):
        if not isinstance(node, Primitive) or node.name not in ("remainder", "floor_divide"):
            continue
        form = index_form(node.arguments[0], around=True, fractions=True)
        if form is None or (scale := denominator(form)) == 1:
            continue
        multiple = affine([(form, scale)])
        if node.name == "floor_divide":
            whole[node] = function(node.name, as_integer(multiple), mul(Number(scale), node.arguments[1]))
        else:
            whole[node] = function(node.name, as_integer(form), node.arguments[1])
            guards.append(indicator(multiple, scale))
    return mul(*guards, delta(exchanged(left, whole), exchanged(right, whole)))


def _constant(value: Term) -> int:
    """The whole number in a sum of integers."""
    parts = value.terms if isinstance(value, Add) else (value,)
    return sum(part.real for part in parts if isinstance(part, Number) and isinstance(part.real, int))
